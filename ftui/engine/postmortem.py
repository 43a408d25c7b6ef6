"""What is found when a job has ended: its one cause, and what became of a run's attempt.

Gathers the evidence for `causes.explain` from the job, its log and the kernel, and ends what the job left behind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ftui.engine.causes import Cause, Evidence, explain
from ftui.engine.jobs import Job
from ftui.engine.logs import attempt_lines, opened_pids
from ftui.engine.trees import end_leftovers
from ftui.machine.kernel import LOG, boot_id, gpu_faults, kernel_lines, killed_for_memory, memory_kills
from ftui.record.journal import stamp
from ftui.record.rows import Outcome, Status
from ftui.record.secrets import redact


@dataclass(frozen=True)
class Ended:
    """How a run's attempt ended, as the journal keeps it."""

    status: Status
    cause: Cause | None
    """None when it was completed."""
    fields: dict[str, Any]
    """Further fields of the journal's `run-ended`."""


def why_ended(job: Job, said: str | None = None, kernel_log: Path = LOG) -> Cause:
    """The one cause of a job's end; `said` is what it left as its cause, if it did."""
    lines = attempt_lines(job.log, job.log_from)
    since = job.created_at  # like the kernel's lines, counted from the start of the machine
    restarted = job.boot != "" and job.boot != boot_id()
    kernel = [] if restarted else kernel_lines(kernel_log)
    late = (job.killed_at - job.terminated_at).total_seconds() if job.killed_at and job.terminated_at else None
    killed = killed_for_memory(kernel, since)
    own = {job.pid, *opened_pids(lines)}
    evidence = Evidence(
        lines=lines,
        log_name=job.log.name,
        processes=max(1, len(job.places)),
        exit_code=job.exit_code,
        pid=job.pid,
        said=said,
        stopped=job.stop_reason,
        stop_kind=job.stop_kind,
        stop_name=job.stop_name,
        killed_after=late,
        memory_kills=max(0, memory_kills() - job.memory_kills),
        killed=[k for k in killed if k.pid in own] or killed,
        faults=gpu_faults(kernel, since),
        restarted=restarted,
    )
    return explain(evidence)


def run_ended(job: Job, outcome: Outcome | None, unfinished: str | None = None, kernel_log: Path = LOG) -> Ended:
    """What became of the attempt that `job` was, given the outcome it left, None for none.

    `unfinished` says why an outcome that says completed is not one. An end that the machine caused is "lost", whatever the process
    made of it: it can go on from its last checkpoint. What was asked to end because it made no progress is lost as well. An end that
    the plan caused is "failed", also where the process had no time to say so.
    """
    left = end_leftovers(job.mark, job.pid, job.created_at)
    status: Status = "lost" if outcome is None else outcome.status
    cause: Cause | None
    if unfinished is not None:
        status, cause = "failed", Cause("plan", "no checkpoint", unfinished)
    elif status == "completed":
        cause = None
    elif job.stop_reason is not None and job.stop_kind == "machine":
        status, cause = "lost", why_ended(job, None, kernel_log)
    elif outcome is None:
        cause = why_ended(job, None, kernel_log)
        if cause.kind == "plan":
            status = "failed"
    elif status == "failed":
        cause = why_ended(job, outcome.cause or "it failed", kernel_log)
        if cause.kind == "machine":
            status = "lost"
            if job.stop_reason is not None:  # the stop counts: what failed on the way is not tried again by itself
                cause = replace(cause, kind="asked", sentence=f"{job.stop_reason}; {cause.sentence}")
    elif status == "stopped":
        own_rule = job.stop_reason is None and "max_hours" in str(outcome.cause)
        who = job.stop_reason or ("" if own_rule else "by a SIGTERM that nobody in this campaign sent")
        words = "; ".join(part for part in (who, outcome.cause) if part)
        cause = Cause("asked", "time limit" if own_rule else job.stop_name, redact(words))
    else:
        cause = Cause("plan", status, redact(outcome.cause or status))
    if cause is not None and left:
        cause = replace(cause, sentence=f"{cause.sentence}; left behind and killed: {', '.join(left)}")
    return Ended(status, cause, _fields(job, cause, left))


def _fields(job: Job, cause: Cause | None, left: list[str]) -> dict[str, Any]:
    return {
        "kind": None if cause is None else cause.kind,
        "fault": None if cause is None else cause.name,
        "place": None if cause is None else cause.place,
        "terminated_at": None if job.terminated_at is None else stamp(job.terminated_at),
        "killed_at": None if job.killed_at is None else stamp(job.killed_at),
        "left_behind": left,
    }
