"""One training process, started as `python -m ftui.train VERB DIRECTORY`; nothing imports this room.

`run.toml` in the directory decides everything it does. It writes only the files of its directory: series, checkpoints,
predictions, gate rows, outcome. Imports plan, record, machine, data; never textual.

    __main__.py        verbs, exit codes, what becomes of an exception
    process.py         backend, seeds and signals of this process; the accelerator and its guard
    task.py            what a task has to say: targets, loss, predictions, scores
    categories.py      what both classifications share: loss, predictions, scores
    classification.py  text classification
    generation.py      writing answers
    extraction.py      writing JSON objects of a form
    tasks.py           which task a run has
    images.py          image classification
    pretrained.py      the base model's folder into memory
    quantised.py       a base in 4 bits (QLoRA)
    targets.py         which modules get an adapter
    model.py           base model, method, which parameters train
    update.py          one optimizer update, normalised over its targets
    loop.py            updates, validations, checkpoints, stop rules, in order
    rules.py           the plan's causes to end a run early
    checkpoint.py      complete or absent; exact resume
    evaluate.py        predictions and metrics of one split
    memory.py          memory and time between synchronised boundaries
    gates.py           one gate: measured, under a time limit, written down
    pilot.py           the gates of a campaign, in three processes
    tiny.py            a handful of examples learnt by heart
    shortage.py        what ran out of memory, and where
    fit.py             the largest micro-batch that fits
    moved.py           did exactly the parameters change that were meant to
    instructions.py    the artefact's README
    predict.py         memory and arithmetic of a step that nobody has run yet
    fake.py            tensors without numbers, with a GPU's arithmetic
    ledger.py          bytes of live tensors by what they are for
    control.py         control inputs: answers kept, and compared after a reload
    export.py          the artefact, reloaded and compared
"""
