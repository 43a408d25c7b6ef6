"""What could be cut so that every run fits, and what each cut does to the experiment (R4).

A cut is only offered if it helps: after it all runs fit, or, where it costs the experiment nothing, more of them do. Those that
change the experiment least come first: hours nobody planned, a longer rental, rarer validations, then what weakens the verdict (seeds),
drops a question (variants) or asks another one (less training).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from ftui.plan.batch import describe_excess
from ftui.plan.budget import Fit, fit_runs, later
from ftui.plan.durations import RunCosts, plan_durations
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion, own_batches
from ftui.plan.variants import apply_change, planned_runs


@dataclass(frozen=True)
class Cut:
    """One way to make room."""

    title: str
    experiment: str
    """What it changes in the experiment."""
    change: dict[str, Any]
    """Dotted fields of the plan and their new values."""
    drop: tuple[str, ...]
    """Variants that are left out of the plan."""
    hours: float
    """Hours of the machine that all runs then need, as expected."""
    hours_high: float
    """At most."""
    fits: bool
    """Whether then all runs fit."""

    def content(self) -> dict[str, Any]:
        """As plain JSON values."""
        change = {name: v.isoformat() if isinstance(v, datetime) else v for name, v in self.change.items()}
        told = {"title": self.title, "experiment": self.experiment, "change": change, "drop": list(self.drop)}
        return {**told, "hours": self.hours, "hours_high": self.hours_high, "fits": self.fits}


def cut_plan(plan: Plan, change: Mapping[str, Any], drop: Sequence[str] = ()) -> Plan | None:
    """The plan with dotted fields changed and variants dropped, None when that is no plan that can be used."""
    content = plan.model_dump(by_alias=True)
    for name, value in change.items():
        *sections, field = name.split(".")
        table = content
        for section in sections:
            table = table[section]
        table[field] = value
    content["variants"] = [variant for variant in content["variants"] if variant["id"] not in drop]
    try:
        changed = Plan.model_validate(content)
    except ValidationError:
        return None
    broken = any(apply_change(changed, variant).problems for variant in changed.variants)
    return None if broken or any(describe_excess(changed)) else changed


@dataclass(frozen=True)
class _Room:
    """What the cuts are judged by."""

    plan: Plan
    data: DataVersion
    costs: Mapping[str, RunCosts]
    slots: int
    sure: bool

    def fit(self, plan: Plan, hours: float) -> Fit:
        return fit_runs(planned_runs(plan), plan_durations(plan, self.data, self.costs), hours, self.slots)

    def needed(self, plan: Plan) -> float:
        """Hours in which all runs of `plan` end: surely, or as expected."""
        fit = self.fit(plan, math.inf)
        return fit.hours_high if self.sure else fit.hours

    def cut(
        self, title: str, experiment: str, change: dict[str, Any], drop: tuple[str, ...] = (), *, partly: bool = False
    ) -> Cut | None:
        """The cut, None when it makes no plan or does not help. `partly`: letting more runs in is help enough."""
        plan = cut_plan(self.plan, change, drop)
        if plan is None:
            return None
        fits = self.needed(plan) <= plan.rental.hours.experiment
        if not fits and not (partly and self._more(plan)):
            return None
        whole = self.fit(plan, math.inf)
        return Cut(title, experiment, change, drop, whole.hours, whole.hours_high, fits)

    def _more(self, plan: Plan) -> bool:
        before, after = (self.fit(p, p.rental.hours.experiment) for p in (self.plan, plan))
        return len(after.surely if self.sure else after.fits) > len(before.surely if self.sure else before.fits)


def cuts(
    plan: Plan, data: DataVersion, costs: Mapping[str, RunCosts], slots: int = 1, *, sure: bool = True
) -> list[Cut]:
    """Cuts that help, the gentlest first; [] when everything fits, and when a variant's costs are not known.

    `sure`: runs have to end in time even if all goes slowly; otherwise if all goes as expected, as where costs are only predicted.
    """
    room = _Room(plan, data, costs, slots, sure)
    if {run.variant for run in planned_runs(plan)} - costs.keys() or room.needed(plan) <= plan.rental.hours.experiment:
        return []
    kinds = (_unplanned_hours, _longer_rental, _rarer_validation, _fewer_seeds, _fewer_variants, _less_training)
    return [cut for kind in kinds if (cut := next(kind(room), None)) is not None]


def _unplanned_hours(room: _Room) -> Iterator[Cut]:
    rental = room.plan.rental
    free = rental.days * 24 - rental.hours.total
    there = _down(rental.hours.experiment + free)
    hours = min(_up(room.needed(room.plan)), there)
    if hours > rental.hours.experiment:
        title = f"{hours:g} h for experiments instead of {rental.hours.experiment:g}, from {free:g} unplanned ones"
        cut = room.cut(title, "nothing", {"rental.hours.experiment": hours}, partly=True)
        if cut:
            yield cut


def _longer_rental(room: _Room) -> Iterator[Cut]:
    rental = room.plan.rental
    needed = _up(room.needed(room.plan))
    others = rental.hours.total - rental.hours.experiment
    if others + needed <= rental.days * 24:
        return
    days = _days(others + needed)
    change: dict[str, Any] = {"rental.days": days, "rental.hours.experiment": needed}
    if rental.ends_at is not None:
        change["rental.ends_at"] = later(rental.ends_at, timedelta(days=days - rental.days))
    more = (days - rental.days) * 24
    money = "" if rental.price_per_hour is None else f", {more * rental.price_per_hour:,.2f} {rental.currency} more"
    cut = room.cut(
        f"rent {days:g} days instead of {rental.days:g}", f"nothing; {more:g} more hours are rented{money}", change
    )
    if cut:
        yield cut


def _rarer_validation(room: _Room) -> Iterator[Cut]:
    training = room.plan.training
    last: Cut | None = None
    every = training.validate_every * 2
    # One validation before the end at least, or nothing but the last update is ever looked at.
    while every * 2 <= own_batches(room.plan, room.data).updates:
        patience = training.stop.patience
        noticed = f"; patience then lasts {patience * every} updates" if patience else ""
        experiment = (
            f"the best checkpoint is sought at fewer points, and a run that goes wrong is noticed later{noticed}"
        )
        title = f"validate every {every} updates instead of {training.validate_every}"
        last = room.cut(title, experiment, {"training.validate_every": every}, partly=True) or last
        if last and last.fits:
            break
        every *= 2
    if last:
        yield last


def _fewer_seeds(room: _Room) -> Iterator[Cut]:
    seeds = room.plan.evaluation.seeds
    for count in range(len(seeds) - 1, 0, -1):
        weaker = "only larger differences can be told from chance"
        if count == 1:
            weaker = "how much runs differ by chance alone is not seen at all"
        experiment = f"weakens the verdict: {_runs(count)} of each variant instead of {len(seeds)}, so that {weaker}"
        title = f"{count} seed{'s' if count > 1 else ''} instead of {len(seeds)}"
        if cut := room.cut(title, experiment, {"evaluation.seeds": seeds[:count]}):
            yield cut


def _fewer_variants(room: _Room) -> Iterator[Cut]:
    plan = room.plan
    queue = sorted(plan.variants, key=lambda variant: -variant.priority)
    # Without a variant there is nothing to compare the control with.
    kept = 1 if plan.hypothesis.reference == "control" else 0
    for count in range(1, len(queue) - kept + 1):
        dropped = queue[-count:]
        questions = " ".join(dict.fromkeys(f"{variant.because.rstrip('.')}." for variant in dropped))
        names = tuple(variant.id for variant in dropped)
        experiment = f"drops {'a question' if count == 1 else f'{count} questions'}, which nobody will have answered: {questions}"
        if cut := room.cut(f"leave out {', '.join(names)}", experiment, {}, names):
            yield cut


def _less_training(room: _Room) -> Iterator[Cut]:
    training = room.plan.training
    # A plan whose intervals are longer than its runs cannot be used.
    least = (
        max(training.warmup, training.validate_every, training.checkpoint_every) if training.hold == "updates" else 1
    )
    fitting, too_much = least - 1, training.amount

    def fits(amount: int) -> bool:
        plan = cut_plan(room.plan, {"training.amount": amount})
        return plan is not None and room.needed(plan) <= plan.rental.hours.experiment

    while too_much - fitting > 1:
        middle = (fitting + too_much) // 2
        fitting, too_much = (middle, too_much) if fits(middle) else (fitting, middle)
    if fitting < max(1, least):
        return
    experiment = (
        f"changes the task: every run learns from {fitting:,} instead of {training.amount:,} {training.hold}, its schedule is as much "
        "shorter, and what is found holds for that much training"
    )
    title = f"{fitting:,} {training.hold} instead of {training.amount:,}"
    if cut := room.cut(title, experiment, {"training.amount": fitting}):
        yield cut


def _runs(count: int) -> str:
    return "one run" if count == 1 else f"{count} runs"


def _up(hours: float) -> float:
    """Hours to three digits, never less than they are."""
    step = min(1.0, 10.0 ** (math.floor(math.log10(hours)) - 2))
    return round(math.ceil(hours / step) * step, 9)


def _down(hours: float) -> float:
    return math.floor(hours * 1e6) / 1e6


def _days(hours: float) -> float:
    """Days that hold so many hours: whole ones, below one to three digits."""
    return math.ceil(hours / 24 - 1e-12) if hours > 24 else _up(hours / 24)
