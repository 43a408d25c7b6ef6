"""The difference between two systems on the same examples and seeds, with an interval and a p-value.

Both systems answered the same N test examples with models trained from the same S seeds: examples and seeds are crossed, and
the difference is paired in both. A resample draws S seeds and N examples with replacement, the same for both sides and the
same examples for all seeds; its statistic is the mean over the drawn seeds of metric(variant) − metric(reference).

Sources: B. Efron and R. Tibshirani, *An Introduction to the Bootstrap* (1993), ch. 13 (percentile intervals) and 16 (tests);
P. Koehn, "Statistical significance tests for machine translation evaluation", EMNLP 2004 (paired resampling of a test set);
A. Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1 (2007) (resampling two crossed factors independently
counts their interaction more than once, so it errs towards wide intervals while the seeds themselves vary little).

Few seeds. Where the seeds do vary, drawing from S of them gives only (S − 1)/S of their variance, half of it for S = 2, and
no hint of how badly two numbers tell a variance. So the seeds' own variance is estimated by moments (variance between the
seeds' differences, less what resampling the examples explains), and where it is above zero
- the seeds' part of each draw is scaled up to at least that variance;
- draws are spread from normal to Student tails with ν degrees of freedom, ν from F. Satterthwaite, "An approximate
  distribution of estimates of variance components", Biometrics Bulletin 2 (1946): ν = (S − 1) · (total / seeds' variance)².
  A Student variate is a normal one divided by √(χ²_ν / ν), so each draw's deviation is.
A metric of every category (recall, say) pools the seeds' variance over the K categories, as one number from two seeds is hardly
an estimate while eleven such numbers are; ν is then K times larger. Seeds are taken to move the log-odds of all categories
alike, so a category with the value p gets a share in proportion to (p(1 − p))² (delta method): one that is nearly always
recognised cannot vary like one that is recognised half the time. What varies more than that still shows in its own draws.
The same holds for the fields of an extraction.
With one seed nothing is known about seeds: the interval is about this seed's models, and the report says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ftui.plan.schema import LOWER_IS_BETTER, WHOLE
from ftui.verdict.metrics import Column, Floats, columns, measure
from ftui.verdict.predictions import Predictions, PredictionsError, require_same_examples

CHUNK_CELLS = 4_000_000
"""Weights (resamples × examples) in memory at a time: 32 MB."""


@dataclass(frozen=True)
class Comparison:
    """A variant against a reference in every metric. Differences are variant − reference, whatever is better."""

    seeds: tuple[int, ...]
    """Seeds that both sides have."""
    examples: int
    index: dict[Column, int]
    variant: Floats
    """(M,) means over seeds."""
    reference: Floats
    """(M,) means over seeds."""
    draws: Floats
    """(B, M) resampled differences."""
    seed_share: Floats
    """(M,) share of the differences' variance that comes from the seeds themselves, 0 for one seed."""

    def values(self, column: Column) -> tuple[float, float]:
        """Variant's and reference's mean over the seeds."""
        at = self.index[column]
        return float(self.variant[at]), float(self.reference[at])

    def difference(self, column: Column) -> float:
        variant, reference = self.values(column)
        return variant - reference

    def interval(self, column: Column, tail: float) -> tuple[float, float]:
        """Percentile interval with the share `tail` of the draws behind each end."""
        low, high = np.quantile(self.draws[:, self.index[column]], [tail, 1 - tail])
        return float(low), float(high)

    def p_value(self, column: Column, sign: int) -> float:
        """One-sided p-value of "the variant is no better", better being higher for `sign` 1 and lower for −1.

        Share of draws that show no improvement, counted as (k + 1) / (B + 1) so that no finite number of draws gives 0
        (A. Davison and D. Hinkley, *Bootstrap Methods and their Application* (1997), 4.2.3). Small exactly when the
        percentile interval excludes 0.
        """
        draws = sign * self.draws[:, self.index[column]]
        return float((np.count_nonzero(draws <= 0) + 1) / (draws.size + 1))


def comparison_entropy(plan_hash: str, name: str) -> int:
    """Seed of the resampling: fixed by the plan and the comparison's name before any result is known."""
    return int.from_bytes(hashlib.sha256(f"{plan_hash}\n{name}".encode()).digest()[:16], "big")


