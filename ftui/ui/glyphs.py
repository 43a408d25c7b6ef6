"""Characters beyond letters, and what stands for them where a terminal cannot show them."""

from __future__ import annotations

import locale
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Glyphs:
    """One set of characters."""

    cursor: str
    mark: str
    point: str
    gap: str
    """Marks an update whose value is not finite."""
    full: str
    empty: str
    axis: str
    tick: str
    corner: str
    across: str
    across_tick: str
    dash: str
    more: str
    half: str
    """Half of `full`, empty where there is none."""
    levels: str
    """Bars of rising height."""
    braille: bool


UNICODE = Glyphs("▸", "◆", "●", "×", "━", "─", "│", "┤", "└", "─", "┬", "–", "…", "╸", "▁▂▃▄▅▆▇█", True)
ASCII = Glyphs(">", "*", "o", "x", "#", "-", "|", "+", "+", "-", "+", "-", "~", "", "_.-=+*#%", False)


def wants_ascii() -> bool:
    """Whether to keep to ASCII: asked for by `FTUI_ASCII=1`, or the locale has nothing else."""
    asked = os.environ.get("FTUI_ASCII", "")
    return asked not in ("", "0") or "utf" not in locale.getpreferredencoding(False).lower()


def glyphs(ascii_only: bool) -> Glyphs:
    return ASCII if ascii_only else UNICODE


def bar(share: float, width: int, shown: Glyphs) -> str:
    """A horizontal bar, `share` of `width` cells full, to half a cell; a share above 0 is always seen."""
    halves = min(1.0, max(0.0, share)) * width * 2
    full, rest = divmod(max(round(halves), 1 if share > 0 else 0), 2)
    end = (shown.half or shown.full) * rest
    return shown.full * full + end + shown.empty * (width - full - len(end))


def sparkline(values: list[float], width: int, shown: Glyphs, top: float = 100.0) -> str:
    """The last `width` values as small bars between 0 and `top`."""
    steps = len(shown.levels) - 1
    return "".join(shown.levels[round(min(1.0, max(0.0, v / top)) * steps)] for v in values[-width:])
