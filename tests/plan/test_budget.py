"""The rental's clock, what fits into it and what is kept back (R1–R5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ftui.plan.budget import Spread, fit_runs, phase_use, rental_clock, reserve_hours, run_duration, training_ends_at
from ftui.plan.schema import Rental
from ftui.plan.variants import PlannedRun

LAUNCH = datetime(2026, 12, 1, 9, tzinfo=UTC)
HOURS = {"preflight": 2, "experiment": 48, "evaluation": 6, "resume": 6, "export": 2, "margin": 8}


def rental(**fields: object) -> Rental:
    return Rental.model_validate({"days": 3, "price_per_hour": 2.5, "hours": HOURS, **fields})


def test_the_clock_starts_at_the_launch_unless_the_plan_says_otherwise() -> None:
    assert rental_clock(rental(), LAUNCH).ends_at == LAUNCH + timedelta(days=3)
    fixed = rental_clock(rental(ends_at="2026-12-05T09:00:00+01:00"), LAUNCH)
    assert fixed.ends_at == datetime(2026, 12, 5, 8, tzinfo=UTC)
    assert fixed.starts_at == datetime(2026, 12, 2, 8, tzinfo=UTC)


def test_training_ends_before_evaluation_export_and_margin() -> None:
    clock = rental_clock(rental(), LAUNCH)
    assert reserve_hours(rental()) == 6 + 2 + 8
    assert training_ends_at(rental(), clock) == LAUNCH + timedelta(hours=72 - 16)


def test_a_run_lasts_its_updates_validations_checkpoints_and_start() -> None:
    duration = run_duration(
        updates=200, validations=4, checkpoints=4,
        update=Spread(0.3, 0.2, 0.5), validation=Spread(3, 2, 4), checkpoint=Spread(1, 1, 1), start=Spread(8, 8, 8),
    )  # fmt: skip
    assert duration.seconds == 200 * 0.3 + 4 * 3 + 4 + 8
    assert (duration.low, duration.high) == (40 + 8 + 4 + 8, 100 + 16 + 4 + 8)


def test_runs_fit_in_queue_order_and_a_long_one_does_not_block_a_short_one() -> None:
    runs = [PlannedRun(1, "a", 1, 0), PlannedRun(2, "long", 1, 0), PlannedRun(3, "a", 2, 0)]
    hour = Spread(3600, 3600, 3600)
    fit = fit_runs(runs, {"a": hour, "long": hour.times(5)}, hours=2)
    assert [r.number for r in fit.fits] == [1, 3]
    assert [r.number for r in fit.left_out] == [2]
    assert fit.hours == 2


def test_places_work_side_by_side() -> None:
    runs = [PlannedRun(i, "a", i, 0) for i in range(4)]
    assert fit_runs(runs, {"a": Spread(3600, 3600, 7200)}, hours=10, slots=2).hours == 2


def test_hours_and_money_by_phase() -> None:
    use = {u.phase: u for u in phase_use(rental(), {"experiment": 1800.0})}
    assert use["experiment"].spent_hours == 0.5
    assert use["experiment"].cost(2.5) == (120.0, 1.25)
    assert use["export"].cost(None) is None
