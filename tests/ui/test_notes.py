"""Promises of the notebook in the app: `n` on every screen of a campaign, and nothing that was written is lost."""

from __future__ import annotations

import os
import pty
import resource
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.events import Paste
from textual.pilot import Pilot

from ftui.record.layout import CampaignFiles
from ftui.record.notebook import read_notes
from ftui.ui.app import FtuiApp
from ftui.ui.screens.entry import UNSAVED, EntryArea, TextEntry
from ftui.ui.screens.home import HomeScreen
from ftui.ui.screens.inspect import InspectScreen
from ftui.ui.screens.monitor import MonitorScreen
from ftui.ui.screens.report import ReportScreen
from tests.builders.campaign import build_campaign
from tests.builders.processes import ENVIRONMENT
from tests.ui.seen import lines, text, until


def noted(files: CampaignFiles) -> list[str]:
    return [str(row["text"]) for row in read_notes(files)]


async def dialog(pilot: Pilot[None]) -> TextEntry:
    await pilot.press("n")
    await until(pilot, lambda: isinstance(pilot.app.screen, TextEntry), "the dialog")
    entry = pilot.app.screen
    assert isinstance(entry, TextEntry)
    await until(pilot, lambda: entry.query_one(EntryArea).has_focus, "the place to write")
    return entry


@contextmanager
def no_room_behind(path: Path) -> Iterator[None]:
    """No file may become longer than `path` is, as if the disk was full behind it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("kind", [MonitorScreen, ReportScreen, InspectScreen])
async def test_a_note_is_written_from_every_screen_of_a_campaign(
    tmp_path: Path, kind: type[MonitorScreen | ReportScreen | InspectScreen]
) -> None:
    files = build_campaign(tmp_path, "running").files
    app = FtuiApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(kind(files))
        await until(pilot, lambda: isinstance(app.screen, kind), "the screen")
        await dialog(pilot)
        await pilot.press(*"rank 16", "ctrl+n", *"next", "enter")
        await until(pilot, lambda: isinstance(app.screen, kind), "the screen again")
        if kind is ReportScreen:
            await pilot.press("G")
            await until(pilot, lambda: "(app): rank 16" in text(app), "the note in the report")
    assert noted(files) == ["rank 16\nnext"]


async def test_home_notes_for_the_campaign_under_the_cursor_also_for_a_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    build_campaign(tmp_path / "campaigns", "closed", name="a")
    draft = build_campaign(tmp_path / "campaigns", "planned", name="b").files
    app = FtuiApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "never launched" in text(app), "the list")
        await pilot.press("j")
        await dialog(pilot)
        await pilot.press(*"ask for data", "enter")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen) and "app: ask for data" in text(app), "the note")
        assert "never launched" in text(app), "a note is no launch"
    assert noted(draft) == ["ask for data"]


async def test_what_was_written_and_left_is_there_again_and_goes_when_it_is_saved(tmp_path: Path) -> None:
    files = build_campaign(tmp_path, "launched").files
    app = FtuiApp(files)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await dialog(pilot)
        await pilot.press(*"half a th", "escape")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")
        await until(pilot, lambda: "not saved" in text(app), "the sentence")
        assert noted(files) == [] and UNSAVED["note", files] == "half a th"
        await dialog(pilot)
        await pilot.press(*"ought", "enter")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")
        assert noted(files) == ["half a thought"]
        entry = await dialog(pilot)
        assert entry.query_one(EntryArea).text == ""
        await pilot.press("enter")
        await until(pilot, lambda: "Nothing is written yet" in text(app), "the sentence")
    assert noted(files) == ["half a thought"]


def test_an_app_that_ends_gives_back_what_was_not_saved(tmp_path: Path) -> None:
    files = build_campaign(tmp_path, "launched").files
    leader, terminal = pty.openpty()
    app = subprocess.Popen(
        [sys.executable, "-m", "ftui.cli", "open", str(files.root)],
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        env=ENVIRONMENT | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
    )  # fmt: skip
    os.close(terminal)
    seen = ""

    def until_seen(words: str) -> None:
        nonlocal seen
        while words not in seen:
            assert select.select([leader], [], [], 60)[0], f"waited for {words}"
            seen += os.read(leader, 65536).decode(errors="replace")

    for awaited, typed in (("nothing queued yet", b"n"), ("Enter save", b"half"), ("half", b"\x11")):
        until_seen(awaited)
        os.write(leader, typed)
    until_seen("This note for three-learning-rates was not saved:\r\nhalf")
    assert app.wait(timeout=60) == 0
    os.close(leader)
    assert noted(files) == []


async def test_on_a_full_disk_the_text_stays_until_there_is_room(tmp_path: Path) -> None:
    files = build_campaign(tmp_path, "launched").files
    before = files.journal.read_bytes()
    app = FtuiApp(files)
    async with app.run_test(size=(80, 24)) as pilot:
        await dialog(pilot)
        await pilot.press(*"keep me")
        with no_room_behind(files.journal):
            await pilot.press("enter")
            await until(pilot, lambda: "Not saved" in text(app), "the sentence")
        assert "keep me" in text(app) and "journal.jsonl" in text(app) and "File too large" in text(app)
        assert files.journal.read_bytes() == before, "nothing half-written is left"
        await pilot.press(*"!", "enter")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")
    assert noted(files) == ["keep me!"]


async def test_scripts_of_all_widths_wrap_and_control_characters_are_shown(tmp_path: Path) -> None:
    files = build_campaign(tmp_path, "running").files
    pasted = "학습률이 너무 높다 " * 6 + "zażółć\n\x1b[2J\x1b]0;owned\x07bell\x07"
    app = FtuiApp(files)
    async with app.run_test(size=(80, 24)) as pilot:
        entry = await dialog(pilot)
        entry.query_one(EntryArea).post_message(Paste(pasted))
        await until(pilot, lambda: "bell\\x07" in text(app), "the text")
        assert "zażółć" in text(app) and not any(ord(c) < 32 for line in lines(app) for c in line)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")
        await pilot.press("6", "v", "w")
        await until(pilot, lambda: "note by the app: 학습률이" in text(app), "the events")
        at = next(i for i, line in enumerate(lines(app)) if "bell\\x07" in line)
        assert "  bell" in lines(app)[at], "the second line of the note is one of its own"
    assert noted(files) == [pasted.replace("\x1b[2J\x1b]0;owned\x07bell\x07", "bell\\x07")]
