"""Records to rows: the text, its label, who it is and which unit it belongs to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftui.data.findings import Finding, error, nearest
from ftui.data.records import read_records
from ftui.plan.schema import Columns
from ftui.record.text import safe


@dataclass(frozen=True, slots=True)
class Row:
    """One example as a file gives it; `text` becomes the cleaned text once the rules were applied."""

    id: str
    """From the id column, else `file:line`."""
    text: str
    label: str
    unit: str | None
    """Value that must not cross splits, None where the plan names no unit."""
    file: str
    line: int
    raw: str
    """The text before cleaning."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def read_rows(path: Path, name: str, columns: Columns, unit: str | None) -> Iterator[Row | Finding]:
    """Rows of one file, called `name`, in its order. A record that is no usable row gives its findings instead."""
    for item in read_records(path, name):
        if isinstance(item, Finding):
            yield item
        else:
            yield from _row(name, *item, columns, unit)


def _row(name: str, line: int, record: dict[str, Any], columns: Columns, unit: str | None) -> Iterator[Row | Finding]:
    place = f"{name}:{line}"
    text = _text(record, columns.text, place)
    label = _name(record, columns.label, place, "label")
    identity = f"{name}:{line}" if columns.id is None else _name(record, columns.id, place, "id")
    group = None if unit is None else _name(record, unit, place, "unit")
    problems = [value for value in (text, label, identity, group) if isinstance(value, Finding)]
    if problems:
        yield from problems
        return
    assert isinstance(text, str) and isinstance(label, str) and isinstance(identity, str)
    yield Row(identity, text, label, group if isinstance(group, str) else None, name, line, text)


def _text(record: dict[str, Any], column: str, place: str) -> str | Finding:
    if column not in record:
        return _missing(record, column, place)
    value = record[column]
    if value is None:
        return error(place, column, "the text is null; fill it, or remove the row", "null text")
    if not isinstance(value, str):
        return error(place, column, f"the text is {_shown(value)}, not a text in quotes", "text of another type")
    return _utf8(value, column, place)


def _name(record: dict[str, Any], column: str, place: str, what: str) -> str | Finding:
    """A label, id or unit: a text, a whole number or true/false. Spaces around it would make two names of one."""
    if column not in record:
        return _missing(record, column, place)
    value = record[column]
    if isinstance(value, bool | int):
        return json.dumps(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        state = "null" if value is None else "empty"
        return error(place, column, f"the {what} is {state}; fill it, or remove the row", f"{state} {what}")
    if not isinstance(value, str):
        message = f"the {what} is {_shown(value)}; it must be a text or a whole number"
        return error(place, column, message, f"{what} of another type")
    if value != value.strip():
        return error(place, column, f"the {what} {value!r} has spaces around it; remove them", f"spaces around {what}")
    return _utf8(value, column, place)


def _utf8(value: str, column: str, place: str) -> str | Finding:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return error(
            place, column, "holds half of a surrogate pair (\\ud800 … \\udfff), which is no text", "half character"
        )
    return value


def _missing(record: dict[str, Any], column: str, place: str) -> Finding:
    return error(place, column, f"the column is missing; {nearest(column, record)}", "missing column")


def _shown(value: object) -> str:
    kind = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}[type(value)]
    return f"{kind} ({safe(json.dumps(value, ensure_ascii=False), 40)})"
