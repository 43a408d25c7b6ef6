"""What must not get worse (H2): non-inferiority of a candidate on each guarded slice.

With g = candidate − reference, times −1 for a metric of which less is better (`loss`), its interval [low, high] and the tolerance
t ≥ 0:

    low ≥ −t             holds          worse by more than t is excluded
    high < −t            broken         it is worse by more than t for certain
    otherwise            cannot tell    the interval contains −t

A candidate passes only when every guardrail holds, so asking many of them does not raise the chance of passing a bad one
(intersection–union test: R. Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24, 1982); they
need no correction among themselves. The interval's tail is the one of the hypothesis, corrected for the number of candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ftui.plan.schema import EACH_CATEGORY, WHOLE, Guardrail
from ftui.verdict.bootstrap import Comparison
from ftui.verdict.metrics import Measures
from ftui.verdict.model import Difference, GuardrailRow, Hold, better_sign
from ftui.verdict.words import signed

CLOSE = 1e-12
"""Rounding of a mean of ratios; a difference of exactly the tolerance is inside it."""


def expand(guardrails: Sequence[Guardrail], slices: Sequence[str]) -> list[Guardrail]:
    """Each guardrail on one slice: "each category" becomes one per category or field."""
    expanded: list[Guardrail] = []
    for guardrail in guardrails:
        names = slices if guardrail.slice == EACH_CATEGORY else [guardrail.slice]
        expanded += [guardrail.model_copy(update={"slice": name}) for name in names]
    return expanded


def judge_guardrails(
    guardrails: Sequence[Guardrail],
    measures: Measures,
    comparisons: Mapping[str, Comparison | str],
    tail: float,
) -> list[GuardrailRow]:
    """One row per guardrail and slice. `comparisons` maps each reference to the candidate's comparison with it, or to the
    sentence that says why there is none."""
    rows = []
    for guardrail in expand(guardrails, measures.slices):
        against = comparisons[guardrail.reference]
        if isinstance(against, str):
            rows.append(_row(guardrail, "cannot tell", against))
        elif (guardrail.metric, guardrail.slice) not in against.index:
            what = f"{guardrail.metric} was not measured for the {measures.slice_word} {guardrail.slice!r}"
            if guardrail.slice == WHOLE:
                what = f"{guardrail.metric} was not measured"
            rows.append(_row(guardrail, "cannot tell", what))
        else:
            rows.append(_judged(guardrail, against, tail))
    return rows


def improvement(found: Difference, sign: int) -> tuple[float, float, float]:
    """Point, low and high of the improvement: the difference itself, mirrored for `sign` −1, where lower is better."""
    return sign * found.point, min(sign * found.low, sign * found.high), max(sign * found.low, sign * found.high)


def difference_of(comparison: Comparison, metric: str, part: str, tail: float) -> Difference:
    """The difference in one metric with its interval."""
    column = (metric, part)
    variant, reference = comparison.values(column)
    low, high = comparison.interval(column, tail)
    return Difference(
        variant=variant, reference=reference, point=variant - reference, low=low, high=high, level=1 - 2 * tail
    )


def _judged(guardrail: Guardrail, comparison: Comparison, tail: float) -> GuardrailRow:
    found = difference_of(comparison, guardrail.metric, guardrail.slice, tail)
    sign = better_sign(guardrail.metric)
    _, low, high = improvement(found, sign)
    limit = -guardrail.tolerance
    state: Hold
    if low >= limit - CLOSE:
        state, note = "holds", "worse by more than the tolerance is excluded"
    elif high < limit - CLOSE:
        state, note = "broken", "it is worse by more than the tolerance"
    else:
        state = "cannot tell"
        note = f"the interval contains {signed(sign * limit)}: worse by the tolerance is neither shown nor excluded"
    row = _row(guardrail, state, note, found, list(comparison.seeds))
    if row.cannot_fail:
        note = f"holds because it cannot fail: {guardrail.reference} itself has {found.reference:.3f}, there is no more to lose"
        row = row.model_copy(update={"note": note})
    return row


def _row(
    guardrail: Guardrail, state: Hold, note: str, difference: Difference | None = None, seeds: Sequence[int] = ()
) -> GuardrailRow:
    return GuardrailRow(
        name=guardrail.name,
        metric=guardrail.metric,
        slice=guardrail.slice,
        reference=guardrail.reference,
        tolerance=guardrail.tolerance,
        state=state,
        difference=difference,
        seeds=list(seeds),
        note=note,
    )
