"""A cut that says all fits then makes it so, and says what it costs the experiment (R4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from ftui.plan.budget import Fit, Spread, fit_runs
from ftui.plan.cuts import Cut, cut_plan, cuts
from ftui.plan.durations import RunCosts, plan_durations
from ftui.plan.edit import changed_text
from ftui.plan.load import parse_plan
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion
from ftui.plan.variants import planned_runs
from tests.builders.properties import drawn
from tests.builders.tiny import tiny_plan

DATA = DataVersion(hash="d" * 16, train_examples=800, validation_examples=100, test_examples=100, labels=["a", "b"])
HOURS = {"preflight": 1, "experiment": 10, "evaluation": 2, "resume": 1, "export": 1, "margin": 2}
VARIANTS = [
    {"id": "last", "because": "Nobody tried it.", "change": {"training.learning_rate": 1e-3}},
    {"id": "first", "because": "It helped elsewhere.", "change": {"training.learning_rate": 2e-3}, "priority": 9},
    {"id": "wide", "because": "More room.", "change": {"method.rank": 16}, "priority": 3},
]
NAMES = ("base", "control", "last", "first", "wide")


def plan(**changes: Any) -> Plan:
    """The control and three variants on three seeds: 12 runs of 100 updates, validated at each 10th, and 3 baselines."""
    training = {"amount": 100, "validate_every": 10, "checkpoint_every": 10, "warmup": 2}
    content = tiny_plan(
        variants=VARIANTS,
        evaluation__seeds=[1, 2, 3],
        rental={"days": 1, "price_per_hour": 2.0, "hours": HOURS},
        **{f"training__{name}": value for name, value in training.items()},
    )
    for name, value in changes.items():
        *sections, field = name.split("__")
        table = content
        for section in sections:
            table = table[section]
        table[field] = value
    return Plan.model_validate(content)


def exactly(seconds: float) -> Spread:
    return Spread(seconds, seconds, seconds)


def costs(update: float, validation: float = 0.0, *, slow: float = 1.0) -> dict[str, RunCosts]:
    """The same for all; `slow`: how many times longer at worst."""
    own = RunCosts(*(Spread(s, s, s * slow) for s in (update, validation, 0.0, 0.0)))
    return dict.fromkeys(NAMES, own)


def fit(of: Plan, known: Mapping[str, RunCosts], slots: int = 1) -> Fit:
    return fit_runs(planned_runs(of), plan_durations(of, DATA, known), of.rental.hours.experiment, slots)


def by_kind(found: list[Cut]) -> dict[str, Cut]:
    return {next(iter(cut.change), "drop"): cut for cut in found}


spreads = st.builds(
    lambda low, a, b: Spread(low * a, low, low * a * b), st.floats(0.1, 200), st.floats(1, 3), st.floats(1, 3)
)
own_costs = st.builds(RunCosts, spreads, spreads, spreads, spreads)


@given(
    st.fixed_dictionaries(dict.fromkeys(NAMES, own_costs)),
    st.integers(1, 3),
    st.booleans(),
    st.floats(0.5, 16),
    st.sampled_from([("updates", 100), ("epochs", 3), ("examples", 1000)]),
)
@drawn
def test_a_cut_that_claims_to_fit_does_when_applied(
    known: dict[str, RunCosts], slots: int, sure: bool, hours: float, held: tuple[str, int]
) -> None:
    own = plan(rental__hours={**HOURS, "experiment": hours}, training__hold=held[0], training__amount=held[1])
    found = cuts(own, DATA, known, slots, sure=sure)
    before = fit(own, known, slots)
    enough = not before.left_out and not (sure and before.probably)
    assert not (enough and found)
    for cut in found:
        changed = cut_plan(own, cut.change, cut.drop)
        assert changed is not None
        after = fit(changed, known, slots)
        assert cut.fits == (not after.left_out and not (sure and after.probably)), cut.title
        assert cut.fits or len(after.surely if sure else after.fits) > len(before.surely if sure else before.fits), (
            cut.title
        )
        if cut.fits:
            assert math.isclose(after.hours, cut.hours) and math.isclose(after.hours_high, cut.hours_high)
        assert changed.rental.hours.total <= changed.rental.days * 24 + 1e-9


def test_nothing_is_cut_where_all_fits_or_where_costs_are_unknown() -> None:
    assert cuts(plan(), DATA, costs(30), 1) == []  # 12 × 3,000 s = 10 h
    few = {name: own for name, own in costs(60).items() if name != "wide"}
    assert cuts(plan(), DATA, few, 1) == []


def test_unplanned_hours_come_first_and_change_nothing() -> None:
    """12 runs of 100 × 36 s are 12 h; 10 are planned and 24 - 17 = 7 are free."""
    first = cuts(plan(), DATA, costs(36), 1)[0]
    assert first.change == {"rental.hours.experiment": 12.0}
    assert first.experiment == "nothing" and first.fits and first.hours == 12


def test_where_unplanned_hours_do_not_suffice_they_are_offered_for_what_they_let_in() -> None:
    """12 runs of 2 h are 24 h; 17 may be had."""
    found = by_kind(cuts(plan(), DATA, costs(72), 1))
    assert found["rental.hours.experiment"].change["rental.hours.experiment"] == 17.0
    assert not found["rental.hours.experiment"].fits
    # 24 h and 7 h for the other phases: two days hold 31.
    longer = found["rental.days"]
    assert longer.change == {"rental.days": 2, "rental.hours.experiment": 24.0} and longer.fits
    assert "24 more hours are rented, 48.00 USD more" in longer.experiment


def test_a_longer_rental_moves_an_end_that_was_named() -> None:
    ends = datetime(2026, 12, 5, 9, tzinfo=UTC)
    rental = {"days": 1, "ends_at": ends, "hours": HOURS}
    longer = by_kind(cuts(plan(rental=rental), DATA, costs(72), 1))["rental.days"]
    assert longer.change["rental.ends_at"] == ends + timedelta(days=1)
    assert longer.content()["change"]["rental.ends_at"] == "2026-12-06T09:00:00+00:00"


def test_rarer_validation_is_offered_where_validations_cost_a_lot() -> None:
    """12 runs of 100 × 10 s and 10 × 300 s are 13.3 h, 3 baselines 0.25 h; at each 20th update they are 8.3 h."""
    found = by_kind(cuts(plan(), DATA, costs(10, 300), 1))
    assert found["training.validate_every"].change == {"training.validate_every": 20}
    assert math.isclose(found["training.validate_every"].hours, (12 * (1000 + 5 * 300) + 3 * 300) / 3600)
    assert "training.validate_every" not in by_kind(cuts(plan(), DATA, costs(36, 0.001), 1))


def test_fewer_seeds_variants_and_updates_say_what_they_cost() -> None:
    """12 runs of 1.5 h are 18 h for 10: one seed is 6 h, one variant and the control 9 h, 55 updates 9.9 h."""
    found = by_kind(cuts(plan(), DATA, costs(54), 1))
    assert found["evaluation.seeds"].change == {"evaluation.seeds": [1]}
    assert "weakens the verdict" in found["evaluation.seeds"].experiment
    assert "by chance alone is not seen" in found["evaluation.seeds"].experiment
    assert found["drop"].drop == ("wide", "last"), "the least wanted go"
    assert found["drop"].hours == 9 and "Nobody tried it." in found["drop"].experiment
    assert found["training.amount"].change == {"training.amount": 55}
    assert "changes the task" in found["training.amount"].experiment
    assert list(found)[-3:] == ["evaluation.seeds", "drop", "training.amount"]


def test_less_training_is_the_most_that_fits() -> None:
    for update in (40, 54, 71.3, 100):
        known = costs(update, 20)
        amount = by_kind(cuts(plan(), DATA, known, 1))["training.amount"].change["training.amount"]
        more = cut_plan(plan(), {"training.amount": amount + 1})
        assert more is not None and fit(more, known).left_out
    # Below the interval of validations a plan says nothing any more.
    assert "training.amount" not in by_kind(cuts(plan(), DATA, costs(400), 1))


def test_the_last_variant_stays_where_it_is_what_the_control_is_compared_with() -> None:
    """12 runs of 5 h: three of the control alone would be 15 h."""
    assert "drop" not in by_kind(cuts(plan(rental__hours={**HOURS, "experiment": 16}), DATA, costs(180), 1))
    against_base = plan(rental__hours={**HOURS, "experiment": 16}, hypothesis__reference="base")
    assert by_kind(cuts(against_base, DATA, costs(180), 1))["drop"].drop == ("first", "wide", "last")


def test_what_is_only_predicted_need_not_fit_at_its_worst() -> None:
    known = costs(30, slow=2.0)  # 10 h as expected, 20 h at worst
    assert cuts(plan(), DATA, known, 1, sure=False) == []
    assert cuts(plan(), DATA, known, 1)


def test_a_cut_can_be_written_into_the_text_of_a_plan() -> None:
    ends = datetime(2026, 12, 5, 9, tzinfo=UTC)
    own = plan(rental={"days": 1, "ends_at": ends, "hours": HOURS})
    text = tomli_w.dumps(_without_nulls(own.model_dump(by_alias=True)))
    assert parse_plan(text) == own
    found = [cut for cut in cuts(own, DATA, costs(72), 1) if not cut.drop]
    assert len(found) >= 4
    for cut in found:
        assert parse_plan(changed_text(text, cut.change)) == cut_plan(own, cut.change)


def _without_nulls(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _without_nulls(value) for name, value in content.items() if value is not None}
    return [_without_nulls(value) for value in content] if isinstance(content, list) else content


def test_a_cut_that_makes_no_plan_is_none() -> None:
    assert cut_plan(plan(), {"training.amount": 0}) is None
    assert cut_plan(plan(), {"training.validate_every": 200}) is None
    assert cut_plan(plan(), {"method.rank": 16}) is None, "`wide` would change nothing any more"
