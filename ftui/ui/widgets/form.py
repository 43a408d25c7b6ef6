"""A form as lines: what is asked at the left, the answer at the right, what is wrong with it below."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from ftui.record.text import wrap
from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import cut, pad

WIDEST_QUESTION = 46
"""Cells of the longest question, with the space behind it."""


@dataclass(frozen=True)
class FormRow:
    """One question of the form, or the head of an item of a list."""

    key: tuple[str, int | None]
    """Name of the question (or of the list, for the head of an item) and the item."""
    asks: str
    value: str
    role: str = "text"
    problems: Sequence[str] = field(default_factory=tuple)
    head: bool = False
    """The head of an item: over the whole width."""


class FormPanel(Panel):
    """Questions with one of them under the cursor."""

    has_cursor = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id)
        self.rows: list[FormRow] = []
        self.nothing = ""
        """What is said where there is nothing to ask."""
        self._starts: list[int] = []

    def show(self, rows: Sequence[FormRow], nothing: str = "", *, at: tuple[str, int | None] | None = None) -> None:
        """Show `rows`, the cursor where it was, or on the row with the key `at`."""
        wanted, before = at or (self.chosen.key if self.chosen else None), self.cursor
        self.rows, self.nothing = list(rows), nothing
        row = next((index for index, candidate in enumerate(self.rows) if candidate.key == wanted), None)
        self._lay_out(max(1, self.size.width - self._margin))
        if row is not None and row < len(self._starts):
            self.cursor = self._starts[row]
        elif at is None and wanted is None:
            self.cursor = 0
        self.changed()
        if self.cursor != before:
            self._keep_in_view()
            self.refresh()

    @property
    def row(self) -> int:
        """Index of the row under the cursor."""
        return max(0, bisect_right(self._starts, self.cursor) - 1)

    @property
    def chosen(self) -> FormRow | None:
        return self.rows[self.row] if self.rows else None

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        chosen = self.row
        lines = self._lay_out(width)
        if self._starts:
            self.cursor = self._starts[min(chosen, len(self._starts) - 1)]
        return None, lines

    def _lay_out(self, width: int) -> list[Text]:
        if not self.rows:
            self._starts = []
            return [Text(line, STYLES["muted"], no_wrap=True, end="") for line in wrap(self.nothing, width)]
        asked = min(WIDEST_QUESTION, max((cell_len(row.asks) for row in self.rows if not row.head), default=0) + 2)
        asked = min(asked, max(14, width * 2 // 3))
        lines: list[Text] = []
        self._starts = []
        for row in self.rows:
            self._starts.append(len(lines))
            lines += _head(row, width) if row.head else _answer(row, asked, width)
            for problem in row.problems:
                lines += [
                    Text(f"  {part}", STYLES["bad"], no_wrap=True, end="")
                    for part in wrap(f"! {problem}", max(8, width - 2))
                ]
        return lines

    def move(self, lines: int) -> None:
        """Move by rows, however many lines each takes."""
        if not self._starts:
            return
        before, row = self.row, max(0, min(self.row + lines, len(self._starts) - 1))
        self.cursor = self._starts[row]
        self._keep_in_view()
        ends = self._starts[row + 1] if row + 1 < len(self._starts) else len(self._lines)
        self.top = max(self.top, min(ends - self.page, self.cursor))
        self.refresh()
        if row != before:
            self.post_message(self.CursorMoved(self, self.cursor))


def _head(row: FormRow, width: int) -> list[Text]:
    if not row.asks:
        return []  # problems alone
    return [
        Text.assemble(
            (cut(row.asks, width), STYLES["bright"]),
            (cut(f"  {row.value}", max(0, width - cell_len(row.asks))), STYLES["muted"]),
            no_wrap=True,
            end="",
        )
    ]


def _answer(row: FormRow, asked: int, width: int) -> list[Text]:
    """Question and answer side by side; an answer too long for that has the whole width below its question."""
    style = STYLES[row.role]
    if cell_len(row.value) <= width - asked:
        question = (pad(row.asks, asked - 2), STYLES["muted"])
        return [Text.assemble(question, "  ", (row.value, style), no_wrap=True, end="")]
    indent = 2 + len(row.asks) - len(row.asks.lstrip())
    lines = [Text(cut(row.asks, width), STYLES["muted"], no_wrap=True, end="")]
    return lines + [
        Text(" " * indent + part, style, no_wrap=True, end="") for part in wrap(row.value, max(8, width - indent))
    ]
