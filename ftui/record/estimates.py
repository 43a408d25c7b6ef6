"""Durations measured by the gates, as the budget needs them (R3)."""

from __future__ import annotations

from collections.abc import Sequence

from ftui.plan.budget import Spread, run_duration
from ftui.plan.schema import Plan, Training
from ftui.plan.settings import DataVersion, own_batches
from ftui.plan.variants import BASE, CONTROL, variant_plan
from ftui.record.rows import GateRow

WIDER = 1.25
"""How much longer than measured an operation may take when it was measured once and its spread is unknown."""


def run_durations(plan: Plan, data: DataVersion, rows: Sequence[GateRow]) -> dict[str, Spread]:
    """Duration of one run of each variant, {} while the gates that measure it have not passed.

    Rows are those of the control's pilot; a variant with another batch shape is scaled by its examples per update.
    """
    passed = {row.gate: row for row in rows if row.verdict == "passed" and row.rank == 0}
    if not {"load", "steady update", "evaluation", "checkpoint"} <= passed.keys():
        return {}
    steady, evaluation = passed["steady update"].facts, passed["evaluation"].facts
    if "seconds_per_update" not in steady:
        return {}
    update = Spread(steady["seconds_per_update"], steady["seconds_low"], steady["seconds_high"])
    validation = _once(evaluation["seconds_whole_split"])
    written = passed["checkpoint"]
    checkpoint = _once(written.facts.get("seconds", written.seconds))  # older rows measure nothing else
    start = _once(passed["load"].facts["start_seconds"])  # interpreter and imports included
    measured = own_batches(plan, data).examples_per_update
    durations = {}
    for variant in (BASE, CONTROL, *(v.id for v in plan.variants)):
        own = variant_plan(plan, variant)
        arithmetic = own_batches(own, data)
        updates = 0 if variant == BASE else arithmetic.updates
        durations[variant] = run_duration(
            updates=updates,
            validations=max(1, -(-updates // own.training.validate_every)),
            checkpoints=_checkpoints(updates, own.training),
            update=update.times(arithmetic.examples_per_update / measured),
            validation=validation,
            checkpoint=checkpoint,
            start=start,
        )
    return durations


def closing_durations(data: DataVersion, rows: Sequence[GateRow]) -> dict[str, Spread]:
    """What remains when the last run has ended: `evaluation` of one run on the test split and `export` of the artefact, written and
    loaded again, each in new processes. {} while the gates that measure them have not passed."""
    passed = {row.gate: row for row in rows if row.verdict == "passed" and row.rank == 0}
    if not {"load", "evaluation", "export", "reload"} <= passed.keys():
        return {}
    start = _once(passed["load"].facts["start_seconds"])
    per_example = passed["evaluation"].facts["seconds_whole_split"] / max(1, data.validation_examples)
    artefact = _once(passed["export"].seconds + passed["reload"].seconds)
    return {
        "evaluation": start + _once(per_example * data.test_examples),
        "export": start + start + artefact,
    }


def _checkpoints(updates: int, training: Training) -> int:
    """At most so many: at the plan's interval, at the end, and after each validation, for it may be the best so far."""
    at = {*range(0, updates, training.checkpoint_every), *range(0, updates, training.validate_every), updates}
    return max(1, len(at - {0}))


def _once(seconds: float) -> Spread:
    return Spread(seconds, seconds / WIDER, seconds * WIDER)
