"""Changing fields of a plan that a person wrote: comments, order and everything else stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.items import AbstractTable

from ftui.plan.load import parse_plan


def changed_text(text: str, change: Mapping[str, Any]) -> str:
    """The text of a plan with dotted fields set to new values, sections made where there are none.

    Raises `PlanError` when what results is no plan that can be used.
    """
    document = tomlkit.parse(text)
    for name, value in change.items():
        *sections, field = name.split(".")
        table: Any = document
        for section in sections:
            if not isinstance(table.get(section), AbstractTable | dict):
                table[section] = tomlkit.table()
            table = table[section]
        table[field] = value
    result = tomlkit.dumps(document)
    parse_plan(result)
    return result
