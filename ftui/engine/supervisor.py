"""The loop of one campaign: look, decide (`steps.py`), act, and write down what happened. Any line may be its last.

Everything it knows is in the journal before anything follows from it. What it holds besides (living jobs, what was lost under it)
is rebuilt or not needed by the next supervisor.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from ftui.engine import copies
from ftui.engine.amend import ReasonMissing, check_amendment
from ftui.engine.endings import collect_ended, run_ended
from ftui.engine.estimate import Estimate
from ftui.engine.jobs import Job, placement_record, recorded_job, start_job
from ftui.engine.launch import Command, newest_checkpoint, prepare_command, report_command, train_command
from ftui.engine.leases import Leases, PlaceTaken
from ftui.engine.lock import SupervisorLock
from ftui.engine.logs import cut_log
from ftui.engine.notify import notifier_for
from ftui.engine.placement import Places, places, recorded_places
from ftui.engine.queue import queue, queue_planned, settings_of
from ftui.engine.room import is_full, when_there_is_room, without_room
from ftui.engine.silence import SilenceWatch
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
    SkipTest,
    StartRun,
    Step,
    StopJob,
    StopRun,
    WriteReport,
    next_steps,
    to_queue_again,
    waits_for_a_place,
)
from ftui.engine.symptoms import Kind
from ftui.engine.wishes import answer_requests
from ftui.machine.sample import Sampler
from ftui.machine.versions import gates_key, versions
from ftui.plan.budget import Clock, rental_clock
from ftui.plan.load import load_plan, plan_hash
from ftui.plan.settings import dump_settings, read_settings, run_settings
from ftui.plan.variants import CONTROL, planned_runs
from ftui.record.files import replace_text
from ftui.record.journal import Journal, journal_reader, now, stamp
from ftui.record.layout import CampaignFiles
from ftui.record.rows import machine_writer
from ftui.record.state import Campaign, Run, fold

TICK_SECONDS = 0.5
SAMPLE_SECONDS = 5.0


class Supervisor:
    """Runs one campaign from where its journal stands to its end, a stop, or its own death."""

    def __init__(self, files: CampaignFiles, *, only_gates: bool = False, because: str | None = None) -> None:
        self.files = files
        self.because = because
        """Why the plan was changed, in a person's words."""
        self.lock = SupervisorLock(files)
        self.journal = Journal(files.journal, "supervisor")
        self.reader = journal_reader(files.journal)
        self.state = Campaign()
        self.jobs: dict[str, Job] = {}
        self.notifier = notifier_for(files)
        self.data_checked = False
        self.gates_failed = False
        self.lost: dict[str, int] = {}
        self.killed: dict[str, str] = {}
        """Runs that a person had killed, by the key of their job, and by whom."""
        self.began_at = stamp()
        self.ending: str | None = None
        self._deadlines: dict[str, float] = {}
        self.leases = Leases(self.files)
        self.silence = SilenceWatch(time.monotonic)
        self.gate_process = ""
        """Verb of the process that tries gates now, or did last."""
        self.only_gates = only_gates

    def take_over(self) -> None:
        """Take the lock, freeze or compare the plan, adopt what still runs.

        Raises a sentence when the campaign cannot go on, `ReasonMissing` when a person has to say why the plan was changed.
        """
        self.lock.take()
        self.plan = load_plan(self.files.root)
        self.plan_hash = plan_hash(self.plan)
        self.places = places(self.plan.machine)
        self.gates_key = gates_key(self.plan, versions())
        self._catch_up()
        explained, clock_before = False, self.state.clock
        if self.state.plan is None:
            clock = rental_clock(self.plan.rental, now())
            self.say(
                "launched",
                plan_hash=self.plan_hash,
                plan=self.plan.content(),
                starts_at=stamp(clock.starts_at),
                ends_at=stamp(clock.ends_at),
            )
        elif changed := check_amendment(self.state.plan, self.plan, begun=bool(self.state.runs)):
            if self.state.runs and self.because is None:
                raise ReasonMissing(self.files.name, changed)
            explained = True
            clock = rental_clock(self.plan.rental, self.state.launched_at or now())
            self.say(
                "amended",
                plan_hash=self.plan_hash,
                plan=self.plan.content(),
                changed=changed,
                because=self.because,
                starts_at=stamp(clock.starts_at),
                ends_at=stamp(clock.ends_at),
            )
        if self.because is not None and not explained:
            self.say("note", text=self.because)  # nothing was amended; what a person wrote is kept all the same
        self.say("supervisor-started", pid=os.getpid(), host=socket.gethostname())
        self._settle_what_was_left(clock_before)
        self.sampler = Sampler(self.files.root)
        self.samples = machine_writer(self.files.machine)
        self._sampled_at = 0.0
        self.copies = copies.Copies(self.files, self.plan.backup, self.state.copied, self._checkpoints)
        self.estimate = Estimate(self.files, self.plan)
        self.estimate.measure(self.state)

    def run(self) -> None:
        """Work until the campaign is closed, stopped or out of places to go."""
        awake, alarm = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGHUP, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_terminate)
        signal.signal(signal.SIGINT, self._on_terminate)
        while True:
            self._catch_up()
            answer_requests(self)
            collect_ended(self)
            self._enforce_deadlines()
            self._stop_silent_runs()
            self._sample()
            self._copy()
            self._notify()
            if self.ending is not None:
                if not self.jobs and not self._last_copy():
                    break
            elif self._act(next_steps(self.state, self.plan, self._situation())):
                continue
            self._say_what_is_waited_for()
            if select.select([awake], [], [], TICK_SECONDS)[0]:
                os.read(awake, 4096)
        self.say("supervisor-ended", reason=self.ending)
        self.samples.close()
        if (problem := self.notifier.finish()) is not None:
            self.say("notify-failed", cause=problem)
        self.copies.seal()

    # What it knows

    def _catch_up(self) -> None:
        fold(self.reader.read(), self.state)

    def say(self, event: str, **fields: Any) -> None:
        row, waited = when_there_is_room(lambda: self.journal.append(event, **fields))
        if waited:
            sentence = f"it was full: nothing was written down for {waited:.0f} s"
            self.journal.append("fault", where="disk", cause=sentence)
        self._catch_up()
        self.notifier.hear(row, self.state)

    def _situation(self) -> Situation:
        return Situation(
            now=now(),
            free_places=len(self._free_places()),
            live=frozenset(self.jobs) - {copies.KEY},  # no step waits for a copy
            data_checked=self.data_checked,
            gates_failed=self.gates_failed,
            gates_key=self.gates_key,
            only_gates=self.only_gates,
            lost=self.lost,
            no_room=without_room(self.state, self.files),
            durations=self.estimate.durations,
            remaining=self.estimate.remaining,
            closing=self.estimate.closing,
            grace_seconds=self.estimate.grace_seconds,
            places=len(self.places),
        )

    def _free_places(self) -> Places:
        """The places that no job has, of this campaign or another."""
        return tuple(place for place in self._own_places() if self.leases.is_free(place))

    def _own_places(self) -> Places:
        """The places that no job of this campaign has."""
        taken = {place for job in self.jobs.values() for place in job.places}
        return tuple(place for place in self.places if place not in taken)

    def take_places(self, count: int, work: str) -> Places:
        """So many free places, leased; those that a job has just left come first. Raises `PlaceTaken`."""
        own = tuple(sorted(self._free_places(), key=self.leases.has, reverse=True)[:count])
        if len(own) < count:
            raise PlaceTaken(f"{work} waits for {count} places, {len(own)} are free")
        self.leases.take(own, work)
        return own

    def _say_what_is_waited_for(self) -> None:
        elsewhere = [place for place in self._own_places() if not self.leases.is_free(place)]
        cause = None
        if (
            elsewhere
            and self.ending is None
            and waits_for_a_place(self.state, self.plan, self._situation(), len(elsewhere))
        ):
            used = [f"{place.name} is used by {self.leases.used_by(place)}" for place in elsewhere]
            cause = f"waiting for a place: {', '.join(used)}"
        if cause != self.state.waiting_for:
            self.say("waiting", cause=cause)

    # Taking over

    def _settle_what_was_left(self, clock_before: Clock | None) -> None:
        for run in self.state.runs_of("running"):
            attempt = run.attempts[-1]
            key = f"run:{run.id}"
            own = recorded_places(self.places, attempt.placement)
            job = recorded_job(key, own, self.files.run(run.id).log, attempt.pid, attempt.placement)
            if job.poll():
                run_ended(self, run, job)
            else:
                self.jobs[key] = job
        for gates in self.state.gates:
            if gates.ended_at is None:
                self.say("gates-ended", gates=gates.id, passed=False, cause="the supervisor was ended in their middle")
        for export in self.state.exports:
            if export.ended_at is None:
                self.say(
                    "export-ended", export=export.name, verified=None, cause="the supervisor was ended in its middle"
                )
        self.lost = {}
        for run in to_queue_again(self.state, clock_before):
            queue(self, run)

    # Stopping

    def _on_terminate(self, number: int, frame: FrameType | None) -> None:
        self.stop_everything(f"the supervisor got {signal.Signals(number).name}")

    def stop_everything(self, reason: str) -> None:
        self.ending = self.ending or reason
        self.copies.interrupted()
        for job in self.jobs.values():
            self.stop_job(job, reason)

    def stop_job(self, job: Job, reason: str, kind: Kind = "asked", name: str = "stop") -> None:
        if job.stop_reason is None:
            job.terminate(reason, kind, name)
            self._deadlines[job.key] = time.monotonic() + self.estimate.grace_seconds

    def kill_job(self, key: str, reason: str) -> None:
        """End a job and everything it started, now. A run is not taken up again by itself."""
        job = self.jobs[key]
        if key.startswith("run:"):
            self.killed[key] = reason
        else:
            job.stop_reason = job.stop_reason or reason
        job.kill()

    def _stop_silent_runs(self) -> None:
        """Ask runs to end that have written nothing for far longer than anything they do takes (K19)."""
        running = {run.id: run for run in self.state.runs_of("running") if f"run:{run.id}" in self.jobs}
        costs = self.estimate.pilot
        looked_at = {name: (self.files.run(name), costs.get(run.variant)) for name, run in running.items()}
        for run, sentence in self.silence.look(looked_at).items():
            self.stop_job(self.jobs[f"run:{run}"], sentence, "machine", "no progress")

    def _enforce_deadlines(self) -> None:
        for key, deadline in list(self._deadlines.items()):
            if key not in self.jobs:
                del self._deadlines[key]
            elif time.monotonic() > deadline:
                self.jobs[key].kill()

    # What happens next

    def _act(self, steps: list[Step]) -> bool:
        """Take the steps; whether anything was done that a new look may follow from at once."""
        try:
            for step in steps:
                self._take(step)
        except PlaceTaken:
            return False
        return any(not isinstance(step, StopRun | StopJob) for step in steps)

    def _take(self, step: Step) -> None:
        if isinstance(step, StopRun | StopJob):
            key = step.key if isinstance(step, StopJob) else f"run:{step.run}"
            self.stop_job(self.jobs[key], step.cause, name="deadline")
            return
        if step.phase != self.state.phase:
            self.say("phase", phase=step.phase)
        match step:
            case PrepareData():
                self.start("data", prepare_command(self.files), ())
            case RunGates():
                self._start_gates()
            case QueueRuns():
                queue_planned(self)
            case StartRun():
                self._start_run(self.state.runs[step.run])
            case LeaveOut():
                self.say("left-out", run=step.run, cause=step.cause)
            case OpenTest():
                opening = len(self.state.test_openings) + 1
                self.say("test-opened", opening=opening, candidates=list(step.candidates), reason=step.reason)
            case EvaluateOnTest():
                folder = self.files.run(step.run).root
                own = self.take_places(self.plan.machine.processes, f"test:{step.run}")
                self.start(f"test:{step.run}", train_command("test", folder, read_settings(folder), own), own)
            case SkipTest():
                self.say("test-ended", run=step.run, metrics=None, cause=step.cause)
            case WriteReport():
                self.start("report", report_command(self.files), ())
            case Export():
                self._start_export(step.run)
            case Close():
                self.ending = step.reason

    def start(self, key: str, command: Command, own: Places) -> Job:
        kept = self.leases.descriptors(own)
        job = start_job(key, command, own, outlives_supervisor=key.startswith("run:"), inherits=kept)
        self.jobs[key] = job
        return job

    def _start_run(self, run: Run) -> None:
        folder = self.files.run(run.id)
        if not folder.settings.exists():
            settings = dump_settings(settings_of(self, run))
            when_there_is_room(lambda: replace_text(folder.settings, settings))
        attempt = len(run.attempts) + 1
        own = self.take_places(self.plan.machine.processes, f"run:{run.id}")
        command = train_command("train", folder.root, read_settings(folder.root), own, attempt=attempt)
        resumed_from = newest_checkpoint(self.files, run.id)
        job = self.start(f"run:{run.id}", command, own)
        self.say(
            "run-started",
            run=run.id,
            attempt=attempt,
            pid=job.pid,
            resumed_from=resumed_from,
            placement=placement_record(job),
        )

    def _start_gates(self) -> None:
        assert self.state.data is not None  # gates run after the data is ready
        identity = f"g{len(self.state.gates) + 1:03d}"
        folder = self.files.gates(identity)
        control = next(run for run in planned_runs(self.plan) if run.variant == CONTROL)
        settings = run_settings(self.plan, self.plan_hash, control, self.state.data, self.places[0].backend, pilot=True)
        replace_text(folder.run.settings, dump_settings(settings))
        self.take_places(self.plan.machine.processes, "gates")
        self.say("gates-started", gates=identity, key=self.gates_key)
        self.start_gate_process("pilot", identity)

    def start_gate_process(self, verb: str, identity: str) -> None:
        """Try the gates of one process; all but the last are tried by as many as a run has."""
        folder, self.gate_process = self.files.gates(identity).root, verb
        own = self.take_places(1 if verb == "reload" else self.plan.machine.processes, "gates")
        self.start("gates", train_command(verb, folder, read_settings(folder), own), own)

    def _start_export(self, run: str) -> None:
        name = run if not any(e.name == run for e in self.state.exports) else f"{run}-{len(self.state.exports) + 1}"
        own = self.take_places(1, f"export:{name}")
        self.say("export-started", export=name, run=run)
        folder, target = self.files.run(run).root, self.files.exports / name
        command = train_command("export", folder, read_settings(folder), own, str(target))
        self.start(f"export:{name}", command, own)

    # People who look elsewhere

    def _notify(self) -> None:
        if (problem := self.notifier.step(now(), self.state.clock.ends_at if self.state.clock else None)) is not None:
            self.say("notify-failed", cause=problem)

    # Copies

    def _copy(self) -> None:
        if not self.copies.wanted or copies.KEY in self.jobs or self.ending is not None:
            return
        if self.copies.due(now(), self.state.phase, self.state.clock.ends_at if self.state.clock else None):
            self._begin_copy(lambda: self.copies.begin(now(), self.state.phase))

    def _begin_copy(self, begin: Callable[[], Job]) -> None:
        try:
            self.jobs[copies.KEY] = begin()
        except OSError as error:  # of a full disk, say: what trains goes on
            if (row := self.copies.not_begun(error, now())) is not None:
                self.say("copy-ended", **row)

    def _checkpoints(self) -> dict[str, int]:
        return {run: newest_checkpoint(self.files, run) or 0 for run in self.state.runs}

    def _last_copy(self) -> bool:
        """Whether the campaign waits for the copy of everything that has ended; starts it."""
        closed, ends_at = self.state.closed, self.state.clock.ends_at if self.state.clock else None
        due = self.copies.due_last(now(), closed=closed, ends_at=ends_at)
        if due == "now":
            self._begin_copy(self.copies.begin_last)
            self._deadlines[copies.KEY] = time.monotonic() + copies.last_seconds(now(), closed, ends_at)
        return due != "no"

    # Machine

    def _sample(self) -> None:
        if time.monotonic() - self._sampled_at < SAMPLE_SECONDS:
            return
        self._sampled_at = time.monotonic()
        trees = {key.partition(":")[2]: job.pid for key, job in self.jobs.items() if key.startswith("run:")}
        self.estimate.follow(self.state)
        try:
            self.samples.write(self.sampler.sample(trees).row())
            self.lock.beat()
        except OSError as error:
            if not is_full(error):
                raise  # a sample more or less is no reason to stop; what must be written down waits by itself
        for job in self.jobs.values():
            if (begins := cut_log(job.log)) is not None:
                job.log_from = begins
