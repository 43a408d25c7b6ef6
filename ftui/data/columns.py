"""The columns of data files as far as their first records show them, and which of them a task would read."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size

from ftui.data.findings import Finding
from ftui.data.pictures import PICTURES
from ftui.data.records import read_records
from ftui.plan.schema import TASK_COLUMNS
from ftui.record.text import safe

FIRST = 5_000
"""Records that are looked at."""

DISTINCT = 1_000
"""Different values that are counted; a column with more tells examples apart, not categories."""

FEW = 200
"""Most values of a column that looks like categories."""

CELLS = 60
"""Width of an example."""

USUAL: dict[str, tuple[str, ...]] = {
    "text": ("text", "sentence", "utterance", "content", "review", "message", "body", "question", "query", "input"),
    "label": ("label", "labels", "category", "class", "intent", "sentiment", "topic", "target", "y"),
    "prompt": ("prompt", "question", "instruction", "query", "input", "source"),
    "answer": ("answer", "response", "completion", "output", "reply", "target"),
    "messages": ("messages", "conversation", "conversations", "chat", "dialogue", "dialog"),
    "category": ("category", "topic", "domain", "type", "kind"),
    "fields": ("fields", "entities", "slots", "extraction", "answer", "output", "target"),
    "image": ("image", "picture", "image_path", "path", "file", "file_name", "filename"),
    "id": ("id", "uid", "guid", "uuid", "row_id", "example_id", "index"),
}
"""Names that columns usually have, the likeliest first."""

_NAMES = ("text", "number", "yes/no")
"""Kinds whose values can name a category."""

_FITS: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "label": _NAMES,
    "prompt": ("text",),
    "answer": ("text",),
    "messages": ("list",),
    "category": _NAMES,
    "fields": ("object",),
    "image": ("text",),
    "id": ("text", "number"),
}
"""Kinds of columns that each field of `data.columns` can be read from."""

_KINDS = {str: "text", bool: "yes/no", int: "number", float: "number", list: "list", dict: "object"}

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


@dataclass
class Column:
    """One column, over the records that were looked at."""

    name: str
    filled: int = 0
    kinds: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    """Different values, up to one more than `DISTINCT`."""
    characters: int = 0
    example: str = ""
    chats: bool = True
    """Whether every value is a list of messages with role and content."""
    pictures: bool = True
    """Whether every value ends like a picture's file."""
    inside: dict[str, set[str]] = field(default_factory=dict)
    """Of objects: their fields, with the types of their values in JSON schema's words."""

    def add(self, value: Any, *, show: bool) -> None:
        """Count one value; only with `show` may it become the example."""
        if value is None or value == "":
            return
        self.filled += 1
        self.kinds.add(_KINDS.get(type(value), "mixed"))
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        self.characters += len(text)
        if len(self.values) <= DISTINCT:
            self.values.add(text)
        self.chats = self.chats and _is_chat(value)
        self.pictures = self.pictures and isinstance(value, str) and value.lower().endswith(PICTURES)
        for name, part in value.items() if isinstance(value, dict) else ():
            self.inside.setdefault(name, set()).add(_TYPES.get(type(part), "null"))
        if show and not self.example:
            self.example = _cell_safe(text)

    @property
    def kind(self) -> str:
        return "empty" if not self.kinds else min(self.kinds) if len(self.kinds) == 1 else "mixed"

    @property
    def distinct(self) -> int | None:
        return len(self.values) if len(self.values) <= DISTINCT else None

    @property
    def mean_characters(self) -> float | None:
        return self.characters / self.filled if self.kind == "text" else None

    @property
    def schema(self) -> dict[str, Any] | None:
        """A JSON schema that every object of the column satisfies; any field may be null. None where there is no field."""
        if self.kind != "object" or not self.inside:
            return None
        properties = {name: {"type": [*sorted(types - {"null"}), "null"]} for name, types in self.inside.items()}
        return {"type": "object", "properties": properties, "required": list(properties)}

    def row(self, records: int) -> dict[str, Any]:
        """The column as plain values; `records` were looked at."""
        mean = self.mean_characters
        return {
            "name": safe(self.name, 200),
            "kind": self.kind,
            "filled": self.filled / records if records else 0.0,
            "distinct": self.distinct,
            "mean_characters": None if mean is None else round(mean, 1),
            "example": self.example,
        }


