"""The notebook of a campaign (C8): decisions and observations, dated, each an event of the journal like any other.

Whoever has something to note appends it to the journal, under its lock; no supervisor is asked, so a draft that was never
launched has a notebook, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from ftui.record.journal import Journal, journal_reader, parse_time, read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.lines import NewerSchema, Row
from ftui.record.text import safe

LONGEST = 2000
"""Characters of a note: what every view shows whole."""


class NoteError(Exception):
    """The note was not written; the message says why."""


def cleaned(text: str) -> str:
    """A person's text as the record keeps it: lines without blanks at their end, none empty at the start or the end.

    Half characters, which a terminal or a pipe with another encoding leaves, become question marks: the record is UTF-8.
    """
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return "\n".join(line.rstrip() for line in whole.splitlines()).strip("\n").strip()


def write_note(files: CampaignFiles, text: str, by: str) -> Row:
    """Append a note and return its event once it is on the disk.

    Raises ValueError for a text that is no note, `NoteError` when it could not be written.
    """
    text = cleaned(text)
    if not text:
        raise ValueError("a note needs words")
    if len(text) > LONGEST:
        raise ValueError(
            f"a note has at most {LONGEST:,} characters, this one has {len(text):,}; "
            "make several of it, or note the name of a file"
        )
    try:
        journal_reader(files.journal).read(256)  # a newer journal may not be added to
        return Journal(files.journal, by).append("note", text=text)
    except NewerSchema as error:
        raise NoteError(str(error)) from None
    except OSError as error:
        raise NoteError(f"the note is not written: {files.journal}: {error.strerror}") from None


def notes_among(events: Iterable[Row]) -> list[Row]:
    """The notes among a journal's events, in order: `at`, `by`, `text`."""
    return [{name: row[name] for name in ("at", "by", "text")} for row in events if row.get("event") == "note"]


def read_notes(files: CampaignFiles) -> list[Row]:
    """The notebook, oldest first. Raises `NoteError` when it cannot be read."""
    try:
        return notes_among(read_journal(files.journal))
    except (NewerSchema, OSError) as error:
        raise NoteError(str(error)) from None


def note_lines(row: Row) -> list[str]:
    """One note as safe lines: when and through what, then its words, further lines set in."""
    first, *rest = [safe(line) for line in str(row["text"]).split("\n")]
    return [
        f"{parse_time(row['at']).astimezone():%Y-%m-%d %H:%M}  {row['by']}: {first}",
        *(f"    {r}".rstrip() for r in rest),
    ]
