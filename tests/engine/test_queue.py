"""What people ask of a queue decides what happens next: paused, held, reordered, relaunched (V5, V6)."""

from __future__ import annotations

from datetime import timedelta

import tomli_w

from ftui.engine.steps import (
    LeaveOut,
    OpenTest,
    QueueRuns,
    RunGates,
    Situation,
    StartRun,
    StopRun,
    WriteReport,
    next_steps,
)
from ftui.plan.budget import Spread
from ftui.plan.load import parse_plan
from ftui.record.state import in_queue_order, priority_to_move
from tests.builders.story import BASES, CONTROLS, LAUNCH, SLOWER, Story
from tests.builders.tiny import tiny_plan


def test_a_paused_queue_starts_nothing_and_goes_on_where_it_stood() -> None:
    story = Story().ready().ended(*BASES).started(CONTROLS[0]).wish("pause-queue")
    live = frozenset({f"run:{CONTROLS[0]}"})
    assert story.steps(live=live) == []
    story.tell("supervisor-ended", reason="killed").tell("supervisor-started", pid=2, host="h")
    assert story.state.paused and story.steps(live=live) == [], "the next supervisor knows it, too"
    assert story.wish("resume-queue").steps(live=live)[0] == StartRun(CONTROLS[1], "experiment")


def test_while_the_queue_is_paused_the_test_stays_closed_and_gates_wait() -> None:
    story = Story().ready().ended(*BASES, *CONTROLS, *SLOWER).wish("pause-queue")
    assert story.steps() == []
    assert [type(step) for step in story.wish("resume-queue").steps()] == [OpenTest]
    data = {"hash": "d", "train_examples": 96, "validation_examples": 30, "test_examples": 30, "labels": ["a", "b"]}
    early = Story().tell("data-ready", data=data, findings=[]).wish("pause-queue")
    assert early.steps() == []
    assert early.steps(only_gates=True) == [RunGates()], "whoever asks for the gates gets them"


def test_what_is_paused_does_not_eat_the_hours_kept_for_evaluation_and_export() -> None:
    over = LAUNCH + timedelta(hours=24 - 5)
    story = Story().ready().ended(*BASES, *CONTROLS).wish("pause-queue")
    assert [type(step) for step in story.steps(now=over)] == [LeaveOut] * 2
    finished = Story().ready().ended(*BASES, *CONTROLS, *SLOWER).wish("pause-queue")
    assert finished.steps() == []
    assert [type(step) for step in finished.steps(now=over)] == [OpenTest], "the evaluation has its hours"
    story = Story().ready().ended(*BASES, *CONTROLS, SLOWER[0]).wish("pause-run", SLOWER[1])
    assert story.steps() == []
    assert story.steps(now=over) == [
        LeaveOut(SLOWER[1], "the rental's remaining hours are kept for evaluation and export")
    ]
    story = (
        Story()
        .ready()
        .ended(*BASES, *CONTROLS, SLOWER[0])
        .ended(SLOWER[1], status="stopped")
        .wish("pause-run", SLOWER[1])
    )
    assert story.steps() == []
    assert [type(step) for step in story.steps(now=over)] == [OpenTest], "it stays stopped, with its cause"


def test_a_held_run_waits_while_the_others_go_on_and_the_campaign_waits_for_it() -> None:
    story = Story().ready().ended(*BASES).wish("pause-run", CONTROLS[0])
    assert story.state.runs[CONTROLS[0]].shown == "held"
    assert story.steps() == [StartRun(CONTROLS[1], "experiment"), StartRun(SLOWER[0], "experiment")]
    story.ended(CONTROLS[1], *SLOWER)
    assert story.steps() == [], "no test is opened before every run has ended"
    assert story.wish("resume-run", CONTROLS[0]).steps() == [StartRun(CONTROLS[0], "experiment")]


def test_a_held_baseline_keeps_everything_from_training() -> None:
    story = Story().ready().ended(BASES[0]).wish("pause-run", BASES[1])
    assert story.steps() == []


def test_a_running_run_that_is_paused_is_stopped_and_resumed_on_request_only() -> None:
    story = Story().ready().ended(*BASES).started(CONTROLS[0]).wish("pause-run", CONTROLS[0])
    live = frozenset({f"run:{CONTROLS[0]}"})
    assert story.steps(live=live, free_places=0) == [StopRun(CONTROLS[0], "paused by the cli")]
    story.tell("run-ended", run=CONTROLS[0], attempt=1, status="stopped", cause="c", exit_code=75, updates=4)
    assert story.state.runs[CONTROLS[0]].shown == "paused"
    assert StartRun(CONTROLS[0], "resume") not in story.steps(free_places=9)
    about = story.state.runs[CONTROLS[0]]
    again = {"number": about.number, "variant": "control", "seed": 1, "kind": "train", "priority": 1}
    story.tell("queued", run=CONTROLS[0], **again, change={}, because="b", follows=None)  # a new supervisor takes over
    assert about.shown == "paused"
    assert StartRun(CONTROLS[0], "resume") not in story.steps(free_places=9)
    assert StartRun(CONTROLS[0], "resume") in story.wish("resume-run", CONTROLS[0]).steps(free_places=9)


