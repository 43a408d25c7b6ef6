"""Sentences of the decision. Numbers are shown to three places; the exact ones are beside them in the report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats

from ftui.plan.schema import WHOLE
from ftui.verdict.model import Difference, GuardrailRow

BEYOND = 100
"""An estimate of more than this many times the data at hand is no plan."""


def signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def interval_words(found: Difference) -> str:
    return f"{found.level * 100:.3g} % interval {signed(found.low)} to {signed(found.high)}"


def p_words(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def numbers(found: Difference, adjusted_p: float) -> str:
    """The evidence behind a word, in brackets."""
    return (
        f"({found.variant:.3f} against {found.reference:.3f}: {signed(found.point)}, {interval_words(found)}; "
        f"p {p_words(adjusted_p)} after correction)"
    )


def guardrail_words(row: GuardrailRow) -> str:
    where = "" if row.slice == WHOLE else f" of {row.slice}"
    if row.difference is None:
        return f"{row.name!r} ({row.metric}{where}): {row.note}"
    found = row.difference
    return (
        f"{row.name!r} ({row.metric}{where} {signed(found.point)} against {row.reference}, "
        f"{interval_words(found)}, tolerance {row.tolerance:g})"
    )


def listed(items: Sequence[str], limit: int = 3) -> str:
    """`a, b and c`; more than `limit` are counted."""
    shown = list(items[:limit])
    if len(items) > limit:
        shown = [*shown[: limit - 1], f"{len(items) - limit + 1} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def resolve_words(
    found: Difference, needed: float, *, examples: int, seeds: int, seed_share: float, of_what: str = "test examples"
) -> str:
    """How many examples (or seeds, where they cause most of the spread) would settle the question: an estimate.

    `needed` is the half-width at which the interval would exclude one of the two answers if the difference stayed where it
    is; the half-width shrinks as one over the root of the number.
    """
    half = (found.high - found.low) / 2
    assumption = "an estimate: if the difference stays and the interval narrows with the root of the number"
    if needed <= 0 or half > needed * math.sqrt(BEYOND):
        return "the difference lies too close to the limit for any realistic number of examples or seeds to settle it"
    ratio = (half / needed) ** 2
    if seed_share > 0.5:
        enough = (s for s in range(seeds + 1, BEYOND) if half * _narrowing(seeds, s, seed_share) <= needed)
        return f"about {next(enough, BEYOND)} seeds instead of {seeds} ({assumption}; most of the spread comes from the seeds)"
    return f"about {_rounded_up(examples * ratio):,} {of_what} instead of {examples:,} ({assumption})"


def _narrowing(seeds: int, more: int, seed_share: float) -> float:
    """Width of an interval with `more` seeds as a share of its width with `seeds`: root of the number, and Student's tails."""
    now, then = (stats.t.ppf(0.975, (count - 1) / seed_share**2) / math.sqrt(count) for count in (seeds, more))
    return float(then / now)


def _rounded_up(value: float) -> int:
    """To two digits, upwards: the third would pretend to be known."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(value, 1.0))) - 1)
    return math.ceil(value / unit) * unit
