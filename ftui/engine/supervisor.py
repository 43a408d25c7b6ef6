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
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from ftui.engine.amend import ReasonMissing, check_amendment
from ftui.engine.endings import run_ended, why_ended
from ftui.engine.jobs import Job, placement_record, recorded_job, start_job
from ftui.engine.launch import Command, newest_checkpoint, prepare_command, report_command, train_command
from ftui.engine.lock import SupervisorLock
from ftui.engine.logs import cut_log, last_words
from ftui.engine.placement import Places, places, recorded_places
from ftui.engine.retries import what_follows
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
    StartRun,
    Step,
    StopRun,
    WriteReport,
    next_steps,
)
from ftui.engine.symptoms import Kind
from ftui.engine.trees import end_leftovers
from ftui.machine.sample import Sampler
from ftui.machine.versions import gates_key, versions
from ftui.plan.budget import rental_clock
from ftui.plan.durations import RunCosts
from ftui.plan.load import load_plan, plan_hash
from ftui.plan.settings import RunSettings, dump_settings, read_settings, run_settings
from ftui.plan.variants import CONTROL, PlannedRun, planned_runs
from ftui.record.estimates import run_costs, run_durations
from ftui.record.files import read_json, replace_text
from ftui.record.journal import Journal, journal_reader, now, stamp
from ftui.record.layout import CampaignFiles
from ftui.record.requests import Request, pending_requests
from ftui.record.rows import machine_writer, next_gate_process, read_gates, read_outcome, write_outcome
from ftui.record.secrets import redact
from ftui.record.state import CONTINUABLE, Campaign, Run, fold

