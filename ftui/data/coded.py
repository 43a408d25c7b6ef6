"""A row as tokens: what every encoder gives and `encode.py` keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

from ftui.data.findings import Finding, error
from ftui.data.rows import Row
from ftui.record.text import safe


@dataclass(slots=True)
class Coded:
    """One row as tokens."""

    ids: list[int]
    whole_length: int
    """Tokens before anything was cut."""
    label: int = -1
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Positions that carry loss (see `encode.Example`)."""
    cut: tuple[int, int] = (0, 0)
    """Positions `[start, end)` of the whole row that were cut out."""
    lost_targets: int = 0
    """Tokens that would have carried loss and were cut off."""
    joined: bool = False
    """A token reaches from the prompt into the answer."""
    problem: Finding | None = None
    """Why this row cannot be used."""


def too_long(row: Row, length: int, limit: int) -> Finding:
    hint = '"cut" or "keep-target"' if row.messages else '"cut"'
    message = (
        f"has {length} tokens, more than training.max_length = {limit} ({safe(row.text, 40)!r}); "
        f"raise max_length, shorten the text, or set truncation = {hint}"
    )
    return error(row.place, "text", message, "too many tokens")
