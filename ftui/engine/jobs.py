"""Processes of a campaign: start, adopt, end, and why they ended.

A training process outlives its supervisor and is adopted by the next one: nothing it computes is lost. Every other job dies with
the supervisor, so that a new one can start it afresh without a second writer.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from ftui.engine.launch import Command
from ftui.engine.placement import Places, places_record

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
    stop_reason: str | None = None
    """Why the supervisor asked it to stop."""

    def poll(self) -> bool:
        """Whether it has ended."""
        if self.process is not None:
            return self.process.poll() is not None
        return find_process(self.pid, self.created_at) is None

    @property
    def exit_code(self) -> int | None:
        """Exit code, negative for a signal; None for an adopted process, whose parent is another."""
        return None if self.process is None else self.process.returncode

    def terminate(self, reason: str) -> None:
        """Ask it to end gracefully.

        Above several processes stands a launcher, which would pass the signal on but kill them after a grace of its own; so they
        are asked themselves, and it ends when they have.
        """
        self.stop_reason = self.stop_reason or reason
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
        """End it and everything it started."""
        if (process := find_process(self.pid, self.created_at)) is None:
            return
        try:
            family = [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for member in family:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
        if self.process is not None:
            self.process.wait()


def start_job(
    key: str, command: Command, places: Places, *, outlives_supervisor: bool, inherits: tuple[int, ...] = ()
) -> Job:
    """Start a process in a session of its own with closed standard input and its output appended to its log (K28). The descriptors it
    `inherits` stay open in it: the leases of its places."""
    command.log.parent.mkdir(parents=True, exist_ok=True)
    with command.log.open("ab") as log:
        process = _spawn(command, log, None if outlives_supervisor else _die_with(os.getpid()), inherits)
    return Job(key, places, command.log, process, process.pid, created_at(process.pid))


def _spawn(
    command: Command, log: IO[bytes], before: Callable[[], None] | None, inherits: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command.words,
        env=command.environment,
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


def adopt_job(key: str, places: Places, log: Path, pid: int, created: float) -> Job | None:
    """A job for a process that an earlier supervisor started, None when it has ended."""
    if find_process(pid, created) is None:
        return None
    return Job(key, places, log, None, pid, created)


def find_process(pid: int, created: float) -> psutil.Process | None:
    """The very process with that pid and start time, None when it has ended or is a zombie."""
    try:
        process = psutil.Process(pid)
        same = abs(created_at(pid) - created) < _SAME_PROCESS_SECONDS
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
        return None


def created_at(pid: int) -> float:
    """Seconds from the system's start to the process's. Times of day are not used for this: they move when the clock is set, and by a
    second every now and then while it is only corrected, after which no process would be the one it was. Raises OSError for no process.
    """
    # proc_pid_stat(5): starttime is the 22nd field, and the second, in brackets, may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def why_ended(job: Job) -> str:
    """One sentence on how a process ended that left no word of its own."""
    code = job.exit_code
    said = last_words(job.log)
    if (fallen := _fallen_worker(job)) is not None:
        return fallen
    if code is None:
        return "its process ended while no supervisor was there to see why"
    if code < 0:
        return _killed_by(-code)
    return said or f"ended with code {code}; see {job.log.name}"


def _killed_by(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    hint = ", by hand or because memory ran out" if number == signal.SIGKILL else ""
    return f"killed by {name}{hint}"


_FALLEN = re.compile(r"failed \(exitcode: -(\d+)\) local_rank: (\d+)")
"""How the launcher of several processes says which of them a signal ended first; its own exit code does not."""


def _fallen_worker(job: Job) -> str | None:
    """Which of a job's processes was killed, None when none was or the launcher did not say (K19)."""
    if len(job.places) < 2:
        return None
    found = [match for line in _tail_of(job.log) if (match := _FALLEN.search(line))]
    if not found:
        return None
    return f"process {int(found[-1][2]) + 1} of {len(job.places)} was {_killed_by(int(found[-1][1]))}"


def last_words(log: Path) -> str | None:
    """The cause a job printed in its last attempt, None if it printed none."""
    words = [line.removeprefix("ftui: ") for line in _tail_of(log) if line.startswith("ftui: ")]
    return words[-1] if words else None


_OPENING = re.compile(r"ftui\.train \S+ \S+ pid \d+$")
"""The first line of every training process."""


def _tail_of(log: Path) -> list[str]:
    """The last lines of a log, no further back than the beginning of the last attempt."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16384))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    opened = [index for index, line in enumerate(lines) if _OPENING.match(line)]
    return lines[opened[-1] :] if opened else lines


def placement_record(job: Job) -> dict[str, Any]:
    """What the journal keeps so that a later supervisor finds the process again."""
    return {**places_record(job.places), "created_at": job.created_at}
