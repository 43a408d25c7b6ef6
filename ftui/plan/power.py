"""Before money is spent: the smallest difference that the planned evaluation can show, in numbers and in sentences (H6).

The primary metric is asked for with the level of the verdict: one-sided, alpha shared among the candidates. Guardrails are asked
for the smallest tolerance with which a truly equal candidate passes; a slice is called too small where that is more than the plan
tolerates. Metrics are taken as means of scores from 0 to 1 per example:

    accuracy, exact_match, valid_json, required_fields     they are
    recall of a category or field                          is one over the rows that have it
    precision and f1 of a slice                            taken as its recall
    macro_f1    taken as the mean of the K categories' recalls, whose variance is Σ ψ/n_k / K²: as of K²/Σ(1/n_k) examples
    field_f1    taken as the share of values found, those of one example together: as of the examples, or the values if fewer
    loss        cannot be told: how far tokens lie apart is seen only in models that have answered

Where categories are of very different sizes, macro_f1 varies less than that: F1 also counts false alarms, most of them in large
categories; its smallest difference is then given too large, in simulations with sizes of 1 to 18 by about a third.

What has not been measured is assumed, and said to be. Two systems that are right in 9 of 10 examples and err independently
disagree on 18 %; the same examples are hard for both, so that little more than half of it is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from ftui.plan.detect import (
    POWER,
    Design,
    chance,
    seeds_enough,
    smallest_difference,
    smallest_tolerance,
    times_the_examples,
)
from ftui.plan.schema import EACH_CATEGORY, LOWER_IS_BETTER, WHOLE, Guardrail, Plan
from ftui.plan.variants import candidates

DISAGREEMENT = 0.10
"""Assumed share of examples on which exactly one of two systems is right."""

AGREEMENT = 0.5
"""Assumed share of an example's difference that is the same in every seed."""

DEVIATION = 0.005
"""Assumed standard deviation of a system's metric between seeds, beyond what its answers to a finite test set vary anyway. Seeds
of one setting differ by some tenths of a point to some points, most on small data (J. Dodge et al., arXiv:2002.06305, 2020). K
slices that move each on their own vary √K times as much as their mean, and are assumed to."""

Asked = tuple[str, str, str]
"""Reference, metric and slice of a comparison."""


@dataclass(frozen=True)
class Measured:
    """What answers to validation examples say in place of the assumptions; what is missing stays assumed."""

    disagreement: Mapping[Asked, float]
    agreement: Mapping[str, float]
    """By reference."""
    deviation: Mapping[Asked, float]
    """Of one system: half the variance of the difference."""
    words: str
    """Where the numbers are from, as a sentence."""


@dataclass(frozen=True)
class GuardrailPower:
    """One guardrail on one slice."""

    name: str
    slice: str
    metric: str
    examples: int | None
    """Test examples of the slice, None while they are not counted."""
    smallest: float | None
    """Smallest tolerance with which an equal candidate passes; for a tolerance of 0, the smallest improvement with which a better one
    does. None where none does, or it cannot be told."""
    tolerance: float
    enough: bool | None
    """None where it cannot be told, and for a tolerance of 0, with which an equal candidate is not meant to pass."""
    disagreement: float | None
    seed_deviation: float | None
    needed_examples: int | None
    """Test examples of the slice that would be enough, where these are not and any number would."""
    needed_seeds: int | None
    """Seeds that would be."""


@dataclass(frozen=True)
class Power:
    """What the planned evaluation can show."""

    metric: str
    smallest: float | None
    """Smallest true difference that is found; None where it cannot be told, or where even 1 is not found."""
    supported: float | None
    """Smallest true difference that ends as "supported", guardrails apart: it must be found, and its estimate must reach
    `min_improvement`, which it does in half of the cases where it just has it."""
    min_improvement: float
    enough: bool | None
    """Whether `min_improvement` is found; None where it cannot be told."""
    alpha: float
    comparisons: int
    tail: float
    """One-sided level of one comparison."""
    examples: int
    seeds: int
    disagreement: float
    seed_agreement: float
    seed_deviation: float
    assumption: str
    measured: bool
    guardrails: tuple[GuardrailPower, ...]
    too_small: tuple[str, ...]
    """Slices that cannot be judged with the tolerance planned for them."""
    sentences: tuple[str, ...]
    flags: tuple[str, ...]
    """What the plan asks for and cannot get, each with a way out."""

    def content(self) -> dict[str, Any]:
        """As plain JSON values."""
        values = asdict(self) | {"power": POWER}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


_Guarded = tuple[Guardrail, list[GuardrailPower]]
"""A guardrail as planned, and what it needs on each of its slices."""


