"""The one theme: dark and calm. Widgets take their colours from here, so that a look is changed in one place.

The values stay apart when a terminal has only 16 colours. Colour never carries a meaning alone: a word, a letter or a glyph
stands beside it.
"""

from __future__ import annotations

from functools import cache

from rich.color_triplet import ColorTriplet
from rich.style import Style
from textual.theme import Theme

BACKGROUND = "#0f1318"
SURFACE = "#161b22"
CURSOR = "#26384f"
BORDER = "#5b6673"
TEXT = "#c9d1d9"
BRIGHT = "#f0f3f6"
MUTED = "#8b949e"
BLUE = "#58a6ff"
GREEN = "#56d364"
YELLOW = "#e3b341"
RED = "#ff7b72"
MAGENTA = "#d2a8ff"

THEME = Theme(
    name="ftui",
    primary=BLUE,
    secondary=MAGENTA,
    accent=BLUE,
    foreground=TEXT,
    background=BACKGROUND,
    surface=SURFACE,
    panel=SURFACE,
    success=GREEN,
    warning=YELLOW,
    error=RED,
    dark=True,
    variables={
        "border": BORDER,
        "border-blurred": BORDER,
        "block-cursor-background": CURSOR,
        "block-cursor-foreground": BRIGHT,
        "input-cursor-background": TEXT,
        "input-selection-background": CURSOR,
        "scrollbar": BORDER,
        "scrollbar-background": BACKGROUND,
        "footer-background": BACKGROUND,
    },
)

STYLES = {
    "text": Style(color=TEXT),
    "bright": Style(color=BRIGHT, bold=True),
    "muted": Style(color=MUTED),
    "good": Style(color=GREEN),
    "busy": Style(color=BLUE),
    "warn": Style(color=YELLOW),
    "bad": Style(color=RED),
    "axis": Style(color=BORDER),
}
"""Style of each role a text can have."""

SERIES = ("#58a6ff", "#e3b341", "#56d364", "#ff7b72", "#d2a8ff", "#39c5cf", "#ffa657", "#f778ba", "#a5d6ff", "#b8c0c8")
"""Colours of curves, by the run's place in the queue; they repeat after the last, the letters do not."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def series_colour(index: int) -> str:
    return SERIES[index % len(SERIES)]


def series_letter(index: int) -> str:
    """A, B, … Z, then A again."""
    return LETTERS[index % len(LETTERS)]


@cache
def coloured(colour: str, bold: bool = False) -> Style:
    """The style of a colour: always the same object, which rich combines with others much faster."""
    return Style(color=colour, bold=bold)


@cache
def dimmed(colour: str, share: float = 0.38) -> str:
    """`colour` moved towards the background, `share` of it left."""
    front, back = (_triplet(c) for c in (colour, BACKGROUND))
    mixed = ColorTriplet(*(round(share * f + (1 - share) * b) for f, b in zip(front, back, strict=True)))
    return mixed.hex


def _triplet(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
