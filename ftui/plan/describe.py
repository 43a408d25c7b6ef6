"""A plan as a person would check it before money is spent: arithmetic, variants, rental, what fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ftui.plan.budget import Clock, Spread
from ftui.plan.describe_rental import (
    cost_line,
    describe_cuts,
    describe_fit,
    describe_rental,
    rental_lines,
    variant_costs,
)
from ftui.plan.durations import RunCosts, plan_durations
from ftui.plan.power import Power
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion, own_batches
from ftui.plan.variants import CONTROL, apply_change, planned_runs, variant_plan


def describe_plan(
    plan: Plan,
    data: DataVersion,
    costs: Mapping[str, RunCosts],
    slots: int,
    closing: Mapping[str, Spread] | None = None,
    power: Power | None = None,
    *,
    clock: Clock | None = None,
    launched: bool = False,
    predicted_for: str | None = None,
) -> dict[str, Any]:
    """The plan as plain values. `costs` is {} where nothing is measured or predicted; then nothing is said about what fits.

    `closing` holds the durations of one run's test evaluation and of the export, `power` what the evaluation can show.
    `clock` says when the rental starts and ends, or would if it were launched now. `predicted_for` names the device where costs are
    predicted.
    """
    control = own_batches(plan, data)
    runs, durations = planned_runs(plan), plan_durations(plan, data, costs)
    described: dict[str, Any] = {
        "hypothesis": plan.hypothesis.model_dump(),
        "guardrails": [g.model_dump() for g in plan.guardrails],
        "data": data.model_dump(),
        "power": None if power is None else power.content(),
        "batches": {
            "examples_per_update": control.examples_per_update,
            "updates": control.updates,
            "updates_per_epoch": control.updates_per_epoch,
            "examples": control.examples,
            "epochs": control.epochs,
            "sentences": control.sentences(),
        },
        "variants": [
            {"id": name, "because": because, "changes": changes, **variant_costs(plan, durations, name, slots)}
            for name, because, changes in _variants(plan)
        ],
        "flags": _broken_hold(plan, data),
        "seeds": plan.evaluation.seeds,
        "runs": [run.id for run in runs],
        "rental": describe_rental(plan.rental, clock, launched),
        "fit": None,
        "closing": None,
        "cuts": [],
    }
    if closing:
        described["closing"] = _closing(plan, closing, len(runs), slots)
    if costs:
        described["fit"] = describe_fit(plan, data, costs, slots, predicted_for)
        described["cuts"] = describe_cuts(plan, data, costs, slots, predicted_for)
    return described


def _variants(plan: Plan) -> list[tuple[str, str, list[str]]]:
    """Id, reason and changes of everything that trains."""
    changed = [(v.id, v.because, [str(c) for c in apply_change(plan, v).changes]) for v in plan.variants]
    return [(CONTROL, "the plan as written", []), *changed]


def _closing(plan: Plan, closing: Mapping[str, Spread], runs: int, slots: int) -> dict[str, Any]:
    """Hours that evaluation and export will take, beside those the plan keeps for them."""
    needed = {
        "evaluation": closing["evaluation"].times(-(-runs // slots) / 3600),
        "export": closing["export"].times(1 / 3600),
    }
    return {
        phase: {
            "hours": spread.seconds,
            "hours_high": spread.high,
            "planned": getattr(plan.rental.hours, phase),
            "enough": spread.high <= getattr(plan.rental.hours, phase),
        }
        for phase, spread in needed.items()
    }


def _broken_hold(plan: Plan, data: DataVersion) -> list[str]:
    """Variants that do not keep equal what the plan holds (S5)."""
    hold, control = plan.training.hold, own_batches(plan, data)
    flags = []
    for variant in plan.variants:
        own = own_batches(variant_plan(plan, variant.id), data)
        before, after = getattr(control, hold), getattr(own, hold)
        if before != after:
            flags.append(f"{variant.id} sees {after:g} {hold} where the control sees {before:g}: not a fair comparison")
    return flags


def _power_lines(power: Mapping[str, Any] | None) -> list[str]:
    """What the evaluation can show, as a section of its own; [] where nobody asked."""
    if power is None:
        return []
    sentences = [f"  {sentence}" for sentence in power["sentences"]]
    return ["", "What the evaluation can show", *sentences, *(f"  ! {flag}" for flag in power["flags"])]


def plan_text(described: Mapping[str, Any], width: int = 78) -> str:
    """The description as lines for a terminal; the rental's bar is `width` cells wide."""
    hypothesis, rental, data = described["hypothesis"], described["rental"], described["data"]
    lines = [
        hypothesis["statement"],
        f"  {hypothesis['metric']} of each variant against the {hypothesis['reference']}, "
        f"at least {hypothesis['min_improvement']:g} {hypothesis['direction']}; alpha {hypothesis['alpha']:g}",
        "",
        "Guardrails",
        *(f"  {g['name']}: {g['metric']}, {g['slice']}, at most {g['tolerance']:g} worse than the {g['reference']}"
          for g in described["guardrails"]),
        *(["  none"] if not described["guardrails"] else []),
        "",
        "Data",
        f"  {data['train_examples']:,} training, {data['validation_examples']:,} validation, {data['test_examples']:,} test "
        f"examples in {len(data['labels'])} categories; version {data['hash'][:16]}",
        *_power_lines(described["power"]),
        "",
        "Batches",
        *(f"  {sentence}" for sentence in described["batches"]["sentences"]),
        "",
        "Variants",
    ]  # fmt: skip
    names = max(len(v["id"]) for v in described["variants"])
    for variant in described["variants"]:
        changes = "; ".join(variant["changes"]) or "the plan as written"
        lines.append(f"  {variant['id']:<{names}}  {changes}")
        if variant["changes"]:
            lines.append(f"  {'':<{names}}  because: {variant['because']}")
        if costs := cost_line(variant, len(described["seeds"]), rental["currency"]):
            lines.append(f"  {'':<{names}}  {costs}")
    lines += [f"  ! {flag}" for flag in described["flags"]]
    seeds = ", ".join(map(str, described["seeds"]))
    lines += [f"  seeds {seeds}: {len(described['runs'])} runs, the base included", "", "Rental"]
    return "\n".join([*lines, *rental_lines(described, width)])