def power_of(plan: Plan, examples: int, counts: Mapping[str, int], measured: Measured | None = None) -> Power:
    """What `examples` test examples can show; `counts` are those of each category or field, {} while unknown."""
    hypothesis = plan.hypothesis
    comparisons = len(candidates(plan))
    # The verdict counts draws, k + 1 of B + 1, so that a p-value is a whole multiple of 1 / (B + 1).
    draws, tail = plan.evaluation.resamples, hypothesis.alpha / max(1, comparisons)
    counted = (math.floor(tail * (draws + 1)) - 0.5) / draws
    asked = (hypothesis.reference, hypothesis.metric, WHOLE)
    design = _design(plan, asked, _examples(hypothesis.metric, examples, counts), counted, counts, measured)
    smallest = supported = enough = None
    told = hypothesis.metric not in LOWER_IS_BETTER
    if told and examples:
        enough = counted > 0 and chance(design, min(1.0, hypothesis.min_improvement)) >= POWER
    if told and examples and counted > 0:
        smallest = smallest_difference(design)
        supported = smallest_difference(design, at_least=hypothesis.min_improvement)
    guarded: list[_Guarded] = []
    for guardrail in plan.guardrails:
        parts = counts if guardrail.slice == EACH_CATEGORY and counts else [guardrail.slice]
        rows = [_guardrail(plan, guardrail, part, examples, counts, tail, measured) for part in parts]
        guarded.append((guardrail, rows))
    guardrails = [row for _, rows in guarded for row in rows]
    assumed = _assumptions(design, measured)
    found = Power(
        metric=hypothesis.metric,
        smallest=smallest,
        supported=supported,
        min_improvement=hypothesis.min_improvement,
        enough=enough,
        alpha=hypothesis.alpha,
        comparisons=comparisons,
        tail=tail,
        examples=examples,
        seeds=len(plan.evaluation.seeds),
        disagreement=design.disagreement,
        seed_agreement=design.agreement,
        seed_deviation=design.deviation,
        assumption="; ".join(assumed),
        measured=measured is not None,
        guardrails=tuple(guardrails),
        too_small=tuple(dict.fromkeys(row.slice for row in guardrails if row.enough is False and row.slice != WHOLE)),
        sentences=(),
        flags=(),
    )
    flags = []
    if enough is False and counted <= 0:
        flags.append(
            f"{draws} resamples give no p-value below {1 / (draws + 1):.3g}, and {tail:.3g} is asked of each of "
            f"{comparisons} candidates: set evaluation.resamples to {math.ceil(1 / tail)} or more"
        )
    elif enough is False:
        flags.append(_unseen(found, design))
    flags += [sentence for guardrail, rows in guarded if (sentence := _too_small(guardrail, rows))]
    return replace(found, sentences=(*_sentences(found, guarded), *assumed), flags=tuple(flags))


def _examples(metric: str, examples: int, counts: Mapping[str, int]) -> float:
    """Examples of a mean of plain scores with the variance of the whole metric."""
    there = [count for count in counts.values() if count]
    if metric == "macro_f1" and there:
        return len(counts) ** 2 / sum(1 / count for count in there)
    if metric == "field_f1" and there:
        return min(examples, sum(there))
    return examples


def _design(
    plan: Plan, asked: Asked, examples: float, tail: float, counts: Mapping[str, int], measured: Measured | None
) -> Design:
    reference, _, part = asked
    columns = 1 if part == WHOLE else max(1, len(counts))
    design = Design(
        examples=examples,
        seeds=len(plan.evaluation.seeds),
        tail=tail,
        disagreement=DISAGREEMENT,
        agreement=AGREEMENT,
        deviation=DEVIATION * math.sqrt(columns),
        columns=columns,
    )
    if measured is None:
        return design
    return replace(
        design,
        disagreement=measured.disagreement.get(asked, DISAGREEMENT),
        agreement=measured.agreement.get(reference, AGREEMENT),
        deviation=measured.deviation.get(asked, design.deviation),
    )


def _guardrail(
    plan: Plan,
    guardrail: Guardrail,
    part: str,
    examples: int,
    counts: Mapping[str, int],
    tail: float,
    measured: Measured | None,
) -> GuardrailPower:
    own = examples if part == WHOLE else counts.get(part)
    design = smallest = enough = times = seeds = None
    if own is not None and guardrail.metric not in LOWER_IS_BETTER:
        enough = False if guardrail.tolerance else None
        if own:
            effective = _examples(guardrail.metric, examples, counts) if part == WHOLE else own
            asked = (guardrail.reference, guardrail.metric, part)
            design = _design(plan, asked, effective, tail, counts, measured)
            smallest, enough, times, seeds = _settles(design, guardrail.tolerance)
    return GuardrailPower(
        name=guardrail.name,
        slice=part,
        metric=guardrail.metric,
        examples=own,
        smallest=smallest,
        tolerance=guardrail.tolerance,
        enough=enough,
        disagreement=None if design is None else design.disagreement,
        seed_deviation=None if design is None else design.deviation,
        needed_examples=None if times is None or not own else _rounded_up(own * times),
        needed_seeds=seeds,
    )


@lru_cache(1024)
def _settles(design: Design, tolerance: float) -> tuple[float | None, bool | None, float | None, int | None]:
    """Smallest tolerance, whether the planned one is enough, and with how many times the examples or how many seeds it would be."""
    if not tolerance:
        return smallest_difference(design), None, None, None
    smallest = smallest_tolerance(design)

    def passes(other: Design) -> bool:
        return chance(other, 0.0, tolerance=tolerance) >= POWER

    if passes(design):
        return smallest, True, None, None
    return smallest, False, times_the_examples(design, passes), seeds_enough(design, passes)