def compare(
    variant: Mapping[int, Predictions],
    reference: Mapping[int, Predictions],
    *,
    resamples: int,
    entropy: int,
    names: tuple[str, str] = ("the variant", "the reference"),
) -> Comparison:
    """Compare on the seeds (keys) that both sides have. Raises `PredictionsError` when there are none, or when any two
    runs did not answer the same examples."""
    seeds = tuple(sorted(variant.keys() & reference.keys()))
    if not seeds:
        raise PredictionsError(f"{names[0]} and {names[1]} have no seed in common")
    first = variant[seeds[0]]
    for name, side in zip(names, (variant, reference), strict=True):
        for seed in seeds:
            require_same_examples(first, side[seed], (f"{names[0]} with seed {seeds[0]}", f"{name} with seed {seed}"))
    once = np.ones((1, len(first)))
    observed = np.array([[measure(side[seed], once)[0] for seed in seeds] for side in (variant, reference)])
    by_seed = observed[0] - observed[1]

    random = np.random.default_rng(entropy)
    drawn_seeds = random.integers(0, len(seeds), (resamples, len(seeds)))
    seed_weights = (drawn_seeds[:, :, None] == np.arange(len(seeds))).mean(axis=1)
    spread = random.random(resamples)
    parts = []
    rows = max(1, CHUNK_CELLS // len(first))
    for start in range(0, resamples, rows):
        weights = _example_weights(random, min(rows, resamples - start), len(first))
        parts.append(np.stack([measure(variant[s], weights) - measure(reference[s], weights) for s in seeds]))
    resampled = np.concatenate(parts, axis=1)  # (S, B, M)
    names_of = columns(first.measures)
    draws, seed_share = _joined(by_seed, resampled, seed_weights, spread, observed.mean(axis=(0, 1)), names_of)
    return Comparison(
        seeds=seeds,
        examples=len(first),
        index={column: position for position, column in enumerate(names_of)},
        variant=observed[0].mean(axis=0),
        reference=observed[1].mean(axis=0),
        draws=draws,
        seed_share=seed_share,
    )


def _example_weights(random: np.random.Generator, rows: int, examples: int) -> Floats:
    """(rows, N): how often each example was drawn in each resample."""
    drawn = random.integers(0, examples, (rows, examples))
    cells = (drawn + np.arange(rows)[:, None] * examples).ravel()
    return np.bincount(cells, minlength=rows * examples).reshape(rows, examples).astype(np.float64)


def _families(found: list[Column]) -> list[list[int]]:
    """Positions of the columns that pool their seeds' variance: the slices of one metric. The whole stands alone."""
    families: dict[tuple[str, bool], list[int]] = {}
    for position, (metric, part) in enumerate(found):
        families.setdefault((metric, part == WHOLE), []).append(position)
    return list(families.values())


def _joined(
    by_seed: Floats, resampled: Floats, seed_weights: Floats, spread: Floats, level: Floats, found: list[Column]
) -> tuple[Floats, Floats]:
    """Draws (B, M) over seeds and examples, and the seeds' share (M,) of their variance.

    `by_seed` (S, M) are the observed differences, `resampled` (S, B, M) those on resampled examples, `seed_weights` (B, S)
    the drawn seeds' shares, `spread` (B,) uniform variates for the Student tails, `level` (M,) the mean values of the M columns
    `found`.
    """
    count = by_seed.shape[0]
    over_examples = resampled.mean(axis=0)
    if count == 1:
        return over_examples, np.zeros(by_seed.shape[1])
    deviation = np.einsum("bs,sbm->bm", seed_weights, resampled) - over_examples
    interaction = (resampled - over_examples).var(axis=1).sum(axis=0) / (count - 1)
    excess = by_seed.var(axis=0, ddof=1) - interaction
    share_of_one = np.array([metric not in LOWER_IS_BETTER for metric, _ in found])
    # A loss is no share and has no upper bound; seeds are taken to move its logarithm alike.
    movable = np.where(share_of_one, (level * (1 - level)) ** 2, level**2)
    of_seeds, freedom = np.zeros_like(excess), np.ones_like(excess)
    for family in _families(found):
        if movable[family].any():
            of_seeds[family] = max(0.0, excess[family].sum() / movable[family].sum()) * movable[family] / count
        freedom[family] = len(family) * (count - 1)
    scale = np.sqrt(_ratio(of_seeds, deviation.var(axis=0)))
    draws = over_examples + np.maximum(1.0, scale) * deviation
    total = draws.var(axis=0)
    share = _ratio(np.minimum(of_seeds, total), total)
    centre = draws.mean(axis=0)
    freedom = _ratio(freedom, share**2)
    for column in np.flatnonzero(share > 0):
        if freedom[column] < 1000:  # beyond it, Student and normal tails differ by less than a resampling shows
            tails = np.sqrt(freedom[column] / stats.chi2.ppf(spread, freedom[column]))
            draws[:, column] = centre[column] + (draws[:, column] - centre[column]) * tails
    return draws, share


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)
