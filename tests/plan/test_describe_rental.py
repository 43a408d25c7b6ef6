"""What `ftui plan` says about time and money: the text says what the JSON says, and nothing is said that nobody knows (R1–R5, S5)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import tomli_w

from ftui.plan.budget import Spread, rental_clock
from ftui.plan.describe import describe_plan, plan_text
from ftui.plan.durations import RunCosts
from ftui.plan.load import parse_plan
from ftui.plan.predicted import ASSUMPTIONS
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion
from tests.builders.tiny import tiny_plan

DATA = DataVersion(hash="d" * 16, train_examples=96, validation_examples=30, test_examples=30, labels=["a", "b", "c"])
LAUNCH = datetime(2026, 12, 1, 9, tzinfo=UTC)
HOURS = {"preflight": 1, "experiment": 10, "evaluation": 2, "resume": 1, "export": 1, "margin": 2}


def plan(**changes: Any) -> Plan:
    """A baseline, the control and one variant, with two seeds."""
    variants = [{"id": "slower", "because": "Smaller steps.", "change": {"training.learning_rate": 1e-3}}]
    rental = {"days": 1, "price_per_hour": 3.0, "currency": "EUR", "hours": HOURS}
    return parse_plan(tomli_w.dumps(tiny_plan(variants=variants, evaluation__seeds=[1, 2], rental=rental, **changes)))


def costs(hours: float, low: float, high: float) -> dict[str, RunCosts]:
    """A run lasts so long, all of it its start; a baseline no time at all."""
    own = RunCosts(*(Spread(0, 0, 0),) * 3, Spread(hours * 3600, low * 3600, high * 3600))
    nothing = RunCosts(*(Spread(0, 0, 0),) * 4)
    return {"base": nothing, "control": own, "slower": own}


def described(known: dict[str, RunCosts], slots: int = 1, **more: Any) -> dict[str, Any]:
    own = plan()
    told = describe_plan(own, DATA, known, slots, clock=rental_clock(own.rental, LAUNCH), **more)
    return json.loads(json.dumps(told))


def test_the_fit_says_surely_probably_and_left_out_and_the_cuts_that_make_room() -> None:
    """Four runs of 3 h (2 to 5) in 10 h end at 3, 6, 9 and 12 h, at most at 5, 10, 15 and 20 h."""
    told = described(costs(3, 2, 5))
    runs = told["runs"]
    fit = told["fit"]
    assert (fit["surely"], fit["probably"], fit["left_out"]) == (runs[:4], [runs[4]], [runs[5]])
    assert (fit["hours"], fit["hours_low"], fit["hours_high"]) == (9, 6, 15)
    text = plan_text(told)
    assert "all fitting runs end after 9.00 h (6.00 to 15.00) of 10 h on 1 place, as measured by the pilot" in text
    assert "surely fit: 4 of 6 runs" in text
    assert fit["by_variant"]["slower"] == {"surely": 0, "probably": 1, "left out": 1}
    assert "probably fit, if all goes as expected: slower (1 of 2)" in text
    assert "left out: slower (1 of 2)" in text
    assert f"the first is {runs[5]}: it would end after 12 h, and experiments have 10 h" in text
    assert [cut["title"] for cut in told["cuts"] if not cut["fits"]] == [
        "17 h for experiments instead of 10, from 7 unplanned ones"
    ]
    for cut in told["cuts"]:
        assert f"{cut['title']} ({cut['hours']:.3g} h needed, at most {cut['hours_high']:.3g}" in text
        assert f"to the experiment: {cut['experiment']}" in text


def test_each_variant_has_its_hours_and_its_share_of_the_price() -> None:
    """Two seeds of 3 h on one of two places: 6 h, half of the 18 EUR that the machine costs meanwhile."""
    told = described(costs(3, 2, 5), slots=2)
    for variant in told["variants"]:
        assert variant["hours"] == [6, 4, 10] and variant["cost"] == [9, 6, 15]
    assert plan_text(told).count("2 runs: 6 h (4 to 10), 9.00 EUR (6.00 to 15.00)") == 2


def test_nothing_is_said_of_durations_nobody_knows() -> None:
    told = described({})
    assert told["fit"] is None and told["cuts"] == []
    assert all(variant["hours"] is None and variant["cost"] is None for variant in told["variants"])
    assert "what fits is known after the pilot" in plan_text(told)
    known = costs(3, 2, 5)
    del known["slower"]
    told = described(known)
    assert [run for run in told["runs"] if "slower" in run] == told["fit"]["left_out"]
    assert "nobody knows yet how long it takes" in plan_text(told)
    assert [variant["hours"] is None for variant in told["variants"]] == [False, True]


def test_a_prediction_is_called_one_and_says_what_it_assumes() -> None:
    told = described(costs(2, 1, 4), predicted_for="l4")
    assert told["fit"]["predicted_for"] == "l4" and told["fit"]["assumptions"] == list(ASSUMPTIONS)
    assert told["cuts"] == [], "as expected, 8 of 10 hours are needed"
    text = plan_text(told)
    assert "predicted for l4, not measured" in text and "as measured" not in text
    assert all(assumed in text for assumed in ASSUMPTIONS)


def test_the_rental_is_laid_out_as_launched_as_planned_or_as_if_launched_now() -> None:
    told = described({})
    assert [s["phase"] for s in told["rental"]["timeline"]] == [
        "preflight", "experiment", "resume", "unplanned", "evaluation", "export", "margin",
    ]  # fmt: skip
    assert (told["rental"]["timeline"][0]["starts_at"], told["rental"]["timeline"][-1]["ends_at"]) == (
        "2026-12-01T09:00:00+00:00",
        "2026-12-02T09:00:00+00:00",
    )
    text = plan_text(told)
    for stretch in told["rental"]["timeline"]:
        assert f" {stretch['phase']}" in text and f"{stretch['cost']:,.2f}" in text
    assert "  if it is launched now:\n  P" in text
    assert "  as launched:\n" in plan_text(described({}, launched=True))
    assert describe_plan(plan(), DATA, {}, 1)["rental"]["timeline"] == []


def test_no_line_of_the_rental_is_wider_than_asked_but_for_sentences() -> None:
    text = plan_text(described({}), width=50).splitlines()
    begins = text.index("  if it is launched now:")
    assert all(len(line) <= 50 for line in text[begins + 1 : begins + 10])


def test_a_variant_that_breaks_what_is_held_is_flagged() -> None:
    """Updates are held: with twice the micro-batch, as many updates see twice the examples; epochs held, all is even."""
    shorter = [{"id": "shorter", "because": "Cheaper.", "change": {"training.amount": 6}}]
    wider = [{"id": "wider", "because": "Smoother.", "change": {"training.micro_batch": 8}}]
    own = parse_plan(tomli_w.dumps(tiny_plan(variants=shorter)))
    told = describe_plan(own, DATA, {}, 1)
    assert told["flags"] == ["shorter sees 6 updates where the control sees 12: not a fair comparison"]
    assert f"  ! {told['flags'][0]}" in plan_text(told)
    fair = parse_plan(tomli_w.dumps(tiny_plan(variants=wider, training__hold="epochs", training__amount=1)))
    assert describe_plan(fair, DATA, {}, 1)["flags"] == []
