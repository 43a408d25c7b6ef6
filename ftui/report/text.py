"""The outline as plain text for a terminal: wrapped and aligned by cells, so that Korean and Polish line up."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells

from ftui.record.text import safe, wrap
from ftui.report.blocks import Block, Bullets, Code, Heading, Paragraph, Table
from ftui.report.model import Report
from ftui.report.outline import outline

GAP = "  "
MAX_WORD = 24
"""A longer word may be cut to make room for its table's other columns."""


def to_text(report: Report, width: int = 100) -> str:
    """The whole report in lines of at most `width` cells."""
    return "\n\n".join("\n".join(render(block, width)) for block in outline(report)) + "\n"


def render(block: Block, width: int) -> list[str]:
    """One block as lines of at most `width` cells."""
    match block:
        case Heading(level, text):
            lines = wrap(text.upper() if level == 1 else text, width)
            rule = {1: "=", 2: "-"}.get(level)
            return [*lines, rule * max(map(cell_len, lines))] if rule else lines
        case Paragraph(text):
            return wrap(text, width)
        case Bullets(items):
            lines = []
            for item in items:
                first, *rest = [part for line in item.split("\n") for part in wrap(line, width - 2)]
                lines += [f"- {first}", *(f"  {line}" for line in rest)]
            return lines
        case Code(lines):
            return [part for line in lines for part in chop_cells(f"    {safe(line)}", width)]
        case Table():
            return _table(block, width)


def _table(table: Table, width: int) -> list[str]:
    """Side by side where it fits with wrapped cells; else one record under the other."""
    rows = [[safe(cell) for cell in row] for row in (table.columns, *table.rows)]
    natural = [max(cell_len(row[i]) for row in rows) for i in range(len(table.columns))]
    least = [max(cell_len(word) for row in rows for word in row[i].split(" ")) for i in range(len(natural))]
    widths = _fitted(natural, [min(n, MAX_WORD) for n in least], width - len(GAP) * (len(natural) - 1), table.right)
    if widths is None:
        return _records(table, width)
    lines = []
    for position, row in enumerate(rows):
        lines += _lines_of(row, widths, table.right)
        if position == 0:
            lines.append(GAP.join("-" * w for w in widths))
    return lines


def _fitted(natural: Sequence[int], least: Sequence[int], room: int, numeric: frozenset[int]) -> list[int] | None:
    """Widths that fit into `room`, taken from the widest columns of words; None where words would have too little left."""
    widths = list(natural)
    while sum(widths) > room:
        words = [i for i in range(len(widths)) if i not in numeric and widths[i] > least[i]]
        if not words:
            return None
        widest = max(words, key=lambda i: widths[i])
        widths[widest] -= 1
    return widths


def _lines_of(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> list[str]:
    cells = [wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines = []
    for height in range(max(map(len, cells))):
        parts = []
        for i, width in enumerate(widths):
            text = cells[i][height] if height < len(cells[i]) else ""
            gap = " " * (width - cell_len(text))
            parts.append(gap + text if i in right else text + gap)
        lines.append(GAP.join(parts).rstrip())
    return lines


def _records(table: Table, width: int) -> list[str]:
    """A table too wide for the terminal: the first cell as a title, the others as `name: value`."""
    lines: list[str] = []
    for row in table.rows:
        lines += wrap(row[0], width)
        pairs = [f"{name}: {cell}" for name, cell in zip(table.columns[1:], row[1:], strict=True)]
        lines += [f"  {line}" for line in wrap(", ".join(pairs), width - 2)]
    return lines
