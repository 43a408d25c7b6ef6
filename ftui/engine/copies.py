"""When a campaign's copies are made: regularly, at checkpoints, ends of phases and before the rental's end, and once more at the end.

The copying is a process of its own (`copy.py`); here is only when it is due, how long a failed one waits, and what the journal is told:
the first copy and every change, not a row each quarter of an hour.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ftui.engine.copy import BUSY, FAILED
from ftui.engine.jobs import Job, start_job
from ftui.engine.launch import copy_command
from ftui.engine.logs import last_words
from ftui.plan.schema import Backup
from ftui.record.backup import read_backup
from ftui.record.journal import now
from ftui.record.layout import CampaignFiles
from ftui.record.lines import Row

KEY = "copy:"
LEAST_PAUSE = timedelta(seconds=20)
"""Between the starts of two copies that only checkpoints ask for."""
LOOK_EVERY = timedelta(seconds=5)
"""Between two looks for new checkpoints."""
LAST_STRETCH, LAST_EVERY = timedelta(minutes=30), timedelta(minutes=3)
"""How long before the rental's end copies come more often, and how often."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(minutes=30)
"""After the first failure, and after many."""
LAST_TRIES = 5
"""How often the last copy of a closed campaign is tried."""
SHORT = timedelta(seconds=60)
"""What a copy may take when a person waits for the campaign to stop, or when the rental has ended already."""


class Copies:
    """When one supervisor's campaign is copied. Without a `backup` in the plan it never is."""

    def __init__(
        self, files: CampaignFiles, backup: Backup | None, told: Row | None, newest: Callable[[], Mapping[str, int]]
    ) -> None:
        """`told` is the journal's last word about copies, `newest` gives the update of each run's newest checkpoint."""
        self._files, self._backup, self._newest = files, backup, newest
        self._told: str | Literal[False] | None = False if told is None else told["cause"]
        """Cause the journal last gave, None for a copy that worked, False when it has said nothing."""
        self._begun_at: datetime | None = None
        self._ended_at: datetime | None = None
        self._failures = 0
        self._phase: str | None = None
        self._checkpoints: Mapping[str, int] = {}
        self._looked_at = datetime.min.replace(tzinfo=UTC)
        self._last_tries = 0
        self._given_up = False

    @property
    def wanted(self) -> bool:
        """Whether the plan asks for copies at all."""
        return self._backup is not None

    def due(self, moment: datetime, phase: str | None, ends_at: datetime | None) -> bool:
        """Whether to copy now, no copy going on."""
        if self._backup is None:
            return False
        if self._failures:
            return self._may_try_again(moment)
        if self._begun_at is None or phase != self._phase:
            return True
        gone = moment - self._begun_at
        if gone >= LEAST_PAUSE and moment >= self._looked_at + LOOK_EVERY:
            self._looked_at = moment
            if self._newest() != self._checkpoints:
                return True
        every = timedelta(minutes=self._backup.every)
        if ends_at is not None and timedelta() < ends_at - moment <= LAST_STRETCH:
            every = min(every, LAST_EVERY)
        return gone >= every

    def due_last(self, moment: datetime, *, closed: bool, ends_at: datetime | None) -> Literal["now", "later", "no"]:
        """Whether the copy after everything else is still to be made: of a `closed` campaign it is tried until the rental ends, of a
        stopped one once."""
        if self._backup is None or self._given_up:
            return "no"
        if self._last_tries == 0:
            return "now"
        over = not closed or self._last_tries >= LAST_TRIES or (ends_at is not None and moment >= ends_at)
        if self._failures == 0 or over:
            return "no"
        return "now" if self._may_try_again(moment) else "later"

    def begin(self, moment: datetime, phase: str | None) -> Job:
        """Start a copy."""
        self._begun_at, self._phase, self._checkpoints = moment, phase, self._newest()
        return start_job(KEY, copy_command(self._files), (), outlives_supervisor=False)

    def begin_last(self) -> Job:
        """Start the last copy."""
        self._last_tries += 1
        return self.begin(now(), self._phase)

    def interrupted(self) -> None:
        """Everything is to stop. Asked while the last copy is made or waited for, it says that nobody wants to wait for it."""
        self._given_up = self._last_tries > 0

    def ended(self, job: Job, moment: datetime) -> dict[str, Any] | None:
        """Take note of a copy's end; returns the fields of its journal row, None when there is nothing new to say."""
        assert self._backup is not None
        if job.exit_code == BUSY:
            self._ended_at = moment
            return None  # a person's own copy goes on; the next one here comes in its time
        last = read_backup(self._files, self._backup).last
        counted = (last.copied, last.bytes, last.left) if last is not None else (0, 0, 0)
        return self._take_note(moment, _cause(job), *counted)

    def not_begun(self, error: OSError, moment: datetime) -> dict[str, Any] | None:
        """Take note of a copy that could not even be started; returns what `ended` does."""
        return self._take_note(moment, f"the copy could not be started: {error.strerror or error}")

    def _take_note(
        self, moment: datetime, cause: str | None, copied: int = 0, size: int = 0, left: int = 0
    ) -> dict[str, Any] | None:
        self._ended_at = moment
        self._failures = self._failures + 1 if cause else 0
        if cause == self._told:
            return None
        self._told = cause
        return {"copied": copied, "bytes": size, "left": left, "cause": cause}

    def seal(self) -> None:
        """Copy the journal's last lines, which say that everything has ended; what fails here, `ftui status` shows."""
        if self._last_tries and not self._failures and not self._given_up:
            try:
                job = start_job(KEY, copy_command(self._files), (), outlives_supervisor=False)
            except OSError:
                return
            assert job.process is not None
            try:
                job.process.wait(SHORT.total_seconds())
            except subprocess.TimeoutExpired:
                job.kill()

    def _may_try_again(self, moment: datetime) -> bool:
        pause = min(FIRST_PAUSE * 2 ** min(self._failures - 1, 10), LONGEST_PAUSE)
        return self._ended_at is None or moment >= self._ended_at + pause


def last_seconds(moment: datetime, closed: bool, ends_at: datetime | None) -> float:
    """How long the last copy may take: of a `closed` campaign until the rental ends, of a stopped one a person waits for, shortly."""
    left = ends_at - moment if closed and ends_at is not None else SHORT
    return max(left, SHORT).total_seconds()


def _cause(job: Job) -> str | None:
    """Why a copy failed, None when it did not."""
    if job.exit_code == 0:
        return None
    if job.exit_code == FAILED and (said := last_words(job.log)):
        return said
    if job.exit_code is not None and job.exit_code < 0:
        return f"the copy was ended by signal {-job.exit_code} before its end"
    return f"the copy ended with {job.exit_code}; see {job.log}"
