"""One training process, started as `python -m ftui.train VERB DIRECTORY`; nothing imports this room.

`run.toml` in the directory decides everything it does. It writes only the files of its directory: series, checkpoints,
predictions, gate rows, outcome. Imports plan, record, machine, data; never textual.

    __main__.py        verbs, exit codes, what becomes of an exception
    process.py         backend, seeds and signals of this process; the accelerator and its guard
    task.py            what a task has to say: targets, loss, predictions, scores
    classification.py  text classification
    model.py           base model, method, which parameters train
    order.py           which examples belong to which update
    update.py          one optimizer update, normalised over its targets
    loop.py            updates, validations, checkpoints, stop rules, in order
    rules.py           the plan's causes to end a run early
    checkpoint.py      complete or absent; exact resume
    evaluate.py        predictions and metrics of one split
    memory.py          memory and time between synchronised boundaries
    pilot.py           the gates
    export.py          the artefact, reloaded and compared
"""
