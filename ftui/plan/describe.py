"""A plan as a person would check it before money is spent: arithmetic, variants, rental, what fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ftui.plan.budget import Spread, fit_runs, phase_use, reserve_hours
from ftui.plan.power import Power
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion, own_batches
from ftui.plan.variants import CONTROL, apply_change, planned_runs, variant_plan


def describe_plan(
    plan: Plan,
    data: DataVersion,
    durations: Mapping[str, Spread],
    slots: int,
    closing: Mapping[str, Spread] | None = None,
    power: Power | None = None,
) -> dict[str, Any]:
    """The plan as plain values. `durations` is {} before the pilot; then nothing is said about what fits.

    `closing` holds the durations of one run's test evaluation and of the export, `power` what the evaluation can show.
    """
    control = own_batches(plan, data)
    runs = planned_runs(plan)
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
        "variants": [{"id": CONTROL, "because": "the plan as written", "changes": []}]
        + [
            {"id": v.id, "because": v.because, "changes": [str(c) for c in apply_change(plan, v).changes]}
            for v in plan.variants
        ],
        "flags": _broken_hold(plan, data),
        "seeds": plan.evaluation.seeds,
        "runs": [run.id for run in runs],
        "rental": {
            "days": plan.rental.days,
            "hours": {use.phase: use.planned_hours for use in phase_use(plan.rental, {})},
            "free_hours": plan.rental.days * 24 - plan.rental.hours.total,
            "reserved_hours": reserve_hours(plan.rental),
            "price": None if plan.rental.price_per_hour is None else plan.rental.price_per_hour * plan.rental.days * 24,
            "currency": plan.rental.currency,
        },
        "fit": None,
        "closing": None,
    }
    if closing:
        described["closing"] = _closing(plan, closing, len(runs), slots)
    if durations:
        fit = fit_runs(runs, durations, plan.rental.hours.experiment, slots)
        described["fit"] = {
            "places": slots,
            "hours": fit.hours,
            "hours_low": fit.hours_low,
            "hours_high": fit.hours_high,
            "fits": [run.id for run in fit.fits],
            "left_out": [run.id for run in fit.left_out],
            "seconds_per_run": {name: [d.seconds, d.low, d.high] for name, d in durations.items()},
        }
    return described


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


def plan_text(described: Mapping[str, Any]) -> str:
    """The description as lines for a terminal."""
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
    width = max(len(v["id"]) for v in described["variants"])
    for variant in described["variants"]:
        changes = "; ".join(variant["changes"]) or "the plan as written"
        lines.append(f"  {variant['id']:<{width}}  {changes}")
        if variant["changes"]:
            lines.append(f"  {'':<{width}}  because: {variant['because']}")
    lines += [f"  ! {flag}" for flag in described["flags"]]
    seeds = ", ".join(map(str, described["seeds"]))
    lines += [f"  seeds {seeds}: {len(described['runs'])} runs, the base included", "", "Rental"]
    hours = " · ".join(f"{phase} {h:g} h" for phase, h in rental["hours"].items())
    lines.append(f"  {rental['days']:g} days: {hours} · unplanned {rental['free_hours']:g} h")
    lines.append(
        f"  training ends {rental['reserved_hours']:g} h before the end: kept for evaluation, export and margin"
    )
    if rental["price"] is not None:
        lines.append(f"  price of the whole rental: {rental['price']:,.2f} {rental['currency']}")
    fit = described["fit"]
    if fit is None:
        lines.append("  what fits is known after the pilot: `ftui run` measures it before anything trains")
    else:
        lines.append(
            f"  all fitting runs end after {fit['hours']:.2f} h ({fit['hours_low']:.2f} to {fit['hours_high']:.2f}) "
            f"on {fit['places']} place{'s' if fit['places'] != 1 else ''}, as measured by the pilot"
        )
        lines += [f"  left out: {run}" for run in fit["left_out"]]
    for phase, needed in (described["closing"] or {}).items():
        verdict = "" if needed["enough"] else ": too few, give it more"
        about = f"{needed['hours']:.2f} h, at most {needed['hours_high']:.2f}"
        lines.append(f"  {phase} needs about {about}; the plan keeps {needed['planned']:g} h{verdict}")
    return "\n".join(lines)
