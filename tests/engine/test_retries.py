"""Whether a lost run goes on: by its cause, its attempts, and the room on the disk (C2, K20)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ftui.engine.retries import MAX_IN_PLACE, MAX_LOST, lost_in_place, may_go_on, what_follows
from ftui.engine.room import ROOM_PATIENCE
from ftui.record.state import Attempt, Run

MOMENT = datetime(2026, 12, 1, 9, tzinfo=UTC)


def run(*attempts: tuple[int, int], fault: str = "killed", kind: str = "machine") -> Run:
    """A lost run whose attempts went from one checkpoint to another."""
    made = [
        Attempt(
            number, MOMENT, 1, resumed_from=start or None, ended_at=MOMENT, status="lost", kind=kind, fault=fault, reached=end
        )
        for number, (start, end) in enumerate(attempts, 1)
    ]  # fmt: skip
    return Run("r002-control-s7", 2, "control", 7, "train", 0, {}, "b", status="lost", attempts=made)


def word(lost: Run, times: int, *, moment: datetime = MOMENT, room: bool = True) -> str:
    return may_go_on(lost, times, moment, room=room)


def test_a_run_goes_on_while_it_gains_a_checkpoint_and_stops_when_it_does_not() -> None:
    assert word(run((0, 0)), 1) == word(run((0, 0), (0, 0)), 2) == "now"
    assert word(run((0, 0), (0, 0), (0, 0)), 3) == "no"
    assert word(run((0, 0), (0, 0), (0, 20), (20, 20)), 4) == "now", "a checkpoint in between begins the count anew"
    assert word(run((0, 0), (0, 20), (20, 20), (20, 20), (20, 20)), 5) == "no"


def test_attempts_under_an_earlier_supervisor_do_not_count() -> None:
    stuck = run((0, 0), (0, 0), (0, 0))
    assert word(stuck, 0) == "no", "it was lost under another one, which has to be continued"
    assert word(stuck, 1) == "now" and lost_in_place(stuck, 1) == 1


def test_a_machine_that_fails_for_ever_is_not_tried_for_ever() -> None:
    climbing = run(*[(20 * i, 20 * i + 20) for i in range(MAX_LOST)])
    assert word(climbing, MAX_LOST - 1) == "now" and word(climbing, MAX_LOST) == "no"


def test_who_was_asked_to_stop_and_had_to_be_killed_stays_stopped() -> None:
    assert word(run((0, 20), kind="asked", fault="stop"), 1) == "no"


def test_a_run_waits_for_room_and_no_longer_than_its_patience() -> None:
    full = run((0, 20), fault="disk full")
    assert word(full, 1) == "now"
    assert (
        word(full, 1, room=False)
        == word(full, 1, room=False, moment=MOMENT + ROOM_PATIENCE - timedelta(seconds=1))
        == "wait"
    )
    assert word(full, 1, room=False, moment=MOMENT + ROOM_PATIENCE) == "no"
    often = run((20, 20), (20, 20), (20, 20), (20, 20), fault="disk full")
    assert word(often, 4) == "now", "that the disk was full says nothing about the run"


def test_what_follows_is_said_with_its_count() -> None:
    def said(earlier: Run, lost: int, reached: int, fault: str = "killed") -> str:
        started = Attempt(9, MOMENT, 1, resumed_from=earlier.attempts[-1].reached)
        earlier.attempts.append(started)
        return what_follows(earlier, lost, fault, reached)

    assert said(run((0, 20)), 2, 40) == f"goes on from its last checkpoint (lost 2 times of {MAX_LOST})"
    assert said(run((0, 20), (20, 20), (20, 20)), MAX_IN_PLACE, 20).startswith(
        "lost 3 times in a row without a new checkpoint"
    )
    assert said(run((0, 20)), MAX_LOST, 40).startswith("lost 10 times: it is left")
    assert said(run((0, 20)), 1, 20, "disk full") == "waits up to 6 h for room on the disk"


def test_older_records_without_causes_are_retried_as_before() -> None:
    old = run((0, 20))
    last: Any = old.attempts[-1]
    last.kind = last.fault = last.reached = None
    assert word(old, 1) == "now"
