"""The rules by which evidence becomes words (C6). They are fixed before the test set is opened.

For each candidate, g is its improvement over the reference: metric(candidate) − metric(reference), times −1 where the
hypothesis wants the metric lower. Its interval [low, high] has Bonferroni tails (alpha / candidates behind each end); p is the
one-sided p-value of "no improvement", Holm-adjusted over the planned candidates; M is `min_improvement`. The first row
that applies decides:

    what was found                                        word            because
    no completed run shared with the reference            not judged      its runs' status and cause
    high < M                                              not supported   an improvement worth having is excluded
    a guardrail is broken                                 not supported   what must not get worse did
    p > alpha                                             inconclusive    neither no improvement nor one of M is excluded
    p ≤ alpha, but g < M                                  inconclusive    better, but perhaps by less than is worth having
    a guardrail cannot tell                               inconclusive    worse by more than its tolerance is not excluded
    a seed of the candidate diverged                      inconclusive    its surviving seeds are a favourable selection
    otherwise                                             supported       improvement shown, of the size asked for, at no cost

"Supported" therefore means: that it is better at all is shown at level alpha; that it is better by M is the best estimate, and
the sentence says whether the interval shows that, too. Candidates are the variants, and the control as well where the
reference is the base. For the campaign:

    a candidate is supported                              supported
    all are not supported, or diverged in every seed      not supported   with reference "control": the control is best
    none could be judged, or there is no reference        no verdict
    otherwise                                             inconclusive
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ftui.plan.schema import WHOLE, Plan
from ftui.plan.variants import BASE, CONTROL, candidates
from ftui.verdict.bootstrap import Comparison, compare, comparison_entropy
from ftui.verdict.conclude import conclude, method_words
from ftui.verdict.evidence import Evidence, Side
from ftui.verdict.guardrails import difference_of, improvement, judge_guardrails
from ftui.verdict.metrics import support
from ftui.verdict.model import Difference, GuardrailRow, VariantVerdict, VariantWord, Verdict, better_sign
from ftui.verdict.multiple import bonferroni_tail, holm
from ftui.verdict.predictions import PredictionsError
from ftui.verdict.words import guardrail_words, listed, numbers, resolve_words


@dataclass
class _Judge:
    """One decision in the making; comparisons are computed once and shared by hypothesis and guardrails."""

    plan: Plan
    plan_hash: str
    evidence: Evidence
    known: dict[tuple[str, str], Comparison | str] = field(default_factory=dict)

    def comparison(self, name: str, reference: str) -> Comparison | str:
        """The comparison, or the sentence that says why there is none."""
        if (name, reference) not in self.known:
            one, other = self.evidence.sides[name], self.evidence.sides[reference]
            self.known[name, reference] = self._compared(one, other)
        return self.known[name, reference]

    def _compared(self, one: Side, other: Side) -> Comparison | str:
        for side in (one, other):
            if not side.answers:
                return f"there is no completed run of {side.name}: {listed([str(m) for m in side.missing])}"
        try:
            return compare(
                one.answers,
                other.answers,
                resamples=self.plan.evaluation.resamples,
                entropy=comparison_entropy(self.plan_hash, f"{one.name} against {other.name}"),
                names=(one.name, other.name),
            )
        except PredictionsError as error:
            return str(error)

    def guardrails(self, name: str, references: tuple[str, ...], tail: float) -> list[GuardrailRow]:
        asked = [g for g in self.plan.guardrails if g.reference in references and g.reference != name]
        against: dict[str, Comparison | str] = {g.reference: self.comparison(name, g.reference) for g in asked}
        return judge_guardrails(asked, self.evidence.measures, against, tail)


def decide(plan: Plan, plan_hash: str, evidence: Evidence, openings: int = 1) -> Verdict:
    """The verdict by the rules above. `openings` of the test set beyond the first weaken the wording (H4)."""
    judge = _Judge(plan, plan_hash, evidence)
    hypothesis = plan.hypothesis
    names, reference = candidates(plan), hypothesis.reference
    sign = 1 if hypothesis.direction == "higher" else -1
    tail = bonferroni_tail(hypothesis.alpha, len(names))
    column = (hypothesis.metric, WHOLE)

    compared = {name: judge.comparison(name, reference) for name in names}
    p_values = {n: c.p_value(column, sign) if isinstance(c, Comparison) else 1.0 for n, c in compared.items()}
    adjusted = dict(zip(names, holm([p_values[name] for name in names]), strict=True))
    variants = [
        _judge_candidate(judge, name, compared[name], p_values[name], adjusted[name], tail, sign) for name in names
    ]
    word, sentence, choice = conclude(plan, evidence, variants)
    if openings > 1:
        sentence += (
            f" The test set was opened {openings} times, which weakens this: later settings may have been fitted to it."
        )
    control = [] if reference == BASE else judge.guardrails(CONTROL, (BASE,), tail)
    if broken := [row for row in control if row.state == "broken"]:
        sentence += f" The control itself breaks {listed([guardrail_words(row) for row in broken])}."
    found = [c for c in judge.known.values() if isinstance(c, Comparison)]
    return Verdict(
        word=word,
        sentence=sentence,
        metric=hypothesis.metric,
        direction=hypothesis.direction,
        min_improvement=hypothesis.min_improvement,
        reference=reference,
        alpha=hypothesis.alpha,
        comparisons=len(names),
        examples=found[0].examples if found else None,
        resamples=plan.evaluation.resamples,
        method=method_words(plan, len(names), evidence.measures.meaning),
        variants=variants,
        control_guardrails=control,
        missing=[
            m for name in dict.fromkeys((BASE, CONTROL)) if name not in names for m in evidence.sides[name].missing
        ],
        choice=choice,
    )


def _judge_candidate(
    judge: _Judge, name: str, compared: Comparison | str, p_value: float, adjusted: float, tail: float, sign: int
) -> VariantVerdict:
    hypothesis = judge.plan.hypothesis
    guardrails = judge.guardrails(name, (BASE, CONTROL), tail)
    missing = judge.evidence.sides[name].missing
    if isinstance(compared, str):
        sentence = f"{name} cannot be judged: {compared}."
        return VariantVerdict(
            variant=name,
            word="not judged",
            sentence=sentence,
            seeds=[],
            missing=missing,
            difference=None,
            p_value=None,
            adjusted_p=None,
            guardrails=guardrails,
            resolve=None,
        )
    found = difference_of(compared, hypothesis.metric, WHOLE, tail)
    word, sentence, resolve = _word(judge, name, compared, found, adjusted, guardrails, sign)
    lacking = sorted(set(judge.plan.evaluation.seeds) - set(compared.seeds))
    if lacking:
        there, gone = (listed([str(seed) for seed in seeds], 9) for seeds in (compared.seeds, lacking))
        sentence += f" Compared on seed {there} only: {gone} is not there on both sides."
    return VariantVerdict(
        variant=name,
        word=word,
        sentence=sentence,
        seeds=list(compared.seeds),
        missing=missing,
        difference=found,
        p_value=p_value,
        adjusted_p=adjusted,
        guardrails=guardrails,
        resolve=resolve,
    )


def _word(
    judge: _Judge,
    name: str,
    compared: Comparison,
    found: Difference,
    adjusted: float,
    guardrails: list[GuardrailRow],
    sign: int,
) -> tuple[VariantWord, str, str | None]:
    """The table of the module, row by row, with the sentence and what would resolve an open question."""
    hypothesis = judge.plan.hypothesis
    metric, least = hypothesis.metric, hypothesis.min_improvement
    gain, low, high = improvement(found, sign)
    evidence = numbers(found, adjusted)
    better = "higher" if sign > 0 else "lower"
    share = float(compared.seed_share[compared.index[metric, WHOLE]])

    def settle(needed: float) -> str:
        return resolve_words(found, needed, examples=compared.examples, seeds=len(compared.seeds), seed_share=share)

    if high < least:
        return (
            "not supported",
            f"{name} is not better than {hypothesis.reference} by {least:g} {metric} {evidence}.",
            None,
        )
    broken = [row for row in guardrails if row.state == "broken"]
    if broken:
        cost = listed([guardrail_words(row) for row in broken])
        return "not supported", f"{name} breaks what must not get worse: {cost}. Its {metric}: {evidence}.", None
    if adjusted > hypothesis.alpha:
        sentence = (
            f"{name} may or may not be better than {hypothesis.reference}: neither no improvement nor one of {least:g} {metric}"
            f" is excluded {evidence}."
        )
        return "inconclusive", sentence, settle(max(gain, least - gain))
    if gain < least:
        sentence = (
            f"{name} has a {better} {metric} than {hypothesis.reference}, but perhaps by less than the {least:g} worth having"
            f" {evidence}."
        )
        return "inconclusive", sentence, settle(least - gain)
    if unsure := [row for row in guardrails if row.state == "cannot tell"]:
        cost = listed([guardrail_words(row) for row in unsure])
        sentence = f"{name} has a {better} {metric} than {hypothesis.reference} {evidence}, but getting worse is not excluded in {cost}."
        return "inconclusive", sentence, _settle_guardrails(judge, name, unsure)
    if diverged := judge.evidence.sides[name].diverged:
        sentence = (
            f"{name} has a {better} {metric} than {hypothesis.reference} in the seeds that survived {evidence}, but"
            f" {len(diverged)} of {len(judge.plan.evaluation.seeds)} diverged ({listed([str(m) for m in diverged])})."
        )
        return "inconclusive", sentence, "a stable setting of the same idea, as a new variant"
    sure = (
        f"the whole interval lies at or above {least:g}"
        if low >= least
        else f"that it gains at least {least:g} is the best estimate, not certain"
    )
    held = "; every guardrail holds" if guardrails else ""
    if low <= 0:
        sure += "; Holm's order shows the improvement where the simpler interval still touches zero"
    return "supported", f"{name} has a {better} {metric} than {hypothesis.reference} {evidence}; {sure}{held}.", None


def _settle_guardrails(judge: _Judge, name: str, unsure: list[GuardrailRow]) -> str:
    """What the guardrail that is hardest to settle would need."""
    hardest: tuple[float, str] | None = None
    for row in unsure:
        compared = judge.comparison(name, row.reference)
        if row.difference is None or isinstance(compared, str):
            return row.note
        needed = abs(better_sign(row.metric) * row.difference.point + row.tolerance)
        examples, what = compared.examples, "test examples"
        if row.slice != WHOLE:
            examples = support(next(iter(judge.evidence.sides[name].answers.values())))[row.slice]
            what = f"test examples of the {judge.evidence.measures.slice_word} {row.slice}"
        share = float(compared.seed_share[compared.index[row.metric, row.slice]])
        words = resolve_words(
            row.difference, needed, examples=examples, seeds=len(compared.seeds), seed_share=share, of_what=what
        )
        effort = (row.difference.high - row.difference.low) / max(needed, 1e-12)
        if hardest is None or effort > hardest[0]:
            hardest = effort, words
    return hardest[1] if hardest else ""
