"""The journal folded into what a person asks: which phase, which runs, what is safe, what went wrong.

Folding is pure and total: any prefix of a journal, and events this version does not know, give a state. Whether a process
still lives is not in the journal; ask `ftui.engine.client`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ftui.plan.budget import Clock
from ftui.plan.followup import FollowUp
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion
from ftui.record.journal import parse_time
from ftui.record.lines import Row

RunStatus = Literal["queued", "running", "completed", "stopped", "diverged", "failed", "lost", "left out"]

CONTINUABLE = ("stopped", "lost")
"""Statuses that `ftui run` takes up again; the others are results."""


@dataclass
class Attempt:
    """One process, or group of processes, that worked on a run."""

    number: int
    started_at: datetime
    pid: int | None = None
    resumed_from: int | None = None
    """Update of the checkpoint it started from, None from the beginning."""
    ended_at: datetime | None = None
    status: str | None = None
    cause: str | None = None
    kind: str | None = None
    """Whose fault its end was: "plan", "machine" or "asked"; None when completed, and in older records."""
    fault: str | None = None
    """The cause in a word or three, the same for the same fault; None as `kind`."""
    place: str | None = None
    """File and line of the log that the cause was read from."""
    reached: int | None = None
    """Updates that a further attempt need not repeat: completed, or of the last checkpoint where it was lost."""
    exit_code: int | None = None
    placement: dict[str, Any] = field(default_factory=dict)


@dataclass
class Run:
    """A run as the journal tells it."""

    id: str
    number: int
    variant: str
    seed: int
    kind: Literal["baseline", "train"]
    priority: int
    change: dict[str, Any]
    because: str
    follows: str | None = None
    """The run whose settings it changes; such a run takes no part in the comparison (V5)."""
    request: str | None = None
    """The wish that queued it, where it was one."""
    held: str | None = None
    """Who keeps it from starting, as a cause; None: nobody."""
    status: RunStatus = "queued"
    cause: str | None = None
    updates: int = 0
    """Updates completed when it last ended; its series says more while it runs."""
    attempts: list[Attempt] = field(default_factory=list)
    test_metrics: dict[str, Any] | None = None
    test_cause: str | None = None
    """Why the test evaluation gave nothing, when it did not."""

    @property
    def kept(self) -> bool:
        """Whether it would go on if nobody held it back."""
        return self.held is not None and self.status in ("queued", *CONTINUABLE)

    @property
    def shown(self) -> str:
        """Its status as people read it: one that is held back is "paused", or "held" while it has never started."""
        if not self.kept:
            return self.status
        return "paused" if self.attempts else "held"

    @property
    def follow_up(self) -> FollowUp | None:
        """What it changes of the run it follows; None for one that the plan asked for."""
        return None if self.follows is None else FollowUp(self.follows, self.because, self.change)


@dataclass
class Gates:
    """One pass through the gates."""

    id: str
    started_at: datetime
    ended_at: datetime | None = None
    passed: bool | None = None
    cause: str | None = None
    key: str | None = None
    """Machine and plan they were tried with (`machine.versions.gates_key`); None in older records."""


@dataclass
class Export:
    """One artefact."""

    name: str
    run: str
    started_at: datetime
    ended_at: datetime | None = None
    verified: bool | None = None
    cause: str | None = None


@dataclass
class Campaign:
    """A campaign as the journal tells it."""

    launched_at: datetime | None = None
    plan: Plan | None = None
    plan_hash: str | None = None
    clock: Clock | None = None
    phase: str | None = None
    """One of `budget.PHASES`, or "closed"; None before the launch."""
    spent_seconds: dict[str, float] = field(default_factory=dict)
    """Seconds per finished stretch of each phase; `spent_now` adds the one that is going on."""
    phase_since: datetime | None = None
    worked_until: datetime | None = None
    """Time of the newest event that shows a supervisor at work: notes of people, and what a new one finds changed, do not."""
    data: DataVersion | None = None
    data_findings: list[str] = field(default_factory=list)
    gates: list[Gates] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    """In queue order."""
    test_openings: list[Row] = field(default_factory=list)
    exports: list[Export] = field(default_factory=list)
    verdict: str | None = None
    verdict_sentence: str | None = None
    deliver: str | None = None
    """The run whose parameters become the artefact, by the last report."""
    paused: bool = False
    """Whether nothing new starts until somebody says so."""
    answers: dict[str, Row] = field(default_factory=dict)
    """The answer to each request, by its id."""
    waiting_for: str | None = None
    """Which places, used by whom, something waits for; None when nothing does."""
    supervising: bool = False
    """The journal's last word; a supervisor that was killed left it standing."""
    copied: Row | None = None
    """The last that was said about copies; it stands until something else is said."""
    faults: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)

    @property
    def closed(self) -> bool:
        return self.phase == "closed"

    def spent_now(self, moment: datetime) -> dict[str, float]:
        """Seconds spent per phase up to `moment`."""
        spent = dict(self.spent_seconds)
        if self.phase and not self.closed and self.phase_since and self.supervising:
            going_on = max(0.0, (moment - self.phase_since).total_seconds())
            spent[self.phase] = spent.get(self.phase, 0.0) + going_on
        return spent

    def runs_of(self, *statuses: str) -> list[Run]:
        return [run for run in self.runs.values() if run.status in statuses]

    def in_order(self) -> list[Run]:
        """Runs that were started, by number, then those that wait, as they will start."""
        waiting = in_queue_order(self.runs_of("queued"))
        return [run for run in self.runs.values() if run.status != "queued"] + waiting


