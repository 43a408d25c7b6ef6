"""Records to rows: what a task reads of each record, who it is and which unit it belongs to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ftui.data.findings import Finding, error, nearest
from ftui.data.tables import Foreign
from ftui.plan.schema import Columns
from ftui.record.text import safe

Message = dict[str, str]
"""`role` and `content`."""


@dataclass(frozen=True, slots=True)
class Row:
    """One example as a file gives it; texts become the cleaned texts once the rules were applied."""

    id: str
    """From the id column, else `file:line`."""
    text: str
    """What equal rows have in common: the text; of a chat, all before its last answer; of a picture, the hash of its file."""
    label: str
    """The category. Where the task has none of its own, "all"."""
    unit: str | None
    """Value that must not cross splits, None where the plan names no unit."""
    file: str
    line: int
    raw: str
    """The text before cleaning."""
    messages: tuple[Message, ...] = ()
    """The chat, the answer included; empty for classification."""
    path: str = ""
    """The picture's file, relative to the campaign; empty for text."""
    time: float | None = None
    """When it is from: seconds since 1970 or the number the file gives; None where the plan names no time."""
    label_as: str = "a text"
    """How the file has the category, "a number" for instance; known while files are read, and not stored."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def answer(self) -> str:
        """The last thing the assistant says, "" for classification."""
        return next((m["content"] for m in reversed(self.messages) if m["role"] == "assistant"), "")

    @property
    def wanted(self) -> str:
        """What the model is to find: the answer, or the category."""
        return self.answer or self.label


def class_row(
    name: str, line: int, record: dict[str, Any], columns: Columns, unit: str | None
) -> Iterator[Row | Finding]:
    """The row of a text classification in one record of the file called `name`, or what is wrong with it."""
    place = f"{name}:{line}"
    text = text_of(record, columns.text, place)
    label = name_of(record, columns.label, place, "label")
    identity, group = identity_of(name, line, record, columns, unit)
    problems = [value for value in (text, label, identity, group) if isinstance(value, Finding)]
    if problems:
        yield from problems
        return
    assert isinstance(text, str) and isinstance(label, str) and isinstance(identity, str)
    unit_value = group if isinstance(group, str) else None
    yield Row(identity, text, label, unit_value, name, line, text, label_as=kind_of(record[columns.label]))


def identity_of(
    name: str, line: int, record: dict[str, Any], columns: Columns, unit: str | None
) -> tuple[str | Finding, str | Finding | None]:
    """Id and unit of a record, or what is wrong with them."""
    place = f"{name}:{line}"
    identity = place if columns.id is None else name_of(record, columns.id, place, "id")
    return identity, None if unit is None else name_of(record, unit, place, "unit")


def text_of(record: dict[str, Any], column: str, place: str) -> str | Finding:
    if column not in record:
        return missing(record, column, place)
    value = record[column]
    if value is None:
        return error(place, column, "the text is null; fill it, or remove the row", "null text")
    if not isinstance(value, str):
        return error(place, column, f"the text is {shown(value)}, not a text in quotes", "text of another type")
    return _utf8(value, column, place)


def name_of(record: dict[str, Any], column: str, place: str, what: str) -> str | Finding:
    """A label, id or unit: a text, a whole number or true/false. Spaces around it would make two names of one."""
    if column not in record:
        return missing(record, column, place)
    value = record[column]
    if isinstance(value, bool | int):
        return json.dumps(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        state = "null" if value is None else "empty"
        return error(place, column, f"the {what} is {state}; fill it, or remove the row", f"{state} {what}")
    if not isinstance(value, str):
        message = f"the {what} is {shown(value)}; it must be a text or a whole number"
        return error(place, column, message, f"{what} of another type")
    if "\0" in value:
        return error(place, column, f"the {what} holds a NUL character; remove it", f"NUL in {what}")
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


def missing(record: dict[str, Any], column: str, place: str) -> Finding:
    return error(place, column, f"the column is missing; {nearest(column, record)}", "missing column")


KINDS = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}


def kind_of(value: object) -> str:
    """What sort of value it is, in words."""
    return "null" if value is None else KINDS.get(type(value), "a value of another kind")


def shown(value: object) -> str:
    """A value in a sentence: its kind and its beginning."""
    if isinstance(value, Foreign):
        return value.what
    return f"{kind_of(value)} ({safe(json.dumps(value, ensure_ascii=False), 40)})"
