"""What the plan says the evaluation can show is what the verdict then shows: simulated, enumerated, and with the verdict itself."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ftui.plan.detect import POWER, Design, chance, smallest_difference, smallest_tolerance
from ftui.plan.load import parse_plan
from ftui.plan.power import AGREEMENT, DEVIATION, DISAGREEMENT, Measured, power_of
from ftui.plan.schema import WHOLE, Plan
from ftui.plan.variants import candidates
from ftui.verdict.bootstrap import compare
from ftui.verdict.multiple import bonferroni_tail
from ftui.verdict.predictions import Predictions
from tests.builders.predictions import classified
from tests.builders.processes import module
from tests.builders.tiny import tiny_plan

SEED_CASE = Path(__file__).parents[2] / "campaigns" / "three-learning-rates"
LABELS = ("a", "b", "c", "d")


def a_plan(**changes: Any) -> Plan:
    return parse_plan(tomli_w.dumps(tiny_plan(**{"evaluation__resamples": 2000, **changes})))


def differences(random: np.random.Generator, design: Design, difference: float, campaigns: int) -> np.ndarray:
    """(campaigns, S, n) score differences −1, 0 and 1 with the mean, disagreement, agreement and seeds' deviation of `design`.

    An example takes its difference from a draw common to all seeds with chance √agreement, else from one of the seed's own: two
    seeds then share it with chance `agreement`, which is their correlation. Seeds move the mean of their own draws alone.
    """
    seeds, examples = design.seeds, int(design.examples)
    common_share = math.sqrt(design.agreement)

    def draw(mean: Any, shape: tuple[int, ...]) -> np.ndarray:
        uniform = random.random(shape, dtype=np.float32)
        better = (design.disagreement + mean) / 2
        return (uniform < better).astype(np.int8) - ((uniform >= better) & (uniform < design.disagreement))

    moved = random.normal(0, design.deviation * math.sqrt(2), (campaigns, seeds, 1)) / (1 - common_share)
    own = draw(difference + (moved if seeds > 1 else 0), (campaigns, seeds, examples))
    common = draw(difference, (campaigns, 1, examples))
    return np.where(random.random(own.shape, dtype=np.float32) < common_share, common, own)


def shown(found: np.ndarray, tail: float, tolerance: float = 0.0) -> np.ndarray:
    """(campaigns,) whether the verdict's interval lies above −`tolerance`, by moments in place of its draws (bootstrap.py)."""
    _, seeds, examples = found.shape
    by_seed, by_example = found.mean(axis=2), found.mean(axis=1)
    over_examples = by_example.var(axis=1) / examples
    if seeds == 1:
        return np.asarray(by_seed[:, 0] - stats.norm.isf(tail) * np.sqrt(over_examples) > -tolerance)
    interaction = (found - by_example[:, None]).var(axis=2).sum(axis=1) / examples / (seeds - 1)
    between = by_seed.var(axis=1, ddof=1)
    of_seeds = np.maximum(0, between - interaction) / seeds
    total = over_examples + np.maximum((seeds - 1) / seeds**2 * (between + interaction), of_seeds)
    share = np.maximum(np.minimum(of_seeds, total) / total, 1e-6)
    half = stats.t.isf(tail, (seeds - 1) / share**2) * np.sqrt(total)
    return np.asarray(by_seed.mean(axis=1) - half > -tolerance)


SETTINGS = [
    Design(400, 1, 0.05, 0.10, 0.5, 0.0),
    Design(600, 1, 0.05 / 3, 0.30, 0.5, 0.0),
    Design(400, 2, 0.025, 0.20, 0.5, 0.0),
    Design(500, 3, 0.025, 0.20, 0.3, 0.005),
    Design(400, 3, 0.05, 0.30, 0.3, 0.015),
    Design(300, 5, 0.05 / 4, 0.30, 0.5, 0.01),
]


