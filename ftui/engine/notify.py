"""A person's own program is told what happens: the event as JSON on its standard input, in the background, one after the other.

It gets the campaign's name and folder and one sentence, nothing of plan, data or environment beyond what every child inherits. However
it behaves, the campaign goes on: it is killed after a while, and that it does not work is said once.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import IO

from ftui.preferences import BrokenSettings, read_preferences
from ftui.record.journal import stamp
from ftui.record.layout import CampaignFiles
from ftui.record.lines import Row
from ftui.record.news import News, news_of
from ftui.record.state import Campaign
from ftui.record.text import safe

TIMEOUT_SECONDS = 30.0
DEADLINE_NEAR = timedelta(hours=2)
MOST_WAITING = 100
"""More than so many events at once are not worth a program each; the oldest go unsaid."""


class Notifier:
    """Tells the program of one campaign's events. `hear` and `step` return at once."""

    def __init__(self, files: CampaignFiles, command: Sequence[str], problem: str | None = None) -> None:
        """`problem` is why there is no command although somebody wanted one."""
        self._files, self._command, self._problem = files, list(command), problem
        self._waiting: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._process: subprocess.Popen[bytes] | None = None
        self._until = 0.0
        self._deadline_told = self._problem_told = False

    def hear(self, row: Row, state: Campaign) -> None:
        """Take note of a journal event."""
        if (news := news_of(row, state)) is not None:
            self._tell(news, row["at"])

    def step(self, moment: datetime, ends_at: datetime | None) -> str | None:
        """Go on telling; returns why it does not work, once."""
        if ends_at is not None and not self._deadline_told and timedelta() < ends_at - moment <= DEADLINE_NEAR:
            self._deadline_told = True
            left = (ends_at - moment).total_seconds() / 60
            self._tell(News("deadline near", f"the rental ends in {left:.0f} min"), stamp(moment))
        self._collect()
        if self._process is None and self._waiting:
            self._start(self._waiting.popleft())
        return self._problem_to_tell()

    def finish(self) -> str | None:
        """Tell what is left before the supervisor ends, for as long as one program may take; returns why it does not work, once."""
        give_up = time.monotonic() + TIMEOUT_SECONDS
        while (self._process is not None or self._waiting) and time.monotonic() < give_up:
            if self._process is not None:
                try:
                    self._process.wait(max(0.0, min(self._until, give_up) - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self._until = 0.0
            self._collect()
            if self._process is None and self._waiting:
                self._start(self._waiting.popleft())
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        return self._problem_to_tell()

    def _tell(self, news: News, at: str) -> None:
        if not self._command:
            return
        told = {
            "campaign": self._files.name,
            "directory": str(self._files.root),
            "event": news.kind,
            "at": at,
            "run": news.run,
            "sentence": safe(news.sentence),
        }
        self._waiting.append((json.dumps(told, ensure_ascii=False) + "\n").encode())

    def _start(self, line: bytes) -> None:
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self._fails(f"{self._command[0]}: {error.strerror}")
            return
        self._until = time.monotonic() + TIMEOUT_SECONDS
        assert self._process.stdin is not None
        _give(self._process.stdin, line)

    def _collect(self) -> None:
        if self._process is None:
            return
        code = self._process.poll()
        if code is None:
            if time.monotonic() < self._until:
                return
            self._process.kill()
            self._process.wait()
            self._fails(f"{self._command[0]} did not end within {TIMEOUT_SECONDS:.0f} s")
        elif code != 0:
            self._fails(f"{self._command[0]} ended with {code}")
        self._process = None

    def _problem_to_tell(self) -> str | None:
        told, self._problem_told = self._problem_told, self._problem_told or self._problem is not None
        return None if told else self._problem

    def _fails(self, problem: str) -> None:
        self._problem = self._problem or problem


def _give(pipe: IO[bytes], line: bytes) -> None:
    """Write the event, which fits into an empty pipe, so that a program that does not read keeps nobody waiting."""
    try:
        pipe.write(line)
        pipe.close()
    except OSError:
        pass  # it ended without reading: its exit code says whether that was meant


def notifier_for(files: CampaignFiles) -> Notifier:
    """The notifier that the person's settings ask for; broken settings are a problem to be told, not an end."""
    try:
        return Notifier(files, read_preferences().notify)
    except BrokenSettings as broken:
        return Notifier(files, (), str(broken))
