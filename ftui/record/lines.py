"""JSON Lines with one writer and any number of readers.

The first line names the kind of file and its schema. The writer cuts a torn last line before it appends; readers stop in
front of it. A number that JSON cannot hold (NaN, infinities) is written as the string `"nan"`, `"inf"` or `"-inf"`, so that
every tool reads the file and nothing non-finite is lost; `number()` turns it back.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from ftui.record.files import sync_directory

Row = dict[str, Any]


class NewerSchema(Exception):
    """The file was written by a newer ftui."""


def header(kind: str, schema: int) -> Row:
    return {"file": kind, "schema": schema}


def encode(row: Row) -> bytes:
    """One line, newline included."""
    return (json.dumps(with_words(row), ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n").encode()


def number(value: Any) -> float:
    """A number of a row as a float; non-finite ones come back from their words, None becomes NaN."""
    return math.nan if value is None else float(value)


def with_words(value: Any) -> Any:
    """`value` with every number that JSON cannot hold as its word; `number()` turns it back."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {k: with_words(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [with_words(v) for v in value]
    return value


def cut_torn_tail(descriptor: int) -> int:
    """Truncate an open file behind its last newline; returns the bytes cut."""
    size = os.fstat(descriptor).st_size
    keep, block = size, 65536
    while keep > 0:
        start = max(0, keep - block)
        newline = os.pread(descriptor, keep - start, start).rfind(b"\n")
        if newline >= 0:
            keep = start + newline + 1
            break
        keep = start
    if keep < size:
        os.ftruncate(descriptor, keep)
    return size - keep


class LineWriter:
    """The one writer of a file. Every row is flushed to the kernel; `sync=True` also to the disk."""

    def __init__(self, path: Path, kind: str, schema: int, *, sync: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._sync = sync
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        cut_torn_tail(self._descriptor)
        if os.fstat(self._descriptor).st_size == 0:
            self.write(header(kind, schema))
            sync_directory(path.parent)

    def write(self, row: Row) -> None:
        """Append one row. Raises OSError when it could not be written whole, with the file as it was before."""
        write_whole(self._descriptor, encode(row))
        if self._sync:
            os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_whole(descriptor: int, data: bytes) -> None:
    """Append `data` or nothing: on a full disk the part that went through is cut off again and the error raised."""
    before = os.fstat(descriptor).st_size
    written = 0
    try:
        while written < len(data):
            written += os.write(descriptor, data[written:])
    except OSError:
        os.ftruncate(descriptor, before)
        raise


class LineReader:
    """A cursor over a growing file: each `read` gives the complete rows that came since the last one.

    A file that does not exist yet has no rows. One that became shorter (cut and written anew by a resumed run) is read
    again from its start, and `restarted` says so until the next read.
    """

    def __init__(self, path: Path, kind: str, schema: int) -> None:
        self.path = path
        self._kind, self._schema = kind, schema
        self._offset = 0
        self._inode: int | None = None
        self.restarted = False
        self.unreadable = 0
        """Complete lines that were not JSON objects; counted, never shown as data."""

    def read(self, limit_bytes: int | None = None) -> list[Row]:
        """New rows, at most about `limit_bytes` of them. Raises `NewerSchema`."""
        self.restarted = False
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                if self._inode not in (None, status.st_ino) or status.st_size < self._offset:
                    self._offset, self.restarted = 0, True
                self._inode = status.st_ino
                file.seek(self._offset)
                data = file.read() if limit_bytes is None else file.read(limit_bytes)
        except FileNotFoundError:
            return []
        end = data.rfind(b"\n") + 1
        if end == 0 and limit_bytes is not None and len(data) == limit_bytes:
            return self.read(limit_bytes * 4)
        at_start = self._offset == 0
        self._offset += end
        rows: list[Row] = []
        for line in data[:end].splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                self.unreadable += 1
                continue
            if not isinstance(row, dict):
                self.unreadable += 1
            elif at_start and "file" in row and "schema" in row:
                self._check(row)
            else:
                rows.append(row)
            at_start = False
        return rows

    def _check(self, row: Row) -> None:
        if row["schema"] > self._schema:
            raise NewerSchema(
                f"{self.path}: schema {row['schema']} is newer than this ftui, which reads up to {self._schema}; update ftui"
            )


def read_rows(path: Path, kind: str, schema: int) -> list[Row]:
    """All complete rows of a file, [] when it does not exist."""
    return LineReader(path, kind, schema).read()


def iterate_rows(path: Path, kind: str, schema: int) -> Iterator[Row]:
    """All complete rows of a file, a few megabytes in memory at a time."""
    reader = LineReader(path, kind, schema)
    while rows := reader.read(4 << 20):
        yield from rows
