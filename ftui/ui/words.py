"""Numbers, times and texts as a person reads them in a narrow column."""

from __future__ import annotations

import math

from rich.cells import cell_len, set_cell_size

from ftui.record.text import safe, wrap


def gib(count: int | None) -> str:
    """Bytes in binary units: `612 MiB`, `3.2 GiB`."""
    if count is None:
        return "–"
    if count < 1 << 20:
        return f"{count / 1024:.0f} KiB"
    return f"{count / (1 << 20):.0f} MiB" if count < 1 << 30 else f"{count / (1 << 30):.1f} GiB"


def used_of(used: int, total: int) -> str:
    """`3.2 of 7.8 GiB`."""
    return f"{used / (1 << 30):.1f} of {total / (1 << 30):.1f} GiB"


def span(seconds: float | None) -> str:
    """A duration in its two largest units: `2 d 23 h`, `1 h 05 min`, `4 min 10 s`, `12 s`, `0.3 s`."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    if seconds < 9.95:
        return f"{sign}{seconds:.1f} s" if seconds % 1 else f"{sign}{seconds:.0f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{sign}{whole} s"
    if whole < 3600:
        return f"{sign}{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{sign}{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{sign}{whole // 86400} d {whole % 86400 // 3600} h"


def short_span(seconds: float | None) -> str:
    """A duration in one unit, at most 5 cells: `12s`, `4m`, `1.5h`, `3d`."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    seconds = max(0.0, seconds)
    if seconds < 100:
        return f"{seconds:.0f}s"
    if seconds < 6000:
        return f"{seconds / 60:.0f}m"
    return (
        f"{seconds / 3600:.1f}h"
        if seconds < 36000
        else f"{seconds / 3600:.0f}h"
        if seconds < 360000
        else f"{seconds / 86400:.0f}d"
    )


def money(amount: float, currency: str) -> str:
    """`0.42 USD`."""
    return f"{amount:,.2f} {currency}"


def hours(value: float) -> str:
    """Hours with as many digits as matter: `0.03`, `1.5`, `48`."""
    return f"{value:.2f}" if value < 10 and value % 1 else f"{value:.1f}" if value % 1 else f"{value:.0f}"


def metric(value: float | None) -> str:
    """A loss or a score, 4 digits."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.4g}"


def cut(text: str, width: int) -> str:
    """`text` made safe and cut to `width` cells with `…`; shorter texts stay as they are."""
    text = safe(text)
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 0 else ""


def pad(text: str, width: int, right: bool = False) -> str:
    """`text` cut or filled to exactly `width` cells."""
    text = cut(text, width)
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def fitted(line: str, width: int) -> list[str]:
    """A line at the width there is: a sentence is wrapped under its own indent, a row with columns is cut."""
    if cell_len(line) <= width:
        return [line]
    if "  " in line.strip():
        return [cut(line, width)]
    indent = line[: len(line) - len(line.lstrip())]
    return [indent + part for part in wrap(line.strip(), max(8, width - len(indent)))]
