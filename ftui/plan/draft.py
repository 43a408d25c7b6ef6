"""A plan on its way: the text of `campaign.toml`, however incomplete, and changes to it that keep a person's comments and order.

A draft is its text and nothing else, so what the wizard writes, what an editor writes and what the command line reads are one
thing. Changing a field to the value it has changes no byte.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Item

from ftui.plan.load import PLAN_FILE, PlanError, Problem, dotted, parse_plan
from ftui.plan.numbers import number_text
from ftui.plan.schema import Plan

Steps = tuple[str | int, ...]
"""The way to a field: `("guardrails", 0, "metric")`."""

LONGEST_LINE = 100
"""Characters from which a list is written with one item per line."""


class Missing:
    """What a field that is not in the file has for a value; None would be one."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "missing"


MISSING = Missing()


class Draft:
    """The text of a plan. Immutable: every change gives a new draft."""

    def __init__(self, text: str, file: str = PLAN_FILE) -> None:
        self.text, self.file = text, file

    @cached_property
    def content(self) -> dict[str, Any]:
        """What the text says, {} where it is not TOML."""
        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError:
            return {}

    @cached_property
    def _parsed(self) -> tuple[Plan | None, list[Problem]]:
        try:
            return parse_plan(self.text, self.file), []
        except PlanError as error:
            return None, error.problems

    @property
    def plan(self) -> Plan | None:
        """The plan, None as long as there are problems."""
        return self._parsed[0]

    @property
    def problems(self) -> list[Problem]:
        """Everything that keeps the draft from being a plan; the same sentences as `ftui check` gives."""
        return self._parsed[1]

    @property
    def is_toml(self) -> bool:
        """Whether the text can be changed field by field at all."""
        try:
            tomlkit.parse(self.text)
        except TOMLKitError:
            return False
        return True

    def given(self, steps: Steps) -> Any:
        """The value the file gives the field, `MISSING` where it gives none."""
        place: Any = self.content
        for step in steps:
            if isinstance(step, int):
                if not isinstance(place, list) or step >= len(place):
                    return MISSING
            elif not isinstance(place, dict) or step not in place:
                return MISSING
            place = place[step]
        return place

    def items(self, name: str) -> list[dict[str, Any]]:
        """The tables of a list such as `variants`."""
        found = self.content.get(name)
        return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []

    def problems_at(self, steps: Steps) -> list[str]:
        """Messages about the field itself and what lies below it."""
        name = dotted(list(steps))
        return [p.message for p in self.problems if p.field == name or p.field.startswith((f"{name}.", f"{name}["))]

    def set(self, steps: Steps, value: Any, literal: str | None = None) -> Draft:
        """The draft with a field set, tables made where there are none. `literal` is the value as a person typed it (`2e-4`).

        Raises ValueError where the text is not TOML or where the way leads through something that is no table.
        """
        before = self.given(steps)
        if before is not MISSING and before == value and type(before) is type(value):
            return self
        document = self._document()
        table: Any = document
        for step in steps[:-1]:
            table = self._below(table, step)
        table[steps[-1]] = _item(value, literal)
        return self._changed(document)

    def remove(self, steps: Steps) -> Draft:
        """The draft without a field, which then has its default."""
        if self.given(steps) is MISSING:
            return self
        document = self._document()
        table: Any = document
        for step in steps[:-1]:
            table = table[step]
        del table[steps[-1]]
        return self._changed(document)

    def add(self, name: str, item: Mapping[str, Any], at: int | None = None) -> Draft:
        """The draft with one more table in the list `name`, the last one or the one `at` a place."""
        items = [*self.items(name)]
        at = len(items) if at is None else at
        if at >= len(items):
            table = tomlkit.table()
            for key, value in item.items():
                table[key] = _item(value)
            document = self._document()
            if isinstance(existing := document.get(name), AoT):
                existing.append(table)
            else:
                made = tomlkit.aot()
                made.append(table)
                document[name] = made
            return self._changed(document)
        return self._reordered(name, [*range(at), -1, *range(at, len(items))], item)

    def drop(self, name: str, at: int) -> Draft:
        """The draft without one table of the list `name`."""
        document = self._document()
        if len(self.items(name)) == 1:
            del document[name]
        else:
            del document[name][at]
        return self._changed(document)

    def move(self, name: str, at: int, to: int) -> Draft:
        """The draft with a table of the list `name` at another place; its comments go with it."""
        order = list(range(len(self.items(name))))
        order.insert(to, order.pop(at))
        return self if order == sorted(order) else self._reordered(name, order)

    def _reordered(self, name: str, order: Sequence[int], new: Mapping[str, Any] | None = None) -> Draft:
        document = self._document()
        tables: Any = document[name]
        made = tomlkit.aot()
        for index in order:
            if index >= 0:
                made.append(tables[index])
                continue
            table = tomlkit.table()
            for key, value in (new or {}).items():
                table[key] = _item(value)
            made.append(table)
        document[name] = made
        return self._changed(document)

    def _document(self) -> tomlkit.TOMLDocument:
        try:
            return tomlkit.parse(self.text)
        except TOMLKitError as error:
            raise ValueError(f"{self.file} is not valid TOML: {error}; correct it in an editor first") from None

    def _below(self, table: Any, step: str | int) -> Any:
        if isinstance(step, int):
            return table[step]
        if step not in table:
            table[step] = tomlkit.table()
        below = table[step]
        if not isinstance(below, Mapping | list):
            raise ValueError(f"{self.file}: {step} is no table; correct it in an editor first")
        return below

    def _changed(self, document: tomlkit.TOMLDocument) -> Draft:
        text = tomlkit.dumps(document)
        content = tomllib.loads(text)  # what we write can be read: a fault here must not reach the file
        tidy = _tidied(text, self.text)
        return Draft(tidy if tomllib.loads(tidy) == content else text, self.file)


_CROWDED, _LOOSE = re.compile(r"(?<=[^\n])\n(?=\[)"), re.compile(r"\n{3,}")
"""A table's head right below another line; more than one empty line."""


def _tidied(text: str, before: str) -> str:
    """`text` with one empty line between tables, unless its writer already had them otherwise."""
    if not _LOOSE.search(before):
        text = _LOOSE.sub("\n\n", text)
    if not _CROWDED.search(before):
        text = _CROWDED.sub("\n\n", text)
    return text.rstrip("\n") + "\n"


def _item(value: Any, literal: str | None = None) -> Item:
    """A value as TOML. Long lists are written with one item per line, small tables in one."""
    if literal is not None:
        return tomlkit.value(literal)
    if isinstance(value, Mapping):
        parts = ", ".join(f"{tomlkit.key(key).as_string()} = {_item(part).as_string()}" for key, part in value.items())
        return tomlkit.value(f"{{ {parts} }}")
    if isinstance(value, list):
        array = tomlkit.array()
        for part in value:
            array.append(_item(part))
        return array.multiline(len(str(value)) > LONGEST_LINE)
    if isinstance(value, float):
        return tomlkit.value(number_text(value))
    item: Item = tomlkit.item(value)
    return item