def _sentences(found: Power, guarded: Sequence[_Guarded]) -> list[str]:
    often = f"in {POWER * 10:.0f} of 10 campaigns"
    if found.metric in LOWER_IS_BETTER:
        lines = [f"how small a difference in {found.metric} can be shown is not known before models have answered"]
    elif not found.examples:
        lines = ["nothing: there are no test examples"]
    else:
        size = "none" if found.smallest is None else f"{found.smallest:.3g}"
        lines = [
            f"smallest difference in {found.metric} found {often}: {size}; worth having: {found.min_improvement:g}",
            f"from {found.examples:,} test examples and {_count(found.seeds, 'seed')}, one-sided alpha {found.tail:.3g}"
            f" ({found.alpha:g} shared among {_count(max(1, found.comparisons), 'candidate')})",
        ]
        if found.supported is not None:
            lines.append(
                f'"supported" also needs an estimate of {found.min_improvement:g}: '
                f"a true {found.supported:.3g} gets it {often}"
            )
    if found.metric == "macro_f1":
        lines.append("macro_f1 is taken as the mean of the categories' recalls")
    if found.metric == "field_f1":
        lines.append("field_f1 is taken as the share of values found, those of one example together")
    lines += [_held(guardrail, rows) for guardrail, rows in guarded]
    if found.seeds == 1:
        lines.append("one seed: the answer is about these very models, not about what other seeds would give")
    return lines


def _held(guardrail: Guardrail, rows: Sequence[GuardrailPower]) -> str:
    """What one guardrail of the plan needs, over all of its slices."""
    told = sorted(row.smallest for row in rows if row.smallest is not None)
    if not told:
        return f"{guardrail.name}: not known before models have answered"
    spread = f"{told[0]:.3g}" if told[0] == told[-1] else f"{told[0]:.3g} to {told[-1]:.3g}"
    if not guardrail.tolerance:
        return f"{guardrail.name}: without tolerance, only what is better by {spread} {guardrail.metric} passes"
    return f"{guardrail.name}: equal ones pass with a tolerance of {spread} {guardrail.metric}; planned {guardrail.tolerance:g}"


def _assumptions(design: Design, measured: Measured | None) -> list[str]:
    """What disagreement and seeds are taken to be, and why."""
    source = "assumed until runs have answered" if measured is None else measured.words
    what = [f"{source}: exactly one of two systems is right on {100 * design.disagreement:.3g} % of the examples"]
    if design.seeds > 1:
        moved = f"move a system's metric by {design.deviation:.2g} (standard deviation)"
        what.append(
            f"seeds agree on {100 * design.agreement:.0f} % of that and {moved if design.deviation else 'move nothing more'}"
        )
    return what


def _unseen(found: Power, design: Design) -> str:
    """The hypothesis asks for less than can be seen: what would show it."""

    def reached(other: Design) -> bool:
        return chance(other, min(1.0, found.min_improvement)) >= POWER

    times, seeds = times_the_examples(design, reached), seeds_enough(design, reached)
    way = _way(None if times is None else _rounded_up(found.examples * times), seeds, "improvement")
    shown = "nothing" if found.smallest is None else f"{found.smallest:.3g}"
    return f"{found.min_improvement:g} {found.metric} is less than this evaluation shows ({shown}); {way}"


def _too_small(guardrail: Guardrail, rows: Sequence[GuardrailPower]) -> str | None:
    """Which slices are too small for the planned tolerance, None when none is."""
    short = [row for row in rows if row.enough is False]
    if not short:
        return None
    hardest = max(short, key=lambda row: math.inf if row.smallest is None else row.smallest)
    names = ", ".join(row.slice for row in short[:3]) + (f" and {len(short) - 3} more" if len(short) > 3 else "")
    subject = "the test set is" if guardrail.slice == WHOLE else f"{names} {'is' if len(short) == 1 else 'are'}"
    where = "" if len(short) == 1 else f" of {hardest.slice}"
    settled = "nothing" if hardest.smallest is None else f"{hardest.smallest:.3g}"
    return (
        f"{subject} too small to judge {guardrail.tolerance:g} {guardrail.metric}: "
        f"{_count(hardest.examples or 0, 'test example')}{where} settle {settled}; "
        f"{_way(hardest.needed_examples, hardest.needed_seeds, 'tolerance')}"
    )


def _way(examples: int | None, seeds: int | None, larger: str) -> str:
    """The way out, as the end of a sentence."""
    ways = ([] if examples is None else [f"about {examples:,} test examples"]) + (
        [] if seeds is None else [f"{seeds} seeds"]
    )
    return f"{' or '.join(ways)} would do" if ways else f"only a larger {larger} can be shown"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _rounded_up(value: float) -> int:
    """To two digits, upwards: the third would pretend to be known."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(value, 1.0))) - 1)
    return math.ceil(value / unit) * unit
