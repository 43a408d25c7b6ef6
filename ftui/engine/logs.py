"""The log of a job, read as evidence and kept from filling the disk.

A job's processes append to it through one descriptor each, opened for appending, so that it can be shortened under them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

LIMIT_BYTES = 64 << 20
"""A log larger than this is cut."""
HEAD_BYTES, TAIL_BYTES = 1 << 20, 16 << 20
"""What stays of it: its beginning, with the settings and versions of the start, and its end."""

_READ_BYTES = 4 << 20
"""A cause is looked for in this much of a log's end."""
_LINE_CHARACTERS = 2000

_OPENING = re.compile(r"ftui\.train \S+ \S+ pid (\d+)$")
"""The first line of every training process."""
_CUT = "… cut here: "


@dataclass(frozen=True)
class LogLine:
    """One line, and where it stands."""

    number: int
    """Counted from 1."""
    text: str


def attempt_lines(log: Path, start: int = 0) -> list[LogLine]:
    """The lines that one attempt printed, which began at byte `start` of the log; of a long one the last four megabytes.

    Where `start` lies beyond the end (the log was cut, or an older record does not know it), the attempt begins with the last group
    of opening lines: several processes print one each.
    """
    try:
        with log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            known = 0 < start <= size
            begin = max(start if known else 0, size - _READ_BYTES)
            number = 1 + _newlines(file.fileno(), begin)
            file.seek(begin)
            texts = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    if texts and not texts[-1]:
        texts.pop()
    lines = [LogLine(number + index, text.rstrip("\r")[:_LINE_CHARACTERS]) for index, text in enumerate(texts)]
    return lines if known else lines[_last_opening(lines) :]


def opened_pids(lines: list[LogLine]) -> list[int]:
    """Process ids of the training processes that these lines come from, as they see themselves."""
    return [int(found[1]) for line in lines if (found := _OPENING.match(line.text)) is not None]


def _last_opening(lines: list[LogLine]) -> int:
    """Index of the first of the last group of opening lines, which belong to one attempt."""
    opened = [index for index, line in enumerate(lines) if _OPENING.match(line.text)]
    while len(opened) > 1 and opened[-1] - opened[-2] == 1:
        opened.pop()
    return opened[-1] if opened else 0


def _newlines(descriptor: int, end: int) -> int:
    count, position = 0, 0
    while position < end and (block := os.pread(descriptor, min(1 << 20, end - position), position)):
        count += block.count(b"\n")
        position += len(block)
    return count


def last_words(log: Path, start: int = 0) -> str | None:
    """The cause a job printed in its last attempt, None if it printed none."""
    words = [line.text.removeprefix("ftui: ") for line in attempt_lines(log, start) if line.text.startswith("ftui: ")]
    return words[-1] if words else None


def cut_log(log: Path, *, limit: int = LIMIT_BYTES, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> int | None:
    """Shorten a log larger than `limit` bytes to its beginning and its end, in place, while its processes go on printing.

    Returns the byte at which the kept end begins, None when nothing had to be cut. What is lost is the middle, which a line in the
    log says, and what is printed in the instant between the last look and the cut: microseconds. A supervisor that dies in the midst
    leaves lines twice, none broken.
    """
    try:
        descriptor = os.open(log, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        if size <= limit:
            return None
        kept_head = _to_last_newline(os.pread(descriptor, head, 0))
        read = size - tail
        first = os.pread(descriptor, min(tail, 1 << 16), read)
        read += first.find(b"\n") + 1
        gone = read - len(kept_head)
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        said = f"{_CUT}{gone:,} bytes, at {moment}, to keep this log under {limit:,} bytes\n"
        start = written = len(kept_head) + len(said.encode())
        os.pwrite(descriptor, said.encode(), len(kept_head))
        # Copied forward until nothing new has come: the process prints on, at the old end.
        while block := os.pread(descriptor, 1 << 20, read):
            os.pwrite(descriptor, block, written)
            read, written = read + len(block), written + len(block)
        os.ftruncate(descriptor, written)
        return start
    finally:
        os.close(descriptor)


def _to_last_newline(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]
