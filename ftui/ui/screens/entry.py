"""A text of some lines, asked for and saved before the dialog closes: a note, or the reason for a changed plan.

No key loses what was written: a text that was left, or could not be saved, is there again the next time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

from rich.text import Text
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from ftui.record.layout import CampaignFiles
from ftui.record.notebook import write_note
from ftui.record.text import safe
from ftui.ui import keys
from ftui.ui.theme import STYLES
from ftui.ui.widgets.area import SafeArea

Place = tuple[str, CampaignFiles]
"""What a text is, and the campaign it belongs to."""

UNSAVED: dict[Place, str] = {}
"""Texts that were written and not saved; they live as long as the app, which prints them when it ends."""


class EntryArea(SafeArea):
    """Wraps; the dialog's keys act in it."""

    async def on_key(self, event: events.Key) -> None:
        """Keys of the dialog act here, in their turn: a binding would be carried out beside the letters typed before and after."""
        action = next((binding.action for binding in keys.ENTRY if binding.key == event.key), None)
        if action is not None:
            event.prevent_default()
            event.stop()
            await self.screen.run_action(action)


class TextEntry(ModalScreen[bool]):
    """True once the text was saved, False when left.

    `save` gives a sentence to show when it is done. It is called in a thread and may take its time; what it raises is shown, and
    the dialog stays.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(keys.ENTRY)

    class Ended(Message):
        """The attempt to save has ended; `problem` says why it failed, None when it did not."""

        def __init__(self, sentence: str, problem: str | None = None) -> None:
            super().__init__()
            self.sentence, self.problem = sentence, problem

    def __init__(self, title: str, about: str, place: Place, save: Callable[[str], str]) -> None:
        super().__init__()
        self._title, self._about, self._place, self._save = title, about, place, save
        self._saving = False

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            box.border_subtitle = "Enter save  ^n new line  Esc leave"
            yield Static(Text(safe(self._about)), id="about")
            yield EntryArea(UNSAVED.get(self._place, ""), compact=True, highlight_cursor_line=False)
            yield Static("", id="answer", markup=False)

    def on_mount(self) -> None:
        area = self.query_one(EntryArea)
        area.move_cursor(area.document.end)
        area.focus()

    @on(TextArea.Changed)
    def keep(self) -> None:
        text = self.query_one(EntryArea).text
        if self._saving:
            return
        if text.strip():
            UNSAVED[self._place] = text
        else:
            UNSAVED.pop(self._place, None)

    def action_new_line(self) -> None:
        self.query_one(EntryArea).insert("\n")

    def action_save(self) -> None:
        if self._saving:
            return
        self.keep()
        if self._place not in UNSAVED:
            self._say("Nothing is written yet; Esc leaves.", "warn")
            return
        self._saving = self.query_one(EntryArea).read_only = True
        self._say("saving", "muted")
        self.save(UNSAVED[self._place])

    @work(thread=True, group="save")
    def save(self, text: str) -> None:
        try:
            ended = self.Ended(self._save(text))
            UNSAVED.pop(self._place, None)
        except Exception as error:  # whatever it is, who wrote the text has to know
            ended = self.Ended("", f"Not saved: {error or type(error).__name__}")
        if not self.post_message(ended):  # it was left in the meantime
            self.app.call_from_thread(self._notify, ended)

    @on(Ended)
    def ended(self, message: TextEntry.Ended) -> None:
        if message.problem is None:
            self._notify(message)
            self.dismiss(True)
        else:
            self._saving = self.query_one(EntryArea).read_only = False
            self._say(message.problem, "bad")

    def _notify(self, message: TextEntry.Ended) -> None:
        severity: Literal["error", "information"] = "error" if message.problem else "information"
        self.app.notify(message.problem or message.sentence, title=self._place[1].name, severity=severity, markup=False)

    def _say(self, sentence: str, role: str) -> None:
        self.query_one("#answer", Static).update(Text(safe(sentence), STYLES[role]))

    def action_leave(self) -> None:
        if self._place in UNSAVED and not self._saving:
            self.app.notify(
                "What you wrote is not saved; it is there again the next time.", title=self._title, markup=False
            )
        self.dismiss(False)


def note_entry(files: CampaignFiles) -> TextEntry:
    """The dialog that writes into a campaign's notebook."""

    def save(text: str) -> str:
        write_note(files, text, "app")
        return "Noted."

    about = f"Goes into the journal of {files.name}, with the time, and into its report."
    return TextEntry("Note", about, ("note", files), save)