@pytest.mark.parametrize("design", SETTINGS, ids=str)
def test_the_chance_is_the_share_of_simulated_campaigns_that_show_it(design: Design) -> None:
    """6,000 campaigns each: standard error at most √(0.25 / 6,000) = 0.65 points."""
    random = np.random.default_rng([int(design.examples), design.seeds])
    for half_way in (0.7, 1.0):
        difference = half_way * (smallest_difference(design) or 0)
        found = np.concatenate([shown(differences(random, design, difference, 500), design.tail) for _ in range(12)])
        assert chance(design, difference) == pytest.approx(found.mean(), abs=0.02)


@pytest.mark.parametrize("design", SETTINGS[1:5:3], ids=str)
def test_an_equal_candidate_passes_as_often_as_said(design: Design) -> None:
    random = np.random.default_rng(11)
    tolerance = smallest_tolerance(design) or 0
    found = [shown(differences(random, design, 0.0, 500), design.tail, tolerance) for _ in range(12)]
    assert np.mean(found) == pytest.approx(POWER, abs=0.02)


def answered(random: np.random.Generator, found: np.ndarray) -> tuple[dict[int, Predictions], dict[int, Predictions]]:
    """A candidate's and a reference's answers with these differences (S, n); where they are equal, both are right in 6 of 10."""
    seeds, examples = found.shape
    target = np.arange(examples) % len(LABELS)
    both = random.random((1, examples)) < 0.6
    sides = []
    for right in (np.where(found == 0, both, found > 0), np.where(found == 0, both, found < 0)):
        wrong = (target + random.integers(1, len(LABELS), right.shape)) % len(LABELS)
        output = np.where(right, target, wrong)
        sides.append({seed: classified(LABELS, target, output[seed]) for seed in range(seeds)})
    return sides[0], sides[1]


@pytest.mark.parametrize(("metric", "seeds", "deviation"), [("macro_f1", 1, 0.0), ("accuracy", 3, 0.01)])
def test_the_verdict_itself_finds_the_smallest_difference_as_often_as_said(
    metric: str, seeds: int, deviation: float
) -> None:
    """300 campaigns judged by the verdict's own p-values, of 400 draws: standard error √(0.8 · 0.2 / 300) = 2.3 points."""
    draws, campaigns, tail = 400, 300, 0.025
    counted = (math.floor(tail * (draws + 1)) - 0.5) / draws
    design = Design(400, seeds, counted, 0.2, 0.4, deviation)
    random = np.random.default_rng(seeds)
    found = differences(random, design, smallest_difference(design) or 0, campaigns)
    hits = 0
    for number, campaign in enumerate(found):
        variant, reference = answered(random, campaign)
        compared = compare(variant, reference, resamples=draws, entropy=number)
        hits += compared.p_value((metric, WHOLE), 1) <= tail
    assert hits / campaigns == pytest.approx(POWER, abs=0.02 + 2.5 * 0.023)


def test_the_verdict_itself_passes_equal_categories_as_often_as_said() -> None:
    """Four categories of 120 examples in 150 campaigns; the seeds move all alike, so that the categories of a campaign count as
    hardly more than one: standard error at most √(0.8 · 0.2 / 150) = 3.3 points."""
    design = Design(480, 3, 0.025, 0.2, 0.4, 0.02)
    of_one = replace(design, examples=120, columns=len(LABELS))
    tolerance, random, passed = smallest_tolerance(of_one) or 0, np.random.default_rng(5), []
    for number, campaign in enumerate(differences(random, design, 0.0, 150)):
        variant, reference = answered(random, campaign)
        compared = compare(variant, reference, resamples=400, entropy=number)
        passed += [compared.interval(("recall", name), design.tail)[0] >= -tolerance for name in LABELS]
    assert np.mean(passed) == pytest.approx(POWER, abs=0.02 + 2.5 * 0.033)


