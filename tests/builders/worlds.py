"""Rentals as they are before they begin: the plan, how long everything really takes, and what will come from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import tomli_w
from hypothesis import strategies as st

from ftui.engine.steps import GRACE_SECONDS
from ftui.plan.budget import Spread, reserve_hours
from ftui.plan.load import parse_plan
from ftui.plan.rental import default_hours
from ftui.plan.schema import Plan, RentalHours
from tests.builders.tiny import tiny_plan


def made_plan(
    days: float, hours: Mapping[str, float], seeds: int, priorities: tuple[int, ...], processes: int = 1
) -> Plan:
    """A plan with a variant for each priority, all of whose durations are said elsewhere."""
    variants = [
        {"id": f"v{i}", "because": "b", "priority": p, "change": {"training.learning_rate": 1e-3 / (i + 1)}}
        for i, p in enumerate(priorities)
    ]
    machine = {"backend": "cpu", "processes": processes, "strategy": "single" if processes == 1 else "ddp"}
    content = tiny_plan(
        evaluation__seeds=list(range(1, seeds + 1)),
        rental={"days": days, "hours": dict(hours)},
        variants=variants,
        machine=machine,
        training__micro_batch=4,
        training__accumulation=1 if processes > 1 else 2,
    )
    return parse_plan(tomli_w.dumps(content))


Ending = Literal["completed", "diverged", "failed", "lost"]


@dataclass(frozen=True)
class Fate:
    """What one attempt at a run comes to if nobody interferes."""

    ending: Ending = "completed"
    share: float = 0.5
    """Where in its spread the whole duration lies: 0 at its low, 1 at its high, more beyond it."""
    at: float = 0.5
    """How far an attempt that does not complete gets, as a share of what remained."""
    stop_seconds: float = 5.0
    """How long it takes to stop when told so; beyond the grace it is killed."""


@dataclass(frozen=True)
class Happening:
    """Something from outside, so many seconds after the launch."""

    seconds: float
    kind: Literal["killed", "reboot", "stop run", "stop campaign", "amend", "jump"]
    value: float = 0.0
    """Seconds until somebody starts a supervisor again; days of the amended rental; seconds the clock on the wall jumps."""


@dataclass(frozen=True)
class World:
    """Everything that is decided before a rental begins."""

    plan: Plan = field(repr=False)
    places: int
    durations: Mapping[str, Spread]
    """Stated seconds of one run of each variant."""
    closing: Mapping[str, Spread]
    """Stated seconds of one `evaluation` on the test split and of one `export`, verified."""
    fates: tuple[Fate, ...] = (Fate(),)
    """Of the attempts in the order in which they start, again from the first when they run out."""
    closing_share: float = 0.5
    """Where in their spreads evaluation and export lie."""
    data_seconds: float = 60.0
    gates_seconds: float = 600.0
    gates_pass: bool = True
    report_seconds: float = 20.0
    happenings: tuple[Happening, ...] = ()


def with_days(plan: Plan, days: float) -> Plan:
    """The plan with a longer or shorter rental, its hours in proportion."""
    factor = days / plan.rental.days
    hours = RentalHours(**{phase: own * factor for phase, own in plan.rental.hours.model_dump().items()})
    return plan.model_copy(update={"rental": plan.rental.model_copy(update={"days": days, "hours": hours})})


def within(spread: Spread, share: float) -> float:
    """Seconds at that place of a spread; beyond its high where `share` is above 1."""
    return spread.low + share * (spread.high - spread.low)


DAYS = st.sampled_from([3.0, 7.0, 30.0])


@st.composite
def worlds(draw: st.DrawFn, *, mild: bool) -> World:
    """A rental. In a mild one evaluation and export keep within their spreads, and nobody cuts the rental short or lets it lie near
    its end: what is promised of the deadline is promised of these."""
    days = draw(DAYS)
    seeds, processes = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 1, 2]))
    priorities = tuple(draw(st.lists(st.integers(0, 2), max_size=3)))
    kept = default_hours(days)
    hours = kept.model_dump()
    if draw(st.booleans()):  # a person who plans hardly any time for the end
        hours |= {"evaluation": 0.1, "export": 0.1, "margin": draw(st.sampled_from([0.5, 1.0]))}
    plan = made_plan(days, hours, seeds, priorities, processes)
    seconds = st.floats(60, days * 86400 * 0.6)
    lowest = draw(st.floats(20, 1800))

    def spread(middle: float) -> Spread:
        return Spread(middle, middle / draw(st.floats(1, 2)), middle * draw(st.floats(1, 2)))

    names = ("base", "control", *(variant.id for variant in plan.variants))
    durations = {name: spread(lowest if name == "base" else draw(seconds)) for name in names}
    closing = {"evaluation": spread(draw(st.floats(10, 7200))), "export": spread(draw(st.floats(10, 3600)))}
    fates = st.builds(
        Fate,
        ending=st.sampled_from(["completed"] * 4 + ["diverged", "failed", "lost"]),
        share=st.floats(0, 1) | st.floats(0, 4),
        at=st.floats(0.01, 1),
        stop_seconds=st.floats(0, GRACE_SECONDS * 1.5),
    )
    training_seconds = days * 86400 - reserve_hours(plan.rental) * 3600
    until = training_seconds * 0.5 if mild else days * 86400 * 1.2
    kinds = (
        ["killed", "reboot", "stop run"] if mild else ["killed", "reboot", "stop run", "stop campaign", "amend", "jump"]
    )
    happenings = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(kinds))
        value = {
            "amend": draw(st.sampled_from([1.0, days, days / 2, days * 1.5])),
            "jump": draw(st.floats(-86400 * 2, 86400 * 4)),
        }
        away = draw(st.floats(1, 600 if mild else 86400))
        happenings.append(Happening(draw(st.floats(1, until)), kind, value.get(kind, away)))  # type: ignore[arg-type]
    return World(
        plan,
        places=processes * draw(st.integers(1, 3)),
        durations=durations,
        closing=closing,
        fates=tuple(draw(st.lists(fates, min_size=1, max_size=8))),
        closing_share=draw(st.floats(0, 1) if mild else st.floats(0, 5)),
        gates_seconds=draw(st.floats(60, 7200)),
        gates_pass=draw(st.sampled_from([True] * 9 + [False])),
        happenings=tuple(happenings),
    )
