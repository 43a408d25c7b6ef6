"""Whole rentals in milliseconds: the supervisor's decisions and its journal are the real ones, time and jobs are not.

`live(world)` lives through one rental and gives the `Rental` it was. Nobody waits: between two events nothing changes but the
clock, so the moment at which the next decision falls due is searched for instead of ticked towards.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ftui.engine.steps import (
    GRACE_SECONDS,
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
    Step,
    StopJob,
    StopRun,
    WriteReport,
    next_steps,
    to_queue_again,
)
from ftui.plan.budget import Spread, rental_clock
from ftui.plan.load import plan_hash
from ftui.plan.variants import planned_runs
from ftui.record.journal import stamp
from ftui.record.state import Campaign, fold
from tests.builders.worlds import Happening, World, with_days, within

LAUNCH = datetime(2026, 12, 1, 9, tzinfo=UTC)
TICK = 0.5
"""Seconds between two looks of a supervisor."""
DATA = {"hash": "d", "train_examples": 96, "validation_examples": 30, "test_examples": 30, "labels": ["a", "b"]}


@dataclass
class Job:
    """A process that would end by itself."""

    key: str
    places: frozenset[int]
    begins: float
    ends: float
    ending: str
    told: float | None = None
    """When it was told to stop."""
    killed: bool = False


@dataclass(frozen=True)
class Start:
    """What was so when a run was started."""

    run: str
    at: datetime
    """By the clock on the wall."""
    left: Spread
    """Seconds it was stated to take from there."""
    passed_over: tuple[str, ...]
    """Queued runs that come first in the queue and were neither started nor left out."""
    baselines: tuple[str, ...]
    """Baselines that were not known yet, if it is to be trained."""


@dataclass
class Rental:
    """One rental as it was lived through, and the supervisor's memory while there is one."""

    world: World
    state: Campaign = field(default_factory=Campaign)
    seconds: float = 0.0
    """Since the launch, by a clock that never jumps."""
    offset: float = 0.0
    """By how much the clock on the wall is wrong."""
    jobs: dict[str, Job] = field(default_factory=dict)
    past: list[Job] = field(default_factory=list)
    """Every job that has ended."""
    started: list[Start] = field(default_factory=list)
    progress: dict[str, float] = field(default_factory=dict)
    """Share of each run that is computed and kept."""
    supervised: bool = False
    looks: int = 0

    def __post_init__(self) -> None:
        self.plan = self.world.plan
        self.happenings = sorted(self.world.happenings, key=lambda h: h.seconds)

    @property
    def now(self) -> datetime:
        return self.wall(self.seconds)

    def wall(self, seconds: float) -> datetime:
        return LAUNCH + timedelta(seconds=seconds + self.offset)

    def tell(self, event: str, **fields: Any) -> None:
        fold([{"at": stamp(self.now), "event": event, "by": "supervisor", **fields}], self.state)

    # A supervisor comes and goes

    def take_over(self) -> None:
        before = self.state.clock
        if self.state.plan is None or self.state.plan != self.plan:
            clock = rental_clock(self.plan.rental, self.state.launched_at or self.now)
            ends = {"starts_at": stamp(clock.starts_at), "ends_at": stamp(clock.ends_at)}
            event = "launched" if self.state.plan is None else "amended"
            self.tell(event, plan_hash=plan_hash(self.plan), plan=self.plan.content(), **ends)
        self.tell("supervisor-started", pid=1, host="h")
        self.supervised, self.ending = True, None
        self.data_checked, self.gates_failed = False, False
        self.lost: dict[str, int] = {}
        self._collect()
        for run in self.state.runs_of("running"):
            if f"run:{run.id}" not in self.jobs:
                self._run_ended(run.id, "lost")
        for gates in self.state.gates:
            if gates.ended_at is None:
                self.tell("gates-ended", gates=gates.id, passed=False, cause="interrupted")
        for export in self.state.exports:
            if export.ended_at is None:
                self.tell("export-ended", export=export.name, verified=None, cause="interrupted")
        self.lost = {}
        for run in to_queue_again(self.state, before):
            self.tell("queued", run=run.id)

    def _gone(self, *, everything: bool) -> None:
        """The supervisor is no more; training processes live on unless everything died with it."""
        self.supervised = False
        for key in [key for key in self.jobs if everything or not key.startswith("run:")]:
            job = self.jobs.pop(key)
            self.past.append(replace(job, ends=self.seconds, ending="dead"))
            if key.startswith("run:"):
                self._keep(job, 0.9)

    # The loop

    def live(self) -> Rental:
        self.take_over()
        while True:
            if not self.supervised:
                if not self.happenings:
                    return self
                self._happen()
                continue
            self._collect()
            if self.ending is not None:
                if not self.jobs:
                    self.tell("supervisor-ended", reason=self.ending)
                    self.supervised = False
                    continue
            elif self._act(self._due(self.seconds)):
                self.looks += 1
                assert self.looks < 5000, f"decides forever: {self.state.events[-5:]}"
                continue
            self._wait()

    def _wait(self) -> None:
        """Go to the next moment at which something happens or is to be decided."""
        moments = [job.ends for job in self.jobs.values()] + [h.seconds for h in self.happenings[:1]]
        horizon = max(self.seconds, min(moments, default=self.seconds + 100 * 86400))
        if self.ending is None and self._due(horizon):
            before, after = self.seconds, horizon
            while after - before > TICK:
                middle = (before + after) / 2
                before, after = (before, middle) if self._due(middle) else (middle, after)
            self.seconds = after
            return
        assert moments, f"waits for nothing: {self.state.events[-5:]}"
        self.seconds = horizon
        if self.happenings and self.happenings[0].seconds <= self.seconds:
            self._happen()

    def _due(self, seconds: float) -> list[Step]:
        """Steps that a look at that moment would take."""
        steps = next_steps(self.state, self.plan, self.situation(seconds))
        stopping = {key for key, job in self.jobs.items() if job.told is not None}
        return [
            step
            for step in steps
            if not (isinstance(step, StopRun) and f"run:{step.run}" in stopping)
            and not (isinstance(step, StopJob) and step.key in stopping)
        ]

    def situation(self, seconds: float) -> Situation:
        measured = any(gates.passed for gates in self.state.gates)
        left = {
            run: self.world.durations[self.state.runs[run].variant].times(1 - share)
            for run, share in self.progress.items()
        }
        return Situation(
            now=self.wall(seconds),
            free_places=len(self._free()),
            live=frozenset(self.jobs),
            data_checked=self.data_checked,
            gates_failed=self.gates_failed,
            lost=self.lost,
            durations=self.world.durations if measured else {},
            remaining=left if measured else {},
            closing=self.world.closing if measured else {},
            places=self.world.places,
        )

    def _free(self) -> list[int]:
        taken = {place for job in self.jobs.values() for place in job.places}
        return [place for place in range(self.world.places) if place not in taken]

    # What is done

    def _act(self, steps: list[Step]) -> bool:
        for step in steps:
            if isinstance(step, StopRun | StopJob):
                self._stop(self.jobs[f"run:{step.run}" if isinstance(step, StopRun) else step.key])
                continue
            if step.phase != self.state.phase:
                self.tell("phase", phase=step.phase)
            match step:
                case PrepareData():
                    self._start("data", 0, self.world.data_seconds)
                case RunGates():
                    self.tell("gates-started", gates=f"g{len(self.state.gates) + 1:03d}")
                    self._start("gates", self.plan.machine.processes, self.world.gates_seconds)
                case QueueRuns():
                    self._queue()
                case StartRun():
                    self._start_run(step.run)
                case LeaveOut():
                    self.tell("left-out", run=step.run, cause=step.cause)
                case OpenTest():
                    opening = len(self.state.test_openings) + 1
                    self.tell("test-opened", opening=opening, candidates=list(step.candidates), reason=step.reason)
                case EvaluateOnTest():
                    seconds = within(self.world.closing["evaluation"], self.world.closing_share)
                    self._start(f"test:{step.run}", self.plan.machine.processes, seconds)
                case SkipTest():
                    self.tell("test-ended", run=step.run, metrics=None, cause=step.cause)
                case WriteReport():
                    self._start("report", 0, self.world.report_seconds)
                case Export():
                    name = f"{step.run}-{len(self.state.exports) + 1}"
                    self.tell("export-started", export=name, run=step.run)
                    seconds = within(self.world.closing["export"], self.world.closing_share)
                    self._start(f"export:{name}", 1, seconds)
                case Close():
                    self.ending = step.reason
        return any(not isinstance(step, StopRun | StopJob) for step in steps)

    def _start(self, key: str, places: int, seconds: float, ending: str = "done") -> None:
        free = self._free()
        assert len(free) >= places, f"{key} wants {places} places, {len(free)} are free"
        assert key not in self.jobs, f"{key} is started twice"
        self.jobs[key] = Job(key, frozenset(free[:places]), self.seconds, self.seconds + seconds, ending)

    def _start_run(self, run: str) -> None:
        fate = self.world.fates[len(self.started) % len(self.world.fates)]
        left = 1 - self.progress.get(run, 0.0)
        whole = self.world.durations[self.state.runs[run].variant]
        self.started.append(self._seen_at_start(run, whole.times(left)))
        seconds = within(whole, fate.share) * left
        if fate.ending != "completed":
            seconds *= fate.at
        self._start(f"run:{run}", self.plan.machine.processes, max(1.0, seconds), fate.ending)
        attempt = len(self.state.runs[run].attempts) + 1
        self.tell("run-started", run=run, attempt=attempt, pid=2, resumed_from=None, placement={})

    def _seen_at_start(self, run: str, left: Spread) -> Start:
        own = self.state.runs[run]
        queued = [r for r in self.state.runs_of("queued") if (-r.priority, r.number) < (-own.priority, own.number)]
        baselines = [r.id for r in self.state.runs_of("queued", "running") if r.kind == "baseline"]
        return Start(run, self.now, left, tuple(r.id for r in queued), tuple(baselines) if own.kind == "train" else ())

    def _stop(self, job: Job) -> None:
        if job.told is not None:
            return
        job.told = self.seconds
        kind, _, name = job.key.partition(":")
        fate = self.world.fates[(self.state.runs[name].number if kind == "run" else 0) % len(self.world.fates)]
        takes = fate.stop_seconds if kind == "run" else 1.0
        ends = self.seconds + min(takes, GRACE_SECONDS)
        if ends < job.ends:
            job.ends, job.killed = ends, takes > GRACE_SECONDS
            job.ending = "lost" if job.killed else "stopped"

    def _queue(self) -> None:
        number = max((run.number for run in self.state.runs.values()), default=0)
        known = {(run.variant, run.seed) for run in self.state.runs.values()}
        for run in planned_runs(self.plan):
            if (run.variant, run.seed) in known:
                continue
            number += 1
            kind = "baseline" if run.variant == "base" else "train"
            about = {"number": number, "variant": run.variant, "seed": run.seed, "kind": kind, "priority": run.priority}
            self.tell("queued", run=run.id, **about, change={}, because="b", follows=None)

    # What has ended

    def _collect(self) -> None:
        for job in sorted(self.jobs.values(), key=lambda j: j.ends):
            if job.ends > self.seconds:
                continue
            del self.jobs[job.key]
            self.past.append(job)
            kind, _, name = job.key.partition(":")
            match kind:
                case "data" if job.told is None:
                    self.data_checked = True
                    if self.state.data is None:
                        self.tell("data-ready", data=DATA, findings=[])
                case "gates":
                    passed = self.world.gates_pass and job.told is None
                    self.gates_failed = not passed and job.told is None
                    self.tell("gates-ended", gates=self.state.gates[-1].id, passed=passed, cause=None)
                case "run":
                    self._keep(job, 1.0 if job.ending == "stopped" else 0.9)
                    self._run_ended(name, job.ending, told=job.told is not None)
                case "test" if job.told is None:
                    self.tell("test-ended", run=name, metrics={"accuracy": 0.5}, cause=None)
                case "export":
                    self.tell("export-ended", export=name, verified=None if job.told else True, cause=None)
                case "report" if job.told is None:
                    best = next((r.id for r in self.state.runs_of("completed") if r.kind == "train"), None)
                    self.tell("report", verdict="inconclusive", sentence="s", deliver=best)

    def _keep(self, job: Job, share: float) -> None:
        """What of an attempt is still there when the run goes on."""
        run = job.key.removeprefix("run:")
        whole = self.world.durations[self.state.runs[run].variant].seconds
        known = self.progress.get(run, 0.0)
        self.progress[run] = min(0.99, known + share * (self.seconds - job.begins) / whole * (1 - known) * 0.5)

    def _run_ended(self, run: str, ending: str, told: bool = False) -> None:
        if ending == "lost" and not told:
            self.lost[run] = self.lost.get(run, 0) + 1
        attempt = self.state.runs[run].attempts[-1].number
        self.tell("run-ended", run=run, attempt=attempt, status=ending, cause=None, exit_code=0, updates=1)

    # What comes from outside

    def _happen(self) -> None:
        it = self.happenings.pop(0)
        self.seconds = max(self.seconds, it.seconds)
        match it.kind:
            case "jump":
                self.offset += it.value
            case "stop run" if self.supervised:
                running = sorted(key for key in self.jobs if key.startswith("run:"))
                if running:
                    self._stop(self.jobs[running[0]])
            case "stop campaign" if self.supervised:
                self.ending = "stopped by a person"
                for job in self.jobs.values():
                    self._stop(job)
                self._later("killed", it.value)
            case "killed" | "reboot":
                if self.supervised:
                    self._gone(everything=it.kind == "reboot")
                self.seconds += it.value
                self.take_over()
            case "amend":
                if self.supervised:
                    self._gone(everything=False)
                self.plan = with_days(self.plan, it.value)
                self.take_over()

    def _later(self, kind: Literal["killed"], seconds: float) -> None:
        self.happenings.append(Happening(self.seconds + max(2 * GRACE_SECONDS, seconds), kind))
        self.happenings.sort(key=lambda h: h.seconds)


def live(world: World) -> Rental:
    return Rental(world).live()
