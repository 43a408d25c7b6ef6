"""What happens next in a campaign: a pure function of its state, the clock and what is going on.

A supervisor that starts, or starts again after a kill or a reboot, asks the same question and gets the same answer:

    data → gates → queue → baseline → control and variants → test, opened once → report → artefact → report → closed

Nothing trains before the baseline is known (H3); no test example is read before every run has ended (H4); no run starts that
would eat the hours kept for evaluation and export (R5). What a person paused waits, up to the moment at which those hours begin. A
follow-up of another run is trained like any other; it takes no part in the comparison, so the test is not opened for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ftui.engine.deadlines import Deadlines, deadlines
from ftui.engine.retries import Word, may_go_on
from ftui.plan.budget import Clock, Spread
from ftui.plan.schema import Plan
from ftui.plan.variants import planned_runs
from ftui.record.state import CONTINUABLE, Campaign, Gates, Run, in_queue_order

GRACE_SECONDS = 60.0
"""How long a stopped job may take for its update and checkpoint before it is killed."""

KEPT = "the rental's remaining hours are kept for evaluation and export"
"""Why a run is stopped or left out for want of time."""

NO_TIME = "the rental's remaining hours are kept for the artefact and the report; with a later end it is evaluated"
"""Why a completed run is not evaluated on the test set."""


@dataclass(frozen=True)
class PrepareData:
    phase: str = "preflight"


@dataclass(frozen=True)
class RunGates:
    phase: str = "preflight"


@dataclass(frozen=True)
class QueueRuns:
    """Put the plan's runs that are not queued yet into the journal."""

    phase: str = "preflight"


@dataclass(frozen=True)
class StartRun:
    run: str
    phase: str


@dataclass(frozen=True)
class LeaveOut:
    run: str
    cause: str
    phase: str = "experiment"


@dataclass(frozen=True)
class StopRun:
    run: str
    cause: str
    phase: str = "experiment"


@dataclass(frozen=True)
class StopJob:
    """End a job that is no run: there is no time left for it."""

    key: str
    cause: str
    phase: str = "evaluation"


@dataclass(frozen=True)
class OpenTest:
    candidates: tuple[str, ...]
    reason: str
    phase: str = "evaluation"


@dataclass(frozen=True)
class EvaluateOnTest:
    run: str
    phase: str = "evaluation"


@dataclass(frozen=True)
class SkipTest:
    """Write down that a completed run is not evaluated on the test set, and why."""

    run: str
    cause: str
    phase: str = "evaluation"


@dataclass(frozen=True)
class WriteReport:
    phase: str = "evaluation"


@dataclass(frozen=True)
class Export:
    run: str
    phase: str = "export"


@dataclass(frozen=True)
class Close:
    reason: str
    phase: str = "closed"


Step = (
    PrepareData
    | RunGates
    | QueueRuns
    | StartRun
    | LeaveOut
    | StopRun
    | StopJob
    | OpenTest
    | EvaluateOnTest
    | SkipTest
    | WriteReport
    | Export
    | Close
)


