"""The rental, what fits into it and what it costs, as plain values and as lines: the part of `ftui plan` that is about time and money.

The lines are made of the values, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ftui.plan.budget import Chance, Clock, Fit, Spread, fit_runs, phase_use, reserve_hours
from ftui.plan.cuts import cuts
from ftui.plan.durations import RunCosts, plan_durations
from ftui.plan.predicted import ASSUMPTIONS
from ftui.plan.rental import read_stretch, timeline, timeline_text
from ftui.plan.schema import Plan, Rental
from ftui.plan.settings import DataVersion
from ftui.plan.variants import planned_runs


def describe_rental(rental: Rental, clock: Clock | None, launched: bool) -> dict[str, Any]:
    """Hours by phase and, where its start is known or assumed in `clock`, the stretches of the rental."""
    named = rental.starts_at is not None or rental.ends_at is not None
    return {
        "days": rental.days,
        "hours": {use.phase: use.planned_hours for use in phase_use(rental, {})},
        "free_hours": rental.days * 24 - rental.hours.total,
        "reserved_hours": reserve_hours(rental),
        "price": None if rental.price_per_hour is None else rental.price_per_hour * rental.days * 24,
        "currency": rental.currency,
        "timeline": [stretch.content() for stretch in timeline(rental, clock)] if clock else [],
        "starts": "as launched" if launched else "as planned" if named else "if it is launched now",
    }


def describe_fit(
    plan: Plan, data: DataVersion, costs: Mapping[str, RunCosts], slots: int, predicted_for: str | None
) -> dict[str, Any]:
    """What fits surely, probably and not, and why not. `predicted_for` names the device where nothing was measured."""
    durations = plan_durations(plan, data, costs)
    fit = fit_runs(planned_runs(plan), durations, plan.rental.hours.experiment, slots)
    return {
        "places": slots,
        "predicted_for": predicted_for,
        "assumptions": list(ASSUMPTIONS) if predicted_for else [],
        "planned_hours": plan.rental.hours.experiment,
        "hours": fit.hours,
        "hours_low": fit.hours_low,
        "hours_high": fit.hours_high,
        "fits": [run.id for run in fit.fits],
        "surely": [run.id for run in fit.surely],
        "probably": [run.id for run in fit.probably],
        "left_out": [run.id for run in fit.left_out],
        "causes": {placed.run.id: placed.cause for placed in fit.placed if placed.cause},
        "by_variant": _by_variant(fit),
        "seconds_per_run": {name: [d.seconds, d.low, d.high] for name, d in durations.items()},
    }


def _by_variant(fit: Fit) -> dict[str, dict[Chance, int]]:
    """How many runs of each variant fit surely, probably and not, in queue order of their first."""
    counts: dict[str, dict[Chance, int]] = {}
    for placed in fit.placed:
        own = counts.setdefault(placed.run.variant, {"surely": 0, "probably": 0, "left out": 0})
        own[placed.chance] += 1
    return counts


def describe_cuts(
    plan: Plan, data: DataVersion, costs: Mapping[str, RunCosts], slots: int, predicted_for: str | None
) -> list[dict[str, Any]]:
    """Cuts that would let every run fit: surely by what was measured, as expected by what is only predicted."""
    return [cut.content() for cut in cuts(plan, data, costs, slots, sure=predicted_for is None)]


def variant_costs(plan: Plan, durations: Mapping[str, Spread], name: str, slots: int) -> dict[str, Any]:
    """Hours of one place for all seeds of a variant, and its share of the machine's price: as expected, at least, at most."""
    seeds, price = len(plan.evaluation.seeds), plan.rental.price_per_hour
    if name not in durations:
        return {"hours": None, "cost": None}
    whole = durations[name].times(seeds / 3600)
    cost = None if price is None else whole.times(price / slots)
    return {"hours": _three(whole), "cost": cost and _three(cost)}


def _three(spread: Spread) -> list[float]:
    return [spread.seconds, spread.low, spread.high]


def cost_line(variant: Mapping[str, Any], seeds: int, currency: str) -> str:
    """One variant's hours and money in words, empty where they are not known."""
    if variant["hours"] is None:
        return ""
    middle, low, high = variant["hours"]
    said = f"{seeds} run{'s' if seeds != 1 else ''}: {middle:.3g} h ({low:.3g} to {high:.3g})"
    if variant["cost"] is None:
        return said
    middle, low, high = variant["cost"]
    return f"{said}, {middle:,.2f} {currency} ({low:,.2f} to {high:,.2f})"


