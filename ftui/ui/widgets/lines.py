"""The single lines at the top and the bottom of a screen."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding
from textual.strip import Strip
from textual.widget import Widget

from ftui.ui.keys import shown_key
from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import segments
from ftui.ui.words import cut

Part = tuple[str, str]
"""A text and its style role."""


class StatusLine(Widget):
    """One line: what this is at the left, how it stands at the right. The left gives way when the width is short."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._left: list[Part] = []
        self._right: list[Part] = []

    def show(self, left: Iterable[Part], right: Iterable[Part] = ()) -> None:
        before, (self._left, self._right) = (self._left, self._right), (list(left), list(right))
        if before != (self._left, self._right):
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        right = Text.assemble(*((text, STYLES[role]) for text, role in self._right), no_wrap=True, end="")
        room = width - 2 - (right.cell_len + 2 if self._right else 0)
        line = Text(" ", no_wrap=True, end="")
        for text, role in self._left:
            # A word is shown whole or not at all, a sentence may be cut.
            part = cut(text, room) if cell_len(text) <= room or room >= 16 else ""
            line.append(part, STYLES[role])
            room -= cell_len(part)
        line.append(" " * max(0, width - 1 - line.cell_len - right.cell_len))
        line.append_text(right)
        return Strip(segments(line, self)).adjust_cell_length(width).apply_style(self.rich_style)


class KeyLine(Widget):
    """The keys worth knowing here, as many as fit; `?` shows the rest."""

    def __init__(self, bindings: Iterable[Binding], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys = [binding for binding in bindings if binding.show]

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        last = [b for b in self._keys if b.id in ("app.help", "app.quit")]
        items = [_item(b) for b in self._keys if b not in last]
        ending = [_item(b) for b in last]
        room = width - 1 - sum(item.cell_len + 2 for item in ending)
        line = Text(" ", no_wrap=True, end="")
        for item in items:
            if item.cell_len + 2 > room:
                break
            line.append_text(item).append("  ")
            room -= item.cell_len + 2
        for item in ending:
            line.append_text(item).append("  ")
        return Strip(segments(line, self)).adjust_cell_length(width).apply_style(self.rich_style)


def _item(binding: Binding) -> Text:
    return Text.assemble((shown_key(binding), STYLES["bright"]), (f" {binding.description}", STYLES["muted"]))
