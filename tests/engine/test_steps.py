"""What happens next follows from the journal alone, in an order that keeps the promises (H3, H4, R5)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from ftui.engine.deadlines import REACTION_SECONDS, REPORT_SECONDS, REPORTS
from ftui.engine.steps import (
    GRACE_SECONDS,
    KEPT,
    NO_TIME,
    Close,
    EvaluateOnTest,
    Export,
    LeaveOut,
    OpenTest,
    PrepareData,
    QueueRuns,
    RunGates,
    Situation,
    SkipTest,
    StartRun,
    StopJob,
    StopRun,
    WriteReport,
    next_steps,
    to_queue_again,
)
from ftui.plan.budget import Clock, Spread
from ftui.record.state import fold
from tests.builders.story import BASES, CONTROLS, LAUNCH, PLAN, SLOWER, Story


def test_data_then_gates_then_queue() -> None:
    story = Story()
    assert story.steps(data_checked=False) == [PrepareData()]
    assert story.steps(data_checked=False, live=frozenset({"data"})) == []
    story.tell(
        "data-ready",
        data={"hash": "d", "train_examples": 9, "validation_examples": 1, "test_examples": 1, "labels": ["a", "b"]},
        findings=[],
    )
    assert story.steps() == [RunGates()]
    assert story.steps(live=frozenset({"gates"})) == []
    story.tell("gates-started", gates="g001").tell("gates-ended", gates="g001", passed=True, cause=None)
    assert story.steps() == [QueueRuns()]


def test_failed_gates_lead_to_a_report_and_an_end() -> None:
    story = Story().tell("gates-started", gates="g001").tell("gates-ended", gates="g001", passed=False, cause="x")
    story.tell("phase", phase="preflight")
    assert story.steps(gates_failed=True) == [WriteReport("preflight")]
    story.tell("report", verdict="no verdict", sentence="s", deliver=None)
    assert story.steps(gates_failed=True) == [Close("the gates did not pass; nothing was trained", phase="preflight")]
    assert story.steps() == [RunGates()], "a new supervisor tries them again"


def test_gates_belong_to_a_machine_and_a_plan() -> None:
    """B2: another one asks for gates of its own; where the machine cannot be told, those that passed count."""
    data = {"hash": "d", "train_examples": 96, "validation_examples": 30, "test_examples": 30, "labels": ["a", "b"]}
    story = Story().tell("data-ready", data=data, findings=[]).tell("gates-started", gates="g001", key="m1-p1")
    story.tell("gates-ended", gates="g001", passed=True, cause=None)

    def steps(key: str | None, **more: Any) -> list[Any]:
        return next_steps(story.state, PLAN, Situation(story.clock, 2, data_checked=True, gates_key=key, **more))

    assert steps("m1-p1") == steps(None) == [QueueRuns()]
    assert steps("m2-p1") == steps("m1-p2") == [RunGates()]
    story.tell("gates-started", gates="g002", key="m2-p1")
    story.tell("gates-ended", gates="g002", passed=True, cause=None)
    assert steps("m2-p1") == [QueueRuns()]
    assert [type(step) for step in steps("m2-p1", only_gates=True)] == [Close]


def test_nothing_trains_before_the_baseline_is_known() -> None:
    story = Story().ready()
    assert story.steps(free_places=9) == [StartRun(run, "evaluation") for run in BASES]
    story.started(*BASES)
    assert story.steps(free_places=9, live=frozenset(f"run:{r}" for r in BASES)) == []
    story = Story().ready().ended(BASES[0]).started(BASES[1])
    assert story.steps(free_places=9, live=frozenset({f"run:{BASES[1]}"})) == []


def test_a_run_of_two_processes_takes_two_places() -> None:
    machine = PLAN.machine.model_copy(update={"processes": 2, "strategy": "ddp"})
    two = PLAN.model_copy(update={"machine": machine})
    story = Story().ready().ended(*BASES)

    def steps(free: int) -> list[Any]:
        return next_steps(story.state, two, Situation(now=story.clock, free_places=free, data_checked=True))

    assert steps(1) == []
    assert len(steps(3)) == 1
    assert len(steps(4)) == 2


def test_runs_start_in_queue_order_on_free_places_only() -> None:
    story = Story().ready().ended(*BASES)
    assert story.steps() == [StartRun(run, "experiment") for run in CONTROLS]
    assert story.steps(free_places=0) == []
    assert story.steps(free_places=3)[2] == StartRun(SLOWER[0], "experiment")


def test_a_lost_run_is_resumed_and_left_alone_when_it_gains_nothing_time_after_time() -> None:
    story = Story().ready().ended(*BASES, *CONTROLS, SLOWER[0])
    for times in (1, 2):
        story.lost(SLOWER[1])
        assert story.steps(lost={SLOWER[1]: times}) == [StartRun(SLOWER[1], "resume")]
    story.lost(SLOWER[1])
    assert isinstance(story.steps(lost={SLOWER[1]: 3})[0], OpenTest)


def test_a_run_that_found_the_disk_full_is_waited_for_until_there_is_room_or_no_time() -> None:
    """K20: nothing is concluded while it waits; at the last moment it is left out."""
    story = Story().ready().ended(*BASES, *CONTROLS, SLOWER[0]).lost(SLOWER[1], fault="disk full")
    lost, full = {SLOWER[1]: 1}, frozenset({SLOWER[1]})
    assert story.steps(lost=lost, no_room=full) == []
    assert story.steps(lost=lost) == [StartRun(SLOWER[1], "resume")]
    assert isinstance(story.steps(lost=lost, no_room=full, now=story.clock + timedelta(hours=6))[0], OpenTest)
    story.clock = LAUNCH + timedelta(hours=18)
    story.lost(SLOWER[1], fault="disk full")
    late = story.steps(lost={SLOWER[1]: 2}, no_room=full, now=LAUNCH + timedelta(hours=19))
    assert [type(step) for step in late] == [LeaveOut]
    story = Story().ready().ended(BASES[0]).lost(BASES[1], fault="disk full")
    assert story.steps(lost={BASES[1]: 1}, no_room=frozenset({BASES[1]})) == [], (
        "nothing trains before the baseline is known"
    )


@pytest.mark.parametrize("status", ["diverged", "failed", "stopped"])
def test_a_result_is_not_repeated(status: str) -> None:
    story = Story().ready().ended(*BASES, *CONTROLS, SLOWER[0]).ended(SLOWER[1], status=status)
    step = story.steps()[0]
    assert isinstance(step, OpenTest) and SLOWER[1] not in step.candidates


def test_the_test_is_opened_once_after_every_run_has_ended() -> None:
    story = Story().ready().ended(*BASES, *CONTROLS, SLOWER[0]).started(SLOWER[1])
    assert story.steps(live=frozenset({f"run:{SLOWER[1]}"})) == []
    story = Story().ready().ended(*BASES, *CONTROLS, *SLOWER)
    everything = (*BASES, *CONTROLS, *SLOWER)
    assert story.steps() == [OpenTest(everything, "all runs have ended")]
    story.tell("test-opened", opening=1, candidates=list(everything), reason="r")
    assert story.steps() == [EvaluateOnTest(run) for run in BASES]
    assert story.steps(live=frozenset({f"test:{BASES[0]}"}), free_places=1) == [EvaluateOnTest(BASES[1])]


def test_report_artefact_report_closed() -> None:
    everything = (*BASES, *CONTROLS, *SLOWER)
    story = Story().ready().ended(*everything)
    story.tell("test-opened", opening=1, candidates=list(everything), reason="r").tested(*everything)
    assert story.steps() == [WriteReport()]
    assert story.steps(live=frozenset({"report"})) == []
    story.tell("report", verdict="supported", sentence="s", deliver=SLOWER[0])
    assert story.steps() == [Export(SLOWER[0])]
    story.tell("export-started", export=SLOWER[0], run=SLOWER[0])
    assert story.steps(live=frozenset({f"export:{SLOWER[0]}"})) == []
    story.tell("export-ended", export=SLOWER[0], verified=True, cause=None)
    assert story.steps() == [WriteReport()]
    story.tell("report", verdict="supported", sentence="s", deliver=SLOWER[0])
    assert story.steps() == [WriteReport("closed")], "the last report says that the campaign is closed"
    story.tell("phase", phase="closed")
    assert story.steps() == [WriteReport("closed")]
    story.tell("report", verdict="supported", sentence="s", deliver=SLOWER[0])
    assert story.steps() == [Close("the campaign is complete")]
    assert story.steps(data_checked=False) == [PrepareData("closed")], "a look at a closed campaign opens no phase"


def test_a_run_completed_after_the_opening_makes_a_second_one() -> None:
    first = (*BASES, *CONTROLS, SLOWER[0])
    story = Story().ready().ended(*first).ended(SLOWER[1], status="lost")
    story.tell("test-opened", opening=1, candidates=list(first), reason="r").tested(*first)
    story.tell(
        "queued",
        run=SLOWER[1],
        number=6,
        variant="slower",
        seed=2,
        kind="train",
        priority=0,
        change={},
        because="b",
        follows=None,
    )
    assert story.steps() == [StartRun(SLOWER[1], "resume")]
    story.ended(SLOWER[1])
    assert story.steps() == [OpenTest((SLOWER[1],), "runs were completed after the test had been opened")]


def test_no_completed_run_still_gives_a_report() -> None:
    story = Story().ready().ended(*BASES).ended(*CONTROLS, *SLOWER, status="diverged")
    assert story.steps() == [WriteReport("closed")]
    story.tell("phase", phase="closed").tell("report", verdict="no verdict", sentence="s", deliver=None)
    assert story.steps() == [Close("no run was completed")]


LAST_MOMENT = LAUNCH + timedelta(hours=24 - 5)
"""The day ends at 09:00; evaluation 2 h, export 1 h, margin 2 h are kept: training ends at 04:00."""
STOPPING = GRACE_SECONDS + REACTION_SECONDS
HOUR = {name: Spread(3600, 3000, 4000) for name in ("base", "control", "slower")}


def before(seconds: float) -> datetime:
    """So long before the moment at which running ones are told to stop."""
    return LAST_MOMENT - timedelta(seconds=STOPPING + seconds)


def test_no_run_starts_that_would_eat_the_reserve_and_running_ones_are_stopped() -> None:
    story = Story().ready().ended(*BASES)
    assert story.steps(now=before(4001), durations=HOUR) == [StartRun(run, "experiment") for run in CONTROLS]
    late = story.steps(now=before(3999), durations=HOUR)
    assert [type(step) for step in late] == [LeaveOut] * 4
    assert "kept for evaluation and export" in late[0].cause
    story.started(CONTROLS[0])
    live = frozenset({f"run:{CONTROLS[0]}"})
    assert story.steps(now=before(1), live=live, free_places=0) == []
    assert story.steps(now=before(0), live=live) == [StopRun(CONTROLS[0], KEPT)]
    story.tell("run-ended", run=CONTROLS[0], attempt=1, status="stopped", cause=None, exit_code=0, updates=3)
    assert [type(step) for step in story.steps(now=before(0))] == [LeaveOut] * 3


def test_a_baseline_is_stopped_and_left_out_like_any_run() -> None:
    story = Story().ready().started(BASES[0])
    assert story.steps(now=before(0), live=frozenset({f"run:{BASES[0]}"})) == [StopRun(BASES[0], KEPT)]
    assert {type(step) for step in Story().ready().steps(now=before(3999), durations=HOUR)} == {LeaveOut}


def test_training_ends_earlier_where_the_planned_hours_are_not_enough_for_what_must_be_evaluated() -> None:
    """Six runs of an hour's evaluation on one place, and an export of an hour: seven hours instead of the three planned for both."""
    closing = {"evaluation": Spread(3600, 3600, 3600), "export": Spread(3600, 3600, 3600)}
    story = Story().ready().ended(*BASES, *CONTROLS, SLOWER[0]).started(SLOWER[1])
    kept = timedelta(seconds=7 * 3600 + REPORTS * REPORT_SECONDS + 2 * 3600 + STOPPING)
    stops_at = LAUNCH + timedelta(hours=24) - kept

    def steps(now: datetime, **more: Any) -> list[Any]:
        return story.steps(now=now, closing=closing, live=frozenset({f"run:{SLOWER[1]}"}), **more)

    assert steps(stops_at - timedelta(seconds=1)) == []
    assert steps(stops_at) == [StopRun(SLOWER[1], KEPT)]
    assert steps(stops_at, places=2) == [], "two places evaluate six runs in three hours"


