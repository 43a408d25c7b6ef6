"""One example as the loss will see it, token by token; a picture drawn as far as a terminal can."""

from __future__ import annotations

from typing import Any

from rich.style import Style
from rich.text import Text

from ftui.record.text import safe, wrap
from ftui.ui.theme import BLUE, BRIGHT, MUTED, STYLES, TEXT
from ftui.ui.tokens import ASCII, UNICODE, Marks, example_head, token_lines
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import cut

Points = list[list[list[int]]]
"""A picture's points, row by row, as red, green and blue."""

_STATES = {
    "context": Style(color=TEXT),
    "loss": Style(color=BRIGHT, bold=True),
    "cut": Style(color=MUTED, strike=True),
    "cut loss": Style(color=MUTED, strike=True, bold=True),
}
_RULERS = {
    "context": STYLES["axis"],
    "loss": Style(color=BLUE, bold=True),
    "cut": STYLES["warn"],
    "cut loss": STYLES["bad"],
}

GREYS = " .:-=+*#%@"
"""Brightness of a point where there are no colours, dark to bright."""


class ExamplePanel(Panel):
    """Shows what it is given: an example of `ftui.data.examples`, or a sentence."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("1 Example", id=id)
        self.example: dict[str, Any] | None = None
        self.points: Points = []
        self.transform: list[str] = []
        self.sentence = "reading and encoding the data"
        self._loss_line: int | None = None
        """First line that holds a target."""

    @property
    def marks(self) -> Marks:
        return UNICODE if self.glyphs.braille else ASCII

    def show(self, example: dict[str, Any] | None, sentence: str = "") -> None:
        self.example, self.sentence, self.points, self.top = example, sentence, [], 0
        self.changed()

    def show_picture(self, points: Points) -> None:
        self.points = points
        self.changed()

    def to_loss(self) -> None:
        """Scroll until the first target is in the middle."""
        if self._loss_line is not None:
            self.top = self._loss_line - self.page // 2
            self._keep_in_view()
            self.refresh()

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        if self.example is None:
            return None, [Text(line, STYLES["muted"]) for line in _wrapped(self.sentence, width)]
        example = self.example
        lines = [Text(cut(line, width), STYLES[role], no_wrap=True, end="") for line, role in example_head(example)]
        if example["problem"]:
            lines += [Text(line, STYLES["bad"]) for line in _wrapped(safe(example["problem"]), width)]
        if example["picture"]:
            lines += [Text(line, STYLES["muted"]) for step in self._picture_words() for line in _wrapped(step, width)]
            return None, [*lines, Text(""), *self._drawn()]
        if not example["pieces"]:
            return None, [*lines, *(Text(line, STYLES["text"]) for line in _wrapped(safe(example["text"]), width))]
        legend = Text(no_wrap=True, end="")
        states = ("loss", "context", "cut", "cut loss")
        seen = {piece[1] for piece in example["pieces"]}
        for state, (sign, meaning) in zip(states, self.marks.legend(), strict=True):
            if state in seen:
                legend.append(sign.strip(), _RULERS[state]).append(f" {meaning}   ", STYLES["muted"])
        lines += [legend, Text("")]
        self._loss_line = None
        for parts in token_lines(example["pieces"], width, self.marks):
            if self._loss_line is None and any("loss" in part.state for part in parts):
                self._loss_line = len(lines)
            text, ruler = Text(no_wrap=True, end=""), Text(no_wrap=True, end="")
            for part in parts:
                style = _STATES[part.state]
                text.append(part.text, style + Style(italic=True, color=MUTED) if part.special else style)
                ruler.append(part.ruler, _RULERS[part.state])
            lines += [text, ruler]
        if example["more"]:
            lines.append(Text(f"… and {example['more']:,} more tokens", STYLES["muted"]))
        if example["padding"]:
            lines.append(Text(f"+ {example['padding']:,} padding behind it in its first batch", STYLES["muted"]))
        return None, lines

    def _picture_words(self) -> list[str]:
        assert self.example is not None
        picture = self.example["picture"]
        if "problem" in picture:
            return [safe(picture["problem"])]
        channels = f"{picture['channels']} channel{'' if picture['channels'] == 1 else 's'} ({picture['mode']})"
        shape = f"{picture['width']} × {picture['height']} points, {channels}, {picture['format']}"
        return [shape, *(f"then {step}" for step in self.transform)]

    def _drawn(self) -> list[Text]:
        """Two points in each cell, one above the other; shades of grey from characters where there is ASCII or no colour."""
        plain = not self.glyphs.braille or self.app.console.color_system is None
        lines = []
        for upper, lower in zip(self.points[::2], [*self.points[1::2], []], strict=False):
            line = Text(no_wrap=True, end="")
            for x, point in enumerate(upper):
                below = lower[x] if lower else [0, 0, 0]
                if plain:
                    line.append(_grey(point, below))
                else:
                    line.append("▀", Style(color=_hex(point), bgcolor=_hex(below)))
            lines.append(line)
        return lines


def _grey(upper: list[int], lower: list[int]) -> str:
    brightness = sum(0.299 * r + 0.587 * g + 0.114 * b for r, g, b in (upper, lower)) / 2
    return GREYS[min(len(GREYS) - 1, int(brightness * len(GREYS) / 256))]


def _hex(point: list[int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*point)


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width)
