"""What a view renders: headings, paragraphs, lists, tables, code. Text in them is data; each view makes it safe in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str
    strong: bool = False


@dataclass(frozen=True)
class Bullets:
    items: Sequence[str]
    """A line break within an item is one in every view."""


@dataclass(frozen=True)
class Table:
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int] = frozenset()
    """Columns aligned to the right: numbers."""


@dataclass(frozen=True)
class Code:
    lines: Sequence[str]


Block = Heading | Paragraph | Bullets | Table | Code
NONE = "–"


def moment(text: str | None) -> str:
    """`2026-11-30 14:02 UTC` from the record's form."""
    return NONE if text is None else f"{text[:10]} {text[11:16]} UTC"
