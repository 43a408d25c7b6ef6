"""`ftui note`: write into a campaign's notebook from a prompt or a script, or show it."""

from __future__ import annotations

import sys

from ftui.answer import DONE, STATE, USAGE, Answer, print_json
from ftui.record.layout import CampaignFiles
from ftui.record.notebook import NoteError, cleaned, note_lines, read_notes, write_note


def note(files: CampaignFiles, text: str | None, *, json: bool) -> int:
    """Write a note: `text`, or what standard input says when it is no terminal. Raises `Answer`.

    A text from a pipe may exist nowhere else; where it cannot be written it is given back on standard error.
    """
    piped = text is None and not sys.stdin.isatty()
    said = sys.stdin.buffer.read().decode("utf-8", "replace") if piped else text or ""
    if not cleaned(said):
        raise Answer(USAGE, 'a note needs words: `ftui note C "text"`, or the text on standard input')
    try:
        row = write_note(files, said, "cli")
    except ValueError as error:
        raise Answer(USAGE, str(error)) from None
    except NoteError as error:
        raise Answer(STATE, f"{error}\nit said:\n{cleaned(said)}" if piped else str(error)) from None
    if json:
        print_json(row)
    else:
        print(f"{files.name}: noted")
    return DONE


def show_notebook(files: CampaignFiles, *, json: bool) -> int:
    """Print all notes, oldest first. Raises `Answer`."""
    try:
        notes = read_notes(files)
    except NoteError as error:
        raise Answer(STATE, str(error)) from None
    if json:
        print_json(notes)
    else:
        print("\n".join(line for row in notes for line in note_lines(row)) or f"{files.name}: nothing is noted yet")
    return DONE
