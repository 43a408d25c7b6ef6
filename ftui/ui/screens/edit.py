"""Editors of one answer: a text, a choice, several choices. Each gives the answer as it would be typed, None when left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from ftui.ui import keys
from ftui.ui.theme import STYLES
from ftui.ui.widgets.area import SafeArea
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import cut, pad

SHORT = 40
"""Characters of an answer that one would sooner type anew than correct."""


@dataclass(frozen=True)
class Offer:
    """One answer that is offered."""

    answer: str
    """As it would be typed."""
    note: str = ""
    """What speaks for it: its meaning, where it was found."""


class AnswerArea(SafeArea):
    """Text that wraps. Enter gives the answer; where there are lines, it begins the next one, and on an empty line gives the answer."""

    class Done(Message):
        """The answer is given."""

    def __init__(self, text: str, *, lines: bool) -> None:
        super().__init__(text, soft_wrap=True, compact=True, highlight_cursor_line=False, tab_behavior="focus")
        self.lines = lines
        self.separator = "\n" if lines else " "

    async def _on_key(self, event: events.Key) -> None:
        # Acts here, in its turn: a binding would be carried out beside the letters typed before and after.
        empty = not self.document.get_line(self.cursor_location[0]).strip()
        if event.key == "f2" or (event.key == "enter" and (not self.lines or empty)):
            event.stop()
            event.prevent_default()
            self.post_message(self.Done())
            return
        await super()._on_key(event)


class TextEditor(ModalScreen[str | None]):
    """A text, or one item per line. `check` gives the sentence that keeps an answer from being taken, None when nothing does."""

    BINDINGS: ClassVar[list[BindingType]] = list(keys.DIALOG)

    def __init__(self, title: str, why: str, value: str, *, lines: bool = False, check: object = None) -> None:
        super().__init__()
        self._title, self._why, self._value, self._lines, self._check = title, why, value, lines, check

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            box.border_subtitle = (
                "one per line, an empty one ends  F2 done  Esc cancel" if self._lines else "Enter done  Esc cancel"
            )
            yield Static(Text(self._why, STYLES["muted"]))
            area = AnswerArea(self._value, lines=self._lines)
            area.styles.height = 8 if self._lines else 4
            yield area
            yield Static("", id="answer", markup=False)

    def on_mount(self) -> None:
        area = self.query_one(AnswerArea)
        area.focus()
        area.move_cursor(area.document.end)
        if len(self._value) <= SHORT:
            area.select_all()  # what is typed takes its place

    @on(AnswerArea.Done)
    def answer(self) -> None:
        text = self.query_one(AnswerArea).text
        sentence = self._check(text) if callable(self._check) else None
        if sentence:
            self.query_one("#answer", Static).update(Text(f"! {sentence}", STYLES["bad"]))
        else:
            self.dismiss(text)

    def action_cancel(self) -> None:
        self.dismiss(None)


class OffersPanel(Panel):
    """Offers with their notes; in a list of several, marks before those that are taken."""

    has_cursor = True

    def __init__(self, offers: Sequence[Offer], marked: Sequence[str] | None) -> None:
        super().__init__("")
        self.offers = list(offers)
        self.marked = None if marked is None else list(marked)

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        room = (
            min(
                max((cell_len(offer.answer.replace("\n", " · ")) for offer in self.offers), default=0),
                max(12, width // 2),
            )
            + 2
        )
        lines = []
        for offer in self.offers:
            mark = "" if self.marked is None else "[x] " if offer.answer in self.marked else "[ ] "
            lines.append(
                Text.assemble(
                    (mark, STYLES["busy"]),
                    (pad(offer.answer.replace("\n", " · "), room), STYLES["text"]),
                    (cut(offer.note, max(0, width - room - len(mark))), STYLES["muted"]),
                    no_wrap=True,
                    end="",
                )
            )
        return None, lines

    def toggle(self) -> None:
        if self.marked is None or not self.offers:
            return
        answer = self.offers[self.cursor].answer
        if answer in self.marked:
            self.marked.remove(answer)
        else:
            self.marked.append(answer)
        self.changed()


class ChoiceEditor(ModalScreen[str | None]):
    """One of several offers, or several where `marked` says which are taken now. `open_ended` ones can also be typed."""

    BINDINGS: ClassVar[list[BindingType]] = list(keys.CHOICE)

    TYPED = "\0typed"
    """The answer that asks for an editor."""

    def __init__(
        self,
        title: str,
        why: str,
        offers: Sequence[Offer],
        value: str,
        *,
        marked: Sequence[str] | None = None,
        open_ended: bool = False,
    ) -> None:
        super().__init__()
        self._title, self._why, self._value, self._open = title, why, value, open_ended
        known = [offer.answer for offer in offers]
        extra = [Offer(answer, "in the file") for answer in marked or () if answer not in known]
        self._panel = OffersPanel([*offers, *extra], marked)

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            many = "Space mark  " if self._panel.marked is not None else ""
            typed = "t type it  " if self._open else ""
            box.border_subtitle = f"{many}Enter done  {typed}Esc cancel"
            yield Static(Text(self._why, STYLES["muted"]))
            yield self._panel

    def on_mount(self) -> None:
        count = len(self._panel.offers)
        self._panel.styles.height = max(1, min(count, self.app.size.height - 10))
        answers = [offer.answer for offer in self._panel.offers]
        self._panel.cursor = answers.index(self._value) if self._value in answers else 0
        self._panel.focus()

    def action_take(self) -> None:
        if self._panel.marked is not None:
            self.dismiss("\n".join(self._panel.marked))
        elif self._panel.offers:
            self.dismiss(self._panel.offers[self._panel.cursor].answer)

    def action_mark(self) -> None:
        self._panel.toggle()

    def action_type(self) -> None:
        if self._open:
            self.dismiss(self.TYPED)

    def action_cancel(self) -> None:
        self.dismiss(None)
