"""What an inspection found about all rows: findings first, then the facts, section by section."""

from __future__ import annotations

from rich.text import Text

from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import fitted

Section = tuple[str, list[str]]
"""A heading and its lines."""


_PLAIN = str.maketrans({"█": "#", "▏": "|", "–": "-", "…": "~"})
"""What stands for the signs of the sections where a terminal has ASCII only."""


class FactsPanel(Panel):
    """The sections of an inspection at the width there is: sentences are wrapped, lines with columns are cut."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("2 Facts", id=id)
        self.sections: list[Section] = []

    def show(self, sections: list[Section]) -> None:
        self.sections = sections
        self.changed()

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        lines: list[Text] = []
        for title, content in self.sections:
            if lines:
                lines.append(Text(""))
            lines.append(Text(title, STYLES["busy"], no_wrap=True, end=""))
            for line in content:
                if not self.glyphs.braille:
                    line = line.translate(_PLAIN)
                role = "bad" if line.startswith("error:") else "warn" if line.startswith("warning:") else "text"
                lines += [Text(part, STYLES[role], no_wrap=True, end="") for part in fitted(line, width)]
        return None, lines