def test_what_is_left_of_a_run_counts_not_what_was_done_already() -> None:
    story = Story().ready().ended(*BASES, *CONTROLS, SLOWER[0]).ended(SLOWER[1], status="lost")
    half = {SLOWER[1]: Spread(1800, 1500, 2000)}
    assert isinstance(story.steps(now=before(3000), durations=HOUR, lost={SLOWER[1]: 1})[0], LeaveOut)
    resumed = story.steps(now=before(3000), durations=HOUR, remaining=half, lost={SLOWER[1]: 1})
    assert resumed == [StartRun(SLOWER[1], "resume")]


def test_an_evaluation_that_would_take_the_artefacts_time_is_skipped_and_comes_back_with_a_later_end() -> None:
    everything = (*BASES, *CONTROLS, *SLOWER)
    closing = {"evaluation": Spread(600, 600, 600), "export": Spread(3600, 3600, 3600)}
    until = LAUNCH + timedelta(hours=23, seconds=-REPORTS * REPORT_SECONDS)
    story = Story().ready().ended(*everything)
    story.tell("test-opened", opening=1, candidates=list(everything), reason="r").tested(*everything[:-2])
    live = frozenset({f"test:{SLOWER[0]}"})
    assert story.steps(now=until - timedelta(seconds=600), closing=closing, live=live) == [EvaluateOnTest(SLOWER[1])]
    late = story.steps(now=until - timedelta(seconds=599), closing=closing, live=live)
    assert late == [SkipTest(SLOWER[1], NO_TIME)], "what goes on may still end in time"
    over = story.steps(now=until, closing=closing, live=live)
    assert over[0] == StopJob(f"test:{SLOWER[0]}", NO_TIME)
    for run in SLOWER:
        story.tell("test-ended", run=run, metrics=None, cause=NO_TIME)
    assert story.steps(now=until, closing=closing) == [WriteReport()]
    assert story.steps(now=until - timedelta(days=1), closing=closing) == [EvaluateOnTest(run) for run in SLOWER]


