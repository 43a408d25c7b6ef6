"""What is found in the log of a process that ended: exceptions with their frames, and lines whose meaning is known.

The lines of several processes interleave, and most of them tell of one thing: that another process is gone. Such a finding
`follows`; it is a cause only where nothing else is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal

from ftui.engine.logs import LogLine

Kind = Literal["plan", "machine", "asked"]
"""Whose fault it is: the plan's, which would happen again; the machine's, which may not; or somebody asked for it."""


@dataclass(frozen=True)
class Symptom:
    """A meaning that a line can have."""

    name: str
    kind: Kind
    words: str = ""
    """Said in front of the line, where the line does not speak for itself."""
    follows: bool = False
    """It only tells that another process failed."""


DISK_FULL = "disk full"
OUT_OF_MEMORY = "out of memory"
GPU_ERROR = "GPU error"
EXCEPTION = Symptom("exception", "plan")

_LOST_PEER = Symptom("connection lost", "machine", follows=True)
_TIMEOUT = Symptom("timeout", "machine", "a process waited for the others in vain")
_FULL = Symptom(DISK_FULL, "machine")
_MEMORY = Symptom(OUT_OF_MEMORY, "plan")
_ASSERTION = Symptom("GPU assertion", "plan", "an index was out of range on the GPU, a label or a token id, say")
_NETWORK = Symptom("network", "machine")

_PATTERNS: tuple[tuple[str, Symptom], ...] = (
    (r"lost the connection to another one|another process could not write its part", _LOST_PEER),
    (r"gloo.*(closed by peer|reset by peer|broken pipe|socketnotconnected)", _LOST_PEER),
    (
        r"ncclRemoteError|remote process exited|some nccl operations have failed|detected by watchdog at work",
        _LOST_PEER,
    ),
    (r"socket.*(recv|send|connect).*(connection (reset|refused)|broken pipe)|c10d.*connection was closed", _LOST_PEER),
    (
        r"no space left on device|os error 28\b|errno 28\b|disk is full|the disk of .* free, but|disk quota exceeded",
        _FULL,
    ),
    (r"outofmemoryerror|(cuda|hip) out of memory|CUBLAS_STATUS_ALLOC_FAILED|^out of memory", _MEMORY),
    (r"memoryerror|(can't|cannot|unable to) allocate (memory|.* for an array)|not enough memory", _MEMORY),
    (r"^keyboardinterrupt", Symptom("interrupted", "asked", "somebody interrupted it")),
    (r"device-side assert", _ASSERTION),
    (r"watchdog caught collective operation timeout|wait timeout after", _TIMEOUT),
    (r"gloo.*timed out waiting|timed out after \d+ ?ms", _TIMEOUT),
    (
        r"no cuda gpus are available|finds none in this process|determine the device handle",
        Symptom("no GPU", "machine"),
    ),
    (r"(cuda|hip)( driver)? error|cuda runtime error|acceleratorerror", Symptom(GPU_ERROR, "machine")),
    (r"cu(blas|dnn|sparse)\w*_status_|nccl\w*cudaerror", Symptom(GPU_ERROR, "machine")),
    (
        r"eaddrinuse|address already in use|errno:? -?98\b|launch distributed communication on port",
        Symptom("port in use", "machine"),
    ),
    (
        r"insufficient shared memory|dataloader worker .* (bus error|killed by signal)",
        Symptom("shared memory", "machine"),
    ),
    (
        r"errno 5\]|input/output error|stale file handle|endpoint is not connected",
        Symptom("input/output error", "machine"),
    ),
    (r"too many open files", Symptom("open files", "machine")),
    (r"fatal python error|segmentation fault|bus error", Symptom("crash", "machine")),
    (r"connection ?(reset|refused|aborted|error)|(read|connect)timeout|maxretryerror|localentrynotfound", _NETWORK),
    (r"name resolution|name or service not known|dist(network|store|backend)error|nccl error", _NETWORK),
)
_MEANINGS = tuple((re.compile(pattern, re.IGNORECASE), symptom) for pattern, symptom in _PATTERNS)
"""The first pattern that is found in a text decides."""

_SPOKEN = re.compile(
    r"watchdog caught collective operation timeout|fatal python error|what\(\): |dataloader worker .* killed by signal"
    r"|^\w*(bus error|segmentation fault)",
    re.IGNORECASE,
)
"""Lines outside an exception that mean the end of their process; the same words elsewhere may be a warning."""


def meaning(text: str) -> Symptom:
    """What an exception's line means, `EXCEPTION` where nothing more is known of it."""
    return next((symptom for pattern, symptom in _MEANINGS if pattern.search(text)), EXCEPTION)


