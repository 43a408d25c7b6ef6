"""A question that is answered by typing a name: for what cannot be taken back."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ftui.ui import keys
from ftui.ui.theme import STYLES


class TypedConfirmation(ModalScreen[bool]):
    """True once `word` was typed exactly and confirmed by Enter; False when left."""

    BINDINGS: ClassVar[list[BindingType]] = list(keys.DIALOG)

    def __init__(self, title: str, consequence: str, word: str) -> None:
        super().__init__()
        self._title, self._consequence, self._word = title, consequence, word

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            box.border_subtitle = "Enter confirm  Esc cancel"
            yield Static(Text(self._consequence))
            yield Static(
                Text.assemble(
                    ("Type ", STYLES["muted"]), (self._word, STYLES["bright"]), (" to confirm:", STYLES["muted"])
                )
            )
            yield Input(compact=True)
            yield Static("", id="answer", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def check(self, event: Input.Submitted) -> None:
        if event.value.strip() == self._word:
            self.dismiss(True)
        else:
            self.query_one("#answer", Static).update(Text("This is not the name; nothing was done.", STYLES["warn"]))

    def action_cancel(self) -> None:
        self.dismiss(False)
