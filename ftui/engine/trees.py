"""All processes of a job, also those that took a session of their own: found by a mark in their environment, ended, and counted.

A launcher's workers lead sessions of their own, a worker's helpers may outlive it, and each of them holds memory of a device that the
next run needs (K18).
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import psutil

MARK = "FTUI_JOB"
"""Variable that every process of a job inherits."""

PATIENCE_SECONDS = 2.0
"""How long what is left may take to end by itself: workers end with their launcher, a moment after it."""


def new_mark() -> str:
    """A mark that no other job has."""
    return secrets.token_hex(8)


def members(mark: str, leader: int, began: float) -> list[psutil.Process]:
    """Living processes that carry the mark, descend from the process `leader`, or are of its session; it
    `began` so many seconds after the system (`created_at`)."""
    session = leader if _is_session_of(leader, began) else None
    wanted = f"{MARK}={mark}".encode() if mark else None
    below = _descendants(leader) if session is not None else set()
    found = []
    for pid in psutil.pids():
        belongs = pid in below or (session is not None and _session(pid) == session) or _carries(pid, wanted)
        if pid == os.getpid() or not belongs:
            continue
        try:
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def end_leftovers(mark: str, leader: int, began: float, patience: float = PATIENCE_SECONDS) -> list[str]:
    """End what a job that has ended left behind; returns the names and ids of the processes that had to be killed.

    Those that end by themselves in time are not counted. What is started meanwhile is ended, too.
    """
    left = members(mark, leader, began)
    if not left:
        return []
    _wait(left, patience)
    return kill_members(mark, leader, began)


def kill_members(mark: str, leader: int, began: float) -> list[str]:
    """Kill every process of a job and whatever they start meanwhile; returns the names and ids of those that were there."""
    killed: dict[int, str] = {}
    for _ in range(10):
        there = members(mark, leader, began)
        if not there:
            break
        for process in there:
            try:
                killed.setdefault(process.pid, f"{process.name()} (pid {process.pid})")
                process.kill()
            except psutil.Error:
                continue
        _wait(there, PATIENCE_SECONDS)
    return list(killed.values())


def created_at(pid: int) -> float:
    """Seconds from the system's start to the process's. Times of day are not used for this: they move when the clock is set, and by a
    second every now and then while it is only corrected, after which no process would be the one it was. Raises OSError for no process.
    """
    # proc_pid_stat(5): starttime is the 22nd field, and the second, in brackets, may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _wait(processes: list[psutil.Process], seconds: float) -> None:
    """Wait until they have ended, all but our own children: to wait for one would take its exit code from who started it."""
    others = []
    for process in processes:
        try:
            if process.ppid() != os.getpid():
                others.append(process)
        except psutil.Error:
            continue
    psutil.wait_procs(others, timeout=seconds)


def _descendants(leader: int) -> set[int]:
    try:
        return {process.pid for process in psutil.Process(leader).children(recursive=True)}
    except psutil.Error:
        return set()


def _is_session_of(leader: int, began: float) -> bool:
    """Whether the session with that number is still the job's: a number is not given again while its session lives."""
    try:
        return bool(abs(created_at(leader) - began) < 0.01)
    except OSError:
        return True


def _carries(pid: int, wanted: bytes | None) -> bool:
    if wanted is None:
        return False
    try:
        return wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # another user's, or gone
        return False


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None
