"""Curves as characters: numpy reduction to pixel columns, braille, round ticks, smoothing. No terminal library in here.

A pixel is a braille dot: a cell of the terminal is 2 pixels wide and 4 high. Every point takes part: a pixel column shows the
whole range between its lowest and highest value, so that one bad update among a hundred thousand stays visible (M2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.int32)
"""Bit of each dot in a braille character, by row and column of the cell."""

EMA_BLOCK = 64
"""Values averaged by one matrix product."""

BRAILLE = 0x2800
UPPER_DOTS, LOWER_DOTS = 0x1B, 0xE4


@dataclass(frozen=True)
class Columns:
    """One series reduced to pixel columns. All arrays have one entry per column; NaN where the curve is absent."""

    low: Floats
    high: Floats
    first: Floats
    last: Floats
    joined: NDArray[np.bool_]
    """Whether the curve goes on from the column before; False behind a gap."""

    def __bool__(self) -> bool:
        return bool(np.isfinite(self.low).any())


def reduce_columns(x: Floats, y: Floats, x0: float, x1: float, columns: int) -> Columns:
    """Reduce the points of (x, y) within [x0, x1] to `columns` pixel columns.

    `x` ascends. Non-finite values of `y` leave a gap. Columns between two points are interpolated, also towards the points
    just outside the window, so that a zoomed curve reaches the edges.
    """
    begin = max(0, int(np.searchsorted(x, x0, "left")) - 1)
    end = int(np.searchsorted(x, x1, "right")) + 1
    x, y = x[begin:end], y[begin:end]
    finite = np.isfinite(y)
    if finite.all():
        after_gap = np.zeros(len(x), dtype=np.bool_)
    else:
        kept = np.flatnonzero(finite)
        after_gap = np.diff(kept, prepend=kept[0] if len(kept) else 0) > 1
        x, y = x[kept], y[kept]
    low, high, first, last = (np.full(columns, np.nan) for _ in range(4))
    joined = np.zeros(columns, dtype=np.bool_)
    if not len(x):
        return Columns(low, high, first, last, joined)
    edges = np.linspace(x0, x1, columns + 1)
    centres = (edges[:-1] + edges[1:]) / 2
    edges[-1] = np.nextafter(x1, np.inf)  # the point at the right end belongs to the last column
    bounds = np.searchsorted(x, edges, "left")
    starts, ends = bounds[:-1], bounds[1:]
    filled = ends > starts
    if filled.any():
        at, stop = starts[filled], ends[filled]
        inside = y[: ends[-1]]
        low[filled], high[filled] = np.minimum.reduceat(inside, at), np.maximum.reduceat(inside, at)
        first[filled], last[filled] = y[at], y[stop - 1]
    between = ~filled & (centres >= x[0]) & (centres <= x[-1])
    between[between] = ~after_gap[np.minimum(np.searchsorted(x, centres[between], "right"), len(x) - 1)]
    low[between] = high[between] = first[between] = last[between] = np.interp(centres[between], x, y)
    present = filled | between
    joined[1:] = present[1:] & present[:-1]
    joined[filled] &= ~after_gap[starts[filled]]
    return Columns(low, high, first, last, joined)


def to_log(columns: Columns) -> Columns:
    """The reduction on a log10 axis. Values that are not positive must have been made NaN before."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high, first, last = (np.log10(a) for a in (columns.low, columns.high, columns.first, columns.last))
    return Columns(low, high, first, last, columns.joined)


def raster(columns: Columns, y0: float, y1: float, height: int) -> NDArray[np.bool_]:
    """Pixels of a reduced curve, shape (height, columns), row 0 at the top (`y1`)."""
    scale = (height - 1) / (y1 - y0)

    def row(value: Floats) -> Floats:
        return np.rint((y1 - value) * scale)

    top, bottom = row(columns.high), row(columns.low)
    # Neighbouring columns both reach to the middle of the step between them: the line is connected, without overdrawing.
    middle = row((columns.last[:-1] + columns.first[1:]) / 2)
    middle[~columns.joined[1:]] = np.nan
    for part in (slice(1, None), slice(0, -1)):
        top[part], bottom[part] = np.fmin(top[part], middle), np.fmax(bottom[part], middle)
    rows = np.arange(height)[:, None]
    pixels: NDArray[np.bool_] = (rows >= np.maximum(top, 0)) & (rows <= np.minimum(bottom, height - 1))
    return pixels


