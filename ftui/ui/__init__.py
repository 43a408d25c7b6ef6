"""The terminal app: what a person sees of a campaign, and the wishes they leave.

Facts come up: files → `reader.py` (a thread) → `messages.py` → a screen. Wishes go down: a key → an action → a request file.
Imports plan, record, machine, engine (its client), verdict and report; never data, train or torch.

    app.py        the app, its theme and palette
    keys.py       every key, and what help says about it
    screens/      home, monitor, inspection, report, wizard, doctor; help, questions and texts to write above them
    widgets/      one file per region of a screen
    wizard/       what the wizard asks, knows and concludes
    reader.py     follows the files of a campaign
    inspector.py  asks the data room's own process for examples
    tokens.py     a text token by token, with a ruler of what carries loss
    curves.py     a run's series as arrays
    summary.py    what the record means in words: states, progress, estimates
    calling.py    rings for a person who looks elsewhere
    layout.py     places of the panels at a size of the terminal
    pictures.py   which curves are drawn, in which colour
    plot.py       numbers to braille
    view.py       zoom, smoothing, axes
    columns.py    tables that fit a width
    words.py      numbers and times as people read them
    theme.py      colours          glyphs.py  characters
"""