@dataclass(frozen=True)
class Seen:
    """The columns of some files, in the order of first sight."""

    records: int
    columns: dict[str, Column]

    def rows(self) -> list[dict[str, Any]]:
        return [column.row(self.records) for column in self.columns.values()]


def look_at(files: Iterable[tuple[Path, str]], shows: Callable[[str, int], bool]) -> Seen:
    """The columns in the first records of files, given by path and name. Broken records are passed over.

    `shows(name, line)` says whether a record's values may be shown: those of the test must not be.
    """
    columns: dict[str, Column] = {}
    records = 0
    for path, name in files:
        if path.is_dir() or records >= FIRST:
            continue
        readable = (item for item in read_records(path, name) if not isinstance(item, Finding))
        for line, record in islice(readable, FIRST - records):
            records += 1
            show = shows(name, line)
            for key, value in record.items():
                columns.setdefault(key, Column(key)).add(value, show=show)
    return Seen(records, columns)


def suggested_columns(task: str, seen: Seen) -> dict[str, str]:
    """The column that each field of `data.columns` would be read from, for the fields that `task` reads.

    First by their usual names; then what is needed and not found yet: the label is the column with the fewest values that
    repeat, a text (prompt, picture) the column with the longest of the rest, an answer the longest behind it, fields and
    messages the first of their kind. One column serves one field; a chat takes the place of prompt and answer.
    """
    found: dict[str, str] = {}
    wanted = [name for name in TASK_COLUMNS[task] if name not in ("prompt", "answer") or not _chats(seen)]
    # A chat's column is needed only where there is one, a category and an id never.
    for name in sorted(wanted, key=lambda name: name not in ("messages", "fields", "label")):
        if (column := _usual(name, seen, found.values())) is not None:
            found[name] = column
    for name in ("messages", "fields", "label", "image", "text", "prompt", "answer"):
        if name in wanted and name not in found and (column := _likely(name, seen, found.values())) is not None:
            found[name] = column
    return {name: found[name] for name in TASK_COLUMNS[task] if name in found}


def suggested_task(seen: Seen) -> str | None:
    """The task that the columns look like, None where they look like none."""
    kinds = {column.kind for column in seen.columns.values()}
    if _chats(seen):
        return "generation"
    if "object" in kinds and "text" in kinds:
        return "extraction"
    if any(column.kind == "text" and column.pictures for column in seen.columns.values()):
        return "image-classification"
    if {"prompt", "answer"} <= {name for name in ("prompt", "answer") if _usual(name, seen, ()) is not None}:
        label = _usual("label", seen, ())
        if label is None or label == _usual("answer", seen, ()):
            return "generation"
    columns = suggested_columns("text-classification", seen)
    return "text-classification" if {"text", "label"} <= set(columns) else None


def _chats(seen: Seen) -> list[str]:
    return [column.name for column in seen.columns.values() if column.kind == "list" and column.chats]


def _fits(name: str, column: Column) -> bool:
    if column.kind not in _FITS[name]:
        return False
    match name:
        case "messages":
            return column.chats
        case "label" | "category":
            return _looks_like_categories(column)
        case "image":
            return column.pictures
    return True


def _looks_like_categories(column: Column) -> bool:
    """Few values, each of several rows on average: at least two, for one category tells nothing apart."""
    distinct = column.distinct
    return distinct is not None and 2 <= distinct <= min(FEW, max(2, column.filled // 2))


def _usual(name: str, seen: Seen, taken: Collection[str]) -> str | None:
    by_name = {column.name.casefold(): column for column in seen.columns.values() if column.name not in taken}
    for usual in USUAL[name]:
        if usual in by_name and _fits(name, by_name[usual]):
            return by_name[usual].name
    return None


def _likely(name: str, seen: Seen, taken: Collection[str]) -> str | None:
    fitting = [column for column in seen.columns.values() if column.name not in taken and _fits(name, column)]
    if not fitting:
        return None
    if name == "label":
        # A text names categories; of numbers, many a column has few.
        return min(fitting, key=lambda column: (column.kind != "text", len(column.values))).name
    if name in ("text", "prompt", "answer"):
        return max(fitting, key=lambda column: column.mean_characters or 0.0).name
    return fitting[0].name


def _is_chat(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(m, dict) and {"role", "content"} <= m.keys() for m in value)


def _cell_safe(text: str) -> str:
    line = safe(text, 4 * CELLS)
    return line if cell_len(line) <= CELLS else set_cell_size(line, CELLS - 1).rstrip() + "…"