TICK_SECONDS = 0.5
SAMPLE_SECONDS = 5.0
GRACE_SECONDS = 60.0
"""How long a stopped run may take for its update and checkpoint before it is killed."""


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
        self.data_checked = False
        self.gates_failed = False
        self.lost: dict[str, int] = {}
        self.ending: str | None = None
        self._deadlines: dict[str, float] = {}
        self._costs: dict[str, RunCosts] = {}
        """What the pilot measured of each variant's runs."""
        self.silence = SilenceWatch(time.monotonic)
        self._gate_process = ""
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
        explained = False
        if self.state.plan is None:
            clock = rental_clock(self.plan.rental, now())
            self._say(
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
            self._say(
                "amended",
                plan_hash=self.plan_hash,
                plan=self.plan.content(),
                changed=changed,
                because=self.because,
                starts_at=stamp(clock.starts_at),
                ends_at=stamp(clock.ends_at),
            )
        if self.because is not None and not explained:
            self._say("note", text=self.because)  # nothing was amended; what a person wrote is kept all the same
        self._say("supervisor-started", pid=os.getpid(), host=socket.gethostname())
        self._settle_what_was_left()
        self.sampler = Sampler(self.files.root)
        self.samples = machine_writer(self.files.machine)
        self._sampled_at = 0.0
        self._durations = self._measure_durations()

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
            self._answer_requests()
            self._collect_ended()
            self._stop_silent_runs()
            self._enforce_deadlines()
            self._sample()
            if self.ending is not None:
                if not self.jobs:
                    break
            elif self._act(next_steps(self.state, self.plan, self._situation())):
                continue
            if select.select([awake], [], [], TICK_SECONDS)[0]:
                os.read(awake, 4096)
        self._say("supervisor-ended", reason=self.ending)
        self.samples.close()

    # What it knows

    def _catch_up(self) -> None:
        fold(self.reader.read(), self.state)

    def _say(self, event: str, **fields: Any) -> None:
        _, waited = when_there_is_room(lambda: self.journal.append(event, **fields))
        if waited:
            self.journal.append(
                "fault", where="disk", cause=f"it was full: nothing was written down for {waited:.0f} s"
            )
        self._catch_up()

    def _situation(self) -> Situation:
        return Situation(
            now=now(),
            free_places=len(self._free_places()),
            live=frozenset(self.jobs),
            data_checked=self.data_checked,
            gates_failed=self.gates_failed,
            gates_key=self.gates_key,
            only_gates=self.only_gates,
            lost=self.lost,
            no_room=without_room(self.state, self.files),
            durations=self._durations,
        )

    def _measure_durations(self) -> dict[str, Any]:
        passed = [gates for gates in self.state.gates if gates.passed]
        if not passed or self.state.data is None:
            return {}
        rows = read_gates(self.files.gates(passed[-1].id).rows)
        self._costs = run_costs(self.plan, self.state.data, rows)
        return dict(run_durations(self.plan, self.state.data, rows))

    def _free_places(self, count: int | None = None) -> Places:
        """The first `count` places no job has, or all of them."""
        taken = {place for job in self.jobs.values() for place in job.places}
        return tuple(place for place in self.places if place not in taken)[:count]

    # Taking over

    def _settle_what_was_left(self) -> None:
        for run in self.state.runs_of("running"):
            attempt = run.attempts[-1]
            key = f"run:{run.id}"
            own = recorded_places(self.places, attempt.placement)
            job = recorded_job(key, own, self.files.run(run.id).log, attempt.pid, attempt.placement)
            if job.poll():
                self._run_ended(run, job)
            else:
                self.jobs[key] = job
        for gates in self.state.gates:
            if gates.ended_at is None:
                self._say("gates-ended", gates=gates.id, passed=False, cause="the supervisor was ended in their middle")
        for export in self.state.exports:
            if export.ended_at is None:
                self._say(
                    "export-ended", export=export.name, verified=None, cause="the supervisor was ended in its middle"
                )
        self.lost = {}
        for run in self.state.runs_of(*CONTINUABLE):
            self._queue(run)

    # What people want

    def _answer_requests(self) -> None:
        for path, request in pending_requests(self.files.requests):
            if isinstance(request, str):
                self._say(
                    "request", request=path.stem, kind=None, run=None, asked_by=None, answer="refused", reason=request
                )
            else:
                refusal = self._grant(request)
                self._say(
                    "request",
                    request=request.id,
                    kind=request.kind,
                    run=request.run,
                    asked_by=request.by,
                    answer="refused" if refusal else "done",
                    reason=refusal,
                )
            path.unlink(missing_ok=True)

    def _grant(self, request: Request) -> str | None:
        """Do what is asked; returns the reason when it cannot be done."""
        if request.kind == "stop-campaign":
            self._stop_everything(f"stopped by the {request.by}")
            return None
        job = self.jobs.get(f"run:{request.run}")
        if job is None:
            return f"{request.run} is not running"
        self._stop_job(job, f"stopped by the {request.by}")
        return None

    def _on_terminate(self, number: int, frame: FrameType | None) -> None:
        self._stop_everything(f"the supervisor got {signal.Signals(number).name}")

    def _stop_everything(self, reason: str) -> None:
        self.ending = self.ending or reason
        for job in self.jobs.values():
            self._stop_job(job, reason)

    def _stop_job(self, job: Job, reason: str, kind: Kind = "asked", name: str = "stop") -> None:
        if job.stop_reason is None:
            job.terminate(reason, kind, name)
            self._deadlines[job.key] = time.monotonic() + GRACE_SECONDS

    def _stop_silent_runs(self) -> None:
        """Ask runs to end that have written nothing for far longer than anything they do takes (K19)."""
        running = {run.id: run for run in self.state.runs_of("running") if f"run:{run.id}" in self.jobs}
        looked_at = {name: (self.files.run(name), self._costs.get(run.variant)) for name, run in running.items()}
        for run, sentence in self.silence.look(looked_at).items():
            self._stop_job(self.jobs[f"run:{run}"], sentence, "machine", "no progress")

    def _enforce_deadlines(self) -> None:
        for key, deadline in list(self._deadlines.items()):
            if key not in self.jobs:
                del self._deadlines[key]
            elif time.monotonic() > deadline:
                self.jobs[key].kill()

    # What happens next

    def _act(self, steps: list[Step]) -> bool:
        """Take the steps; whether anything was done that a new look may follow from at once."""
        for step in steps:
            if isinstance(step, StopRun):
                self._stop_job(self.jobs[f"run:{step.run}"], step.cause, name="deadline")
                continue
            if step.phase != self.state.phase:
                self._say("phase", phase=step.phase)
            match step:
                case PrepareData():
                    self._start("data", prepare_command(self.files), ())
                case RunGates():
                    self._start_gates()
                case QueueRuns():
                    self._queue_planned()
                case StartRun():
                    self._start_run(self.state.runs[step.run])
                case LeaveOut():
                    self._say("left-out", run=step.run, cause=step.cause)
                case OpenTest():
                    opening = len(self.state.test_openings) + 1
                    self._say("test-opened", opening=opening, candidates=list(step.candidates), reason=step.reason)
                case EvaluateOnTest():
                    folder = self.files.run(step.run).root
                    own = self._free_places(self.plan.machine.processes)
                    self._start(f"test:{step.run}", train_command("test", folder, read_settings(folder), own), own)
                case WriteReport():
                    self._start("report", report_command(self.files), ())
                case Export():
                    self._start_export(step.run)
                case Close():
                    self.ending = step.reason
        return any(not isinstance(step, StopRun) for step in steps)

    def _start(self, key: str, command: Command, own: Places) -> Job:
        job = start_job(key, command, own, outlives_supervisor=key.startswith("run:"))
        self.jobs[key] = job
        return job

    def _settings_of(self, run: Run) -> RunSettings:
        data = self.state.data
        assert data is not None  # runs are queued after the data is ready
        planned = PlannedRun(run.number, run.variant, run.seed, run.priority)
        return run_settings(self.plan, self.plan_hash, planned, data, self.places[0].backend)

    def _start_run(self, run: Run) -> None:
        folder = self.files.run(run.id)
        if not folder.settings.exists():
            settings = dump_settings(self._settings_of(run))
            when_there_is_room(lambda: replace_text(folder.settings, settings))
        attempt = len(run.attempts) + 1
        own = self._free_places(self.plan.machine.processes)
        command = train_command("train", folder.root, read_settings(folder.root), own, attempt=attempt)
        resumed_from = newest_checkpoint(self.files, run.id)
        job = self._start(f"run:{run.id}", command, own)
        self._say(
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
        self._say("gates-started", gates=identity, key=self.gates_key)
        self._start_gate_process("pilot", identity)

    def _start_gate_process(self, verb: str, identity: str) -> None:
        """Try the gates of one process; all but the last are tried by as many as a run has."""
        folder, self._gate_process = self.files.gates(identity).root, verb
        own = self._free_places(1 if verb == "reload" else self.plan.machine.processes)
        self._start("gates", train_command(verb, folder, read_settings(folder), own), own)

    def _start_export(self, run: str) -> None:
        name = run if not any(e.name == run for e in self.state.exports) else f"{run}-{len(self.state.exports) + 1}"
        self._say("export-started", export=name, run=run)
        own = self._free_places(1)
        folder, target = self.files.run(run).root, self.files.exports / name
        command = train_command("export", folder, read_settings(folder), own, str(target))
        self._start(f"export:{name}", command, own)

    def _queue_planned(self) -> None:
        next_number = max((run.number for run in self.state.runs.values()), default=0)
        known = {(run.variant, run.seed) for run in self.state.runs.values()}
        for planned in planned_runs(self.plan):
            if (planned.variant, planned.seed) in known:
                continue
            next_number += 1
            self._queue_new(PlannedRun(next_number, planned.variant, planned.seed, planned.priority))

    def _queue_new(self, planned: PlannedRun) -> None:
        assert self.state.data is not None  # runs are queued after the data is ready
        settings = run_settings(self.plan, self.plan_hash, planned, self.state.data, self.places[0].backend)
        kind: Literal["baseline", "train"] = "baseline" if settings.purpose == "baseline" else "train"
        self._queue(
            Run(
                planned.id, planned.number, planned.variant, planned.seed, kind, planned.priority, settings.change,
                settings.because,
            )
        )  # fmt: skip

    def _queue(self, run: Run) -> None:
        names = ("number", "variant", "seed", "kind", "priority", "change", "because", "follows")
        self._say("queued", run=run.id, **{name: getattr(run, name) for name in names})

    # What has ended

    def _collect_ended(self) -> None:
        for key, job in list(self.jobs.items()):
            if not job.poll():
                continue
            del self.jobs[key]
            kind, _, name = key.partition(":")
            if kind != "run" and (left := end_leftovers(job.mark, job.pid, job.created_at)):
                self._say("fault", where=key, cause=f"it had ended, but not {', '.join(left)}: killed")
            if job.stop_reason is not None and kind != "run":
                self._interrupted(kind, name, job)
            else:
                getattr(self, f"_{kind}_ended")(
                    *((self.state.runs[name], job) if kind in ("run", "test") else (name, job))
                )

    def _interrupted(self, kind: str, name: str, job: Job) -> None:
        """A job that was stopped with the campaign: nothing follows from it but that it did not finish."""
        if kind == "gates":
            self._say("gates-ended", gates=self.state.gates[-1].id, passed=False, cause=job.stop_reason)
        elif kind == "export":
            self._say("export-ended", export=name, verified=None, cause=job.stop_reason)

    def _run_ended(self, run: Run, job: Job) -> None:
        files = self.files.run(run.id)
        attempt = run.attempts[-1].number
        outcome = read_outcome(files.outcome)
        if outcome is not None and outcome.attempt != attempt:
            outcome = None
        reached, unfinished = newest_checkpoint(self.files, run.id), None
        if outcome is not None and outcome.status == "completed" and reached != outcome.updates:
            unfinished = f"it said completed, but has no checkpoint after its last update, {outcome.updates}"
        ended = run_ended(job, outcome, unfinished)
        lost = ended.status == "lost"
        updates = (reached or 0) if outcome is None or lost else outcome.updates
        cause = ended.cause.sentence if ended.cause is not None else outcome.cause if outcome is not None else None
        if outcome is None or outcome.status != ended.status:
            found = ended.status
            when_there_is_room(
                lambda: write_outcome(files.outcome, found, updates=updates, attempt=attempt, cause=cause)
            )
        again = lost and ended.fields["kind"] == "machine"
        self.lost[run.id] = self.lost.get(run.id, 0) + again
        self._say(
            "run-ended",
            run=run.id,
            attempt=attempt,
            status=ended.status,
            cause=cause,
            exit_code=job.exit_code,
            updates=updates,
            **ended.fields,
            lost=self.lost[run.id],
            follows=what_follows(run, self.lost[run.id], ended.fields["fault"], updates) if again else None,
        )

    def _data_ended(self, name: str, job: Job) -> None:
        if job.exit_code != 0:
            self._fail("data", _tail(job.log))
            return
        content = read_json(self.files.data_current)
        known = self.state.data
        if known is None or (known.hash != content["data"]["hash"] and not self.state.runs):
            self._say("data-ready", data=content["data"], findings=content["findings"])
        elif known.hash != content["data"]["hash"]:
            self._fail(
                "data",
                f"the data is not what the campaign was launched with ({known.hash} then, {content['data']['hash']} now); "
                "runs on two data versions cannot be compared. Put the files back, or start a new campaign",
            )
            return
        self.data_checked = True

    def _gates_ended(self, name: str, job: Job) -> None:
        gates = self.state.gates[-1]
        folder = self.files.gates(gates.id)
        rows = read_gates(folder.rows)
        failed = [row for row in rows if row.verdict == "failed"]
        verb = next_gate_process(rows)
        # A process that ends without a word for it would end so again.
        if verb is not None and (job.exit_code == 0 or failed) and verb != self._gate_process:
            self._start_gate_process(verb, gates.id)
            return
        passed = job.exit_code == 0 and not failed and verb is None
        cause = None if passed else "; ".join(f"{row.gate}: {row.cause}" for row in failed) or why_ended(job).sentence
        self.gates_failed = not passed
        self._say("gates-ended", gates=gates.id, passed=passed, cause=cause)
        self._durations = self._measure_durations()

    def _test_ended(self, run: Run, job: Job) -> None:
        files = self.files.run(run.id)
        if job.exit_code == 0 and files.test_metrics.is_file():
            self._say("test-ended", run=run.id, metrics=read_json(files.test_metrics), cause=None)
        else:
            self._say("test-ended", run=run.id, metrics=None, cause=why_ended(job).sentence)

    def _export_ended(self, name: str, job: Job) -> None:
        target = self.files.exports / name
        if job.exit_code != 0:
            self._say("export-ended", export=name, verified=False, cause=why_ended(job).sentence)
        elif not (target / "verification.json").is_file():
            own = self._free_places(1)
            command = train_command("verify", target, read_settings(target), own)
            self._start(f"export:{name}", command, own)
        else:
            self._say("export-ended", export=name, verified=True, cause=None)

    def _report_ended(self, name: str, job: Job) -> None:
        if job.exit_code != 0:
            self._fail("report", _tail(job.log))
            return
        report = read_json(self.files.report_json)
        self._say(
            "report",
            verdict=report["verdict"]["word"],
            sentence=report["verdict"]["sentence"],
            deliver=report["deliver"],
        )

    def _fail(self, where: str, cause: str) -> None:
        """Nothing can follow: say why and end. `ftui run` tries again."""
        self._say("fault", where=where, cause=redact(cause))
        self._stop_everything(cause)

    # Machine

    def _sample(self) -> None:
        if time.monotonic() - self._sampled_at < SAMPLE_SECONDS:
            return
        self._sampled_at = time.monotonic()
        trees = {key.partition(":")[2]: job.pid for key, job in self.jobs.items() if key.startswith("run:")}
        try:
            self.samples.write(self.sampler.sample(trees).row())
            self.lock.beat()
        except OSError as error:
            if not is_full(error):
                raise  # a sample more or less is no reason to stop; what must be written down waits by itself
        for job in self.jobs.values():
            if (begins := cut_log(job.log)) is not None:
                job.log_from = begins


def _tail(log: Path) -> str:
    """What a job said at its end, as one sentence per problem."""
    said = last_words(log)
    if said:
        return said
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return (
        "; ".join(line for line in lines[-20:] if line.strip() and not line.startswith((" ", "Traceback")))
        or f"see {log}"
    )
