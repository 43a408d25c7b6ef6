"""The files of a data version: `data/<hash>/` is complete or absent, and never changes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ftui.data.duplicates import Dropped
from ftui.data.reading import LeftOut
from ftui.data.rows import Row
from ftui.data.tables import Foreign
from ftui.record.files import read_json, sha256_file, sync_directory, sync_tree
from ftui.record.lines import iterate_rows, with_words

ROWS, ROWS_SCHEMA = "rows", 1
DROPPED, DROPPED_SCHEMA = "dropped", 1
MANIFEST_SCHEMA = 1
_LINE_END = ord("\n")

FORM_FILE = "form.json"
"""The JSON schema of an answer, for extraction."""


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` when the block ends: complete, on the disk, in one step.

    When another process was faster, its folder stays: both hold the same content.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f".{target.name}.*.tmp"):
        if not _is_running(int(left.name.split(".")[-2])):
            shutil.rmtree(left, ignore_errors=True)
    aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    aside.mkdir()
    try:
        yield aside
        sync_tree(aside)
        try:
            aside.rename(target)
        except OSError:
            if not target.is_dir():
                raise
        sync_directory(target.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def remove_folder(target: Path) -> None:
    """Remove a folder so that no reader ever meets half of it: renamed aside first, like one left by a killed writer."""
    away = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    target.rename(away)
    shutil.rmtree(away)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid != os.getpid()


def write_rows(path: Path, rows: list[Row]) -> None:
    """Cleaned rows of one split, one JSON line each."""
    _write_lines(path, ROWS, ROWS_SCHEMA, (_row_content(row) for row in rows))


def read_split(path: Path) -> Iterator[Row]:
    """Rows as `write_rows` wrote them; `raw` is the cleaned text here."""
    for row in iterate_rows(path, ROWS, ROWS_SCHEMA):
        yield _row(row)


def _row(row: dict[str, Any]) -> Row:
    return Row(
        row["id"], row["text"], row["label"], row["unit"], row["file"], row["line"], row["text"],
        tuple(row.get("messages", ())), row.get("path", ""),
    )  # fmt: skip


class StoredRows:
    """Rows of one split by their position, without reading the others. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._data = np.memmap(path, np.uint8, "r")
        # The first line is the file's header; every line ends with a line end.
        self._ends = np.flatnonzero(self._data == _LINE_END)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def row(self, index: int) -> Row:
        """Row `index`, from 0. Raises IndexError."""
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} rows, none has the index {index}")
        return _row(json.loads(self._data[self._ends[index] + 1 : self._ends[index + 1]].tobytes()))

    def __iter__(self) -> Iterator[Row]:
        return (self.row(index) for index in range(len(self)))


def write_dropped(path: Path, dropped: Iterable[Dropped | LeftOut]) -> None:
    """Every row that was left out, one line each: `file`, `line`, `reason`, and what is known of it.

    A repeated row has its content, and `equals` and `at` of the row that stays; one that cannot be used has the `field`
    and `reason` of its first problem, those of the others in `also`, and its `record` as the file says it.
    """
    lines = (_bad_content(d) if isinstance(d, LeftOut) else _repeated_content(d) for d in dropped)
    _write_lines(path, DROPPED, DROPPED_SCHEMA, lines)


def describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and hash of each file in `folder`."""
    return {
        p.name: {"bytes": p.stat().st_size, "sha256": sha256_file(p)} for p in sorted(folder.iterdir()) if p.is_file()
    }


def is_intact(manifest: Path) -> bool:
    """Whether a version's files are those its manifest describes."""
    try:
        content = read_json(manifest)
        return content["schema"] == MANIFEST_SCHEMA and all(
            sha256_file(manifest.parent / name) == described["sha256"] for name, described in content["written"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _repeated_content(dropped: Dropped) -> dict[str, Any]:
    stays = dropped.equals
    return {**_row_content(dropped.row), "reason": dropped.reason, "equals": stays.id, "at": stays.place}


def _bad_content(left: LeftOut) -> dict[str, Any]:
    first, *others = [{"field": problem.field, "reason": problem.message} for problem in left.problems]
    content: dict[str, Any] = {"file": left.file, "line": left.line, **first}
    if others:
        content["also"] = others
    try:
        record = with_words(left.record)
        json.dumps(record, default=_foreign)
    except RecursionError:
        return content  # the reason says that it is nested too deeply
    return {**content, "record": record}


def _foreign(value: object) -> str:
    """A value of a Parquet file that JSON has no form for, in words."""
    return value.what if isinstance(value, Foreign) else str(value)


def _row_content(row: Row) -> dict[str, Any]:
    content: dict[str, Any] = {"id": row.id, "text": row.text, "label": row.label, "unit": row.unit}
    content |= {"file": row.file, "line": row.line}
    own = {"messages": list(row.messages), "path": row.path}
    return content | {name: value for name, value in own.items() if value}


def _write_lines(path: Path, kind: str, schema: int, rows: Iterator[dict[str, Any]]) -> None:
    # Not `LineWriter`: it hands each row to the kernel at once, which a file written aside does not need.
    # Half a surrogate pair, which only a row that was left out can hold, is written as JSON's own escape.
    with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
        for row in ({"file": kind, "schema": schema}, *rows):
            file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_foreign) + "\n")
