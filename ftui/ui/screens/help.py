"""The keys, read from the bindings themselves, so that help never says what is not so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ftui.ui import keys
from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import pad


class KeyList(Panel):
    """Keys and sentences under headings, in two columns where the width allows it."""

    def __init__(self, title: str, groups: list[tuple[str, Iterable[Binding]]]) -> None:
        super().__init__(title)
        self._groups = groups

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        lines: list[Text] = []
        for heading, bindings in self._groups:
            # Keys that differ only in a number share their sentence, and a line.
            once = {binding.tooltip: binding for binding in reversed(tuple(bindings))}
            lines += [*([Text("")] if lines else []), Text(heading, STYLES["bright"])]
            lines += [
                Text.assemble(
                    (f"  {pad(keys.shown_key(b), 10)}  ", STYLES["busy"]), (b.tooltip, STYLES["text"]), no_wrap=True
                )
                for b in reversed(once.values())
            ]
        return None, lines


class HelpScreen(ModalScreen[None]):
    """Help over the screen it belongs to."""

    BINDINGS: ClassVar[list[BindingType]] = list(keys.HELP)

    def __init__(
        self, title: str, bindings: tuple[Binding, ...], everywhere: tuple[Binding, ...] = keys.EVERYWHERE
    ) -> None:
        super().__init__()
        self._title, self._bindings_shown, self._everywhere = title, bindings, everywhere

    def compose(self) -> ComposeResult:
        groups: list[tuple[str, Iterable[Binding]]] = [
            (self._title, self._bindings_shown),
            ("Lists and panels", keys.PANEL),
            ("Everywhere", self._everywhere),
        ]
        yield KeyList("Keys", groups)

    def action_close(self) -> None:
        self.dismiss()

    def action_move(self, lines: int) -> None:
        self.query_one(KeyList).move(lines)

    def action_page(self, pages: int) -> None:
        self.query_one(KeyList).action_page(pages)
