"""Processes of a campaign: start, adopt, end.

A training process outlives its supervisor and is adopted by the next one: nothing it computes is lost. Every other job dies with
the supervisor, so that a new one can start it afresh without a second writer.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import psutil

from ftui.engine.launch import Command
from ftui.engine.placement import Places, places_record
from ftui.engine.symptoms import Kind
from ftui.engine.trees import MARK, created_at, kill_members, new_mark
from ftui.machine.kernel import boot_id, memory_kills
from ftui.record.journal import now

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_SAME_PROCESS_SECONDS = 0.01
"""Start times closer than this are one process; a reused pid is at least a scheduler tick away."""


@dataclass
class Job:
    """A process the supervisor waits for."""

    key: str
    """What it works on, e.g. `run:r003-control-s17`; one living job per key."""
    places: Places
    log: Path
    process: subprocess.Popen[bytes] | None
    pid: int
    created_at: float
    """Start of the process in seconds after the system's; with the pid it names one process for good."""
    mark: str = ""
    """Carried by all its processes; "" for one that an older supervisor started."""
    log_from: int = 0
    """Byte of the log at which its lines begin."""
    memory_kills: int = 0
    """What the memory group had counted when it began (`machine.kernel.memory_kills`)."""
    boot: str = ""
    """Which start of the machine it was started under; "" where nobody wrote it down."""
    stop_reason: str | None = None
    """Why the supervisor asked it to stop."""
    stop_kind: Kind = "asked"
    stop_name: str = "stop"
    terminated_at: datetime | None = None
    """When it was first asked to end."""
    killed_at: datetime | None = None
    """When it was killed because it had not ended."""

    def poll(self) -> bool:
        """Whether it has ended."""
        if self.process is not None:
            return self.process.poll() is not None
        return find_process(self.pid, self.created_at) is None

    @property
    def exit_code(self) -> int | None:
        """Exit code, negative for a signal; None for an adopted process, whose parent is another."""
        return None if self.process is None else self.process.returncode

    def terminate(self, reason: str, kind: Kind = "asked", name: str = "stop") -> None:
        """Ask it to end gracefully; the first reason counts.

        Above several processes stands a launcher, which would pass the signal on but kill them after a grace of its own; so they
        are asked themselves, and it ends when they have.
        """
        if self.stop_reason is None:
            self.stop_reason, self.stop_kind, self.stop_name, self.terminated_at = reason, kind, name, now()
        if (process := find_process(self.pid, self.created_at)) is None:
            return
        try:
            workers = process.children() if len(self.places) > 1 else []
        except psutil.NoSuchProcess:
            return
        for member in workers or [process]:
            try:
                member.terminate()
            except psutil.NoSuchProcess:
                continue

    def kill(self) -> None:
        """End it and everything it started, sessions of their own included."""
        self.killed_at = self.killed_at or now()
        kill_members(self.mark, self.pid, self.created_at)
        if self.process is not None:
            self.process.wait()


def start_job(
    key: str, command: Command, places: Places, *, outlives_supervisor: bool, inherits: tuple[int, ...] = ()
) -> Job:
    """Start a process in a session of its own with closed standard input and its output appended to its log (K28). The descriptors it
    `inherits` stay open in it: the leases of its places."""
    command.log.parent.mkdir(parents=True, exist_ok=True)
    mark, kills = new_mark(), memory_kills()
    with command.log.open("ab") as log:
        log_from = log.tell()
        process = _spawn(command, mark, log, None if outlives_supervisor else _die_with(os.getpid()), inherits)
    began = created_at(process.pid)
    return Job(key, places, command.log, process, process.pid, began, mark, log_from, kills, boot_id())


def _spawn(
    command: Command, mark: str, log: IO[bytes], before: Callable[[], None] | None, inherits: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command.words,
        env=command.environment | {MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=before,
        pass_fds=inherits,
    )


def _die_with(parent: int) -> Callable[[], None]:
    """What a child does before it executes: ask the kernel for SIGKILL when its parent ends, and end if it has already."""

    def before() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return before


def recorded_job(key: str, places: Places, log: Path, pid: int | None, record: Mapping[str, Any]) -> Job:
    """The job that an earlier supervisor started, from what the journal kept of it; whether it lives, `Job.poll` tells."""
    return Job(
        key, places, log, None, pid or 0, float(record.get("created_at", 0.0)),
        record.get("mark", ""), record.get("log_from", 0), record.get("memory_kills", 0), record.get("boot", ""),
    )  # fmt: skip


def find_process(pid: int, created: float) -> psutil.Process | None:
    """The very process with that pid and start time, None when it has ended or is a zombie."""
    try:
        process = psutil.Process(pid)
        same = abs(created_at(pid) - created) < _SAME_PROCESS_SECONDS
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
        return None


def placement_record(job: Job) -> dict[str, Any]:
    """What the journal keeps so that a later supervisor finds the process again, and can say why it ended."""
    kept = {name: getattr(job, name) for name in ("created_at", "mark", "log_from", "memory_kills", "boot")}
    return {**places_record(job.places), **kept}
