"""The terminal of a person who looks elsewhere rings once for each thing that matters, and nothing in a text reaches it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ftui.record.journal import Journal
from ftui.record.layout import CampaignFiles
from tests.builders.campaign import build_campaign, supervised
from tests.builders.processes import ENVIRONMENT

CALLS = re.compile(rb"\a\x1b\]9;([^\a\x1b]*)\a")


class Terminal:
    """The app on one campaign in a terminal of its own."""

    def __init__(self, files: CampaignFiles) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        command = [sys.executable, "-m", "ftui.cli", "open", str(files.root)]
        self.app = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT | {"TERM": "xterm-256color"}
        )
        os.close(theirs)
        self.seen = b""

    def until(self, condition: Callable[[bytes], object], what: str, seconds: float = 60) -> None:
        """Read what the app writes until `condition` holds of all of it."""
        end = time.monotonic() + seconds
        while not condition(self.seen):
            assert time.monotonic() < end, f"waited in vain: {what}; {self.seen[-300:]!r}"
            if select.select([self.ours], [], [], 0.1)[0]:
                self.seen += os.read(self.ours, 65536)

    def calls(self) -> list[str]:
        return [call.decode() for call in CALLS.findall(self.seen)]


@pytest.fixture
def campaign(tmp_path: Path) -> CampaignFiles:
    files = build_campaign(tmp_path, "running").files
    Journal(files.journal, "supervisor").append("fault", where="data", cause="days ago")
    return files


@pytest.fixture
def terminal(campaign: CampaignFiles) -> Iterator[Terminal]:
    shown = Terminal(campaign)
    yield shown
    shown.app.kill()
    shown.app.wait()
    os.close(shown.ours)


def test_each_failure_and_the_end_ring_once_and_their_text_is_data(campaign: CampaignFiles, terminal: Terminal) -> None:
    journal = Journal(campaign.journal, "supervisor")
    with supervised(campaign):
        terminal.until(lambda seen: b"r003-control-s17" in seen and b"120/200" in seen, "the monitor")
        assert terminal.calls() == []  # what was there before is no news
        cause = "no answer\x07\x1b]52;c;aGk=\x07 from it"
        journal.append("copy-ended", copied=0, bytes=0, left=0, cause=cause)
        terminal.until(lambda _: terminal.calls(), "the call")
        journal.append("note", text="nobody is called for a note")
        journal.append("fault", where="report", cause="the disk is full")
        terminal.until(lambda _: len(terminal.calls()) > 1, "the second call")
    first, second = terminal.calls()
    assert first == f"ftui: {campaign.name}: the copy elsewhere failed: no answer\\x07 from it"
    assert second == f"ftui: {campaign.name}: fault in report: the disk is full"
    assert b"\x1b]52;" not in terminal.seen
