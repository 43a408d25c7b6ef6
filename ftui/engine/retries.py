"""Whether a run that was lost is taken up again, now, later or not at all: by its cause, and by what the attempts before it gained.

A fault of the machine may not come again, so the run goes on from its last complete checkpoint; but one that ends it time after time
at the same checkpoint is no accident. A full disk gets room again or does not: nothing is tried before it has. A fault of the plan is
a result, and never comes here.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from ftui.engine.symptoms import DISK_FULL
from ftui.record.layout import CampaignFiles, RunFiles
from ftui.record.state import Campaign, Run

MAX_LOST = 10
"""Times a run may be lost under one supervisor before it is left alone."""
MAX_IN_PLACE = 3
"""The same in a row, without a new checkpoint in between."""
ROOM_PATIENCE = timedelta(hours=6)
"""How long a run waits for room on the disk."""

_LEAST_BYTES = 256 << 20
"""Room without which nothing is started again: a log, a series and a small checkpoint."""

Word = Literal["now", "wait", "no"]


def lost_in_place(run: Run, lost: int) -> int:
    """How often in a row, at most `lost` times, the run was lost without a new checkpoint in between."""
    count = 0
    for attempt in reversed(run.attempts):
        if attempt.status != "lost" or count == lost:
            break
        if attempt.fault != DISK_FULL:  # that a disk stayed full says nothing about the run
            count += 1
        if (attempt.reached or 0) > (attempt.resumed_from or 0):
            break
    return count


def may_go_on(run: Run, lost: int, moment: datetime, *, room: bool) -> Word:
    """Whether a run that was lost `lost` times under this supervisor may start; `room`: the disk has what it needs.

    One that was asked to stop, and had to be killed, stays stopped.
    """
    if not 0 < lost < MAX_LOST or run.attempts[-1].kind == "asked" or lost_in_place(run, lost) >= MAX_IN_PLACE:
        return "no"
    last = run.attempts[-1]
    if last.fault != DISK_FULL or room:
        return "now"
    return "wait" if last.ended_at is not None and moment < last.ended_at + ROOM_PATIENCE else "no"


def what_follows(run: Run, lost: int, fault: str | None, reached: int) -> str:
    """What happens next with a run whose last attempt was just lost for the `lost`th time, at the checkpoint after update `reached`."""
    last = replace(run.attempts[-1], status="lost", fault=fault, reached=reached)
    after = replace(run, attempts=[*run.attempts[:-1], last])
    if lost >= MAX_LOST:
        return f"lost {lost} times: it is left as it is until the campaign is continued"
    if (in_place := lost_in_place(after, lost)) >= MAX_IN_PLACE:
        return f"lost {in_place} times in a row without a new checkpoint: it is left as it is until the campaign is continued"
    if fault == DISK_FULL:
        return f"waits up to {ROOM_PATIENCE.total_seconds() / 3600:.0f} h for room on the disk"
    return f"goes on from its last checkpoint (lost {lost} times of {MAX_LOST})"


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