def braille(pixels: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Dots of each cell as the low byte of a braille character; shape (height / 4, width / 2)."""
    height, width = pixels.shape
    dots = np.zeros((height // 4, width // 2), dtype=np.int32)
    for (row, column), bit in np.ndenumerate(DOTS):
        dots |= bit * pixels[row::4, column::2]
    return dots


def ema(y: Floats, weight: float) -> Floats:
    """Exponential moving average with bias correction (Kingma and Ba 2015, section 3), the same at every length.

    `weight` is the share of the past, 0 <= weight < 1. Non-finite values take no part and stay gaps.
    """
    if weight <= 0 or not len(y):
        return y
    finite = np.isfinite(y)
    values = y[finite]
    count = len(values)
    if not count:
        return y
    padded = np.zeros(-(-count // EMA_BLOCK) * EMA_BLOCK)
    padded[:count] = values
    within, powers = _ema_block(weight)
    blocks = padded.reshape(-1, EMA_BLOCK) @ within
    carry, decay = 0.0, float(powers[-1])
    carried = np.empty(len(blocks))
    for index, end in enumerate(blocks[:, -1].tolist()):
        carried[index] = carry
        carry = carry * decay + end
    smooth = (blocks + carried[:, None] * powers).reshape(-1)[:count]
    result = np.full(len(y), np.nan)
    early = min(count, int(-40 / math.log(weight)) + 1)  # later the correction is 1 to the last digit
    smooth[:early] /= 1 - weight ** np.arange(1.0, early + 1)
    result[finite] = smooth
    return result


@lru_cache(maxsize=8)
def _ema_block(weight: float) -> tuple[Floats, Floats]:
    """What each value of a block adds to each average of it, and what is left of the average before the block."""
    steps = np.arange(EMA_BLOCK)
    behind = steps[None, :] - steps[:, None]
    within: Floats = np.where(behind >= 0, (1 - weight) * weight ** np.abs(behind), 0.0)
    return within, np.power(weight, steps + 1.0)


def nice_ticks(low: float, high: float, count: int) -> list[float]:
    """At most about `count` round values (1, 2, 5 × a power of ten) within [low, high]."""
    span = high - low
    if count < 1 or not math.isfinite(span) or span <= 0:
        return []
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough * (1 - 1e-9)), 10 * power)
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, count: int) -> list[float]:
    """Round values within [10**low, 10**high], for a log10 axis; `low` and `high` are logarithms."""
    for multiples in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,)):
        ticks = [
            m * 10.0**power
            for power in range(math.floor(low), math.ceil(high) + 1)
            for m in multiples
            if low - 1e-9 <= math.log10(m) + power <= high + 1e-9
        ]
        if len(ticks) <= count:
            # Within less than a decade the multiples are too few; there a linear scale's values read better.
            return ticks if len(ticks) >= 3 else [t for t in nice_ticks(10**low, 10**high, count) if t > 0] or ticks
    every = -(-len(ticks) // max(1, count))
    return ticks[::every]


def tick_label(value: float) -> str:
    """A short number: `0.05`, `1.2`, `200`, `15k`, `3M`, `1e-05`."""
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 1e4:
        for limit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
            if size >= limit * (1 - 1e-9):
                return f"{value / limit:.4g}{letter}" if size < 1e15 else f"{value:.2g}"
    return f"{value:.4g}" if size >= 1e-4 else f"{value:.1e}"


def duration_label(seconds: float) -> str:
    """A tick of a time axis: `40s`, `5m`, `2.5h`."""
    if seconds < 120:
        return f"{seconds:.3g}s"
    return f"{seconds / 60:.3g}m" if seconds < 7200 else f"{seconds / 3600:.3g}h"


class Canvas:
    """A grid of cells with a character and a style number each, drawn from back to front. Style 0 is the background."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.characters = np.full((rows, columns), ord(" "), dtype=np.int32)
        self.styles = np.zeros((rows, columns), dtype=np.int32)

    def curve(self, dots: NDArray[np.int32], style: int, *, over: bool = False) -> None:
        """Add a curve's dots from the upper left corner on. Dots already there stay, in the new style; with `over` they give way."""
        hit = dots > 0
        characters, styles = (a[: dots.shape[0], : dots.shape[1]] for a in (self.characters, self.styles))
        there = np.where(characters >= BRAILLE, characters - BRAILLE, 0)
        merged = dots if over else dots | there
        characters[hit] = BRAILLE + merged[hit]
        styles[hit] = style

    def mark(self, row: int, column: int, character: str, style: int) -> None:
        """Put one character; outside the grid it is left out."""
        if 0 <= row < self.rows and 0 <= column < self.columns:
            self.characters[row, column] = ord(character)
            self.styles[row, column] = style

    def to_ascii(self) -> None:
        """Replace braille by `'`, `.` and `:`, for terminals and fonts without it."""
        dots = np.where(self.characters >= BRAILLE, self.characters - BRAILLE, 0)
        upper, lower = (dots & UPPER_DOTS) > 0, (dots & LOWER_DOTS) > 0
        for hit, character in ((upper & lower, ":"), (upper & ~lower, "'"), (lower & ~upper, ".")):
            self.characters[hit] = ord(character)

    def runs(self, row: int) -> Iterator[tuple[str, int]]:
        """Stretches of one style in a row, left to right, as (text, style)."""
        styles = self.styles[row]
        cuts = np.flatnonzero(np.diff(styles)) + 1
        text = self.characters[row].astype("<u4").tobytes().decode("utf-32-le")
        start = 0
        for stop in [*cuts.tolist(), self.columns]:
            yield text[start:stop], int(styles[start])
            start = stop


def extent(parts: Sequence[Columns]) -> tuple[float, float] | None:
    """Lowest and highest value over reduced curves, a little widened; None when nothing is finite."""
    lows = [float(np.nanmin(c.low)) for c in parts if c]
    highs = [float(np.nanmax(c.high)) for c in parts if c]
    return widened(min(lows), max(highs)) if lows else None


def widened(low: float, high: float) -> tuple[float, float]:
    """A range with room around it, never empty."""
    margin = (high - low) * 0.04 or abs(high) * 0.05 or 0.5
    return low - margin, high + margin
