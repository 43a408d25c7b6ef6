"""From the candidates' words to the campaign's word, sentence and choice; the table is in `decide.py`."""

from __future__ import annotations

from ftui.plan.schema import Plan
from ftui.plan.variants import CONTROL, candidates
from ftui.verdict.evidence import Evidence
from ftui.verdict.model import VariantVerdict, Verdict, Word
from ftui.verdict.multiple import bonferroni_tail
from ftui.verdict.tasks import measures_of
from ftui.verdict.words import listed


def conclude(plan: Plan, evidence: Evidence, variants: list[VariantVerdict]) -> tuple[Word, str, str | None]:
    """Word, sentence and the system to leave with, None where the rules name none."""
    reference = plan.hypothesis.reference
    side = evidence.sides[reference]
    if not variants:
        return "no verdict", f"No verdict: the plan has no variant to compare with the {reference}.", reference
    if not side.answers:
        causes = listed([str(m) for m in side.missing])
        return "no verdict", f"No verdict: the {reference} has no run to compare with: {causes}.", None
    by_word = {word: [v for v in variants if v.word == word] for word in ("supported", "not supported", "not judged")}
    supported, refused, unjudged = by_word.values()
    unjudged_sentences = _joined(unjudged)
    if supported:
        sign = 1 if plan.hypothesis.direction == "higher" else -1
        best = max(supported, key=lambda v: sign * v.difference.point if v.difference else 0.0)
        more = [v.variant for v in supported if v is not best]
        others = f" Supported as well, with a smaller gain: {listed(more)}." if more else ""
        return "supported", f"Supported: {best.sentence}{others}{unjudged_sentences}", best.variant
    if len(unjudged) == len(variants):
        return "no verdict", f"No verdict: no variant could be judged.{unjudged_sentences}", reference
    gone = [v for v in unjudged if len(evidence.sides[v.variant].diverged) == len(plan.evaluation.seeds)]
    if len(refused) + len(gone) == len(variants):
        return "not supported", f"Not supported: {_refusal(plan, len(variants))}{_joined(refused + gone)}", reference
    undecided = [v for v in variants if v.word == "inconclusive"]
    details = _joined(undecided) or " some variants could not be judged."
    sentence = f"Inconclusive:{details}{_joined(refused)}{unjudged_sentences}"
    return "inconclusive", sentence, reference if reference == CONTROL else None


def _refusal(plan: Plan, count: int) -> str:
    who = "the one variant does not improve" if count == 1 else f"none of the {count} variants improves"
    what = f"{plan.hypothesis.metric} by {plan.hypothesis.min_improvement:g} without breaking a guardrail"
    if plan.hypothesis.reference == CONTROL:
        return f"the control is best: {who} {what}."
    return f"training did not pay: {who.replace('variant', 'candidate')} the base's {what}."


def _joined(variants: list[VariantVerdict]) -> str:
    return "".join(f" {v.sentence}{f' To settle it: {v.resolve}.' if v.resolve else ''}" for v in variants)


def no_verdict(plan: Plan, why: str) -> Verdict:
    """The verdict of a campaign that has nothing to compare; `why` follows "No verdict: "."""
    comparisons = len(candidates(plan))
    return Verdict(
        word="no verdict",
        sentence=f"No verdict: {why}.",
        metric=plan.hypothesis.metric,
        direction=plan.hypothesis.direction,
        min_improvement=plan.hypothesis.min_improvement,
        reference=plan.hypothesis.reference,
        alpha=plan.hypothesis.alpha,
        comparisons=comparisons,
        examples=None,
        resamples=plan.evaluation.resamples,
        method=method_words(plan, comparisons, measures_of(plan, []).meaning),
        variants=[],
        control_guardrails=[],
        missing=[],
        choice=None,
    )


def method_words(plan: Plan, comparisons: int, meaning: str) -> str:
    """How the numbers of a verdict are computed, for the report. `meaning` defines the task's metrics."""
    alpha, tail = plan.hypothesis.alpha, bonferroni_tail(plan.hypothesis.alpha, comparisons)
    shared = f"alpha = {alpha:g}"
    if comparisons > 1:
        shared += f" shared among {comparisons} planned comparisons (Bonferroni)"
    return (
        "Differences are variant − reference on the same test examples and seeds, mean over the seeds both sides have. "
        "Intervals are percentile intervals of a paired bootstrap over seeds and examples "
        f"({plan.evaluation.resamples:,} resamples) with {100 * tail:.3g} % behind each end: {shared}. "
        f"p-values are one-sided, of no improvement, and Holm-adjusted over the planned comparisons. {meaning}"
    )
