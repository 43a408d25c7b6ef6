"""Tables that fit a width: columns with a priority, the least important left out first, the rest aligned by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from ftui.ui.theme import STYLES, coloured
from ftui.ui.words import pad

GAP = 2


@dataclass(frozen=True)
class Column:
    """A column of a table. `priority` 0 is always shown; the highest goes first when the width is short."""

    key: str
    title: str
    width: int
    """Cells it needs at least."""
    right: bool = False
    priority: int = 0
    grows: int = 0
    """Up to how many cells more it takes of what is left over."""


@dataclass(frozen=True)
class Cell:
    """A value of a row. Its text is data: made safe when it is drawn, never parsed as markup."""

    text: str
    role: str = "text"
    """A role of `theme.STYLES`, or a colour."""


Row = dict[str, Cell]


def fit_columns(columns: Sequence[Column], width: int) -> list[tuple[Column, int]]:
    """The columns shown in `width` cells and the width of each, in order."""
    shown = list(columns)

    def needed() -> int:
        return sum(c.width for c in shown) + GAP * (len(shown) - 1)

    while needed() > width and any(c.priority for c in shown):
        shown.remove(max(shown, key=lambda c: c.priority))
    left = max(0, width - needed())
    widths = {c.key: c.width for c in shown}
    for column in sorted(shown, key=lambda c: c.priority):
        extra = min(left, column.grows)
        widths[column.key] += extra
        left -= extra
    return [(c, widths[c.key]) for c in shown]


def with_content_widths(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """`columns`, growing columns limited to what their longest value needs."""
    fitted = []
    for column in columns:
        longest = max((cell_len(row[column.key].text) for row in rows if column.key in row), default=0)
        grows = min(column.grows, max(0, longest - column.width))
        fitted.append(Column(column.key, column.title, column.width, column.right, column.priority, grows))
    return fitted


def title_line(fitted: Sequence[tuple[Column, int]]) -> Text:
    """The line above the rows."""
    return _line([(c.title, c.right, width, STYLES["muted"]) for c, width in fitted])


def row_line(row: Row, fitted: Sequence[tuple[Column, int]]) -> Text:
    """One row, cut and filled to the columns' widths."""
    cells = [(row.get(c.key, Cell("")), c, width) for c, width in fitted]
    return _line([(cell.text, c.right, width, _style(cell.role)) for cell, c, width in cells])


def _style(role: str) -> Style:
    return STYLES.get(role) or coloured(role, bold=True)


def _line(parts: Sequence[tuple[str, bool, int, Style]]) -> Text:
    line = Text(no_wrap=True, end="")
    for index, (text, right, width, style) in enumerate(parts):
        if index:
            line.append(" " * GAP)
        line.append(pad(text, width, right), style)
    return line
