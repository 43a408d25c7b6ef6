"""A rental of any length has hours that fit it, and its stretches join from its start to its end in any time zone (R1, R2, R5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftui.plan.budget import Clock, later, passed, rental_clock, training_ends_at
from ftui.plan.rental import KEPT, LETTERS, default_hours, read_stretch, shares, timeline, timeline_bar, timeline_text
from ftui.plan.schema import Rental
from tests.builders.properties import drawn

ZONES = ("UTC", "Europe/Warsaw", "America/St_Johns", "Asia/Seoul", "Australia/Lord_Howe")
SUMMER_TIME = datetime(2026, 3, 27, 9, tzinfo=ZoneInfo("Europe/Warsaw"))
"""A Friday; on Sunday at 02:00 it becomes 03:00."""

lengths = st.one_of(st.sampled_from([0.1, 1.0, 3.0, 7.0, 30.0]), st.floats(0.01, 120))
starts = st.builds(
    lambda zone, hour: (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hour)).astimezone(ZoneInfo(zone)),
    st.sampled_from(ZONES),
    st.integers(0, 24 * 365),
)


def rental(days: float, **fields: object) -> Rental:
    return Rental.model_validate({"days": days, "hours": default_hours(days), **fields})


@given(lengths)
@drawn
def test_default_hours_never_exceed_the_rental_and_leave_each_phase_some(days: float) -> None:
    hours = default_hours(days)
    assert hours.total <= days * 24
    assert all(value > 0 for value in hours.model_dump().values())
    assert hours.experiment == max(hours.model_dump().values())


@given(st.floats(3, 60), st.floats(1, 4))
@drawn
def test_a_longer_rental_keeps_more_for_its_end_but_not_in_proportion(days: float, times: float) -> None:
    short, long = default_hours(days), default_hours(days * times)
    kept, more = (sum(getattr(h, phase) for phase in KEPT) for h in (short, long))
    # Each of three figures is rounded by half an hour at most, in both.
    assert kept - 3 <= more <= kept * times + 3


@given(lengths, starts, st.sampled_from(["start", "end", "launch"]))
@drawn
def test_stretches_join_without_gap_from_start_to_end(days: float, start: datetime, given_as: str) -> None:
    named = {"start": {"starts_at": start}, "end": {"ends_at": later(start, timedelta(days=days))}, "launch": {}}[
        given_as
    ]
    own = rental(days, **named)
    clock = rental_clock(own, start)
    stretches = timeline(own, clock)
    assert abs(passed(clock.starts_at, clock.ends_at) - timedelta(days=days)) < timedelta(milliseconds=1)
    assert stretches[0].starts_at.timestamp() == clock.starts_at.timestamp()
    assert stretches[-1].ends_at.timestamp() == clock.ends_at.timestamp()
    assert all(before.ends_at == after.starts_at for before, after in pairwise(stretches))
    for stretch in stretches:
        assert passed(stretch.starts_at, stretch.ends_at) / timedelta(hours=1) == pytest.approx(stretch.hours, abs=1e-3)
        if stretch.phase in own.hours.model_dump():
            assert stretch.hours == pytest.approx(getattr(own.hours, stretch.phase), abs=1e-3)
    evaluation = next(s for s in stretches if s.phase == "evaluation")
    assert abs(passed(evaluation.starts_at, training_ends_at(own, clock))) < timedelta(seconds=2)


def test_a_day_of_23_hours_takes_no_hour_of_the_rental() -> None:
    own = rental(3, starts_at=SUMMER_TIME, price_per_hour=2)
    clock = rental_clock(own, SUMMER_TIME)
    assert clock.ends_at.hour == 10, "72 hours on, a clock on the wall shows an hour more"
    assert clock.left(SUMMER_TIME) == timedelta(hours=72)
    assert clock.gone(later(SUMMER_TIME, timedelta(hours=54))) == 0.75
    stretches = timeline(own, clock)
    assert sum(s.hours for s in stretches) == 72
    assert sum(s.cost or 0 for s in stretches) == 144
    assert {s.starts_at.utcoffset() for s in stretches} == {timedelta(hours=1), timedelta(hours=2)}
    assert "local times" in timeline_text(stretches, 78)[1]


def test_a_plan_that_names_both_ends_counts_the_hours_between_them() -> None:
    ends = datetime(2026, 3, 30, 10, tzinfo=ZoneInfo("Europe/Warsaw"))
    assert rental(3, starts_at=SUMMER_TIME, ends_at=ends).ends_at == ends
    with pytest.raises(ValueError, match=r"from starts_at to ends_at are 2\.9"):
        rental(3, starts_at=SUMMER_TIME, ends_at=ends - timedelta(hours=1))


@pytest.mark.parametrize("seconds", [-50, 0.5, 50])
def test_a_clock_off_by_less_than_a_minute_still_ends_where_it_ends(seconds: float) -> None:
    start = datetime(2026, 12, 1, 9, tzinfo=UTC)
    hours = {"preflight": 2, "experiment": 48, "evaluation": 6, "resume": 6, "export": 2, "margin": 8}
    own = Rental.model_validate({"days": 3, "hours": hours})
    stretches = timeline(own, Clock(start, start + timedelta(days=3, seconds=seconds)))
    assert stretches[-1].ends_at == start + timedelta(days=3, seconds=seconds)
    assert all(before.ends_at == after.starts_at for before, after in pairwise(stretches))
    assert [s.phase for s in stretches if s.phase == "unplanned"] == ["unplanned"] * (seconds > 1)


def test_what_no_phase_has_is_named_and_what_has_no_hours_is_not() -> None:
    start = datetime(2026, 12, 1, 9, tzinfo=UTC)
    hours = {"preflight": 2, "experiment": 4, "evaluation": 1, "resume": 0, "export": 1, "margin": 0}
    own = Rental.model_validate({"days": 1, "hours": hours})
    stretches = timeline(own, rental_clock(own, start))
    assert [(s.phase, s.hours) for s in stretches] == [
        ("preflight", 2), ("experiment", 4), ("unplanned", 16), ("evaluation", 1), ("export", 1),
    ]  # fmt: skip


@given(st.lists(st.floats(0.001, 700), min_size=1, max_size=7), st.integers(7, 200))
@drawn
def test_a_bar_is_full_and_each_part_is_seen_and_as_long_as_its_size(sizes: list[float], width: int) -> None:
    cells = shares(sizes, width)
    assert sum(cells) == width and min(cells) >= 1
    exact = [size / sum(sizes) * width for size in sizes]
    # What the smallest are given beyond their size, one cell each at most, is taken from the others.
    assert all(abs(got - size) <= len(sizes) for got, size in zip(cells, exact, strict=True))
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    assert all(cells[a] <= cells[b] + 1 for a, b in pairwise(order))


@pytest.mark.parametrize("width", [50, 78, 118])
@pytest.mark.parametrize("days", [0.1, 3, 7, 30])
@pytest.mark.parametrize("price", [None, 2.5, 8.0])
def test_the_timeline_reads_without_colour_at_any_width(width: int, days: float, price: float | None) -> None:
    own = rental(days, starts_at="2026-12-01T09:00:00+01:00", price_per_hour=price, currency="EUR")
    stretches = timeline(own, rental_clock(own, datetime.now(UTC)))
    bar, heads, *rows, together = timeline_text(stretches, width)
    assert len(bar) == width and max(map(len, (heads, *rows, together))) <= width
    letters = [character for character in bar if character.isalpha()]
    assert letters == [LETTERS[s.phase] for s in stretches] == [row[0] for row in rows]
    for stretch, row in zip(stretches, rows, strict=True):
        assert row[2:].startswith(stretch.phase) and f" {stretch.hours:g} " in row
        assert f"{stretch.starts_at:%d %b %H:%M}" in row and f"{stretch.ends_at:%d %b %H:%M}" in row
    assert ("EUR" in heads) == (price is not None)
    if price is not None:
        decimals = 2 if "." in together.split()[-1] else 0
        assert together.split()[-1] == f"{days * 24 * price:,.{decimals}f}"
    assert timeline_bar(stretches, width, ascii=True).isascii()


def test_a_stretch_is_read_back_as_it_was_told() -> None:
    own = rental(3, starts_at="2026-12-01T09:00:00+01:00", price_per_hour=2.5)
    stretches = timeline(own, rental_clock(own, datetime.now(UTC)))
    assert [read_stretch(s.content()) for s in stretches] == stretches
