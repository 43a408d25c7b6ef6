"""The rental as arithmetic: when it ends, which phase may use how many hours, what fits and what must be kept back.

Pure functions of the plan, the clock and measured durations; the command line, the app and the supervisor ask the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from ftui.plan.schema import Rental
from ftui.plan.variants import BASE, PlannedRun

PHASES = ("preflight", "experiment", "evaluation", "resume", "export", "margin")
"""Names of the phases in the order they are worked through; `margin` is never worked in, only eaten into."""


@dataclass(frozen=True)
class Clock:
    """The rental's two ends, in UTC-comparable times."""

    starts_at: datetime
    ends_at: datetime

    def left(self, now: datetime) -> timedelta:
        """Time until the end, negative after it."""
        return passed(now, self.ends_at)

    def gone(self, now: datetime) -> float:
        """Share of the rental that has passed, between 0 and 1."""
        return min(1.0, max(0.0, passed(self.starts_at, now) / passed(self.starts_at, self.ends_at)))


def passed(first: datetime, last: datetime) -> timedelta:
    """Time that passes between two moments. Python subtracts times of one zone by what a clock on the wall shows, which is an hour
    off where summer time begins or ends between them."""
    return last.astimezone(UTC) - first.astimezone(UTC)


def later(moment: datetime, length: timedelta) -> datetime:
    """The moment after `length` has passed, in the zone of `moment`; see `passed`."""
    return (moment.astimezone(UTC) + length).astimezone(moment.tzinfo)


def rental_clock(rental: Rental, launched_at: datetime) -> Clock:
    """The rental's start and end; both follow from the launch where the plan leaves them open."""
    length = timedelta(days=rental.days)
    if rental.starts_at is not None:
        return Clock(rental.starts_at, rental.ends_at or later(rental.starts_at, length))
    if rental.ends_at is not None:
        return Clock(later(rental.ends_at, -length), rental.ends_at)
    return Clock(launched_at, later(launched_at, length))


def reserve_hours(rental: Rental) -> float:
    """Hours at the end in which no run may train: evaluation, reading checkpoints in new processes, export, margin (R5)."""
    return rental.hours.evaluation + rental.hours.export + rental.hours.margin


def training_ends_at(rental: Rental, clock: Clock) -> datetime:
    """The last moment at which training may still go on."""
    return later(clock.ends_at, -timedelta(hours=reserve_hours(rental)))


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


Chance = Literal["surely", "probably", "left out"]
"""Whether a run ends in time: even if all goes as slowly as expected at worst, if all goes as expected, or not even then."""


@dataclass(frozen=True)
class Placed:
    """One run and what becomes of it."""

    run: PlannedRun
    chance: Chance
    ends: Spread | None
    """Seconds after the first run's start at which it would end, None where nobody knows how long it takes."""
    cause: str = ""
    """Why it is left out."""


@dataclass(frozen=True)
class Fit:
    """Which runs fit into the time for experiments, in queue order (R4)."""

    placed: list[Placed]
    """Every run, in queue order."""
    hours: float
    """Hours of the machine until the last fitting run ends."""
    hours_low: float
    hours_high: float

    @property
    def surely(self) -> list[PlannedRun]:
        return [placed.run for placed in self.placed if placed.chance == "surely"]

    @property
    def probably(self) -> list[PlannedRun]:
        """Those that fit if all goes as expected, and not if all is slow."""
        return [placed.run for placed in self.placed if placed.chance == "probably"]

    @property
    def fits(self) -> list[PlannedRun]:
        return [placed.run for placed in self.placed if placed.chance != "left out"]

    @property
    def left_out(self) -> list[PlannedRun]:
        return [placed.run for placed in self.placed if placed.chance == "left out"]


class _Lanes:
    """Places that work side by side, each with the second at which it is free; the earliest takes the next run."""

    def __init__(self, slots: int) -> None:
        self.free = [0.0] * slots

    def end(self, seconds: float) -> float:
        return min(self.free) + seconds

    def take(self, seconds: float) -> None:
        self.free[self.free.index(min(self.free))] += seconds

    def wait(self) -> None:
        self.free = [max(self.free)] * len(self.free)


def fit_runs(runs: Sequence[PlannedRun], durations: Mapping[str, Spread], hours: float, slots: int = 1) -> Fit:
    """Place `runs` in order on `slots` lanes and say which end within `hours`, and how surely.

    `durations` maps variant names to the duration of one run; what it does not name is left out. `hours` are those for experiments:
    what is kept for the end is never among them. A run that does not fit takes no time, so that it does not block a shorter one after
    it, and no run after it takes time from it. Baselines count among them, and nothing trains before the last of them has ended.
    """
    limit = hours * 3600
    # The last knows all that may be started before a run: also what is left out as expected, but may find room if all goes fast.
    low, middle, high, worst = (_Lanes(slots) for _ in range(4))
    placed: list[Placed] = []
    unknown = False
    for index, run in enumerate(runs):
        if index and runs[index - 1].variant == BASE and run.variant != BASE:
            for lanes in (low, middle, high, worst):
                lanes.wait()
        duration = durations.get(run.variant)
        if duration is None:
            unknown = True
            placed.append(Placed(run, "left out", None, "nobody knows yet how long it takes"))
            continue
        ends = Spread(middle.end(duration.seconds), low.end(duration.low), high.end(duration.high))
        sure = worst.end(duration.high) <= limit and not unknown
        if ends.low <= limit:
            worst.take(duration.high)
        if ends.seconds > limit:
            placed.append(Placed(run, "left out", ends, _too_late(ends, hours)))
            continue
        low.take(duration.low)
        middle.take(duration.seconds)
        high.take(duration.high)
        placed.append(Placed(run, "surely" if sure else "probably", ends))
    return Fit(placed, max(middle.free) / 3600, max(low.free) / 3600, max(high.free) / 3600)


def _too_late(ends: Spread, hours: float) -> str:
    after = f"it would end after {ends.seconds / 3600:.3g} h, and experiments have {hours:g} h"
    return f"{after}; it finds room only if all goes fast" if ends.low <= hours * 3600 else after


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
