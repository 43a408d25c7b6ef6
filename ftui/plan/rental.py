"""The rental laid out in time: hours for a length of days, and the stretches that are worked through from its start to its end (R1, R2).

What is kept for the end lies at the end: evaluation, export and margin are counted back from it, so that the first of them begins when
training must be over (R5). Hours planned for nothing lie before them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from ftui.plan.budget import Clock, later, passed
from ftui.plan.schema import Rental, RentalHours

UNPLANNED = "unplanned"
"""Hours of the rental that no phase has."""

BEFORE, KEPT = ("preflight", "experiment", "resume"), ("evaluation", "export", "margin")
"""Phases in which training may go on, and those counted back from the end, in the order they are worked through."""

LETTERS = {"preflight": "P", "experiment": "E", "resume": "R", UNPLANNED: "U", "evaluation": "V", "export": "X", "margin": "M"}  # fmt: skip

_THREE_DAYS = {"preflight": 2.0, "evaluation": 6.0, "resume": 4.0, "export": 2.0, "margin": 8.0}
"""Hours besides experiments in a rental of three days. Longer rentals need more of them, but not in proportion: they grow with the
square root, as what is evaluated and exported grows less than what is tried."""

_EXPERIMENT_SHARE = 0.97
"""Of what then remains; a little stays unplanned, for whoever changes the plan."""


def default_hours(days: float) -> RentalHours:
    """Hours by phase for a rental of so many days, in figures a person would write. They never add up to more than the rental has.

    Raises ValueError when there are no days.
    """
    if days <= 0:
        raise ValueError(f"a rental has days; found {days:g}")
    factor = min(days / 3, math.sqrt(days / 3))
    hours = {phase: _figure(three * factor) for phase, three in _THREE_DAYS.items()}
    rest = days * 24 - sum(hours.values())
    return RentalHours(experiment=_figure(rest * _EXPERIMENT_SHARE, math.floor), **hours)


def _figure(hours: float, rounded: Callable[[float], int] = round) -> float:
    """Hours to the next figure one would write: fives from a hundred on, whole hours, half hours below ten, one digit below one."""
    step = 5.0 if hours >= 100 else 1.0 if hours >= 10 else 0.5 if hours >= 1 else 10.0 ** math.floor(math.log10(hours))
    return round(rounded(hours / step + 1e-9) * step, 12)


@dataclass(frozen=True)
class Stretch:
    """One phase, or what is unplanned, from one moment to another."""

    phase: str
    starts_at: datetime
    ends_at: datetime
    hours: float
    cost: float | None = None
    """Money for these hours, None where the plan names no price."""
    currency: str = "USD"

    def content(self) -> dict[str, Any]:
        """As plain JSON values; `read_stretch` takes them back."""
        times = {"starts_at": self.starts_at.isoformat(), "ends_at": self.ends_at.isoformat()}
        return {"phase": self.phase, **times, "hours": self.hours, "cost": self.cost, "currency": self.currency}


def read_stretch(content: dict[str, Any]) -> Stretch:
    """What `Stretch.content` gave."""
    times = {name: datetime.fromisoformat(content[name]) for name in ("starts_at", "ends_at")}
    return Stretch(**{**content, **times})


def timeline(rental: Rental, clock: Clock) -> list[Stretch]:
    """The rental from its start to its end without gap, phases without hours left out. Times are in the plan's own zone, in the
    clock's where the plan names none."""
    zone = own_zone(rental, clock)
    start, end = clock.starts_at.astimezone(zone), clock.ends_at.astimezone(zone)
    kept = sum(getattr(rental.hours, phase) for phase in KEPT)
    kept_from = max(start, later(end, -timedelta(hours=kept)))
    bounds = [start]
    for phase in BEFORE:
        # A clock may be up to a minute shorter than the plan's days.
        bounds.append(min(kept_from, later(bounds[-1], timedelta(hours=getattr(rental.hours, phase)))))
    bounds.append(kept_from)
    for phase in KEPT[:-1]:
        bounds.append(min(end, later(bounds[-1], timedelta(hours=getattr(rental.hours, phase)))))
    bounds.append(end)
    stretches = []
    for phase, first, last in zip((*BEFORE, UNPLANNED, *KEPT), bounds, bounds[1:], strict=False):
        length = passed(first, last)
        # Hours of a plan are decimal, moments are whole microseconds: what is left between them is nothing.
        if length > timedelta(seconds=1) or getattr(rental.hours, phase, 0) > 0:
            hours = round(length / timedelta(hours=1), 6)
            cost = None if rental.price_per_hour is None else hours * rental.price_per_hour
            stretches.append(Stretch(phase, first, last, hours, cost, rental.currency))
    return _joined(stretches)


