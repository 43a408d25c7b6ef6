"""A field for text that may be pasted from anywhere."""

from __future__ import annotations

from textual import events
from textual.widgets import TextArea

from ftui.record.text import safe


class SafeArea(TextArea):
    """Control characters of what is pasted are shown, never sent to the terminal."""

    separator = "\n"
    """What stands between the lines of what is pasted."""

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self.insert(self.separator.join(safe(line, 20_000) for line in event.text.splitlines()))
