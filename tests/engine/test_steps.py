"""What happens next follows from the journal alone, in an order that keeps the promises (H3, H4, R5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import tomli_w

from ftui.engine.steps import (
    Close,
    EvaluateOnTest,
    Export,
    LeaveOut,
    OpenTest,
    PrepareData,
    QueueRuns,
    RunGates,
    Situation,
    StartRun,
    StopRun,
    WriteReport,
    next_steps,
)
from ftui.plan.budget import Spread
from ftui.plan.load import parse_plan, plan_hash
from ftui.plan.variants import planned_runs
from ftui.record.state import Campaign, fold
from tests.builders.tiny import tiny_plan

PLAN = parse_plan(tomli_w.dumps(tiny_plan(evaluation__seeds=[1, 2])))
LAUNCH = datetime(2026, 12, 1, 9, tzinfo=UTC)
BASES = ["r001-base-s1", "r002-base-s2"]
CONTROLS = ["r003-control-s1", "r004-control-s2"]
SLOWER = ["r005-slower-s1", "r006-slower-s2"]
METRICS = {"accuracy": 0.5}


class Story:
    """A journal told event by event, one second apart."""

    def __init__(self) -> None:
        self.state = Campaign()
        self.clock = LAUNCH
        self.tell(
            "launched",
            plan_hash=plan_hash(PLAN),
            plan=PLAN.content(),
            starts_at=LAUNCH.isoformat(),
            ends_at=(LAUNCH + timedelta(days=1)).isoformat(),
        )
        self.tell("supervisor-started", pid=1, host="h")

    def tell(self, event: str, **fields: Any) -> Story:
        self.clock += timedelta(seconds=1)
        fold([{"at": self.clock.isoformat(), "event": event, "by": "supervisor", **fields}], self.state)
        return self

    def ready(self) -> Story:
        data = {"hash": "d", "train_examples": 96, "validation_examples": 30, "test_examples": 30, "labels": ["a", "b"]}
        self.tell("data-ready", data=data, findings=[])
        self.tell("gates-started", gates="g001").tell("gates-ended", gates="g001", passed=True, cause=None)
        for run in planned_runs(PLAN):
            kind = "baseline" if run.variant == "base" else "train"
            self.tell(
                "queued",
                run=run.id,
                number=run.number,
                variant=run.variant,
                seed=run.seed,
                kind=kind,
                priority=run.priority,
                change={},
                because="b",
                follows=None,
            )
        return self

    def started(self, *runs: str) -> Story:
        for run in runs:
            attempt = len(self.state.runs[run].attempts) + 1
            self.tell("run-started", run=run, attempt=attempt, pid=2, resumed_from=None, placement={})
        return self

    def ended(self, *runs: str, status: str = "completed") -> Story:
        for run in runs:
            self.started(run).tell("run-ended", run=run, attempt=1, status=status, cause=None, exit_code=0, updates=12)
        return self

    def lost(self, run: str, *, fault: str = "killed", reached: int = 0) -> Story:
        self.started(run)
        attempt = len(self.state.runs[run].attempts)
        ended = {"status": "lost", "kind": "machine", "fault": fault, "place": None, "cause": "c", "exit_code": -9}
        return self.tell("run-ended", run=run, attempt=attempt, updates=reached, **ended)

    def tested(self, *runs: str) -> Story:
        for run in runs:
            self.tell("test-ended", run=run, metrics=METRICS, cause=None)
        return self

    def steps(self, **situation: Any) -> list[Any]:
        return next_steps(
            self.state, PLAN, Situation(**{"now": self.clock, "free_places": 2, "data_checked": True} | situation)
        )


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


def test_no_run_starts_that_would_eat_the_reserve_and_running_ones_are_stopped() -> None:
    """The day ends at 09:00; evaluation 2 h, export 1 h, margin 2 h are kept: training ends at 04:00."""
    last_moment = LAUNCH + timedelta(hours=24 - 5)
    story = Story().ready().ended(*BASES)
    hour = {name: Spread(3600, 3000, 4000) for name in ("base", "control", "slower")}
    assert story.steps(now=last_moment - timedelta(seconds=4001), durations=hour) == [
        StartRun(run, "experiment") for run in CONTROLS
    ]
    late = story.steps(now=last_moment - timedelta(seconds=3999), durations=hour)
    assert [type(step) for step in late] == [LeaveOut] * 4
    assert "kept for evaluation and export" in late[0].cause
    story.started(CONTROLS[0])
    over = story.steps(now=last_moment, live=frozenset({f"run:{CONTROLS[0]}"}))
    assert [type(step) for step in over] == [StopRun] + [LeaveOut] * 3


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