def own_zone(rental: Rental, clock: Clock) -> tzinfo | None:
    """The time zone in which the rental's times are told."""
    return (rental.starts_at or rental.ends_at or clock.starts_at).tzinfo


def _joined(stretches: list[Stretch]) -> list[Stretch]:
    """Each begins where the one before it ends, also where one without hours was left out between them."""
    return [
        Stretch(s.phase, before.ends_at if before else s.starts_at, s.ends_at, s.hours, s.cost, s.currency)
        for before, s in zip([None, *stretches], stretches, strict=False)
    ]


def timeline_text(stretches: Sequence[Stretch], width: int, ascii: bool = False) -> list[str]:
    """A bar of `width` cells, each phase as long as its hours and never without a cell, over a line for each phase. Letters tell the
    phases apart, and how a stretch is drawn says whether training may go on in it."""
    return [timeline_bar(stretches, width, ascii), *_table(stretches, width)]


def timeline_bar(stretches: Sequence[Stretch], width: int, ascii: bool = False) -> str:
    """The bar alone."""
    trains, kept, free = "=-." if ascii else "━─·"
    drawn = ""
    for stretch, cells in zip(stretches, shares([s.hours for s in stretches], width), strict=True):
        fill = free if stretch.phase == UNPLANNED else kept if stretch.phase in KEPT else trains
        drawn += LETTERS[stretch.phase] + fill * (cells - 1)
    return drawn


def shares(sizes: Sequence[float], width: int) -> list[int]:
    """`width` cells in proportion to `sizes`, at least one for each; more than `width` in all only where there are more sizes."""
    cells = [1] * len(sizes)
    total = sum(sizes) or 1.0
    for _ in range(width - len(sizes)):
        # The one that lacks most of what it should have: where all have a cell, this is the largest remainder.
        neediest = max(range(len(sizes)), key=lambda i: sizes[i] / total * width - cells[i])
        cells[neediest] += 1
    return cells


_LAYOUTS = (
    ("%a %d %b %H:%M", True, 2, 2),
    ("%d %b %H:%M", True, 2, 2),
    ("%d %b %H:%M", True, 0, 1),
    ("%d %b %H:%M", False, 0, 1),
)
"""How times are written, whether a stretch's end is, the decimals of money and the blanks between columns: the first that is not too
wide is taken."""


def _table(stretches: Sequence[Stretch], width: int) -> list[str]:
    lines: list[str] = []
    for layout in _LAYOUTS:
        lines = _lines(stretches, *layout)
        if max(map(len, lines)) <= width:
            break
    return [line[:width] for line in lines]


def _lines(stretches: Sequence[Stretch], form: str, ends: bool, decimals: int, gap: int) -> list[str]:
    rows = [[_zone_name(stretches), "hours", "from", "to"]]
    rows += [
        [f"{LETTERS[s.phase]} {s.phase}", f"{s.hours:g}", s.starts_at.strftime(form), s.ends_at.strftime(form)]
        for s in stretches
    ]
    total = round(sum(s.hours for s in stretches), 6)
    rows.append(["  together", f"{total:g}", "", ""])
    if not ends:
        rows = [row[:3] for row in rows]
    costs = [s.cost for s in stretches if s.cost is not None]
    if costs:
        money = [
            stretches[0].currency,
            *(f"{s.cost or 0:,.{decimals}f}" for s in stretches),
            f"{sum(costs):,.{decimals}f}",
        ]
        rows = [[*row, cell] for row, cell in zip(rows, money, strict=True)]
    last = len(rows[0]) - 1
    right = {1, last} if costs else {1}
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append((" " * gap).join(cells).rstrip())
    return lines


def _zone_name(stretches: Sequence[Stretch]) -> str:
    """The offset from UTC, or that times are local where it changes on the way."""
    offsets = {moment.strftime("%z") for s in stretches for moment in (s.starts_at, s.ends_at)}
    if len(offsets) > 1:
        return "local times"
    offset = offsets.pop()
    return "UTC" if offset in ("+0000", "") else f"UTC{offset[:3]}:{offset[3:5]}"
