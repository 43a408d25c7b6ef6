"""A run with other settings than the one it follows (V5): its change is validated like a variant's, and it never takes its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ftui.plan.grid import GridError, parse_grid
from ftui.plan.schema import Plan, Variant
from ftui.plan.variants import BASE, CONTROL, apply_change, find_variant


class ChangeRefused(ValueError):
    """The settings cannot be changed so; the message says why."""


@dataclass(frozen=True)
class FollowUp:
    """What such a run is."""

    follows: str
    """Id of the run it follows."""
    because: str
    change: Mapping[str, Any]
    """Everything in which it differs from the control; empty where it goes back to it."""


def changed_plan(plan: Plan, change: Mapping[str, Any]) -> Plan:
    """The plan with `change` made to the control. Raises `ChangeRefused`."""
    return _applied(plan, change, "the control") if change else plan


def change_of(plan: Plan, variant: str, follow_up: FollowUp | None = None) -> dict[str, Any]:
    """In what a run differs from the control. Raises KeyError for a variant the plan does not have."""
    if follow_up is not None:
        return dict(follow_up.change)
    return {} if variant in (BASE, CONTROL) else dict(find_variant(plan, variant).change)


def run_plan(plan: Plan, variant: str, follow_up: FollowUp | None = None) -> Plan:
    """The plan under which a run trains. Raises KeyError, `ChangeRefused`."""
    return changed_plan(plan, change_of(plan, variant, follow_up))


def follow(
    plan: Plan, run: str, variant: str, earlier: FollowUp | None, change: Mapping[str, Any], because: str
) -> FollowUp:
    """The run that follows `run` (of `variant`, perhaps itself a follow-up) with `change` made to its settings.

    Raises `ChangeRefused` with every problem at once: a field that is none, a value that changes nothing or is not valid, no reason.
    """
    if variant == BASE:
        raise ChangeRefused(f"{run} is the base model, which is not trained; there are no settings to change")
    if not change:
        raise ChangeRefused("no field is changed; a run with the same settings is resumed, not relaunched")
    if not because.strip():
        raise ChangeRefused("a run with other settings needs a reason: the report will show it")
    before = change_of(plan, variant, earlier)
    _applied(changed_plan(plan, before), change, run)
    content = plan.content()
    whole = {name: value for name, value in {**before, **change}.items() if _value(content, name) != value}
    changed_plan(plan, whole)
    return FollowUp(run, because, whole)


def parse_change(texts: list[str]) -> dict[str, Any]:
    """Fields and values from texts like `method.rank = 16`; a short name will do where one field alone has it.

    Raises `ChangeRefused`.
    """
    try:
        found = [item for text in texts for item in parse_grid(text).items()]
    except GridError as error:
        raise ChangeRefused(str(error)) from None
    names = [name for name, _ in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    several = [name for name, values in found if len(values) != 1]
    if problem := twice or several:
        raise ChangeRefused(f"{', '.join(problem)}: one run has one value of a field")
    return {name: values[0] for name, values in found}


def _applied(plan: Plan, change: Mapping[str, Any], against: str) -> Plan:
    # A follow-up has one reason for all its fields, so that several need no further one.
    variant = Variant(id="follow-up", because="said elsewhere", change=dict(change), together="said elsewhere")
    applied = apply_change(plan, variant, against=against)
    if applied.plan is None:
        raise ChangeRefused("; ".join(applied.problems))
    return applied.plan


def _value(content: Any, name: str) -> Any:
    for step in name.split("."):
        content = content[step]
    return content
