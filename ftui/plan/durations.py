"""How long one run of each variant takes, from what it is made of: updates, validations, checkpoints and a start (R3).

What an update costs is measured by the pilot (`ftui/record/estimates.py`) or predicted for a device (`predicted.py`); how many there
are follows from the plan, so that a changed plan has other durations at the same costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ftui.plan.budget import Spread, run_duration
from ftui.plan.schema import Plan, Training
from ftui.plan.settings import DataVersion, own_batches
from ftui.plan.variants import BASE, CONTROL, variant_plan


@dataclass(frozen=True)
class RunCosts:
    """Seconds that each operation of one variant's runs takes."""

    update: Spread
    validation: Spread
    """Of the whole validation split."""
    checkpoint: Spread
    start: Spread
    """From the start of the process to the first update, the model loaded."""


def plan_durations(plan: Plan, data: DataVersion, costs: Mapping[str, RunCosts]) -> dict[str, Spread]:
    """Duration of one run of each variant of the plan whose costs are known, baseline and control included."""
    names = (BASE, CONTROL, *(variant.id for variant in plan.variants))
    return {name: _duration(plan, data, name, costs[name]) for name in names if name in costs}


def _duration(plan: Plan, data: DataVersion, variant: str, costs: RunCosts) -> Spread:
    return costs.start + remaining_duration(plan, data, variant, costs, 0)


def remaining_duration(plan: Plan, data: DataVersion, variant: str, costs: RunCosts, done: int) -> Spread:
    """What a run of the variant still takes after update `done`, a start not counted."""
    own = variant_plan(plan, variant)
    updates = 0 if variant == BASE else own_batches(own, data).updates
    return run_duration(
        updates=max(0, updates - done),
        validations=sum(at > done for at in _validated(updates, own.training)) if updates else 1,
        checkpoints=sum(at > done for at in _written(updates, own.training)) if updates else 1,
        update=costs.update,
        validation=costs.validation,
        checkpoint=costs.checkpoint,
        start=Spread(0, 0, 0),
    )


def validations(updates: int, training: Training) -> int:
    """How often a run of so many updates is validated: at the plan's interval and at its end; a baseline once."""
    return len(_validated(updates, training))


def _validated(updates: int, training: Training) -> set[int]:
    """Updates after which a run is validated."""
    return {*range(training.validate_every, updates, training.validate_every), updates}


def _written(updates: int, training: Training) -> set[int]:
    """Updates after which a checkpoint may be written: at the plan's interval, and after each validation, for it may be the best."""
    return {*range(training.checkpoint_every, updates, training.checkpoint_every), *_validated(updates, training)}
