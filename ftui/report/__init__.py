"""The record in words (C7): one report model, and its views. Reads a campaign's directory, needs no GPU and no torch.

Imports plan, record and verdict; no torch, no textual, no transformers. Building and loading write nothing; only `write.py`
does, and only `report/`. The same record gives the same report, byte for byte: no clock is read.

    model.py     the report as data: what `report.json` holds
    build.py     from a record to a report: start reading here
    systems.py   metrics of base, control and variants, whole and per category or field
    runs.py      every run with its attempts, causes and curve
    facts.py     gates, rental, model, environment, artefacts
    delivery.py  which run becomes the artefact
    limits.py    what this report does not show, in sentences
    blocks.py    headings, paragraphs, lists, tables: what a view renders
    outline.py   the report in blocks, once for every view
    sections.py  the outline's later sections: evidence of how it was done
    markdown.py  the outline as Markdown
    text.py      the outline as text for a terminal
    write.py     `report.json` and `report.md`
    __main__.py  `python -m ftui.report CAMPAIGN`, as the supervisor starts it
"""
