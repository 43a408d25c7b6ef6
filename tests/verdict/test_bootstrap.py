"""Intervals and p-values: against scipy where scipy can do it, and by their error rates where it cannot."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats

from ftui.plan.schema import WHOLE
from ftui.verdict.bootstrap import compare, comparison_entropy
from ftui.verdict.multiple import bonferroni_tail, holm
from ftui.verdict.predictions import Predictions, PredictionsError
from tests.builders.predictions import classified

LABELS = ("a", "b", "c", "d")
ACCURACY, MACRO = ("accuracy", WHOLE), ("macro_f1", WHOLE)


def answered(right: np.ndarray, random: np.random.Generator) -> Predictions:
    """Predictions that are right exactly where `right` says so."""
    target = np.arange(right.size) % len(LABELS)
    wrong = (target + random.integers(1, len(LABELS), right.size)) % len(LABELS)
    return classified(LABELS, target, np.where(right, target, wrong))


def system(
    random: np.random.Generator, hard: np.ndarray, seeds: int, skill: float, spread: float
) -> dict[int, Predictions]:
    """One run per seed; what is hard is hard for all, and the seeds' skills vary by `spread`."""
    found = {}
    for seed in range(seeds):
        own = skill + random.normal(0, spread)
        found[seed] = answered(0.7 * hard + 0.7 * random.normal(size=hard.size) < own, random)
    return found


def test_one_seed_gives_scipys_paired_interval() -> None:
    random = np.random.default_rng(3)
    hard = random.normal(size=400)
    one, other = system(random, hard, 1, 0.5, 0), system(random, hard, 1, 0.3, 0)
    ours = compare(one, other, resamples=8000, entropy=1)
    right = [np.array(side[0].targets) == np.array(side[0].outputs) for side in (one, other)]
    scipys = stats.bootstrap(
        right,
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=0.95,
        n_resamples=8000,
        rng=np.random.default_rng(4),
    )
    assert ours.difference(ACCURACY) == pytest.approx(right[0].mean() - right[1].mean())
    # A quantile q of B draws has standard error √(q(1 − q)/B) / density; for a normal at 2.5 % the density is 0.0584 / sd.
    error = np.sqrt(0.025 * 0.975 / 8000) / 0.0584 * scipys.standard_error
    low, high = ours.interval(ACCURACY, 0.025)
    step = 1 / 400  # the statistic is discrete
    assert abs(low - scipys.confidence_interval.low) < 4 * np.sqrt(2) * error + step
    assert abs(high - scipys.confidence_interval.high) < 4 * np.sqrt(2) * error + step


@pytest.mark.parametrize(("seeds", "spread"), [(1, 0.0), (2, 0.0), (2, 0.06), (3, 0.06)])
def test_identical_systems_are_rarely_told_apart(seeds: int, spread: float) -> None:
    """False findings at alpha = 0.05 in 120 trials: more than binomial chance allows at 0.999 would break the promise."""
    trials, alpha = 120, 0.05
    found = 0
    for trial in range(trials):
        random = np.random.default_rng([trial, seeds])
        hard = random.normal(size=200)
        sides = [system(random, hard, seeds, 0.5, spread) for _ in range(2)]
        found += compare(*sides, resamples=300, entropy=trial).p_value(MACRO, 1) <= alpha
    assert found <= stats.binom.ppf(0.999, trials, alpha)


def test_few_seeds_that_differ_widen_the_interval() -> None:
    """Two seeds with differences of 0 and 0.4: a t interval of their mean at 80 % is 0.2 ± 3.08 · 0.2."""
    random = np.random.default_rng(0)
    right = np.arange(1000) % 10
    base = answered(right < 4, random)
    better = answered(right < 8, random)
    compared = compare({1: base, 2: better}, {1: base, 2: base}, resamples=4000, entropy=2)
    low, high = compared.interval(ACCURACY, 0.1)
    half = stats.t.ppf(0.9, 1) * 0.2
    assert (high - low) / 2 == pytest.approx(half, rel=0.15)
    assert compared.p_value(ACCURACY, 1) > 0.05
    assert compared.seed_share[compared.index[ACCURACY]] > 0.9