def test_at_the_deadline_nothing_more_is_prepared_or_tried() -> None:
    """Preparing that takes until the rental's end does not keep the report away, nor do gates that no longer hold."""
    story = Story()
    assert story.steps(now=before(0), data_checked=False, live=frozenset({"data"})) == [
        StopJob("data", KEPT, phase="preflight")
    ]
    assert story.steps(now=before(0), data_checked=False) == [WriteReport("closed")]
    story = Story().ready().ended(*BASES, *CONTROLS, *SLOWER)
    story.state.gates[0].key = "this machine"
    assert story.steps(now=before(1), gates_key="another machine") == [RunGates()]
    assert isinstance(story.steps(now=before(0), gates_key="another machine")[0], OpenTest)


def test_gates_wait_for_the_place_of_a_run_that_outlived_its_supervisor() -> None:
    story = Story().ready().started(BASES[0])
    live = frozenset({f"run:{BASES[0]}"})
    story.tell("gates-started", gates="g002", key="old").tell("gates-ended", gates="g002", passed=True, cause=None)
    story.state.gates = story.state.gates[1:]
    assert story.steps(gates_key="new", live=live, free_places=0) == []
    assert story.steps(gates_key="new", live=live, free_places=1) == [RunGates()]


def test_a_campaign_is_not_closed_over_a_run_that_still_trains() -> None:
    """Its supervisor would wait for it without looking at the clock."""
    story = Story().ready().started(BASES[0])
    live = frozenset({f"run:{BASES[0]}"})
    assert story.steps(only_gates=True, live=live) == []
    story.state.gates.clear()
    assert story.steps(gates_failed=True, live=live) == []


