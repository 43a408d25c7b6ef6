"""The steps of the wizard and how each stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import pad


@dataclass(frozen=True)
class StepState:
    """A step's title, the same in short, and its state: `done`, `to do`, or the number of its problems."""

    title: str
    short: str
    word: str
    role: str


class StepsPanel(Panel):
    """One line per step, its number first: the key that leads there."""

    has_cursor = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("Steps", id=id)
        self.states: list[StepState] = []

    def show(self, states: Sequence[StepState], at: int) -> None:
        moved, self.cursor = self.cursor != at, at
        self.states = list(states)
        self.changed()
        if moved:
            self.refresh()

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        lines = []
        for number, state in enumerate(self.states, 1):
            room = max(4, width - len(state.word) - 3)
            lines.append(
                Text.assemble(
                    (f"{number % 10} ", STYLES["muted"]),
                    (pad(state.title if len(state.title) <= room else state.short, room), STYLES["text"]),
                    (f" {state.word}", STYLES[state.role]),
                    no_wrap=True,
                    end="",
                )
            )
        return None, lines
