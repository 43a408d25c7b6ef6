"""Whole rentals, drawn at random and lived through by the supervisor's own decisions: what holds in each of them (R4, R5, N1)."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings

from ftui.engine.steps import GRACE_SECONDS
from ftui.plan.budget import training_ends_at
from ftui.plan.variants import planned_runs
from tests.builders.properties import drawn
from tests.builders.simulation import LAUNCH, Rental, live
from tests.builders.worlds import World, worlds

BY_A_PERSON = "stopped by a person"
ENDED = {"completed", "stopped", "diverged", "failed", "lost", "left out"}
many = settings(drawn, max_examples=10_000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
some = settings(drawn, max_examples=250)


def holds_always(rental: Rental) -> None:
    """What no failure, no person and no clock may break."""
    every_run_is_accounted_for(rental)
    nothing_shared(rental)
    for start in rental.started:
        assert not start.passed_over, f"{start.run} is started before {start.passed_over}"
        assert not start.baselines, f"{start.run} trains before {start.baselines} are known (H3)"
        if not any(it.kind == "amend" for it in rental.world.happenings):
            assert rental.state.clock is not None
            ends = start.at + timedelta(seconds=start.left.high + GRACE_SECONDS)
            assert ends <= training_ends_at(rental.plan.rental, rental.state.clock), f"{start.run} cannot end in time"
    events = rental.state.events
    names = [row["event"] for row in events]
    if "test-opened" in names:
        before = names[: names.index("test-opened")]
        assert before.count("run-started") == before.count("run-ended"), "the test is opened while a run trains (H4)"
    ended = [i for i, name in enumerate(names) if name == "supervisor-ended"]
    if ended and events[ended[-1]]["reason"] != BY_A_PERSON:
        told = [i for i, name in enumerate(names) if name in ("run-ended", "left-out", "test-ended", "export-ended")]
        assert max(told, default=-1) < max(i for i, name in enumerate(names) if name == "report"), "the report is stale"


def every_run_is_accounted_for(rental: Rental) -> None:
    state = rental.state
    if state.runs:
        planned = {(run.variant, run.seed) for run in planned_runs(rental.plan)}
        assert planned == {(run.variant, run.seed) for run in state.runs.values()}
    for run in state.runs.values():
        assert run.status in ENDED or rental.ending == BY_A_PERSON, f"{run.id} is {run.status} when all is over"
        assert run.status != "left out" or run.cause
        for attempt in run.attempts:
            assert attempt.ended_at is not None and attempt.ended_at >= attempt.started_at
    assert min(state.spent_seconds.values(), default=0.0) >= 0


def nothing_shared(rental: Rental) -> None:
    """No place has two jobs at once."""
    by_place: dict[int, list[tuple[float, float, str]]] = {}
    for job in rental.past:
        for place in job.places:
            by_place.setdefault(place, []).append((job.begins, job.ends, job.key))
    for jobs in by_place.values():
        jobs.sort()
        for before, after in pairwise(jobs):
            assert before[1] <= after[0], f"{before[2]} and {after[2]} share a place"


def ends_in_time(rental: Rental) -> None:
    """R5: before the end there is a report and, if a run was completed, its evaluation and an artefact."""
    state = rental.state
    assert state.clock is not None and (state.closed or not rental.world.gates_pass)
    assert rental.now <= state.clock.ends_at, f"late by {rental.now - state.clock.ends_at}"
    completed = state.runs_of("completed")
    if any(run.kind == "train" for run in completed):
        assert all(run.test_metrics for run in completed)
        assert any(export.verified for export in state.exports)


def reserve_is_kept(rental: Rental) -> None:
    """R5: nothing trains in the hours kept for the end."""
    state = rental.state
    assert state.clock is not None
    last = (training_ends_at(rental.plan.rental, state.clock) - LAUNCH).total_seconds()
    for job in rental.past:
        if job.key.startswith("run:"):
            assert job.ends <= last, f"{job.key} trains {job.ends - last:.0f} s into the reserve"


@given(worlds(mild=False))
@some
def test_whatever_happens_every_run_is_accounted_for_and_the_campaign_ends(world: World) -> None:
    holds_always(live(world))


@given(worlds(mild=True))
@some
def test_no_deadline_is_missed_and_no_training_eats_the_reserve(world: World) -> None:
    rental = live(world)
    holds_always(rental)
    ends_in_time(rental)
    reserve_is_kept(rental)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(worlds(mild=False))
@many
def test_ten_thousand_rentals_in_which_anything_happens(world: World) -> None:
    holds_always(live(world))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(worlds(mild=True))
@many
def test_ten_thousand_deadlines(world: World) -> None:
    rental = live(world)
    holds_always(rental)
    ends_in_time(rental)
    reserve_is_kept(rental)
