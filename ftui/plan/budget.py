"""The rental as arithmetic: when it ends, which phase may use how many hours, what fits and what must be kept back.

Pure functions of the plan, the clock and measured durations; the command line, the app and the supervisor ask the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ftui.plan.schema import Rental
from ftui.plan.variants import PlannedRun

PHASES = ("preflight", "experiment", "evaluation", "resume", "export", "margin")
"""Names of the phases in the order they are worked through; `margin` is never worked in, only eaten into."""


@dataclass(frozen=True)
class Clock:
    """The rental's two ends, in UTC-comparable times."""

    starts_at: datetime
    ends_at: datetime

    def left(self, now: datetime) -> timedelta:
        """Time until the end, negative after it."""
        return self.ends_at - now

    def gone(self, now: datetime) -> float:
        """Share of the rental that has passed, between 0 and 1."""
        return min(1.0, max(0.0, (now - self.starts_at) / (self.ends_at - self.starts_at)))


def rental_clock(rental: Rental, launched_at: datetime) -> Clock:
    """The rental's start and end; both follow from the launch where the plan leaves them open."""
    length = timedelta(days=rental.days)
    if rental.starts_at is not None:
        return Clock(rental.starts_at, rental.ends_at or rental.starts_at + length)
    if rental.ends_at is not None:
        return Clock(rental.ends_at - length, rental.ends_at)
    return Clock(launched_at, launched_at + length)


def reserve_hours(rental: Rental) -> float:
    """Hours at the end in which no run may train: evaluation, reading checkpoints in new processes, export, margin (R5)."""
    return rental.hours.evaluation + rental.hours.export + rental.hours.margin


def training_ends_at(rental: Rental, clock: Clock) -> datetime:
    """The last moment at which training may still go on."""
    return clock.ends_at - timedelta(hours=reserve_hours(rental))


@dataclass(frozen=True)
class Spread:
    """A duration in seconds with the range in which it is expected."""

    seconds: float
    low: float
    high: float

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.seconds + other.seconds, self.low + other.low, self.high + other.high)

    def times(self, count: float) -> Spread:
        return Spread(self.seconds * count, self.low * count, self.high * count)


def run_duration(
    *,
    updates: int,
    validations: int,
    checkpoints: int,
    update: Spread,
    validation: Spread,
    checkpoint: Spread,
    start: Spread,
) -> Spread:
    """Duration of one run (R3): updates × seconds + validations + checkpoints + start-up."""
    return start + update.times(updates) + validation.times(validations) + checkpoint.times(checkpoints)


@dataclass(frozen=True)
class Fit:
    """Which runs fit into the time for experiments, in queue order (R4)."""

    fits: list[PlannedRun]
    left_out: list[PlannedRun]
    hours: float
    """Hours of the machine until the last fitting run ends."""
    hours_low: float
    hours_high: float


def fit_runs(runs: Sequence[PlannedRun], durations: Mapping[str, Spread], hours: float, slots: int = 1) -> Fit:
    """Place `runs` in order on `slots` lanes and say which end within `hours`.

    `durations` maps variant names to the duration of one run. A run that does not fit does not block a shorter one after it.
    """
    lanes = [Spread(0.0, 0.0, 0.0)] * slots
    fits: list[PlannedRun] = []
    left_out: list[PlannedRun] = []
    for run in runs:
        earliest = min(range(slots), key=lambda lane: lanes[lane].seconds)
        ends = lanes[earliest] + durations[run.variant]
        if ends.seconds <= hours * 3600:
            lanes[earliest] = ends
            fits.append(run)
        else:
            left_out.append(run)
    last = max(lanes, key=lambda lane: lane.seconds)
    return Fit(fits, left_out, last.seconds / 3600, last.low / 3600, last.high / 3600)


@dataclass(frozen=True)
class PhaseUse:
    """Hours of one phase, planned against spent (R2, R6)."""

    phase: str
    planned_hours: float
    spent_hours: float

    def cost(self, price_per_hour: float | None) -> tuple[float, float] | None:
        """Money planned and spent, None where the plan names no price."""
        if price_per_hour is None:
            return None
        return self.planned_hours * price_per_hour, self.spent_hours * price_per_hour


def phase_use(rental: Rental, spent_seconds: Mapping[str, float]) -> list[PhaseUse]:
    """Planned and spent hours of every phase, in order."""
    return [PhaseUse(p, getattr(rental.hours, p), spent_seconds.get(p, 0.0) / 3600) for p in PHASES]
