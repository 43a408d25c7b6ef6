"""Several variants tested together: the more are tried, the easier one looks good by luck."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given.

    Comparing each with alpha keeps the chance of any false rejection at or below alpha, whatever the dependence between
    the tests (S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6,
    1979). The k-th smallest of m is multiplied by m − k + 1, and made no smaller than the one before it.
    """
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[position]))
        adjusted[position] = largest
    return adjusted


def bonferroni_tail(alpha: float, comparisons: int) -> float:
    """Share of the draws behind each end of an interval, so that no lower (or no upper) end of all `comparisons`
    intervals misses with more than chance `alpha`. The two-sided level of one interval is 1 − 2 × this."""
    return alpha / max(1, comparisons)
