"""Whether a run that was lost is taken up again, now, later or not at all: by its cause, and by what the attempts before it gained.

A fault of the machine may not come again, so the run goes on from its last complete checkpoint; but one that ends it time after time
at the same checkpoint is no accident. A full disk gets room again or does not: nothing is tried before it has. A fault of the plan is
a result, and never comes here.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal

from ftui.engine.room import ROOM_PATIENCE
from ftui.engine.symptoms import DISK_FULL
from ftui.record.state import Run

MAX_LOST = 10
"""Times a run may be lost under one supervisor before it is left alone."""
MAX_IN_PLACE = 3
"""The same in a row, without a new checkpoint in between."""
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
