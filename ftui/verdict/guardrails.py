"""What must not get worse (H2): non-inferiority of a candidate on each guarded slice.

With d = candidate − reference (every metric here is better when higher), its interval [low, high] and the tolerance t ≥ 0:

    low ≥ −t             holds          a loss larger than t is excluded
    high < −t            broken         the loss is larger than t for certain
    otherwise            cannot tell    the interval contains −t

A candidate passes only when every guardrail holds, so asking many of them does not raise the chance of passing a bad one
(intersection–union test: R. Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24, 1982); they
need no correction among themselves. The interval's tail is the one of the hypothesis, corrected for the number of candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ftui.plan.schema import EACH_CATEGORY, Guardrail
from ftui.verdict.bootstrap import Comparison
from ftui.verdict.model import Difference, GuardrailRow, Hold
from ftui.verdict.words import signed

CLOSE = 1e-12
"""Rounding of a mean of ratios; a difference of exactly the tolerance is inside it."""


def expand(guardrails: Sequence[Guardrail], labels: Sequence[str]) -> list[Guardrail]:
    """Each guardrail on one slice: "each category" becomes one per category."""
    expanded: list[Guardrail] = []
    for guardrail in guardrails:
        slices = labels if guardrail.slice == EACH_CATEGORY else [guardrail.slice]
        expanded += [guardrail.model_copy(update={"slice": name}) for name in slices]
    return expanded


def judge_guardrails(
    guardrails: Sequence[Guardrail],
    labels: Sequence[str],
    comparisons: Mapping[str, Comparison | str],
    tail: float,
) -> list[GuardrailRow]:
    """One row per guardrail and slice. `comparisons` maps each reference to the candidate's comparison with it, or to the
    sentence that says why there is none."""
    rows = []
    for guardrail in expand(guardrails, labels):
        against = comparisons[guardrail.reference]
        if isinstance(against, str):
            rows.append(_row(guardrail, "cannot tell", against))
        elif (guardrail.metric, guardrail.slice) not in against.index:
            rows.append(_row(guardrail, "cannot tell", f"the data has no category {guardrail.slice!r}"))
        else:
            rows.append(_judged(guardrail, against, tail))
    return rows


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
    limit = -guardrail.tolerance
    if found.low >= limit - CLOSE:
        state: Hold = "holds"
        note = "a loss larger than the tolerance is excluded"
        if found.reference <= guardrail.tolerance:
            note = f"holds because it cannot fail: {guardrail.reference} itself has {found.reference:.3f}, there is no more to lose"
    elif found.high < limit - CLOSE:
        state, note = "broken", "the loss is larger than the tolerance"
    else:
        state, note = (
            "cannot tell",
            f"the interval contains {signed(limit)}: a loss of this size is neither shown nor excluded",
        )
    return _row(guardrail, state, note, found, list(comparison.seeds))


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