def in_queue_order(runs: Iterable[Run]) -> list[Run]:
    """The highest priority first, then the lowest number."""
    return sorted(runs, key=lambda run: (-run.priority, run.number))


def priority_to_move(waiting: Iterable[Run], run: Run, direction: int) -> int | None:
    """The priority with which `run` starts before (-1) or after (1) its neighbour in the queue; None where it has none there.

    It may pass others that stand equal with the neighbour: among equals the number decides, which never changes.
    Bases are evaluated before anything trains, whatever their priority, so a run moves among its own kind.
    """
    order = in_queue_order(other for other in waiting if other.kind == run.kind)
    place = [other.id for other in order].index(run.id) + direction
    if not 0 <= place < len(order):
        return None
    other = order[place]
    in_order_if_equal = (other.number - run.number) * direction < 0
    return other.priority if in_order_if_equal else other.priority - direction


def fold(events: Iterable[Row], state: Campaign | None = None) -> Campaign:
    """Apply events in order to `state` (a new one if None) and return it."""
    state = state or Campaign()
    for row in events:
        state.events.append(row)
        at = parse_time(row["at"])
        _apply(state, row, at)
        if row["event"] not in ("note", "amended"):
            state.worked_until = at
    return state


def _apply(state: Campaign, row: Row, at: datetime) -> None:
    match row["event"]:
        case "launched":
            state.launched_at = at
            _decide(state, row)
        case "amended":
            _decide(state, row)
        case "supervisor-started":
            # A supervisor that was killed left its phase open: the time until its last event counts, the gap does not.
            _leave_phase(state, state.worked_until or at)
            state.supervising, state.phase_since, state.waiting_for = True, at, None
        case "waiting":
            state.waiting_for = row["cause"]
        case "supervisor-ended":
            state.waiting_for = None
            _leave_phase(state, at)
            state.supervising = False
        case "phase":
            _leave_phase(state, at)
            state.phase, state.phase_since = row["phase"], at
        case "data-ready":
            state.data, state.data_findings = DataVersion.model_validate(row["data"]), row["findings"]
        case "gates-started":
            state.gates.append(Gates(row["gates"], at, key=row.get("key")))
        case "gates-ended":
            gates = next(g for g in reversed(state.gates) if g.id == row["gates"])
            gates.ended_at, gates.passed, gates.cause = at, row["passed"], row["cause"]
        case "queued":
            if (known := state.runs.get(row["run"])) is not None:
                known.status = "queued"  # taken up again: its attempts and cause stay
                return
            names = ("number", "variant", "seed", "kind", "priority", "change", "because", "follows")
            about = {name: row[name] for name in names}
            state.runs[row["run"]] = Run(row["run"], **about, request=row.get("request"))
        case "run-started" | "run-ended" | "left-out" | "test-ended":
            _apply_to_run(state.runs[row["run"]], row, at)
        case "test-opened":
            state.test_openings.append(row)
        case "export-started":
            state.exports.append(Export(row["export"], row["run"], at))
        case "export-ended":
            export = next(e for e in reversed(state.exports) if e.name == row["export"])
            export.ended_at, export.verified, export.cause = at, row["verified"], row["cause"]
        case "report":
            state.verdict, state.verdict_sentence = row["verdict"], row["sentence"]
            state.deliver = row.get("deliver")
        case "copy-ended":
            state.copied = row
        case "fault":
            state.faults.append(row)
        case "request":
            state.answers[row["request"]] = row
            if row["answer"] == "done":
                _carry_out(state, row)


def _carry_out(state: Campaign, row: Row) -> None:
    """What a granted wish changes by itself; what it does to processes is told by their own events."""
    run = state.runs.get(row["run"])
    match row["kind"]:
        case "pause-queue" | "resume-queue":
            state.paused = row["kind"] == "pause-queue"
        case "pause-run" if run is not None:
            run.held = f"paused by the {row['asked_by']}"
        case "resume-run" if run is not None:
            run.held = None
            if run.status in CONTINUABLE:
                run.status = "queued"
        case "priority" if run is not None:
            run.priority = row["priority"]


def _decide(state: Campaign, row: Row) -> None:
    state.clock = Clock(parse_time(row["starts_at"]), parse_time(row["ends_at"]))
    state.plan, state.plan_hash = Plan.model_validate(row["plan"]), row["plan_hash"]


def _leave_phase(state: Campaign, at: datetime) -> None:
    if state.phase and state.phase_since and state.supervising:
        gone = max(0.0, (at - state.phase_since).total_seconds())
        state.spent_seconds[state.phase] = state.spent_seconds.get(state.phase, 0.0) + gone
    state.phase_since = None


def _apply_to_run(run: Run, row: Row, at: datetime) -> None:
    match row["event"]:
        case "run-started":
            attempt = Attempt(row["attempt"], at, row["pid"], row["resumed_from"], placement=row["placement"])
            run.attempts.append(attempt)
            run.status, run.cause = "running", None
        case "run-ended":
            attempt = run.attempts[-1]
            attempt.ended_at, attempt.status, attempt.cause, attempt.exit_code = (
                max(at, attempt.started_at),  # the clock may have been set back in between
                row["status"],
                row["cause"],
                row["exit_code"],
            )
            attempt.kind, attempt.fault, attempt.place = row.get("kind"), row.get("fault"), row.get("place")
            attempt.reached = row["updates"]
            run.status, run.cause, run.updates = row["status"], row["cause"], row["updates"]
        case "left-out":
            run.status, run.cause = "left out", row["cause"]
        case "test-ended":
            run.test_metrics, run.test_cause = row["metrics"], row["cause"]