@dataclass(frozen=True)
class Finding:
    """One sign of an end in a log."""

    number: int
    """Line of the log, from 1."""
    rank: int | None
    """Process it came from, from 0; None where the log does not say."""
    text: str
    symptom: Symptom
    frame: str | None = None
    """File and line it was raised from: the last one of ours, or else of whoever raised it."""


@dataclass
class _Open:
    """A traceback that is being read."""

    frames: list[str] = field(default_factory=list)


_PREFIX = re.compile(r"\[(?:rank|default)(\d+)\]:\s?")
"""What torch puts in front of the lines of a process of several."""
_FRAME = re.compile(r'\s+File "(.+)", line (\d+), in ')
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*_*[A-Z]\w*(?:: .*|:?\s*)$")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_OF_RANK = re.compile(r"\[Rank (\d+)\]|process (\d+) of \d+")
_LAUNCHER = ("ChildFailedError", "SignalException")


def findings(lines: Iterable[LogLine]) -> list[Finding]:
    """Every exception that left its process, and every line that means an end, in order. What a launcher says of its processes
    is not among them; `fallen_worker` reads that."""
    found: list[Finding] = []
    reading: dict[int | None, _Open] = {}
    for line in lines:
        prefix = _PREFIX.match(line.text)
        rank = int(prefix[1]) if prefix else None
        text = line.text[prefix.end() :] if prefix else line.text
        if text.startswith("Traceback (most recent call last)"):
            reading[rank] = _Open()
        elif text.startswith(_CHAINED):
            # What follows is the exception that left; the one before was on the way to it.
            if (earlier := next((f for f in reversed(found) if f.rank == rank), None)) is not None:
                found.remove(earlier)
        elif (frame := _FRAME.match(text)) is not None and rank in reading:
            reading[rank].frames.append(f"{frame[1]}:{frame[2]}")
        elif rank in reading and _RAISED.match(text):
            frames = reading.pop(rank).frames
            if not any(name in text.partition(":")[0] for name in _LAUNCHER):
                found.append(
                    Finding(line.number, _rank_in(rank, text), text.strip(), meaning(text), _frame_of_ours(frames))
                )
        elif _SPOKEN.search(text):
            found.append(Finding(line.number, _rank_in(rank, text), _without_place(text), meaning(text)))
    return found


def _rank_in(rank: int | None, text: str) -> int | None:
    if rank is not None or (named := _OF_RANK.search(text)) is None:
        return rank
    return int(named[1]) if named[1] else int(named[2]) - 1


def _without_place(text: str) -> str:
    """A line of a C++ library without the time and the source file in front."""
    return re.sub(r"^(\[E\d.*?\]\s+|\s*what\(\):\s+)", "", text).strip()


def _frame_of_ours(frames: list[str]) -> str | None:
    ours = [frame for frame in frames if "ftui" in PurePath(frame).parts[:-1]]
    foreign = [frame for frame in frames if "site-packages" not in frame and not frame.startswith("<")]
    if not frames:
        return None
    parts = PurePath((ours or foreign or frames)[-1]).parts
    within = max((i for i, part in enumerate(parts[:-1]) if part == "ftui"), default=len(parts) - 1)
    return "/".join(parts[within:])


@dataclass(frozen=True)
class Fallen:
    """The process that a launcher saw fail first."""

    rank: int
    code: int
    """Exit code, negative for a signal."""
    pid: int
    number: int
    """Line of the log."""


_FAILED = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\)")
_SUMMARY_RANK = re.compile(r"\s+rank\s+: (\d+) ")
_SUMMARY_CODE = re.compile(r"\s+exitcode\s+: (-?\d+) \(pid: (\d+)\)")


def fallen_worker(lines: list[LogLine]) -> Fallen | None:
    """Which process failed first by the launcher's word, None when it said nothing (torch's elastic agent: its report names the first
    observed failure after all others; where the report is missing, its own line)."""
    fallen, rank, root = None, None, False
    for line in lines:
        if (failed := _FAILED.search(line.text)) is not None:
            fallen = Fallen(int(failed[2]), int(failed[1]), int(failed[3]), line.number)
        elif line.text.startswith("Root Cause (first observed failure)"):
            root = True
        elif root and (named := _SUMMARY_RANK.match(line.text)) is not None:
            rank = int(named[1])
        elif root and rank is not None and (code := _SUMMARY_CODE.match(line.text)) is not None:
            return Fallen(rank, int(code[1]), int(code[2]), line.number)
    return fallen