def enumerated(examples: int, disagreement: float, difference: float, tail: float, tolerance: float = 0.0) -> float:
    """Exact chance for one seed: every number of examples won and lost, with its multinomial probability, judged by the interval."""
    won, lost = np.meshgrid(np.arange(examples + 1), np.arange(examples + 1), indexing="ij")
    possible = won + lost <= examples
    won, lost = won[possible], lost[possible]
    better, worse = (disagreement + difference) / 2, (disagreement - difference) / 2
    counts = np.stack([won, lost, examples - won - lost], axis=1)
    probability = stats.multinomial.pmf(counts, examples, [better, worse, 1 - disagreement])
    point, share = (won - lost) / examples, (won + lost) / examples
    half = stats.norm.isf(tail) * np.sqrt((share - point**2) / examples)
    return float(probability[point - half > -tolerance].sum())


@pytest.mark.parametrize(
    ("examples", "disagreement", "tail"), [(200, 0.3, 0.05), (300, 0.2, 0.025), (250, 0.4, 0.05 / 3)]
)
def test_one_seed_agrees_with_exact_enumeration(examples: int, disagreement: float, tail: float) -> None:
    design = Design(examples, 1, tail, disagreement, 0.5, 0.0)
    for difference in (0.5 * disagreement, 0.4 * disagreement):
        exact = enumerated(examples, disagreement, difference, tail)
        assert chance(design, difference) == pytest.approx(exact, abs=0.02)
    tolerance = smallest_tolerance(design) or 0
    assert enumerated(examples, disagreement, 0.0, tail, tolerance) == pytest.approx(POWER, abs=0.02)


def test_one_seed_agrees_with_connors_sample_size() -> None:
    """n = ((z₁√ψ + z₂√(ψ − δ²)) / δ)² of Connor (1987), whose test has the variance of equal systems, a little larger, in it."""
    tail, disagreement = 0.025, 0.10
    for examples in (500, 2200, 10000):
        delta = smallest_difference(Design(examples, 1, tail, disagreement, 0.5, 0.0)) or 0
        z_tail, z_power = (NormalDist().inv_cdf(chance) for chance in (1 - tail, POWER))
        connor = ((z_tail * math.sqrt(disagreement) + z_power * math.sqrt(disagreement - delta**2)) / delta) ** 2
        assert examples == pytest.approx(connor, rel=0.02)


DESIGNS = st.builds(
    Design,
    examples=st.integers(20, 20_000),
    seeds=st.integers(2, 12),
    tail=st.floats(0.0005, 0.05),
    disagreement=st.floats(0.01, 0.6),
    agreement=st.floats(0, 1),
    deviation=st.floats(0, 0.03),
)

CLOSE = 2e-6
"""Twice the width to which a smallest difference is narrowed down."""


def size(design: Design) -> float:
    """Smallest difference; more than any where none is found."""
    return smallest_difference(design) or 2.0


@settings(max_examples=60, deadline=None)
@given(DESIGNS, st.integers(1, 10))
def test_more_seeds_never_show_less(design: Design, more: int) -> None:
    assert size(replace(design, seeds=design.seeds + more)) <= size(design) + CLOSE


@settings(max_examples=60, deadline=None)
@given(DESIGNS, st.floats(1, 20), st.booleans())
def test_more_examples_never_show_less_while_seeds_differ_in_answers_alone(
    design: Design, times: float, one: bool
) -> None:
    design = replace(design, deviation=0.0, seeds=1 if one else design.seeds)
    assert size(replace(design, examples=design.examples * times)) <= size(design) + CLOSE


@settings(max_examples=60, deadline=None)
@given(DESIGNS, st.integers(1, 30))
def test_more_candidates_never_show_more(design: Design, candidates: int) -> None:
    alone = replace(design, tail=bonferroni_tail(design.tail, 1))
    among = replace(design, tail=bonferroni_tail(design.tail, candidates))
    assert size(among) >= size(alone) - CLOSE
    assert (smallest_tolerance(among) or 2.0) >= (smallest_tolerance(alone) or 2.0) - CLOSE


def test_alpha_is_shared_as_the_verdict_shares_it() -> None:
    for reference, count in (("control", 1), ("base", 2)):
        plan = a_plan(hypothesis__reference=reference)
        power = power_of(plan, 1000, {})
        assert (power.comparisons, len(candidates(plan))) == (count, count)
        assert power.tail == bonferroni_tail(plan.hypothesis.alpha, count)