@dataclass
class Situation:
    """What the journal does not say: the clock, free places, living jobs, and what this supervisor has already seen."""

    now: datetime
    free_places: int
    live: frozenset[str] = frozenset()
    """Keys of living jobs."""
    data_checked: bool = False
    """The data was prepared, or found unchanged, under this supervisor."""
    gates_failed: bool = False
    """The gates failed under this supervisor."""
    gates_key: str | None = None
    """What gates must have been tried with to be valid now; None: not known, and all that passed are."""
    only_gates: bool = False
    """Nothing but the gates is wanted."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """How often each run was lost under this supervisor."""
    no_room: frozenset[str] = frozenset()
    """Runs for which the disk has no room."""
    durations: Mapping[str, Spread] = field(default_factory=dict)
    """Measured duration of one run of each variant, and of each follow-up by its id; empty before the pilot."""
    remaining: Mapping[str, Spread] = field(default_factory=dict)
    """What is left of runs of which something has been computed already, by run."""
    closing: Mapping[str, Spread] = field(default_factory=dict)
    """Measured duration of one `evaluation` on the test split and of one `export`; empty before the pilot."""
    places: int | None = None
    """All places, free or not; None: not known, and evaluations are thought to come one after the other."""
    grace_seconds: float = GRACE_SECONDS
    """How long a job may take to stop."""


def next_steps(state: Campaign, plan: Plan, situation: Situation) -> list[Step]:
    """Steps to take now, [] when there is something to wait for."""
    live = situation.live
    over = _training_is_over(state, plan, situation)
    paused = state.paused and not over
    if over and (running := state.runs_of("running")):
        return [StopRun(run.id, KEPT) for run in running]
    if not situation.data_checked and not (over and _nothing_to_evaluate(state, plan, situation)):
        return [] if "data" in live else [PrepareData(phase=state.phase or "preflight")]
    if over:
        # What does not hold or was not tried cannot be helped any more; what was trained can still be evaluated and kept.
        if preparing := [key for key in ("data", "gates") if key in live]:
            return [StopJob(key, KEPT, phase="preflight") for key in preparing]
    elif not any(gates_hold(gates, situation.gates_key) for gates in state.gates):
        if situation.gates_failed:
            nothing = "nothing more is trained" if state.runs else "nothing was trained"
            return _report_then(state, live, Close(f"the gates did not pass; {nothing}", phase="preflight"))
        held = "gates" in live or (paused and not situation.only_gates)
        return [] if held or situation.free_places < plan.machine.processes else [RunGates()]
    if situation.only_gates:
        close = Close("the gates passed; nothing else was asked for", phase=state.phase or "preflight")
        return [] if live else [close]
    queued = {(run.variant, run.seed) for run in state.runs.values()}
    if state.data is not None and any((run.variant, run.seed) not in queued for run in planned_runs(plan)):
        return [QueueRuns()]
    steps = _train(state, plan, situation, over=over, paused=paused)
    if steps is not None:
        return steps
    return [] if paused and not state.closed else _conclude(state, plan, situation)


def _deadlines(state: Campaign, plan: Plan, situation: Situation, more: int = 0) -> Deadlines | None:
    """The deadlines if everything that runs, and `more` runs besides, will have to be evaluated; None before the launch."""
    if state.clock is None:
        return None
    waiting = [run for run in state.runs_of("completed") if run.test_metrics is None and run.test_cause is None]
    tested = [run for run in waiting + state.runs_of("running") if run.follows is None]
    return deadlines(
        plan.rental,
        state.clock,
        situation.closing,
        tests=len(tested) + more,
        side_by_side=(situation.places or 0) // plan.machine.processes,
        grace_seconds=situation.grace_seconds,
    )


def _training_is_over(state: Campaign, plan: Plan, situation: Situation) -> bool:
    until = _deadlines(state, plan, situation)
    return until is not None and situation.now >= until.stop_runs_at


def _too_late_to_test(state: Campaign, plan: Plan, situation: Situation) -> bool:
    """Whether an evaluation that began now might not end in time."""
    until = _deadlines(state, plan, situation)
    takes = situation.closing["evaluation"].high if situation.closing else 0.0
    return until is not None and situation.now + timedelta(seconds=takes) > until.tests_until


def _nothing_to_evaluate(state: Campaign, plan: Plan, situation: Situation) -> bool:
    return not state.runs_of("completed") or _too_late_to_test(state, plan, situation)


def gates_hold(gates: Gates, key: str | None) -> bool:
    """Whether a pass through the gates says something about runs on this machine under this plan (B2)."""
    return bool(gates.passed) and (key is None or gates.key is None or gates.key == key)


def _train(state: Campaign, plan: Plan, situation: Situation, *, over: bool, paused: bool) -> list[Step] | None:
    """Steps of baseline and training, None when no run is waiting or running any more."""
    waiting = [run for run in state.runs.values() if _may_start(run, situation)]
    kept = [run for run in state.runs.values() if run.kept]
    later = [run for run in state.runs.values() if run.held is None and _retried(run, situation) == "wait"]
    running = state.runs_of("running")
    if over:
        left = waiting + later + [run for run in kept if run.status == "queued"]
        return [LeaveOut(run.id, KEPT) for run in left] or None
    if not waiting and not running and not kept and not later:
        return None
    steps: list[Step] = [StopRun(run.id, run.held) for run in running if run.held is not None]
    if paused:
        return steps
    baselines = [run for run in waiting if run.kind == "baseline"]
    baseline_is_missing = any(run.kind == "baseline" for run in running + kept + later)
    candidates = baselines or ([] if baseline_is_missing else waiting)
    free, started = situation.free_places, 0
    for run in in_queue_order(candidates):
        duration = situation.remaining.get(
            run.id, situation.durations.get(run.id, situation.durations.get(run.variant))
        )
        until = _deadlines(state, plan, situation, started + 1)
        if until is not None and duration is not None:
            ends = situation.now + timedelta(seconds=duration.high)
            if ends > until.stop_runs_at:
                steps.append(LeaveOut(run.id, f"it would end at {ends:%Y-%m-%d %H:%M} UTC, and {KEPT}"))
                continue
        if free >= plan.machine.processes:
            free, started = free - plan.machine.processes, started + 1
            steps.append(StartRun(run.id, _phase_of(run)))
    return steps


def _may_start(run: Run, situation: Situation) -> bool:
    if f"run:{run.id}" in situation.live or run.held is not None:
        return False
    return run.status == "queued" or _retried(run, situation) == "now"


def _retried(run: Run, situation: Situation) -> Word:
    lost = situation.lost.get(run.id, 0) if run.status == "lost" else 0
    return may_go_on(run, lost, situation.now, room=run.id not in situation.no_room)


def _phase_of(run: Run) -> str:
    if run.kind == "baseline":
        return "evaluation"
    return "resume" if run.attempts else "experiment"


def _conclude(state: Campaign, plan: Plan, situation: Situation) -> list[Step]:
    live = situation.live
    completed = [run for run in state.runs_of("completed") if run.follows is None]
    if not any(run.kind == "train" for run in completed):
        return _report_then(state, live, Close("no run was completed"))
    too_late = _too_late_to_test(state, plan, situation)
    if untested := [run for run in completed if _wants_test(run, too_late)]:
        return _test(state, plan, situation, untested, too_late)
    if "report" in live or any(key.startswith("export:") for key in live):
        return []
    if report_is_stale(state):
        return [WriteReport("closed" if state.closed else "evaluation")]
    if state.deliver is not None and not any(e.run == state.deliver and e.verified is not None for e in state.exports):
        return [Export(state.deliver)] if situation.free_places else []
    return _report_then(state, live, Close("the campaign is complete"))


def _wants_test(run: Run, too_late: bool) -> bool:
    """Whether its evaluation is still to come. What there was no time for comes back when the rental is made longer."""
    return run.test_metrics is None and (run.test_cause is None or (run.test_cause == NO_TIME and not too_late))


def _test(state: Campaign, plan: Plan, situation: Situation, untested: list[Run], too_late: bool) -> list[Step]:
    """Steps of the evaluation on the test split; what might take the artefact's time is not begun, and ended if it is."""
    going_on = [key for key in situation.live if key.startswith("test:")]
    waiting = [run for run in untested if f"test:{run.id}" not in going_on]
    if too_late:
        until = _deadlines(state, plan, situation)
        stops = going_on if until is not None and situation.now >= until.tests_until else []
        return [*(StopJob(key, NO_TIME) for key in stops), *(SkipTest(run.id, NO_TIME) for run in waiting)]
    opened = {name for opening in state.test_openings for name in opening["candidates"]}
    if new := tuple(run.id for run in untested if run.id not in opened):
        first = not state.test_openings
        return [OpenTest(new, "all runs have ended" if first else "runs were completed after the test had been opened")]
    return [EvaluateOnTest(run.id) for run in waiting[: situation.free_places // plan.machine.processes]]


def _report_then(state: Campaign, live: frozenset[str], close: Close) -> list[Step]:
    """Enter the last phase, write the report that says so, and end; not before everything else has ended."""
    if live:
        return []
    return [WriteReport(close.phase)] if report_is_stale(state) or state.phase != close.phase else [close]


_CHANGES_REPORT = ("gates-ended", "run-ended", "left-out", "test-ended", "export-ended", "amended", "note")


def waits_for_a_place(state: Campaign, plan: Plan, situation: Situation, more: int) -> bool:
    """Whether something would start if `more` places were free."""
    roomier = replace(situation, free_places=situation.free_places + more)
    steps = next_steps(state, plan, roomier)
    return any(isinstance(step, RunGates | StartRun | EvaluateOnTest | Export) for step in steps)


def to_queue_again(state: Campaign, before: Clock | None) -> list[Run]:
    """Runs that a new supervisor queues again: what was interrupted and, where the rental was made longer than it was `before`, what
    had been left out for want of time."""
    longer = before is not None and state.clock is not None and state.clock.ends_at > before.ends_at
    return state.runs_of(*CONTINUABLE) + [run for run in state.runs_of("left out") if longer and KEPT in str(run.cause)]


def report_is_stale(state: Campaign) -> bool:
    """Whether something happened that the last report does not hold."""
    for row in reversed(state.events):
        if row["event"] == "report":
            return False
        if row["event"] in _CHANGES_REPORT or (row["event"] == "phase" and row["phase"] == "closed"):
            return True
    return state.verdict is None
