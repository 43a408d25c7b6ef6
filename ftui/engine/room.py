"""A full disk: which runs have to wait for room, and writing down that waits instead of giving up (K20).

Nothing may follow from what is not in the journal. So where there is no room for an event the supervisor stands still, while what it
started works on, and goes on from the same point when a person has made room.
"""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from ftui.engine.symptoms import DISK_FULL
from ftui.record.layout import CampaignFiles, RunFiles
from ftui.record.state import Campaign

ROOM_PATIENCE = timedelta(hours=6)
"""How long a run, or the supervisor, waits for room on the disk."""
CHECK_SECONDS = 5.0

_LEAST_BYTES = 256 << 20
"""Room without which nothing is started again: a log, a series and a small checkpoint."""

Result = TypeVar("Result")


def is_full(error: OSError) -> bool:
    """Whether a write failed because the disk, or this user's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def when_there_is_room(
    write: Callable[[], Result], *, check_every: float = CHECK_SECONDS, patience: timedelta = ROOM_PATIENCE
) -> tuple[Result, float]:
    """Do what `write` does, again and again while the disk is full; returns its result and the seconds it had to wait.

    `write` must leave things as they were where it fails. Raises its OSError when it is another, or patience has ended.
    """
    began = time.monotonic()
    waited = 0.0
    while True:
        try:
            return write(), waited
        except OSError as error:
            waited = time.monotonic() - began
            if not is_full(error) or waited > patience.total_seconds():
                raise
        time.sleep(check_every)
        waited = time.monotonic() - began


def without_room(state: Campaign, files: CampaignFiles) -> frozenset[str]:
    """Runs that ended on a full disk, and for which it has no room yet."""
    full = [run for run in state.runs_of("lost") if run.attempts[-1].fault == DISK_FULL]
    return frozenset(run.id for run in full if not has_room(files.run(run.id)))


def has_room(files: RunFiles) -> bool:
    """Whether the disk can take what a run writes: twice its newest checkpoint, and some more."""
    newest = max(files.checkpoints.glob("step-*"), default=None) if files.checkpoints.is_dir() else None
    size = 0 if newest is None else sum(path.stat().st_size for path in newest.iterdir())
    return shutil.disk_usage(_existing(files.root)).free >= 2 * size + _LEAST_BYTES


def _existing(folder: Path) -> Path:
    return folder if folder.exists() else _existing(folder.parent)
