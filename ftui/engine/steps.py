"""What happens next in a campaign: a pure function of its state, the clock and what is going on.

A supervisor that starts, or starts again after a kill or a reboot, asks the same question and gets the same answer:

    data → gates → queue → baseline → control and variants → test, opened once → report → artefact → report → closed

Nothing trains before the baseline is known (H3); no test example is read before every run has ended (H4); no run starts that
would eat the hours kept for evaluation and export (R5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ftui.engine.retries import Word, may_go_on
from ftui.plan.budget import Spread, training_ends_at
from ftui.plan.schema import Plan
from ftui.plan.variants import planned_runs
from ftui.record.state import Campaign, Gates, Run


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
class OpenTest:
    candidates: tuple[str, ...]
    reason: str
    phase: str = "evaluation"


@dataclass(frozen=True)
class EvaluateOnTest:
    run: str
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
    | OpenTest
    | EvaluateOnTest
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
    """Measured duration of one run of each variant; empty before the pilot."""


def next_steps(state: Campaign, plan: Plan, situation: Situation) -> list[Step]:
    """Steps to take now, [] when there is something to wait for."""
    live = situation.live
    if not situation.data_checked:
        return [] if "data" in live else [PrepareData(phase=state.phase or "preflight")]
    if not any(gates_hold(gates, situation.gates_key) for gates in state.gates):
        if situation.gates_failed:
            return _report_then(state, live, Close("the gates did not pass; nothing was trained", phase="preflight"))
        return [] if "gates" in live else [RunGates()]
    if situation.only_gates:
        return [Close("the gates passed; nothing else was asked for", phase=state.phase or "preflight")]
    if any(run.id not in state.runs for run in planned_runs(plan)):
        return [QueueRuns()]
    steps = _train(state, plan, situation)
    return _conclude(state, plan, situation) if steps is None else steps


def gates_hold(gates: Gates, key: str | None) -> bool:
    """Whether a pass through the gates says something about runs on this machine under this plan (B2)."""
    return bool(gates.passed) and (key is None or gates.key is None or gates.key == key)


def _train(state: Campaign, plan: Plan, situation: Situation) -> list[Step] | None:
    """Steps of baseline and training, None when no run is waiting or running any more."""
    waiting = [run for run in state.runs.values() if _may_start(run, situation)]
    later = [run for run in state.runs.values() if _retried(run, situation) == "wait"]
    running = state.runs_of("running")
    if not waiting and not running and not later:
        return None
    last_moment = training_ends_at(plan.rental, state.clock) if state.clock else None
    over = last_moment is not None and situation.now >= last_moment
    cause = "the rental's remaining hours are kept for evaluation and export"
    if over:
        stops: list[Step] = [StopRun(run.id, cause) for run in running if run.kind == "train"]
        return stops + [LeaveOut(run.id, cause) for run in waiting + later]
    baselines = [run for run in waiting if run.kind == "baseline"]
    baseline_runs_on = any(run.kind == "baseline" for run in running + later)
    candidates = baselines or ([] if baseline_runs_on else waiting)
    steps: list[Step] = []
    free = situation.free_places
    for run in sorted(candidates, key=lambda r: (-r.priority, r.number)):
        duration = situation.durations.get(run.variant)
        if last_moment is not None and duration is not None and run.kind == "train":
            ends = situation.now + timedelta(seconds=duration.high)
            if ends > last_moment:
                steps.append(LeaveOut(run.id, f"it would end at {ends:%Y-%m-%d %H:%M} UTC, and {cause}"))
                continue
        if free >= plan.machine.processes:
            free -= plan.machine.processes
            steps.append(StartRun(run.id, _phase_of(run)))
    return steps


def _may_start(run: Run, situation: Situation) -> bool:
    if f"run:{run.id}" in situation.live:
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
    completed = state.runs_of("completed")
    if not any(run.kind == "train" for run in completed):
        return _report_then(state, live, Close("no run was completed"))
    untested = [run for run in completed if run.test_metrics is None and run.test_cause is None]
    if untested:
        opened = {name for opening in state.test_openings for name in opening["candidates"]}
        new = tuple(run.id for run in untested if run.id not in opened)
        if new:
            first = not state.test_openings
            reason = "all runs have ended" if first else "runs were completed after the test had been opened"
            return [OpenTest(new, reason)]
        free = situation.free_places // plan.machine.processes
        startable = [run for run in untested if f"test:{run.id}" not in live]
        return [EvaluateOnTest(run.id) for run in startable[:free]]
    if "report" in live or any(key.startswith("export:") for key in live):
        return []
    if report_is_stale(state):
        return [WriteReport("closed" if state.closed else "evaluation")]
    if state.deliver is not None and not any(e.run == state.deliver and e.verified is not None for e in state.exports):
        return [Export(state.deliver)]
    return _report_then(state, live, Close("the campaign is complete"))


def _report_then(state: Campaign, live: frozenset[str], close: Close) -> list[Step]:
    """Enter the last phase, write the report that says so, and end."""
    if "report" in live:
        return []
    return [WriteReport(close.phase)] if report_is_stale(state) or state.phase != close.phase else [close]


_CHANGES_REPORT = ("gates-ended", "run-ended", "left-out", "test-ended", "export-ended", "amended", "note")


def report_is_stale(state: Campaign) -> bool:
    """Whether something happened that the last report does not hold."""
    for row in reversed(state.events):
        if row["event"] == "report":
            return False
        if row["event"] in _CHANGES_REPORT or (row["event"] == "phase" and row["phase"] == "closed"):
            return True
    return state.verdict is None
