"""Clocks are set, machines sleep: the rental ends at its hour, and nothing else is confused by it (N1)."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from ftui.engine.jobs import placement_record, recorded_job, start_job
from ftui.engine.launch import Command
from ftui.plan.budget import Spread
from ftui.record.state import fold
from tests.builders.simulation import LAUNCH, Rental, live
from tests.builders.worlds import Fate, Happening, World, made_plan

HOURS = {"preflight": 1, "experiment": 50, "evaluation": 4, "resume": 1, "export": 2, "margin": 4}
HOUR, MINUTE = 3600.0, 60.0


def lived(*happenings: Happening, hours_each: float = 5.0) -> Rental:
    """Three days with a baseline and three seeds of a control and a variant, each of which takes so many hours on the one place."""
    long = Spread(hours_each * HOUR, hours_each * HOUR, hours_each * HOUR)
    short = Spread(10 * MINUTE, 10 * MINUTE, 10 * MINUTE)
    plan = made_plan(3, HOURS, 3, (0,))
    durations = {"base": short, "control": long, "v0": long}
    return live(World(plan, 1, durations, {"evaluation": short, "export": short}, (Fate(),), happenings=happenings))


def test_a_clock_that_jumps_over_the_deadline_leads_straight_to_the_end() -> None:
    """A machine that was suspended for three days: what ran is stopped, and the report is there within minutes."""
    rental = lived(Happening(8 * HOUR, "jump", 3 * 24 * HOUR))
    runs = rental.state.runs.values()
    assert {run.status for run in runs if run.kind == "train"} == {"completed", "stopped", "left out"}
    assert rental.state.closed and rental.seconds < 9 * HOUR
    after = [row["event"] for row in rental.state.events if row["at"] > (LAUNCH + timedelta(days=3)).isoformat()]
    assert "run-started" not in after and "test-opened" not in after
    assert [event for event in after if event in ("run-ended", "report")][:2] == ["run-ended", "report"]


def test_a_clock_that_jumps_into_the_kept_hours_leaves_time_for_evaluation_and_artefact() -> None:
    rental = lived(Happening(8 * HOUR, "jump", 55 * HOUR))
    completed = rental.state.runs_of("completed")
    assert completed and all(run.test_metrics for run in completed)
    assert [export.verified for export in rental.state.exports] == [True]
    assert rental.state.clock is not None and rental.now < rental.state.clock.ends_at


def test_a_clock_that_is_set_back_makes_nothing_negative() -> None:
    rental = lived(Happening(8 * HOUR, "jump", -48 * HOUR))
    attempts = [attempt for run in rental.state.runs.values() for attempt in run.attempts]
    assert all(attempt.ended_at is not None and attempt.ended_at >= attempt.started_at for attempt in attempts)
    assert min(rental.state.spent_seconds.values()) >= 0
    for length in range(len(rental.state.events)):
        state = fold(rental.state.events[:length])
        assert min(state.spent_now(LAUNCH - timedelta(days=2)).values(), default=0) >= 0
    assert rental.state.closed


def test_a_clock_that_is_set_back_and_forth_changes_nothing() -> None:
    undisturbed = lived()
    jumped = lived(Happening(8 * HOUR, "jump", -HOUR), Happening(9 * HOUR, "jump", HOUR))
    statuses = [{run.id: run.status for run in rental.state.runs.values()} for rental in (undisturbed, jumped)]
    assert statuses[0] == statuses[1] and jumped.seconds == undisturbed.seconds


def test_a_job_is_found_and_stopped_after_the_clock_was_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's start as a time of day moves with the clock; a process that is told apart by it would never be stopped again."""
    words = [sys.executable, "-c", "import signal; signal.pause()"]
    command = Command(words, {}, tmp_path / "log.txt")
    job = start_job("run:r", command, (), outlives_supervisor=False)
    booted = psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + 1)
    adopted = recorded_job("run:r", (), job.log, job.pid, placement_record(job))
    assert not adopted.poll()
    job.kill()
    assert job.poll() and adopted.poll()
    assert recorded_job("run:r", (), job.log, job.pid, placement_record(job)).poll()
