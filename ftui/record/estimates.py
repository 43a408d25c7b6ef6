"""Durations measured by the gates, as the budget needs them (R3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ftui.plan.budget import Spread
from ftui.plan.durations import RunCosts, plan_durations
from ftui.plan.followup import run_plan
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion, own_batches
from ftui.plan.variants import BASE, CONTROL, variant_plan
from ftui.record.rows import GateRow
from ftui.record.state import Campaign

WIDER = 1.25
"""How much longer than measured an operation may take when it was measured once and its spread is unknown."""


def run_costs(plan: Plan, data: DataVersion, rows: Sequence[GateRow]) -> dict[str, RunCosts]:
    """What each operation of each variant's runs takes, {} while the gates that measure it have not passed.

    Rows are those of the control's pilot; a variant with another batch shape is scaled by its examples per update.
    """
    passed = {row.gate: row for row in rows if row.verdict == "passed" and row.rank == 0}
    if not {"load", "steady update", "evaluation", "checkpoint"} <= passed.keys():
        return {}
    steady, evaluation = passed["steady update"].facts, passed["evaluation"].facts
    if "seconds_per_update" not in steady:
        return {}
    written = passed["checkpoint"]
    control = RunCosts(
        update=Spread(steady["seconds_per_update"], steady["seconds_low"], steady["seconds_high"]),
        validation=_once(evaluation["seconds_whole_split"]),
        checkpoint=_once(written.facts.get("seconds", written.seconds)),  # older rows measure nothing else
        start=_once(passed["load"].facts["start_seconds"]),  # interpreter and imports included
    )
    measured = own_batches(plan, data).examples_per_update
    costs = {}
    for variant in (BASE, CONTROL, *(v.id for v in plan.variants)):
        examples = own_batches(variant_plan(plan, variant), data).examples_per_update
        costs[variant] = replace(control, update=control.update.times(examples / measured))
    return costs


def run_durations(plan: Plan, data: DataVersion, rows: Sequence[GateRow]) -> dict[str, Spread]:
    """Duration of one run of each variant by `run_costs`, {} while nothing measures it."""
    return plan_durations(plan, data, run_costs(plan, data, rows))


def follow_up_durations(state: Campaign, plan: Plan, rows: Sequence[GateRow]) -> dict[str, Spread]:
    """The same of each run that follows another with other settings, by its id."""
    found: dict[str, Spread] = {}
    for run in state.runs.values():
        if state.data is None or run.follow_up is None:
            continue
        own = run_plan(plan, run.variant, run.follow_up)
        measured = run_costs(plan, state.data, rows).get(CONTROL)
        if measured is not None:
            examples = [own_batches(p, state.data).examples_per_update for p in (plan, own)]
            costs = replace(measured, update=measured.update.times(examples[1] / examples[0]))
            found[run.id] = plan_durations(own, state.data, {CONTROL: costs})[CONTROL]
    return found


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


def _once(seconds: float) -> Spread:
    return Spread(seconds, seconds / WIDER, seconds * WIDER)