def test_the_numbers_of_a_plain_plan_follow_from_the_assumptions() -> None:
    """One seed, one candidate, accuracy: δ = (z₁ + z₂) √((ψ − δ²) / n), with 99.5 of 2,000 draws allowed below zero: the p-value of
    100 draws is 101 / 2,001 > 0.05, that of 99 is 100 / 2,001."""
    power = power_of(a_plan(hypothesis__metric="accuracy", hypothesis__min_improvement=0.1), 1000, {})
    assert power.smallest is not None and power.supported is not None
    z_tail, z_power = NormalDist().inv_cdf(1 - 99.5 / 2000), NormalDist().inv_cdf(POWER)
    deviation = math.sqrt((DISAGREEMENT - power.smallest**2) / 1000)
    assert power.smallest == pytest.approx((z_tail + z_power) * deviation, abs=1e-5)
    assert power.enough is True and power.flags == ()
    # An estimate of at least 0.1 has a chance of one half where 0.1 is true, and of 0.8 where it is z₂ deviations more.
    all_one_way = power.supported - power.supported**2
    assert power.supported == pytest.approx(0.1 + z_power * math.sqrt(all_one_way / 1000), abs=1e-5)
    assert not power.measured and "assumed" in power.assumption and "10 %" in power.assumption


def test_a_macro_metric_counts_as_its_smallest_categories_allow() -> None:
    """Two categories of 100 and 900: variance ψ (1/100 + 1/900) / 4, that of 360 examples."""
    counts = {"a": 100, "b": 900}
    macro = power_of(a_plan(guardrails=[]), 1000, counts)
    plain = power_of(a_plan(guardrails=[], hypothesis__metric="accuracy"), 360, {})
    assert macro.smallest == pytest.approx(plain.smallest)
    assert any("mean of the categories' recalls" in sentence for sentence in macro.sentences)


def test_a_hypothesis_below_what_can_be_seen_is_flagged_and_the_way_out_leads_out() -> None:
    plan = a_plan(hypothesis__metric="accuracy", hypothesis__min_improvement=0.02, evaluation__seeds=[1, 2, 3])
    power = power_of(plan, 1500, {})
    assert power.enough is False and power.smallest is not None and power.smallest > 0.02
    (flag,) = power.flags
    words = flag.split()
    examples = int(words[words.index("test") - 1].replace(",", ""))
    seeds = int(words[words.index("seeds") - 1])
    assert examples > 1500 and seeds > 3
    assert power_of(plan, examples, {}).enough is True
    assert power_of(plan, round(0.8 * examples), {}).enough is False
    more = {"hypothesis__metric": "accuracy", "hypothesis__min_improvement": 0.02}
    assert power_of(a_plan(**more, evaluation__seeds=list(range(seeds))), 1500, {}).enough is True
    assert power_of(a_plan(**more, evaluation__seeds=list(range(seeds - 1))), 1500, {}).enough is False


def test_what_no_number_can_show_is_said() -> None:
    plan = a_plan(hypothesis__metric="accuracy", hypothesis__min_improvement=0.0001, evaluation__seeds=[1, 2])
    (flag,) = power_of(plan, 100, {}).flags
    assert "only a larger improvement can be shown" in flag


def test_a_category_too_small_for_its_tolerance_is_named_with_what_it_takes() -> None:
    counts = {"cards": 300, "loans": 12, "cash": 400}
    power = power_of(a_plan(guardrails=[guard(0.1)]), 712, counts)
    assert power.too_small == ("loans",)
    (row,) = (row for row in power.guardrails if row.slice == "loans")
    assert row.enough is False and row.smallest is not None and row.smallest > 0.1
    assert row.needed_examples is not None and row.needed_examples > 12
    assert any("loans is too small" in flag and f"{row.needed_examples:,} test" in flag for flag in power.flags)
    assert power_of(a_plan(guardrails=[guard(0.1)]), 712, counts | {"loans": row.needed_examples}).too_small == ()


