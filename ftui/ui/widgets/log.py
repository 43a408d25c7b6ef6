"""Panel 6: the end of a run's log, or the campaign's events. Text from processes is data: shown, never interpreted."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import chop_cells
from rich.text import Text

from ftui.record.text import safe
from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import cut


class LogPanel(Panel):
    """Follows the newest line until a person scrolls away from it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("6 Log", id=id)
        self.lines: list[str] = []
        self.source = ""
        self.follow = True
        self.wrap = False
        self.empty_text = "nothing printed yet"

    def show(self, source: str, lines: Sequence[str]) -> None:
        if source != self.source:
            self.follow = True
        self.source, self.lines = source, list(lines)
        self.changed()

    def toggle_wrap(self) -> None:
        self.wrap = not self.wrap
        self.changed()

    def subtitle(self) -> str:
        parts = [self.source, "wrapped" if self.wrap else "", "" if self.follow else "not following"]
        return "  ".join(filter(None, parts))

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        if not self.lines:
            return None, [Text(self.empty_text, STYLES["muted"])]
        shown: list[Text] = []
        for line in map(safe, self.lines):
            parts = (chop_cells(line, width) or [""]) if self.wrap and width > 0 else [cut(line, width)]
            shown += [Text(part, STYLES["text"], no_wrap=True, end="") for part in parts]
        if self.follow:
            self.top = len(shown)  # brought back into range when it is drawn
        return None, shown

    def move(self, lines: int) -> None:
        super().move(lines)
        self.follow = self.top >= len(self._lines) - self.page
        self._keep_in_view()