def test_the_order_is_by_asked_priority_then_by_number() -> None:
    story = Story().ready().ended(*BASES).wish("priority", SLOWER[1], priority=9)
    assert [step.run for step in story.steps(free_places=9)] == [SLOWER[1], *CONTROLS, SLOWER[0]]
    story.wish("priority", CONTROLS[0], priority=-1)
    assert [step.run for step in story.steps(free_places=9)] == [SLOWER[1], CONTROLS[1], SLOWER[0], CONTROLS[0]]
    assert [run.id for run in story.state.in_order()] == [*BASES, SLOWER[1], CONTROLS[1], SLOWER[0], CONTROLS[0]]


def test_a_run_moves_past_its_neighbour_among_those_of_its_kind() -> None:
    story = Story().ready()
    waiting, runs = story.state.runs_of("queued"), story.state.runs

    def moved(name: str, direction: int) -> list[str]:
        priority = priority_to_move(waiting, runs[name], direction)
        if priority is None:
            return []
        before, runs[name].priority = runs[name].priority, priority
        order = [run.id for run in in_queue_order(waiting)]
        runs[name].priority = before
        return order

    assert moved(SLOWER[0], -1) == [*BASES, SLOWER[0], *CONTROLS, SLOWER[1]], "ahead of all that stand equal"
    assert moved(CONTROLS[1], 1) == [*BASES, CONTROLS[0], *SLOWER, CONTROLS[1]]
    assert moved(SLOWER[1], -1) == [*BASES, *CONTROLS, SLOWER[1], SLOWER[0]]
    assert moved(CONTROLS[0], 1) == [*BASES, CONTROLS[1], CONTROLS[0], *SLOWER]
    assert moved(CONTROLS[0], -1) == moved(SLOWER[1], 1) == moved(BASES[0], -1) == moved(BASES[1], 1) == []


def test_a_follow_up_is_trained_and_never_tested() -> None:
    """It takes no part in the comparison, so nothing is learnt by opening the test for it (H4)."""
    story = Story().ready().ended(*BASES, *CONTROLS, *SLOWER).follow_up()
    assert story.steps() == [StartRun("r007-slower-s1", "experiment")]
    opening = story.ended("r007-slower-s1").steps()[0]
    assert opening == OpenTest((*BASES, *CONTROLS, *SLOWER), "all runs have ended")
    everything = (*BASES, *CONTROLS, *SLOWER)
    story.tell("test-opened", opening=1, candidates=list(everything), reason="r").tested(*everything)
    assert story.steps() == [WriteReport()]


def test_a_follow_up_that_would_eat_the_reserve_is_left_out() -> None:
    """It has a duration of its own: its settings may take longer than its variant's."""
    story = Story().ready().ended(*BASES, *CONTROLS, *SLOWER).follow_up()
    late = {"now": LAUNCH + timedelta(hours=24 - 5, seconds=-3600)}
    short, long = Spread(1000, 900, 1100), Spread(4000, 3900, 4100)
    assert [type(step) for step in story.steps(**late, durations={"slower": short})] == [StartRun]
    own = {"slower": short, "r007-slower-s1": long}
    assert [type(step) for step in story.steps(**late, durations=own)] == [LeaveOut]


def test_a_follow_up_alone_is_no_result() -> None:
    story = Story().ready().ended(*BASES).ended(*CONTROLS, *SLOWER, status="diverged")
    story = story.follow_up().ended("r007-slower-s1")
    assert story.steps() == [WriteReport("closed")]


def test_a_variant_that_comes_after_a_follow_up_is_queued_once() -> None:
    """The follow-up has taken the number that the plan would give."""
    content = tiny_plan(evaluation__seeds=[1, 2])
    content["variants"].append({"id": "later", "because": "b", "change": {"training.learning_rate": 2e-3}})
    more = parse_plan(tomli_w.dumps(content))
    story = Story().ready().ended(*BASES, *CONTROLS, *SLOWER).follow_up().ended("r007-slower-s1")
    situation = Situation(now=story.clock, free_places=2, data_checked=True)
    assert next_steps(story.state, more, situation) == [QueueRuns()]
    for number, seed in ((8, 1), (9, 2)):
        run = f"r{number:03d}-later-s{seed}"
        about = {"number": number, "variant": "later", "seed": seed, "kind": "train", "priority": 0}
        story.tell("queued", run=run, **about, change={}, because="b", follows=None)
    assert next_steps(story.state, more, situation)[0] == StartRun("r008-later-s1", "experiment")
