"""Text from files, models and logs is data: control characters are shown, never sent to a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len, chop_cells

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")


def safe(text: str, limit: int = 2000) -> str:
    """One line that is safe to show: colour codes removed, other control characters as escapes, cut behind `limit` characters."""
    text = _CONTROL.sub(lambda m: "  " if m[0] == "\t" else _escaped(m[0]), _ANSI.sub("", text[: limit * 4]))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells, broken at spaces; a longer word is cut. At least one line, and one cell."""
    lines, line, width = [], "", max(1, width)
    for word in safe(text, 20_000).split(" "):
        if line and cell_len(line) + 1 + cell_len(word) <= width:
            line = f"{line} {word}"
            continue
        if line:
            lines.append(line)
        *full, line = chop_cells(word, width) or [""]
        lines += full
    return [*lines, line]


def aligned(rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), gap: int = 2) -> list[str]:
    """Rows of as many texts each as lines with aligned columns, by cells; the columns `right` are aligned at their right."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for index, (text, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(text))
            cells.append(space + text if index in right else text + space)
        lines.append((" " * gap).join(cells).rstrip())
    return lines


def size_words(count: float) -> str:
    """Bytes as a person reads them: in GiB from a quarter of one on, else in MiB."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**28 else f"{count / 2**20:.1f} MiB"


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
