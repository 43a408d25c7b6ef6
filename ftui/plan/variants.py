"""What a variant changes relative to the control, and the plan that results (V1)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ftui.plan.numbers import number_text
from ftui.plan.schema import Plan, Variant

CONTROL = "control"
BASE = "base"

CHANGEABLE = ("method", "training")
"""Sections a variant may change. Data, evaluation, seeds and budget are the same for all variants (V2)."""


@dataclass(frozen=True)
class Change:
    """One field that a variant sets differently from the control."""

    field: str
    control: Any
    variant: Any

    def __str__(self) -> str:
        return f"{self.field}: {_shown(self.control)} → {_shown(self.variant)}"


def _shown(value: Any) -> str:
    return number_text(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Applied:
    """A variant applied to its plan. `plan` is None when `problems` is not empty."""

    plan: Plan | None
    changes: list[Change] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def apply_change(plan: Plan, variant: Variant, *, against: str = "the control") -> Applied:
    """The plan with the variant's change, validated as a whole; every problem of the change at once.

    `against` is what a sentence calls `plan` where it has the value already.
    """
    content = plan.model_dump(by_alias=True)
    changes, problems = [], []
    for name, value in variant.change.items():
        section, steps = content, name.split(".")
        if steps[0] not in CHANGEABLE:
            allowed = " and ".join(CHANGEABLE)
            problems.append(f"{name!r} cannot differ between variants; only fields of {allowed} can")
            continue
        for step in steps[:-1]:
            section = section.get(step) if isinstance(section, dict) else None  # type: ignore[assignment]
        if not isinstance(section, dict) or steps[-1] not in section or isinstance(section[steps[-1]], dict):
            known = [f"{s}.{f}" for s in CHANGEABLE for f in _leaves(content[s])]
            near = difflib.get_close_matches(name, known, n=1)
            problems.append(f"{name!r} is no field of the plan" + (f"; did you mean {near[0]!r}?" if near else ""))
            continue
        before = section[steps[-1]]
        if before == value:
            problems.append(f"{name!r} is already {value!r} in {against}; this changes nothing")
            continue
        section[steps[-1]] = value
        changes.append(Change(name, before, value))
    if problems:
        return Applied(None, changes, problems)
    content["variants"] = []
    try:
        changed = Plan.model_validate(content)
    except ValidationError as error:
        for detail in error.errors():
            name = ".".join(str(step) for step in detail["loc"])
            problems.append(f"{name}: {detail['msg'][:1].lower()}{detail['msg'][1:]}; found {detail['input']!r}")
        return Applied(None, changes, problems)
    return Applied(changed, changes)


def variant_plan(plan: Plan, variant_id: str) -> Plan:
    """The plan under which `variant_id` runs: the plan itself for the control and the base. Raises KeyError."""
    if variant_id in (CONTROL, BASE):
        return plan
    applied = apply_change(plan, find_variant(plan, variant_id))
    if applied.plan is None:
        raise ValueError("; ".join(applied.problems))
    return applied.plan


def find_variant(plan: Plan, variant_id: str) -> Variant:
    for variant in plan.variants:
        if variant.id == variant_id:
            return variant
    raise KeyError(f"no variant {variant_id!r} in the plan; it has {', '.join(v.id for v in plan.variants) or 'none'}")


def candidates(plan: Plan) -> list[str]:
    """What the hypothesis is asked of: the variants, and the control where the base is the reference."""
    return ([CONTROL] if plan.hypothesis.reference == BASE else []) + [variant.id for variant in plan.variants]


def _leaves(section: dict[str, Any], prefix: str = "") -> list[str]:
    names: list[str] = []
    for name, value in section.items():
        names += _leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else [prefix + name]
    return names


@dataclass(frozen=True)
class PlannedRun:
    """One run the plan asks for. `number` orders the queue and never repeats within a campaign."""

    number: int
    variant: str
    seed: int
    priority: int

    @property
    def id(self) -> str:
        return f"r{self.number:03d}-{self.variant}-s{self.seed}"


def planned_runs(plan: Plan) -> list[PlannedRun]:
    """All runs in queue order: the base per seed, then the control, then the variants by priority.

    Seeds are the outer order within a priority, so that every variant has a run before any has its second.
    """
    runs: list[PlannedRun] = []
    order: list[tuple[str, int]] = [(v.id, v.priority) for v in plan.variants]
    top = max((p for _, p in order), default=0) + 1

    def add(variant: str, seed: int, priority: int) -> None:
        runs.append(PlannedRun(len(runs) + 1, variant, seed, priority))

    for seed in plan.evaluation.seeds:
        add(BASE, seed, top + 1)
    by_priority = sorted({p for _, p in order} | {top}, reverse=True)
    for priority in by_priority:
        names = [CONTROL] if priority == top else [name for name, p in order if p == priority]
        for seed in plan.evaluation.seeds:
            for name in names:
                add(name, seed, priority)
    return runs