def test_what_had_no_time_is_queued_again_when_the_rental_is_made_longer() -> None:
    story = Story().ready().ended(*BASES).ended(CONTROLS[0], status="stopped")
    story.tell("left-out", run=SLOWER[0], cause=f"it would end too late, and {KEPT}")
    story.tell("left-out", run=SLOWER[1], cause="left out by the app")
    clock = story.state.clock
    assert clock is not None
    shorter = Clock(clock.starts_at, clock.ends_at - timedelta(hours=1))
    assert [run.id for run in to_queue_again(story.state, clock)] == [CONTROLS[0]]
    assert [run.id for run in to_queue_again(story.state, shorter)] == [CONTROLS[0], SLOWER[0]]


def test_every_state_on_the_way_is_one_a_new_supervisor_can_start_from() -> None:
    everything = (*BASES, *CONTROLS, *SLOWER)
    story = Story().ready().ended(*everything)
    story.tell("test-opened", opening=1, candidates=list(everything), reason="r").tested(*everything)
    story.tell("report", verdict="supported", sentence="s", deliver=SLOWER[0])
    rows = story.state.events
    for length in range(len(rows) + 1):
        state = fold(rows[:length])
        running = frozenset(f"run:{r.id}" for r in state.runs_of("running"))
        if running:
            continue
        assert next_steps(state, PLAN, Situation(story.clock, 2, data_checked=state.data is not None)), (
            f"stuck after {rows[length - 1]['event']}"
        )
