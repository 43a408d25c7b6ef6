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
    own = variant_plan(plan, variant)
    updates = 0 if variant == BASE else own_batches(own, data).updates
    return run_duration(
        updates=updates,
        validations=validations(updates, own.training),
        checkpoints=_checkpoints(updates, own.training),
        update=costs.update,
        validation=costs.validation,
        checkpoint=costs.checkpoint,
        start=costs.start,
    )


def validations(updates: int, training: Training) -> int:
    """How often a run of so many updates is validated: at the plan's interval and at its end; a baseline once."""
    return max(1, -(-updates // training.validate_every))


def _checkpoints(updates: int, training: Training) -> int:
    """At most so many: at the plan's interval, at the end, and after each validation, for it may be the best so far."""
    at = {*range(0, updates, training.checkpoint_every), *range(0, updates, training.validate_every), updates}
    return max(1, len(at - {0}))
