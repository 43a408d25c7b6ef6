"""What was decided: `campaign.toml` as typed models, and the arithmetic that follows from it.

Pure: reads one file, computes, writes nothing. Imports no other room, no torch, no textual, no transformers, so that the
same models serve the command line, the app, the supervisor and the training process.

    schema.py    the sections of a plan and what each field means
    names.py     what a name of a module in the plan means
    load.py      TOML to a `Plan`, with every problem at once and its line in the file
    provisional.py  a half-written plan made whole, with the names of what stands in
    batch.py     micro-batch × accumulation × replicas, updates, examples, epochs
    variants.py  what a variant changes, and the plan that results
    followup.py  a run with other settings than the one it follows
    budget.py    hours by phase, what fits, what must be reserved
    rental.py    the rental laid out in time: hours for its length, its stretches, and a bar of them
    durations.py how long a run takes, from what its operations cost
    predicted.py what operations cost on a device that nobody has measured, with what is assumed
    cuts.py      what could be cut so that all runs fit, and what that does to the experiment
    detect.py    what one paired comparison can tell: chances and smallest differences
    power.py     what the planned evaluation can show, and what it cannot
    grid.py      variants from values of fields, and a grid as a person writes it
    settings.py  `run.toml`: every setting of one run, frozen
    remedies.py  what can be changed when memory runs out, and what that does to the experiment
    describe.py  a plan in words and plain values: what `ftui plan` prints
    describe_rental.py  the part of it that is about time and money
    draft.py     the text of a plan on its way, changed field by field
    fields.py    kind, choices and default of every field, from the models
    starting.py  what a new plan begins with, and what one answer changes besides itself
    numbers.py   numbers as a person types them
    edit.py      fields changed in the text a person wrote
    places.py    on which line of the file a field stands
    example.py   the commented plan that `ftui new` writes
"""