def guard(tolerance: float, **changes: Any) -> dict[str, Any]:
    return {"name": "none", "metric": "recall", "slice": "each category", "tolerance": tolerance, **changes}


def test_a_category_without_examples_is_too_small() -> None:
    power = power_of(a_plan(guardrails=[guard(0.5)]), 500, {"cards": 500, "loans": 0})
    assert power.too_small == ("loans",)


def test_no_tolerance_is_not_called_too_few_examples() -> None:
    power = power_of(a_plan(guardrails=[guard(0.0, metric="accuracy", slice="whole", reference="base")]), 500, {})
    (row,) = power.guardrails
    assert row.enough is None and row.smallest is not None
    assert not any("tolerance" in flag for flag in power.flags)
    assert any("only what is better by" in sentence for sentence in power.sentences)


def test_a_loss_is_said_to_be_unknown() -> None:
    plan = a_plan(
        hypothesis__task="generation", hypothesis__metric="loss", hypothesis__direction="lower",
        guardrails=[guard(0.1, metric="loss", slice="whole")],
    )  # fmt: skip
    power = power_of(plan, 1000, {"all": 1000})
    assert (power.smallest, power.enough, power.flags) == (None, None, ())
    assert [row.enough for row in power.guardrails] == [None]
    assert any("not known before models have answered" in sentence for sentence in power.sentences)


def test_too_few_draws_for_the_level_are_flagged() -> None:
    """alpha 0.005 for each of 10 candidates: the smallest p-value of 200 draws is 1 / 201 = 0.00498, of 199 it would be 0.005."""
    variants = [
        {"id": f"v{i}", "because": "why not", "change": {"training.learning_rate": 1e-3 * (i + 1) / 11}}
        for i in range(11)
    ]
    power = power_of(a_plan(variants=variants, guardrails=[], evaluation__resamples=200), 5000, {})
    assert power.enough is False and power.smallest is None
    (flag,) = power.flags
    assert "evaluation.resamples" in flag
    enough = power_of(a_plan(variants=variants, guardrails=[], evaluation__resamples=220), 5000, {})
    assert enough.smallest is not None


def test_what_was_measured_takes_the_place_of_what_is_assumed() -> None:
    plan = a_plan(hypothesis__metric="accuracy", evaluation__seeds=[1, 2, 3])
    asked = ("control", "accuracy", WHOLE)
    assumed = Measured({asked: DISAGREEMENT}, {"control": AGREEMENT}, {asked: DEVIATION}, "measured somewhere")
    less = Measured({asked: DISAGREEMENT / 4}, {"control": AGREEMENT}, {asked: 0.0}, "measured somewhere")
    sizes = [power_of(plan, 1000, {}, measured).smallest for measured in (None, assumed, less)]
    assert sizes[0] == sizes[1] and sizes[2] is not None and sizes[1] is not None
    assert sizes[2] < sizes[1] / 1.9  # half the deviation, and less than that as seeds do not differ
    power = power_of(plan, 1000, {}, less)
    assert power.measured and power.assumption.startswith("measured somewhere")


def test_the_command_says_the_same_in_words_and_in_json() -> None:
    described = json.loads(module("ftui.cli", "plan", SEED_CASE, "--json").stdout)
    power, text = described["power"], module("ftui.cli", "plan", SEED_CASE).stdout
    assert (power["examples"], power["seeds"], power["comparisons"], power["power"]) == (2200, 3, 2, POWER)
    section = text.split("What the evaluation can show\n")[1].split("\n\n")[0]
    for number in (power["smallest"], power["supported"], power["min_improvement"], power["tail"]):
        assert f"{number:.3g}" in section
    for sentence in (*power["sentences"], *(f"! {flag}" for flag in power["flags"])):
        assert f"  {sentence}" in section
    assert len(power["guardrails"]) == 11 + 1 + 1
    assert power["too_small"] == ["out_of_scope"]