def rental_lines(described: Mapping[str, Any], width: int) -> Iterator[str]:
    """The rental, what fits, what is needed for its end, and cuts, as lines for a terminal."""
    rental = described["rental"]
    hours = " · ".join(f"{phase} {h:g} h" for phase, h in rental["hours"].items())
    yield f"  {rental['days']:g} days: {hours} · unplanned {rental['free_hours']:g} h"
    yield f"  training ends {rental['reserved_hours']:g} h before the end: kept for evaluation, export and margin"
    if rental["price"] is not None:
        yield f"  price of the whole rental: {rental['price']:,.2f} {rental['currency']}"
    if rental["timeline"]:
        stretches = [read_stretch(content) for content in rental["timeline"]]
        yield f"  {rental['starts']}:"
        yield from (f"  {line}" for line in timeline_text(stretches, width - 2))
    yield from fit_lines(described)


def fit_lines(described: Mapping[str, Any]) -> Iterator[str]:
    """What fits, what is needed for the end, and cuts."""
    yield from _fit_lines(described["fit"], len(described["runs"]))
    if left := described.get("left"):
        yield from left_lines(left)
    for phase, needed in (described["closing"] or {}).items():
        verdict = "" if needed["enough"] else ": too few, give it more"
        about = f"{needed['hours']:.2f} h, at most {needed['hours_high']:.2f}"
        yield f"  {phase} needs about {about}; the plan keeps {needed['planned']:g} h{verdict}"
    if described["cuts"]:
        yield "  what would make room, the gentlest first:"
    for cut in described["cuts"]:
        after = f"{cut['hours']:.3g} h needed, at most {cut['hours_high']:.3g}"
        yield f"    {cut['title']} ({after}; {'all fits' if cut['fits'] else 'more fits, but not all'})"
        yield f"      to the experiment: {cut['experiment']}"


def left_lines(left: Mapping[str, Any]) -> Iterator[str]:
    """What of a launched campaign still fits; `left` is what `ftui.engine.left` says."""
    runs = len(left["surely"]) + len(left["probably"]) + len(left["left_out"])
    if not runs:
        yield "  from now on: no run waits or trains"
        return
    hours, low, high = left["needed"]
    yield (
        f"  from now on: {runs} run{'s' if runs != 1 else ''} in {left['hours']:.2f} h; those that fit take {hours:.2f} h "
        f"({low:.2f} to {high:.2f}) by what runs have cost so far"
    )
    yield f"    surely end: {len(left['surely'])}"
    if left["probably"]:
        yield f"    end if all goes as expected: {', '.join(left['probably'])}"
    for run in left["left_out"]:
        yield f"    no time for {run}: {left['causes'][run]}"
    for run, (seconds, least, most) in left["seconds"].items():
        yield f"    {run} takes another {seconds / 3600:.2f} h ({least / 3600:.2f} to {most / 3600:.2f})"


def _fit_lines(fit: Mapping[str, Any] | None, runs: int) -> Iterator[str]:
    if fit is None:
        yield "  what fits is known after the pilot: `ftui run` measures it before anything trains; `--for DEVICE` predicts it"
        return
    known = (
        f"predicted for {fit['predicted_for']}, not measured" if fit["predicted_for"] else "as measured by the pilot"
    )
    yield (
        f"  all fitting runs end after {fit['hours']:.2f} h ({fit['hours_low']:.2f} to {fit['hours_high']:.2f}) of "
        f"{fit['planned_hours']:g} h on {fit['places']} place{'s' if fit['places'] != 1 else ''}, {known}"
    )
    yield f"  surely fit: {len(fit['surely'])} of {runs} runs"
    if fit["probably"]:
        yield f"  probably fit, if all goes as expected: {_named(fit['by_variant'], 'probably')}"
    if fit["left_out"]:
        yield f"  left out: {_named(fit['by_variant'], 'left out')}"
        first = fit["left_out"][0]
        yield f"    the first is {first}: {fit['causes'][first]}"
    if fit["assumptions"]:
        yield "  the prediction assumes:"
    yield from (f"    {assumed}" for assumed in fit["assumptions"])


def _named(by_variant: Mapping[str, Mapping[str, int]], chance: str) -> str:
    """Variants with runs of such a chance, and how many of how many."""
    told = ((name, counts[chance], sum(counts.values())) for name, counts in by_variant.items() if counts[chance])
    return ", ".join(f"{name} ({count} of {all_runs})" for name, count, all_runs in told)
