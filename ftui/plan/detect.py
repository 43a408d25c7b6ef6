"""What one paired comparison can tell, as the verdict will make it: the chance to see a difference, and the reverse.

A candidate and its reference answer the same n examples with models of the same S seeds. On one example and seed, the difference
of the two scores (right 1, wrong 0) is −1, 0 or 1; ψ is the share of examples on which exactly one of the two is right, δ the mean
difference. Its variance is σ² = ψ − δ² (O. Miettinen, "The matched pairs design in the case of all-or-none responses", Biometrics
24, 1968; R. Connor, "Sample size for testing differences in proportions for the paired-sample design", Biometrics 43, 1987). A
share ρ of it is the example's own, the same in every seed; the rest is new in every seed. Seeds also move the whole metric of each
system, with the deviation τ. So the mean over seeds has the variance

    ρσ²/n + (1 − ρ)σ²/(nS) + 2τ²/S        (two crossed factors; S. Searle, G. Casella, C. McCulloch, *Variance Components*, 1992, ch. 4)

of which the verdict knows nothing but what it estimates. Its rule, `ftui/verdict/bootstrap.py`, is followed, not idealised: with
V, the variance between the S seeds' differences (a multiple of χ² with S − 1 degrees of freedom), and i = (1 − ρ)σ²/n, its draws
have the variance

    ρσ²/n + i/S + the larger of (S − 1)/S² · (V + i), what drawing seeds gives, and max(0, V − i)/S, what the moments give,

and Student tails with (S − 1)/share² degrees of freedom, `share` being the part of the last term. The difference is found where
its estimate is above the quantile of that; the chance is the mean over V, which is independent of the estimate.

With one seed nothing is known about seeds: the comparison is of two models, not of two settings, and τ takes no part. This is why a
second seed can cost power. And where two or three seeds differ in more than their answers, more examples can cost power, too: they
let the verdict see how few seeds there are, and its tails grow faster than its interval narrows.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

POWER = 0.8
"""The chance with which what is asked for is to be found; the custom since J. Cohen, *Statistical Power Analysis* (1969)."""

BEYOND = 100
"""More than this many times the examples, or this many seeds, is no plan."""

NODES = 128
"""Equally likely values of the variance between seeds over which the chance is averaged."""

STEP = 1.25
"""Ratio of the numbers of examples that are tried first."""


@dataclass(frozen=True)
class Design:
    """One comparison."""

    examples: float
    """n; of a metric of several categories, the number of examples that gives the same variance."""
    seeds: int
    """S."""
    tail: float
    """One-sided share of the draws behind the end of the interval, or the level of the one-sided p-value."""
    disagreement: float
    """ψ. Where a difference is larger, it is taken to be as large as the difference."""
    agreement: float
    """ρ, from 0 to 1."""
    deviation: float
    """τ, in the metric's unit."""
    columns: int = 1
    """Slices over which the verdict pools the variance between seeds; 1 for the whole."""


def chance(design: Design, difference: float, *, tolerance: float = 0.0, at_least: float = -math.inf) -> float:
    """Chance that a candidate truly better by `difference` is shown to be better than −`tolerance`, and estimated to be better by
    `at_least`. With a difference of 0 and a tolerance above 0: that an equal candidate passes a guardrail."""
    from scipy.special import ndtr

    bounds, deviation = _bounds(design, difference)
    needed = (bounds - tolerance).clip(min=at_least)
    return float(ndtr((difference - needed) / deviation).mean())


@lru_cache(256)
def _bounds(design: Design, difference: float) -> tuple[Floats, float]:
    """Half-widths of the verdict's interval, (NODES,) equally likely ones, and the true deviation of the estimate."""
    import numpy as np
    from scipy.special import stdtrit

    seeds, each = design.seeds, max(design.disagreement, abs(difference)) - difference**2
    own, interaction = (share * each / design.examples for share in (design.agreement, 1 - design.agreement))
    over_examples = own + interaction / seeds
    if seeds == 1:
        deviation = math.sqrt(over_examples) or math.ulp(
            1.0
        )  # 0 where all examples differ: no draw shows anything else
        return np.array([NormalDist().inv_cdf(1 - design.tail) * deviation]), deviation
    between = (2 * design.deviation**2 + interaction) * _chi_square_over_freedom(design.columns * (seeds - 1))
    drawn = (seeds - 1) / seeds**2 * (between + interaction)
    moments = np.maximum(0.0, between - interaction) / seeds
    total = over_examples + np.maximum(drawn, moments) + math.ulp(1.0) ** 2
    freedom = design.columns * (seeds - 1) / np.maximum(np.minimum(moments, total) / total, 1e-3) ** 2
    deviation = math.sqrt(over_examples + 2 * design.deviation**2 / seeds) or math.ulp(1.0)
    return stdtrit(freedom, 1 - design.tail) * np.sqrt(total), deviation


@cache
def _chi_square_over_freedom(freedom: int) -> Floats:
    import numpy as np
    from scipy.special import gammaincinv

    values: Floats = gammaincinv(freedom / 2, (np.arange(NODES) + 0.5) / NODES) / (freedom / 2)
    return values


def smallest_difference(design: Design, at_least: float = -math.inf) -> float | None:
    """The smallest true difference that is found with `POWER`; None where not even a difference of 1 is."""
    return _smallest(lambda difference: chance(design, difference, at_least=at_least) >= POWER)


def smallest_tolerance(design: Design) -> float | None:
    """The smallest tolerance with which an equal candidate passes with `POWER`; None where 1 is too small."""
    return _smallest(lambda tolerance: chance(design, 0.0, tolerance=tolerance) >= POWER)


def _smallest(reached: Callable[[float], bool]) -> float | None:
    low, high = 0.0, 1.0
    if not reached(high):
        return None
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def times_the_examples(design: Design, reached: Callable[[Design], bool]) -> float | None:
    """How many times the examples it takes until `reached`, more than now; None where not even `BEYOND` times would do.

    Walks in steps before it narrows down: where seeds differ, more examples can also be too many.
    """

    def enough(times: float) -> bool:
        return reached(replace(design, examples=design.examples * times))

    steps = range(1, math.ceil(math.log(BEYOND, STEP)) + 1)
    high = next((STEP**step for step in steps if enough(STEP**step)), None)
    if high is None:
        return None
    low = high / STEP
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def seeds_enough(design: Design, reached: Callable[[Design], bool]) -> int | None:
    """The number of seeds, more than now, with which it is `reached`; None where not even `BEYOND` would do."""
    more = range(design.seeds + 1, BEYOND + 1)
    first = bisect_left(more, True, key=lambda seeds: reached(replace(design, seeds=seeds)))
    return more[first] if first < len(more) else None
