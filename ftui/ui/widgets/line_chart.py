"""The chart: many curves in braille, each with a colour and a letter, raw values dimmed behind smoothed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ftui.ui import plot
from ftui.ui.curves import EMPTY, Array
from ftui.ui.glyphs import Glyphs, glyphs
from ftui.ui.theme import STYLES, coloured, dimmed
from ftui.ui.view import View
from ftui.ui.words import cut, metric

LEGEND_ROWS = 3
LEFT = 8
"""Cells of the value axis: labels of up to 7 cells and the line."""
RIGHT = 2
"""Cells kept free at the right for the letters at the ends of the curves."""


@dataclass(frozen=True)
class Curve:
    """What is drawn of one run. `x` and `point_x` ascend."""

    key: str
    name: str
    letter: str
    colour: str
    x: Array = field(default_factory=lambda: EMPTY)
    y: Array = field(default_factory=lambda: EMPTY)
    point_x: Array = field(default_factory=lambda: EMPTY)
    """Validation points: never smoothed, drawn as marks."""
    point_y: Array = field(default_factory=lambda: EMPTY)

    @property
    def last(self) -> float | None:
        source = self.y if len(self.y) else self.point_y
        return float(source[-1]) if len(source) else None


class LineChart(Widget, can_focus=True):
    """Draws curves; the screen says which, and how they are looked at."""

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = title
        self.curves: list[Curve] = []
        self.view = View()
        self.front: str | None = None
        """Key of the curve drawn last, over the others."""
        self.empty_text = "no updates yet"
        self._extent: tuple[float, float] | None = None
        self._strips: list[Strip] | None = None
        self._base = Style.null()
        self._title_shown = title
        self._subtitle_shown = ""
        self._smoothed: dict[str, tuple[Array, float, Array]] = {}

    @property
    def glyphs(self) -> Glyphs:
        return glyphs(bool(getattr(self.app, "ascii_only", False)))

    def show(self, curves: Sequence[Curve], *, over: tuple[float, float] | None, front: str | None = None) -> None:
        """Draw these curves from now on; `over` is the whole x axis, None while there is nothing to draw."""
        before, self._extent = self._extent, over
        if before and self._extent and before[1] > before[0]:
            self.view = self.view.grown((self._extent[1] - self._extent[0]) / (before[1] - before[0]))
        self.curves, self.front = list(curves), front
        kept = {curve.key for curve in curves}
        self._smoothed = {k: v for k, v in self._smoothed.items() if k in kept}
        self.redraw()

    def look(self, view: View) -> None:
        """Look at the curves in another way."""
        if view == self.view:
            return
        if view.x_axis != self.view.x_axis:
            self._extent = None
        self.view = view
        self.redraw()

    def redraw(self) -> None:
        """Draw the curves anew; of the screen, only the lines that look different."""
        before, self._strips = self._strips, None
        if (subtitle := self._subtitle()) != self._subtitle_shown:
            self._subtitle_shown = subtitle
            self.border_subtitle = Content(subtitle)
        if before is None or not self.display:
            self.refresh()
            return
        width, height = self.size
        after = self._strips = self._draw(width, height)
        blank = Strip.blank(width)
        pairs = [(strips[y] if y < len(strips) else blank for strips in (before, after)) for y in range(height)]
        if different := [y for y, (old, new) in enumerate(pairs) if old != new]:
            self.refresh(*(Region(0, y, width, 1) for y in different))

    def title(self, text: str) -> None:
        """The text in the upper border."""
        if text != self._title_shown:
            self._title_shown = text
            self.border_title = Content(text)

    def _subtitle(self) -> str:
        parts = [self.view.axis]
        if self.view.weight:
            parts.append(f"smooth {self.view.weight:g}")
        if self.view.log_y:
            parts.append("log")
        if self.view.zoomed and self._extent:
            left, right = self.view.window(*self._extent)
            parts.append(
                f"{self._x_label(left)}–{self._x_label(right)}" if self.glyphs.braille else f"{left:.4g}-{right:.4g}"
            )
            if not self.view.follow:
                parts.append("not following")
        return "  ".join(parts)

    def _x_label(self, value: float) -> str:
        return plot.duration_label(value) if self.view.axis == "time" else plot.tick_label(float(f"{value:.4g}"))

    def on_resize(self, event: events.Resize) -> None:
        self._strips = None

    def render_line(self, y: int) -> Strip:
        if self._strips is None:
            self._strips = self._draw(self.size.width, self.size.height)
            self._base = self.rich_style  # costly to work out for each line
        strip = self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width)
        return strip.apply_style(self._base)

    def _draw(self, width: int, height: int) -> list[Strip]:
        legend = self._legend(width, min(LEGEND_ROWS, max(1, height // 6)))
        rows = height - 1 - len(legend)
        if self._extent is None or rows < 3 or width < 20:
            return [Strip([Segment(cut(self.empty_text, width), STYLES["muted"])]).adjust_cell_length(width)]
        x0, x1 = self.view.window(*self._extent)
        columns = width - LEFT - RIGHT
        ordered = sorted(self.curves, key=lambda c: c.key == self.front)
        reduced = [self._reduce(curve, x0, x1, columns * 2) for curve in ordered]
        values = plot.extent(
            [c for pair in reduced for c in pair if c is not None] + self._points_extent(ordered, x0, x1)
        )
        if values is None:
            text = "no positive values to draw on a log axis" if self.view.log_y else "no finite values in view"
            return [Strip([Segment(cut(text, width), STYLES["warn"])]).adjust_cell_length(width)]
        canvas = plot.Canvas(rows, columns + RIGHT)
        styles = [STYLES["axis"]]
        for raw, _ in reduced:
            styles.append(coloured(dimmed(ordered[len(styles) - 1].colour)))
            if self.view.weight and raw is not None:
                canvas.curve(plot.braille(plot.raster(raw, *values, rows * 4)), len(styles) - 1)
        for (raw, smooth), curve in zip(reduced, ordered, strict=True):
            styles.append(coloured(curve.colour))
            line = raw if smooth is None else smooth
            if line is not None:
                canvas.curve(
                    plot.braille(plot.raster(line, *values, rows * 4)), len(styles) - 1, over=smooth is not None
                )
        if not self.glyphs.braille:
            canvas.to_ascii()
        self._mark(canvas, ordered, styles, (x0, x1), values)
        return self._with_axes(canvas, styles, (x0, x1), values) + legend

    def _reduce(
        self, curve: Curve, x0: float, x1: float, columns: int
    ) -> tuple[plot.Columns | None, plot.Columns | None]:
        """The raw and, with smoothing, the smoothed curve as pixel columns."""
        if not len(curve.x):
            if len(curve.point_x) < 2:
                return None, None
            return self._columns(curve.point_x, curve.point_y, x0, x1, columns), None
        raw = self._columns(curve.x, curve.y, x0, x1, columns)
        if not self.view.weight:
            return raw, None
        return raw, self._columns(curve.x, self._smooth(curve), x0, x1, columns)

    def _columns(self, x: Array, y: Array, x0: float, x1: float, columns: int) -> plot.Columns:
        if not self.view.log_y:
            return plot.reduce_columns(x, y, x0, x1, columns)
        return plot.to_log(plot.reduce_columns(x, np.where(y > 0, y, np.nan), x0, x1, columns))

    def _smooth(self, curve: Curve) -> Array:
        known = self._smoothed.get(curve.key)
        if known is None or known[0] is not curve.y or known[1] != self.view.weight:
            known = (curve.y, self.view.weight, plot.ema(curve.y, self.view.weight))
            self._smoothed[curve.key] = known
        return known[2]

    def _y(self, values: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log10(np.where(values > 0, values, np.nan)) if self.view.log_y else values

    def _points_extent(self, curves: Sequence[Curve], x0: float, x1: float) -> list[plot.Columns]:
        """The validation points in view, in the form whose extent can be taken with the curves'."""
        parts = []
        for curve in curves:
            y = self._y(curve.point_y[(curve.point_x >= x0) & (curve.point_x <= x1)])
            y = y[np.isfinite(y)]
            parts.append(plot.Columns(y, y, y, y, np.zeros(len(y), dtype=np.bool_)))
        return [part for part in parts if len(part.low)]

    def _mark(
        self,
        canvas: plot.Canvas,
        curves: Sequence[Curve],
        styles: list[Style],
        window: tuple[float, float],
        values: tuple[float, float],
    ) -> None:
        """Validation points, updates without a finite value, and each curve's letter at its right end."""
        x0, x1 = window
        y0, y1 = values
        letters_only = self.app.no_color or not self.glyphs.braille

        def cell(x: float, y: float) -> tuple[int, int]:
            columns = canvas.columns - RIGHT
            return int((y1 - y) / (y1 - y0) * canvas.rows), min(int((x - x0) / (x1 - x0) * columns), columns - 1)

        taken: set[tuple[int, int]] = set()
        for curve in curves:
            style = len(styles)
            styles.append(coloured(curve.colour, bold=True))
            inside = (curve.point_x >= x0) & (curve.point_x <= x1)
            point_y = self._y(curve.point_y)
            for x, y in zip(curve.point_x[inside], point_y[inside], strict=True):
                if np.isfinite(y):
                    glyph = curve.letter.lower() if letters_only and len(curve.x) else self.glyphs.point
                    canvas.mark(*cell(x, y), curve.letter if not len(curve.x) else glyph, style)
            broken = curve.x[~np.isfinite(curve.y)]
            for x in broken[(broken >= x0) & (broken <= x1)][:1000]:
                canvas.mark(canvas.rows - 1, cell(x, y0)[1], self.glyphs.gap, style)
            line = self._smooth(curve) if self.view.weight else curve.y
            seen = np.flatnonzero((curve.x >= x0) & (curve.x <= x1) & np.isfinite(self._y(line)))
            if len(seen):
                self._letter(
                    canvas, curve.letter, cell(float(curve.x[seen[-1]]), float(self._y(line)[seen[-1]])), style, taken
                )

    @staticmethod
    def _letter(canvas: plot.Canvas, letter: str, at: tuple[int, int], style: int, taken: set[tuple[int, int]]) -> None:
        """Put a letter beside the end of its curve, moved right while another letter is there."""
        row, column = min(max(at[0], 0), canvas.rows - 1), at[1] + 1
        while (row, column) in taken and column < canvas.columns - 1:
            column += 1
        taken.add((row, column))
        canvas.mark(row, column, letter, style)

    def _with_axes(
        self, canvas: plot.Canvas, styles: list[Style], window: tuple[float, float], values: tuple[float, float]
    ) -> list[Strip]:
        """The canvas with a labelled value axis at its left and the x axis below."""
        shown, (y0, y1) = self.glyphs, values
        count = max(2, canvas.rows // 2 if canvas.rows < 16 else canvas.rows // 3)
        ticks = plot.log_ticks(y0, y1, count) if self.view.log_y else plot.nice_ticks(y0, y1, count)
        labels = {}
        for value in ticks:
            position = np.log10(value) if self.view.log_y else value
            labels[int((y1 - position) / (y1 - y0) * canvas.rows)] = plot.tick_label(value)
        strips = []
        for row in range(canvas.rows):
            label = labels.get(row, "")
            left = f"{label:>7}" + (shown.tick if label else shown.axis)
            segments = [Segment(left[:7], STYLES["muted"]), Segment(left[7:], STYLES["axis"])]
            segments += [Segment(text, styles[style]) for text, style in canvas.runs(row)]
            strips.append(Strip(segments, LEFT + canvas.columns))
        return [*strips, self._x_axis(canvas.columns - RIGHT, window)]

    def _x_axis(self, columns: int, window: tuple[float, float]) -> Strip:
        """One line of round numbers, each starting under its place."""
        x0, x1 = window
        scale = 60.0 if self.view.axis == "time" and x1 - x0 > 240 else 1.0
        if self.view.axis == "time" and x1 - x0 > 4 * 3600:
            scale = 3600.0
        line = [" "] * (LEFT + columns + RIGHT)
        free = 0
        for value in plot.nice_ticks(x0 / scale, x1 / scale, max(2, columns // 12)):
            at = LEFT + min(columns - 1, int((value * scale - x0) / (x1 - x0) * columns))
            label = self._x_label(value * scale)
            start = max(0, min(at - len(label) // 2, len(line) - len(label)))
            if start >= free:
                line[start : start + len(label)] = label
                free = start + len(label) + 2
        return Strip([Segment("".join(line), STYLES["muted"])], len(line))

    def _legend(self, width: int, rows: int) -> list[Strip]:
        """Letter, name and last value of each curve, as many as fit."""
        lines: list[list[Segment]] = [[]]
        used = 0
        for index, curve in enumerate(self.curves):
            value = metric(curve.last)
            name = cut(curve.name, max(8, width - len(value) - 6))
            item = cell_len(name) + len(value) + 3
            if used and used + 2 + item > width:
                if len(lines) == rows:
                    rest = f"  +{len(self.curves) - index}"
                    if used + len(rest) <= width:
                        lines[-1].append(Segment(rest, STYLES["muted"]))
                    break
                lines.append([])
                used = 0
            gap = "  " if used else ""
            lines[-1] += [
                Segment(f"{gap}{curve.letter} ", coloured(curve.colour, bold=True)),
                Segment(name, coloured(curve.colour)),
                Segment(f" {value}", STYLES["text"]),
            ]
            used += item + len(gap)
        return [Strip(line).adjust_cell_length(width) for line in lines if line]


def x_extent(curves: Sequence[Curve]) -> tuple[float, float] | None:
    """First and last x of curves and their points together, None when there is nothing."""
    ends = [(float(x[0]), float(x[-1])) for curve in curves for x in (curve.x, curve.point_x) if len(x)]
    if not ends:
        return None
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
