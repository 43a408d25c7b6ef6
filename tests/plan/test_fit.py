"""What fits, by priority and with its spread: surely is surely, and nobody's place is taken by what comes after (R4, R5)."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from ftui.plan.budget import Fit, Spread, fit_runs, rental_clock, reserve_hours, training_ends_at
from ftui.plan.rental import default_hours
from ftui.plan.schema import Rental
from ftui.plan.variants import PlannedRun
from tests.builders.properties import drawn

NAMES = ("base", "control", "a", "b", "c")

spreads = st.builds(
    lambda middle, down, up: Spread(middle * 60, middle * 60 / down, middle * 60 * up),
    st.integers(1, 600),
    st.floats(1, 3),
    st.floats(1, 3),
)
all_durations = st.fixed_dictionaries(dict.fromkeys(NAMES, spreads))
queues = st.lists(st.sampled_from(NAMES[1:]), max_size=14).map(
    lambda names: [PlannedRun(i, name, 1, -i) for i, name in enumerate(["base", "base", *names], 1)]
)
slots = st.integers(1, 4)
hours = st.floats(0.1, 40)


def ends_in_life(
    runs: list[PlannedRun], actual: list[float], durations: dict[str, Spread], limit: float, places: int
) -> set[int]:
    """Numbers of the runs that end within `limit` seconds where each takes `actual`, started as the supervisor starts them: in order,
    when a place is free, unless it may end too late; trained after the baseline alone."""
    free, ended, barrier = [0.0] * places, set(), 0.0
    for index, (run, seconds) in enumerate(zip(runs, actual, strict=True)):
        if run.variant != "base" and index and runs[index - 1].variant == "base":
            barrier = max(free)
        place = free.index(min(free))
        begins = max(free[place], barrier)
        if begins + durations[run.variant].high > limit:
            continue
        free[place] = begins + seconds
        ended.add(run.number)
    return ended


@given(queues, all_durations, hours, slots, st.data())
@drawn
def test_what_surely_fits_ends_in_time_whatever_happens_within_the_spread(
    runs: list[PlannedRun], durations: dict[str, Spread], limit: float, places: int, data: st.DataObject
) -> None:
    fit = fit_runs(runs, durations, limit, places)
    shares = data.draw(st.lists(st.floats(0, 1), min_size=len(runs), max_size=len(runs)))
    actual = [
        durations[run.variant].low + share * (durations[run.variant].high - durations[run.variant].low)
        for run, share in zip(runs, shares, strict=True)
    ]
    # A hair of time, for sums in another order.
    assert {run.number for run in fit.surely} <= ends_in_life(runs, actual, durations, limit * 3600 + 1e-3, places)


@given(queues, all_durations, hours, slots)
@drawn
def test_no_run_fits_while_one_before_it_that_is_no_longer_was_left_out(
    runs: list[PlannedRun], durations: dict[str, Spread], limit: float, places: int
) -> None:
    fit = fit_runs(runs, durations, limit, places)
    assert [placed.run for placed in fit.placed] == runs
    for index, placed in enumerate(fit.placed):
        for later in fit.placed[index + 1 :]:
            mine, other = durations[placed.run.variant], durations[later.run.variant]
            if placed.chance == "left out" and mine.seconds <= other.seconds:
                assert later.chance == "left out"
            if placed.chance != "surely" and mine.high <= other.high:
                assert later.chance != "surely"


@given(queues, all_durations, hours, slots, st.integers(0, 12))
@drawn
def test_what_comes_later_in_the_queue_changes_nothing_before_it(
    runs: list[PlannedRun], durations: dict[str, Spread], limit: float, places: int, length: int
) -> None:
    whole = fit_runs(runs, durations, limit, places)
    assert fit_runs(runs[:length], durations, limit, places).placed == whole.placed[:length]


@given(st.floats(0.1, 40), queues, all_durations, slots)
@drawn
def test_no_fit_eats_what_is_kept_for_the_end(
    days: float, runs: list[PlannedRun], durations: dict[str, Spread], places: int
) -> None:
    rental = Rental(days=days, hours=default_hours(days))
    fit = fit_runs(runs, durations, rental.hours.experiment, places)
    assert fit.hours <= rental.hours.experiment + 1e-9
    assert fit.hours_low <= fit.hours <= fit.hours_high
    assert all(p.ends and p.ends.high <= rental.hours.experiment * 3600 for p in fit.placed if p.chance == "surely")
    clock = rental_clock(rental, datetime(2026, 12, 1, tzinfo=UTC))
    before_the_end = (training_ends_at(rental, clock) - clock.starts_at).total_seconds() / 3600
    assert rental.hours.preflight + fit.hours <= before_the_end + 1e-6
    assert before_the_end + reserve_hours(rental) <= days * 24 + 1e-6


def chances(fit: Fit) -> list[str]:
    return [placed.chance for placed in fit.placed]


def test_surely_probably_and_left_out_follow_from_the_spread() -> None:
    """One place and three hours: the first two end at 1 and 2 h, at most at 1.5 and 3 h; the third at 3 h, at most at 4.5 h."""
    runs = [PlannedRun(i, "a", i, 0) for i in range(1, 5)]
    fit = fit_runs(runs, {"a": Spread(3600, 2700, 5400)}, hours=3)
    assert chances(fit) == ["surely", "surely", "probably", "left out"]
    assert [p.ends.high / 3600 for p in fit.placed if p.ends] == [1.5, 3.0, 4.5, 6.0]
    assert fit.left_out == [runs[3]] and fit.fits == runs[:3]
    # At the low end it would end after 4 × 0.75 h = 3 h.
    assert fit.placed[3].cause == (
        "it would end after 4 h, and experiments have 3 h; it finds room only if all goes fast"
    )


def test_a_run_that_may_be_started_after_all_makes_those_behind_it_less_sure() -> None:
    """The long one, of 3 to 9 hours, is expected to end too late; if it is fast it is started, and takes the short one's time."""
    runs = [PlannedRun(1, "long", 1, 1), PlannedRun(2, "short", 1, 0)]
    durations = {"long": Spread(6 * 3600, 3 * 3600, 9 * 3600), "short": Spread(3600, 3600, 3600)}
    assert chances(fit_runs(runs, durations, hours=4)) == ["left out", "probably"]
    assert chances(fit_runs(runs, durations, hours=2)) == ["left out", "surely"]


def test_training_waits_for_the_last_baseline() -> None:
    """Three baselines of an hour on two places take two hours; what trains starts after them."""
    runs = [PlannedRun(i, "base", i, 2) for i in (1, 2, 3)] + [PlannedRun(4, "control", 1, 1)]
    hour = Spread(3600, 3600, 3600)
    assert fit_runs(runs, {"base": hour, "control": hour}, hours=9, slots=2).hours == 3


def test_a_run_nobody_knows_the_length_of_is_left_out_and_what_follows_is_not_sure() -> None:
    runs = [PlannedRun(1, "new", 1, 1), PlannedRun(2, "a", 1, 0)]
    fit = fit_runs(runs, {"a": Spread(3600, 3600, 3600)}, hours=2)
    assert chances(fit) == ["left out", "probably"]
    assert "nobody knows yet" in fit.placed[0].cause and fit.placed[0].ends is None
