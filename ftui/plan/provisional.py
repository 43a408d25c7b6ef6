"""A half-written plan made whole: what is missing or unusable gets a stand-in, so that the rest can be tried while it is written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ftui.plan.load import across_sections
from ftui.plan.places import Places
from ftui.plan.schema import (
    ALL_LINEAR,
    LOWER_IS_BETTER,
    SCHEMA,
    WHOLE_METRICS,
    Data,
    Evaluation,
    Guardrail,
    Hypothesis,
    Machine,
    Method,
    Model,
    Plan,
    Rental,
    Section,
    Training,
    Variant,
)

Table = dict[str, Any]
Steps = tuple[int | str, ...]

NOBODYS_COMMIT = "0" * 40
"""Stands in for a commit that is not named yet; no repository has it."""

HOURS = {"preflight": 2.0, "experiment": 48.0, "evaluation": 6.0, "resume": 6.0, "export": 2.0, "margin": 8.0}
"""Stand-ins for the hours of a rental of three days."""

_STAND_INS: dict[str, Table] = {
    "hypothesis": {"statement": "Not written yet.", "min_improvement": 0.01},
    "data": {"train": ["data/train.jsonl"]},
    "model": {"base": "./model"},
    "method": {"kind": "lora", "targets": [ALL_LINEAR]},
    "training": {"micro_batch": 1, "amount": 100, "learning_rate": 1e-4},
    "evaluation": {"seeds": [17], "control_inputs": ["Not written yet."]},
    "machine": {},
    "rental": {"days": 3.0, "hours": HOURS},
}
"""What stands in for a field without a default. An empty field of another kind takes its default."""

_MODELS: dict[str, type[Section]] = {
    "hypothesis": Hypothesis,
    "data": Data,
    "model": Model,
    "method": Method,
    "training": Training,
    "evaluation": Evaluation,
    "machine": Machine,
    "rental": Rental,
}

_LISTS: dict[str, type[Section]] = {"guardrails": Guardrail, "variants": Variant}

_ROUNDS = 200
"""Repairs of one section before all of it is given up. Each repair takes away something that was written."""


@dataclass(frozen=True)
class Provisional:
    """A valid plan, and what of it nobody wrote."""

    plan: Plan
    filled: tuple[str, ...]
    """Dotted names of fields that are missing and required, or unusable as written: their values in `plan` are stand-ins or
    defaults. `guardrails[1]` and `variants[0]` name tables that were left out. Sorted."""

    def stands_in(self, name: str) -> bool:
        """Whether the field `name`, one around it or one in it is a stand-in."""
        return any(f == name or f.startswith((f"{name}.", f"{name}[")) or name.startswith(f"{f}.") for f in self.filled)


def provisional_plan(content: Table) -> Provisional:
    """The plan that parsed TOML of a draft amounts to. Keys that no plan has are passed over. Never raises."""
    filled: set[str] = set()
    parts: Table = {"schema": SCHEMA}
    schema = content.get("schema", SCHEMA)
    if not isinstance(schema, int) or isinstance(schema, bool) or not 1 <= schema <= SCHEMA:
        filled.add("schema")
    for name, model in _MODELS.items():
        parts[name] = _usable(name, model, content.get(name), filled)
    places: dict[str, list[int]] = {}
    for name, model in _LISTS.items():
        parts[name], places[name] = _usable_tables(name, model, content.get(name, []), filled)
    return _fitting(parts, places, filled)


def _usable(name: str, model: type[Section], given: object, filled: set[str]) -> Table:
    """The table `name` as far as it can be used, completed."""
    if given is not None and not isinstance(given, dict):
        filled.add(name)
    own: Table = _copied(given) if isinstance(given, dict) else {}
    for _ in range(_ROUNDS):
        try:
            model.model_validate(own)
        except ValidationError as error:
            places = [(detail["type"], detail["loc"]) for detail in error.errors(include_url=False)]
        except (ArithmeticError, ValueError, RecursionError):  # a number that no arithmetic of the section can hold
            places = [("value_error", ())]
        else:
            return own
        # The last elements of a list first: those before keep their places.
        repaired = [_repair(name, own, kind, steps, filled) for kind, steps in sorted(places, key=_order, reverse=True)]
        if not any(repaired):
            break
    filled |= {f"{name}.{field}" for field in own} | {f"{name}.{field}" for field in _STAND_INS[name]}
    whole: Table = _copied(_STAND_INS[name])
    return whole


def _order(place: tuple[str, Steps]) -> list[tuple[bool, int, str]]:
    return [(isinstance(s, int), s if isinstance(s, int) else 0, str(s)) for s in place[1]]


def _repair(name: str, own: Table, kind: str, steps: Steps, filled: set[str]) -> bool:
    """Take away or replace what is wrong at `steps` of the table `own`; whether anything changed."""
    if not steps:
        return _FIXES.get(name, _unfixable)(own, filled)
    table: Any = own
    field = ""
    for step in steps:
        if isinstance(table, list) and isinstance(step, int) and step < len(table):
            # One unusable element of a list of names: the others stay.
            del table[step]
            filled.add(f"{name}.{field}")
            if not table:
                _put(name, own, field, filled)
            return True
        if not isinstance(table, dict) or not isinstance(step, str):
            break
        field = f"{field}.{step}" if field else step
        if step not in table:
            break
        if not isinstance(table[step], dict | list):
            break
        table = table[step]
    if kind == "extra_forbidden":
        parent, last = _parent(own, field)
        return parent is not None and parent.pop(last, None) is not None
    return _put(name, own, field, filled)


def _put(name: str, own: Table, field: str, filled: set[str]) -> bool:
    """Put the stand-in of `field` there, or take its value away where it has a default."""
    filled.add(f"{name}.{field}")
    parent, last = _parent(own, field)
    if parent is None:
        return False
    stand_in, _ = _parent(_STAND_INS[name], field)
    if stand_in is not None and last in stand_in:
        value = _copied(stand_in[last])
        if name == "rental":
            value = _of_the_rental(own, field, value)
        changed = parent.get(last) != value or last not in parent
        parent[last] = value
        return changed
    return last in parent and (parent.pop(last), True)[1]


def _parent(table: Table, field: str) -> tuple[Table | None, str]:
    *around, last = field.split(".")
    inner: Any = table
    for step in around:
        inner = inner.get(step) if isinstance(inner, dict) else None
    return (inner if isinstance(inner, dict) else None), last


def _of_the_rental(own: Table, field: str, value: Any) -> Any:
    """A stand-in for days or hours that fits what was written of the other."""
    hours = own.get("hours")
    given = _numbers(hours) if isinstance(hours, dict) else []
    days = own.get("days")
    if field == "days":
        return max(value, math.ceil(sum(given) / 24)) if math.isfinite(sum(given)) else value
    if not (isinstance(days, int | float) and not isinstance(days, bool) and 0 < days < 1e6):
        return value
    if field == "hours":
        return _hours(days)
    left = days * 24 - sum(given)
    return min(value, left / (len(HOURS) - len(given) + 1)) if left > 0 else value


def _hours(days: float) -> Table:
    """Hours of each phase for a rental of that length."""
    share = 1.0 if days >= 3 else days / 3 * 0.999  # a little less, so that no rounding makes them add up to more
    return {phase: length * share for phase, length in HOURS.items()}


def _numbers(table: Table) -> list[float]:
    found = (table.get(phase) for phase in HOURS)
    return [float(x) for x in found if isinstance(x, int | float) and not isinstance(x, bool) and 0 <= x < 1e9]


def _unfixable(_own: Table, _filled: set[str]) -> bool:
    return False


def _drop(name: str, own: Table, filled: set[str], *fields: str) -> bool:
    """Leave fields out, so that they take their defaults; whether one was there."""
    there = [field for field in fields if own.pop(field, None) is not None]
    filled |= {f"{name}.{field}" for field in there}
    return bool(there)


def _fix_hypothesis(own: Table, filled: set[str]) -> bool:
    # The schema looks at the section as a whole only where every field is of its kind.
    allowed = WHOLE_METRICS[own.get("task", "text-classification")]
    metric = own.get("metric", "macro_f1")
    if metric not in allowed:
        own["metric"] = metric = allowed[0]
        filled.add("hypothesis.metric")
    if metric in LOWER_IS_BETTER and own.get("direction") != "lower":
        own["direction"] = "lower"
        filled.add("hypothesis.direction")
    return True


def _fix_data(own: Table, filled: set[str]) -> bool:
    if (own.get("validation") is None) != (own.get("test") is None):
        own.pop("validation", None)
        own.pop("test", None)
        filled |= {"data.validation", "data.test"}
        return True
    split = own.get("split")
    by = split.get("by") if isinstance(split, dict) else None
    if isinstance(split, dict) and (
        (by == "time" and own.get("time") is None) or (by == "stratified" and own.get("unit") is not None)
    ):
        del split["by"]
        filled.add("data.split.by")
        return True
    if own.get("hub") is None:
        return _drop("data", own, filled, "revision")
    if own.get("revision") is None:
        own["revision"] = NOBODYS_COMMIT
        filled.add("data.revision")
        return True
    # What is left is a path that leads out of the data set: it is one of this machine, or none.
    return _drop("data", own, filled, "hub", "revision")


def _fix_method(own: Table, filled: set[str]) -> bool:
    if own.get("kind", "lora") == "full":
        return False
    if _drop("method", own, filled, "frozen"):
        return True
    own["targets"] = [ALL_LINEAR]
    filled.add("method.targets")
    return True


def _fix_machine(own: Table, filled: set[str]) -> bool:
    own["strategy"] = "single" if int(own.get("processes", 1)) == 1 else "ddp"
    filled.add("machine.strategy")
    return True


def _fix_rental(own: Table, filled: set[str]) -> bool:
    # Which of the two is wrong nobody knows; a rental without an end has `days`.
    if own.get("starts_at") is not None and _drop("rental", own, filled, "ends_at"):
        return True
    days = float(own["days"])
    if not 0 < days < 1e6:
        own["days"] = _STAND_INS["rental"]["days"]
        filled.add("rental.days")
        return True
    own["hours"] = _hours(days)
    filled.add("rental.hours")
    return True


_FIXES: dict[str, Callable[[Table, set[str]], bool]] = {
    "hypothesis": _fix_hypothesis,
    "data": _fix_data,
    "method": _fix_method,
    "machine": _fix_machine,
    "rental": _fix_rental,
}
"""What is done where every field is of its kind and they do not go together; whether anything changed."""


def _usable_tables(name: str, model: type[Section], given: object, filled: set[str]) -> tuple[list[Table], list[int]]:
    """The usable tables of a list, and the place of each in what was written."""
    if not isinstance(given, list):
        filled.add(name)
        return [], []
    kept, places = [], []
    for index, table in enumerate(given):
        own = (
            {key: _copied(value) for key, value in table.items() if key in model.model_fields}
            if isinstance(table, dict)
            else {}
        )
        try:
            model.model_validate(own)
        except (ValidationError, RecursionError):
            filled.add(f"{name}[{index}]")
        else:
            kept.append(own)
            places.append(index)
    return kept, places


def _fitting(parts: Table, places: dict[str, list[int]], filled: set[str]) -> Provisional:
    """The plan of valid sections, without what does not fit between them."""
    for _ in range(_ROUNDS):
        plan = Plan.model_validate(parts)
        try:
            problems = across_sections(plan, Places(""), "")
        except (ArithmeticError, ValueError, TypeError, AttributeError, RecursionError):
            # A variant's change may hold anything; without variants, the sections are valid and so is the plan.
            filled |= {f"variants[{place}]" for place in places["variants"]}
            parts["variants"], places["variants"] = [], []
            continue
        if not problems:
            break
        unfit = {_table_of(problem.field) for problem in problems}
        for name, index in sorted(unfit, reverse=True):
            if index < 0:
                _fit(parts, name, filled)
            else:
                del parts[name][index]
                filled.add(f"{name}[{places[name].pop(index)}]")
    return Provisional(plan, tuple(sorted(filled)))


def _table_of(field: str) -> tuple[str, int]:
    """The list and the place in it that a field stands in; the field itself and -1 where it stands in none."""
    found = re.match(r"(guardrails|variants)\[(\d+)\]", field)
    return (found[1], int(found[2])) if found else (field, -1)


def _fit(parts: Table, field: str, filled: set[str]) -> None:
    """Repair one field that does not go with another section."""
    filled.add(field)
    section, _, inner = field.partition(".")
    own: Table = parts[section]
    task = parts["hypothesis"].get("task", "text-classification")
    match field:
        case "model.revision":
            own["revision"] = NOBODYS_COMMIT
        case "evaluation.format" if task == "extraction":
            own["format"] = "answer.schema.json"
        case "evaluation.generation" if task in ("generation", "extraction"):
            own["generation"] = {"max_new_tokens": 64}
        case "data.split":
            own["split"].pop("by", None)
        case "training.warmup":
            own["warmup"] = 0
        case "training.validate_every" | "training.checkpoint_every":
            own[inner] = own["amount"]
        case _:
            own.pop(inner, None)


def _copied(value: Any) -> Any:
    """A copy that shares no table or list; keys that are no names are left out."""
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items() if isinstance(key, str)}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value
