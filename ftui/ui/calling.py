"""Calling a person who looks elsewhere: the terminal's bell, and a desktop notification where the terminal makes one (OSC 9)."""

from __future__ import annotations

from textual.app import App

from ftui.record.news import news_of
from ftui.record.state import Campaign
from ftui.record.text import safe

MOST = 200
"""Characters of a notification; desktops show no more."""


class Caller:
    """Calls for what happens to one campaign while it is watched."""

    def __init__(self, campaign: str) -> None:
        self._campaign = campaign
        self._heard: int | None = None
        """Events known already; None before the first look, which calls for nothing: it may be days old."""

    def hear(self, app: App[object], state: Campaign) -> None:
        """Call for what has happened since the last look, once each."""
        new = state.events[self._heard :] if self._heard is not None else []
        self._heard = len(state.events)
        for news in filter(None, (news_of(row, state) for row in new)):
            call_person(app, f"{self._campaign}: {news.sentence}")


def call_person(app: App[object], sentence: str) -> None:
    """Ring, and show one sentence, through the app's own driver so that it never falls into the middle of a frame. The text is data:
    what would end the sequence, or begin another, is shown as an escape."""
    driver = app._driver  # Textual's own bell goes this way; there is no public one for other sequences
    if driver is not None and not app.is_headless:
        driver.write(f"\a{notification(sentence)}")


def notification(sentence: str) -> str:
    """The sequence that asks a terminal for a desktop notification; terminals without one skip it."""
    return f"\x1b]9;ftui: {safe(sentence, MOST)}\a"
