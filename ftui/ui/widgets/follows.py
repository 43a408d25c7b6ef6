"""What follows from the answers so far: arithmetic, sizes, what fits. Lines are wrapped at the width there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import fitted

Line = tuple[str, str]
"""A line and its style role. One with two spaces inside is a row of a table and is cut, not wrapped."""


class FollowsPanel(Panel):
    """Sentences and tables, from a function of the width."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("What follows", id=id)
        self._lines_of: Callable[[int], Sequence[Line]] = lambda width: ()

    def show(self, lines_of: Callable[[int], Sequence[Line]]) -> None:
        self._lines_of = lines_of
        self.changed()

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        lines: list[Text] = []
        for line, role in self._lines_of(width):
            lines += [Text(part, STYLES[role], no_wrap=True, end="") for part in fitted(line, width)]
        return None, lines
