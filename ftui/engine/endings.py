"""What follows from a job that has ended: its outcome, its place in the journal, and the process that comes after it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from ftui.engine import postmortem
from ftui.engine.jobs import Job
from ftui.engine.launch import newest_checkpoint, train_command
from ftui.engine.logs import last_words
from ftui.engine.postmortem import why_ended
from ftui.engine.retries import what_follows
from ftui.engine.room import when_there_is_room
from ftui.engine.trees import end_leftovers
from ftui.plan.settings import read_settings
from ftui.record.files import read_json
from ftui.record.journal import now
from ftui.record.rows import next_gate_process, read_gates, read_outcome, write_outcome
from ftui.record.secrets import redact
from ftui.record.state import Run

if TYPE_CHECKING:
    from ftui.engine.supervisor import Supervisor


def collect_ended(supervisor: Supervisor) -> None:
    """Write down what follows from every job that has ended since the last look."""
    for key, job in list(supervisor.jobs.items()):
        if not job.poll():
            continue
        del supervisor.jobs[key]
        kind, _, name = key.partition(":")
        if kind != "run" and (left := end_leftovers(job.mark, job.pid, job.created_at)):
            supervisor.say("fault", where=key, cause=f"it had ended, but not {', '.join(left)}: killed")
        if job.stop_reason is not None and kind != "run":
            _interrupted(supervisor, kind, name, job)
            continue
        match kind:
            case "run":
                run_ended(supervisor, supervisor.state.runs[name], job)
            case "test":
                _test_ended(supervisor, supervisor.state.runs[name], job)
            case "data":
                _data_ended(supervisor, job)
            case "gates":
                _gates_ended(supervisor, job)
            case "export":
                _export_ended(supervisor, name, job)
            case "report":
                _report_ended(supervisor, job)
            case "copy":
                if (row := supervisor.copies.ended(job, now())) is not None:
                    supervisor.say("copy-ended", **row)
    # Not before: what follows from an ended job at once goes on where it was.
    supervisor.leases.keep_only({place for job in supervisor.jobs.values() for place in job.places})


def _interrupted(supervisor: Supervisor, kind: str, name: str, job: Job) -> None:
    """A job that was stopped with the campaign: nothing follows from it but that it did not finish."""
    if kind == "gates":
        supervisor.say("gates-ended", gates=supervisor.state.gates[-1].id, passed=False, cause=job.stop_reason)
    elif kind == "export":
        supervisor.say("export-ended", export=name, verified=None, cause=job.stop_reason)


def run_ended(supervisor: Supervisor, run: Run, job: Job) -> None:
    """What became of a run's attempt, by its outcome file and by what is found where it left none (`postmortem`)."""
    files = supervisor.files.run(run.id)
    attempt = run.attempts[-1].number
    outcome = read_outcome(files.outcome)
    if outcome is not None and outcome.attempt != attempt:
        outcome = None
    reached, unfinished = newest_checkpoint(supervisor.files, run.id), None
    if outcome is not None and outcome.status == "completed" and reached != outcome.updates:
        unfinished = f"it said completed, but has no checkpoint after its last update, {outcome.updates}"
    ended = postmortem.run_ended(job, outcome, unfinished)
    status, cause = ended.status, ended.cause.sentence if ended.cause is not None else None
    if outcome is None and (killed := supervisor.killed.get(job.key)) is not None:
        status, cause = "stopped", killed
        ended.fields.update(kind="asked", fault="kill")
    elif outcome is None and job.stop_kind == "asked" and job.stop_reason and job.exit_code == -signal.SIGTERM:
        status, cause = "stopped", f"{job.stop_reason}; its process was still starting"
    supervisor.killed.pop(job.key, None)
    lost = status == "lost"
    updates = (reached or 0) if outcome is None or lost else outcome.updates
    if outcome is None or outcome.status != status:
        when_there_is_room(lambda: write_outcome(files.outcome, status, updates=updates, attempt=attempt, cause=cause))
    again = lost and ended.fields["kind"] == "machine"
    times = supervisor.lost[run.id] = supervisor.lost.get(run.id, 0) + again
    supervisor.say(
        "run-ended",
        run=run.id,
        attempt=attempt,
        status=status,
        cause=cause,
        exit_code=job.exit_code,
        updates=updates,
        **ended.fields,
        lost=times,
        follows=what_follows(run, times, ended.fields["fault"], updates) if again else None,
    )


def _data_ended(supervisor: Supervisor, job: Job) -> None:
    if job.exit_code != 0:
        _fail(supervisor, "data", _tail(job.log))
        return
    content = read_json(supervisor.files.data_current)
    known = supervisor.state.data
    if known is None or (known.hash != content["data"]["hash"] and not supervisor.state.runs):
        supervisor.say("data-ready", data=content["data"], findings=content["findings"])
    elif known.hash != content["data"]["hash"]:
        _fail(
            supervisor,
            "data",
            f"the data is not what the campaign was launched with ({known.hash} then, {content['data']['hash']} now); "
            "runs on two data versions cannot be compared. Put the files back, or start a new campaign",
        )
        return
    supervisor.data_checked = True


def _gates_ended(supervisor: Supervisor, job: Job) -> None:
    gates = supervisor.state.gates[-1]
    folder = supervisor.files.gates(gates.id)
    rows = read_gates(folder.rows)
    failed = [row for row in rows if row.verdict == "failed"]
    verb = next_gate_process(rows)
    # A process that ends without a word for it would end so again.
    if verb is not None and (job.exit_code == 0 or failed) and verb != supervisor.gate_process:
        supervisor.start_gate_process(verb, gates.id)
        return
    passed = job.exit_code == 0 and not failed and verb is None
    cause = None if passed else "; ".join(f"{row.gate}: {row.cause}" for row in failed) or why_ended(job).sentence
    supervisor.gates_failed = not passed
    supervisor.say("gates-ended", gates=gates.id, passed=passed, cause=cause)
    supervisor.estimate.measure(supervisor.state)


def _test_ended(supervisor: Supervisor, run: Run, job: Job) -> None:
    files = supervisor.files.run(run.id)
    if job.exit_code == 0 and files.test_metrics.is_file():
        supervisor.say("test-ended", run=run.id, metrics=read_json(files.test_metrics), cause=None)
    else:
        supervisor.say("test-ended", run=run.id, metrics=None, cause=why_ended(job).sentence)


def _export_ended(supervisor: Supervisor, name: str, job: Job) -> None:
    target = supervisor.files.exports / name
    if job.exit_code != 0:
        supervisor.say("export-ended", export=name, verified=False, cause=why_ended(job).sentence)
    elif not (target / "verification.json").is_file():
        own = supervisor.take_places(1, f"export:{name}")
        command = train_command("verify", target, read_settings(target), own)
        supervisor.start(f"export:{name}", command, own)
    else:
        supervisor.say("export-ended", export=name, verified=True, cause=None)


def _report_ended(supervisor: Supervisor, job: Job) -> None:
    if job.exit_code != 0:
        _fail(supervisor, "report", _tail(job.log))
        return
    report = read_json(supervisor.files.report_json)
    supervisor.say(
        "report",
        verdict=report["verdict"]["word"],
        sentence=report["verdict"]["sentence"],
        deliver=report["deliver"],
    )


def _fail(supervisor: Supervisor, where: str, cause: str) -> None:
    """Nothing can follow: say why and end. `ftui run` tries again."""
    supervisor.say("fault", where=where, cause=redact(cause))
    supervisor.stop_everything(cause)


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
