"""Files to rows, cleaning, splits, duplicates and encoded examples: what the model will see, fixed before it is trained.

Imports plan and record; never torch or transformers, so that data can be checked on any machine. Nothing is skipped unseen:
what cannot be used becomes a finding with its file, line, field and a way out, and all findings come at once.

    findings.py    what was noticed, and the error that carries it
    sources.py     paths and globs of the plan to files with content hashes
    hub.py         a data set of the hub at a pinned revision, from its cache or from the hub
    records.py     one file's bytes to records, by the ending of its name
    lines.py       bytes to lines of text: encoding, line ends, length
    jsons.py       JSON Lines and JSON arrays
    separated.py   CSV and TSV
    tables.py      Parquet
    reading.py     one file to the cleaned rows of the plan's task, and rows that are left out
    rows.py        records to rows: text, label, id, unit
    dialogues.py   records to chats: prompt and answer, messages, a text and its fields
    form.py        the JSON schema of an answer, and how one is judged
    pictures.py    records and folders to pictures and their labels
    clean.py       named, versioned rules applied to every text
    split.py       train, validation and test, cut by unit, by time or in proportion
    leaks.py       units in two splits, times out of order, units nobody named
    duplicates.py  equal texts within and across splits, and the plan's policy for them
    shingles.py    texts as sets of trigrams, and how much two share
    minhash.py     which texts may be similar
    partners.py    for each text a similar one in every split, confirmed
    near.py        almost equal texts within and across splits, and the plan's policy for them
    labels.py      categories in class order
    prepare.py     all of the above: checked (`check_data`), or written as a data version (`prepare`)
    store.py       the files of a data version
    bases.py       base models that are on this machine already
    base.py        where the base model's files are, and that they are the right ones
    tokenizer.py   the base model's tokenizer, without transformers
    template.py    the base model's chat template, in a sandbox
    coded.py       a row as tokens
    chat.py        a chat to tokens and the positions that carry loss
    encoders.py    which encoder a task has
    encode.py      encoded rows in Arrow files, memory-mapped by every run
    order.py       which examples belong to which update and micro-batch
    facts.py       what the encoded rows are, counted over all of them
    explain.py     one example token by token
    transform.py   what the model's processor does to a picture, in words
    inspection.py  data as the loss will see it, whatever is wrong with it
    inspection_text.py  the same in words and aligned lines
    headers.py     the base model's parameters by name and shape, without a weight
    families.py    how a task's model is built from them, for the families that are known
    modules.py     its modules, and the short names a plan can mean them by
    trainable.py   how many parameters a method trains of it
    base_facts.py  all of that about the base of a plan
    candidates.py  files that could be a campaign's data
    columns.py     what their columns look like, and which a task would read
    scout.py       what fits a half-written plan, as one document
    examples.py    the examples of an inspection, chosen and shown one by one
    __main__.py    `python -m ftui.data`: prepare a campaign's data, inspect it, or scout for a plan
"""
