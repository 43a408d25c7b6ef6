"""What happened: the files of a campaign's directory, their writers, and readers that never need a writer's help.

Each file has one writer, is append-only or replaced whole, and says its schema in its first line. A torn last line is ignored
by readers and cut by the next writer. Imports plan only; no torch, no textual, so a copied record reads anywhere.

    layout.py    names of all files and folders of a campaign
    files.py     atomic replace, locked append, hashing
    lines.py     JSON Lines: one writer, cursor readers, torn tails
    journal.py   the campaign's truth: every event, in order
    state.py     the journal folded into what a person asks about
    series.py    updates and validation points of one run
    rows.py      gate rows, predictions, outcomes, machine samples
    estimates.py durations measured by the gates, as the budget needs them
    spent.py     what runs have really cost, and the costs of all by that
    preflight.py the gates as plain values and as lines
    summary.py   what is going on, as plain values and as a few lines
    backup.py    what is safe elsewhere, and what is not yet
    news.py      what a person is called for
    requests.py  wishes of people, one small file each
    notebook.py  decisions and observations of people, dated
    text.py      text from models and logs made safe to show
    secrets.py   values of the environment that no file may hold
"""
