"""The outline as Markdown (CommonMark with pipe tables). Nothing from the record can become markup."""

from __future__ import annotations

import re

from rich.cells import cell_len

from ftui.record.text import safe
from ftui.report.blocks import Block, Bullets, Code, Heading, Paragraph, Table
from ftui.report.model import Report
from ftui.report.outline import outline

_MARKUP = re.compile(r"([\\`*{}\[\]<>|~]|(?<![^\W_])_|_(?![^\W_]))")  # an underscore inside a word is no markup
_LEADING = re.compile(r"^(\s*\d*)(#|[-=]+(?=\s*$)|[-+](?=\s|$)|(?<=\d)[.)](?=\s|$))")


def to_markdown(report: Report) -> str:
    """The whole report as one Markdown document."""
    return "\n\n".join(_block(block) for block in outline(report)) + "\n"


def escaped(text: str) -> str:
    """One line on which every character of `text` stands for itself."""
    line = _MARKUP.sub(r"\\\1", safe(text)).replace("&", "&amp;").replace("://", ":&#47;/")
    return _LEADING.sub(r"\1\\\2", line)


def _block(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {escaped(text)}"
        case Paragraph(text, strong):
            return f"**{escaped(text)}**" if strong else escaped(text)
        case Bullets(items):
            return "\n".join(f"- {_item(item)}" for item in items)
        case Code(lines):
            return "\n".join(["```python", *(safe(line).replace("```", "'''") for line in lines), "```"])
        case Table():
            return _table(block)


def _item(text: str) -> str:
    """An item of a list; a line break within it is a hard one, under the same bullet."""
    return "\\\n  ".join(map(escaped, text.split("\n")))


def _table(table: Table) -> str:
    cells = [[escaped(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(3, *(cell_len(row[i]) for row in cells)) for i in range(len(table.columns))]
    rules = ["-" * (w - 1) + ":" if i in table.right else "-" * w for i, w in enumerate(widths)]
    lines = []
    for row in (cells[0], rules, *cells[1:]):
        padded = []
        for i, cell in enumerate(row):
            gap = " " * (widths[i] - cell_len(cell))
            padded.append(gap + cell if i in table.right else cell + gap)
        lines.append(f"| {' | '.join(padded)} |")
    return "\n".join(lines)