def test_a_large_difference_is_found_and_a_mirrored_one_is_its_mirror() -> None:
    random = np.random.default_rng(5)
    hard = random.normal(size=500)
    one, other = system(random, hard, 3, 1.0, 0.02), system(random, hard, 3, 0.0, 0.02)
    forth = compare(one, other, resamples=999, entropy=6)
    back = compare(other, one, resamples=999, entropy=6)
    assert forth.p_value(MACRO, 1) == 1 / 1000  # none of 999 draws at or below zero, counted as (0 + 1) / (999 + 1)
    assert forth.p_value(MACRO, -1) == 1
    assert back.p_value(MACRO, -1) == 1 / 1000
    low, high = forth.interval(MACRO, 0.025)
    assert back.interval(MACRO, 0.025) == pytest.approx((-high, -low))
    assert low > 0


def test_equal_answers_give_an_empty_interval_and_no_evidence() -> None:
    random = np.random.default_rng(5)
    one = system(random, random.normal(size=100), 2, 0.5, 0.1)
    compared = compare(one, one, resamples=200, entropy=1)
    assert compared.interval(MACRO, 0.025) == (0, 0)
    assert compared.p_value(MACRO, 1) == 1


def test_same_plan_and_name_give_the_same_draws() -> None:
    random = np.random.default_rng(9)
    hard = random.normal(size=150)
    one, other = system(random, hard, 2, 0.5, 0.1), system(random, hard, 2, 0.4, 0.1)
    entropy = comparison_entropy("ab" * 32, "variant against control")
    first, second = (compare(one, other, resamples=300, entropy=entropy) for _ in range(2))
    assert np.array_equal(first.draws, second.draws)
    assert entropy != comparison_entropy("ab" * 32, "variant against base")
    assert entropy != comparison_entropy("cd" * 32, "variant against control")


def test_memory_is_bounded_by_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(9)
    hard = random.normal(size=150)
    one, other = system(random, hard, 2, 0.5, 0.1), system(random, hard, 2, 0.4, 0.1)
    whole = compare(one, other, resamples=200, entropy=1).draws
    monkeypatch.setattr("ftui.verdict.bootstrap.CHUNK_CELLS", 150 * 7)
    assert np.allclose(compare(one, other, resamples=200, entropy=1).draws, whole)


def test_only_shared_seeds_are_compared() -> None:
    random = np.random.default_rng(9)
    hard = random.normal(size=100)
    one, other = system(random, hard, 3, 0.5, 0.1), system(random, hard, 2, 0.4, 0.1)
    assert compare(one, other, resamples=200, entropy=1).seeds == (0, 1)
    with pytest.raises(PredictionsError, match="no seed in common"):
        compare({1: one[0]}, {2: other[0]}, resamples=200, entropy=1)


def test_the_seed_case_takes_seconds() -> None:
    """2,200 examples, 11 categories would be 35 metrics; here 14, with 3 seeds and 2,000 resamples."""
    random = np.random.default_rng(9)
    hard = random.normal(size=2200)
    one, other = system(random, hard, 3, 0.5, 0.1), system(random, hard, 3, 0.4, 0.1)
    began = time.process_time()
    compare(one, other, resamples=2000, entropy=1)
    assert time.process_time() - began < 30  # a loop over resamples would take minutes; this takes about one second


def test_holm_by_hand() -> None:
    """Ascending 0.01, 0.02, 0.03, 0.5 times 4, 3, 2, 1 = 0.04, 0.06, 0.06, 0.5; none falls below the one before it."""
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    # 0.02 · 3 = 0.06, then 0.025 · 2 = 0.05 is raised to 0.06; 0.9 · 1.
    assert holm([0.025, 0.9, 0.02]) == pytest.approx([0.06, 0.9, 0.06])
    assert holm([0.7, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_bonferroni_shares_alpha() -> None:
    assert bonferroni_tail(0.05, 2) == 0.025
    assert bonferroni_tail(0.05, 0) == 0.05
