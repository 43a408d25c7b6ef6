"""From a record on disk to words: every rule of the decision, on records whose right answer follows from their construction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ftui.record.journal import read_journal
from ftui.record.rows import prediction_writer
from ftui.record.state import fold
from ftui.verdict.model import Difference, VariantVerdict, Verdict
from ftui.verdict.stage import reach_verdict
from ftui.verdict.words import resolve_words
from tests.builders import record as builders
from tests.builders.record import LABELS, PLAN, SKILLS, Record, closed

ONE_GUARDRAIL = PLAN.replace("tolerance = 0.10", "tolerance = 0.30")


def verdict_of(record: Record) -> Verdict:
    return reach_verdict(record.files, fold(read_journal(record.files.journal)), record.plan)


def judged(verdict: Verdict, name: str) -> VariantVerdict:
    return next(v for v in verdict.variants if v.variant == name)


def with_skills(tmp_path: Path, text: str = PLAN, per: int = builders.PER_CATEGORY, **skills: Any) -> Verdict:
    named = {name.replace("_", "-"): skill for name, skill in skills.items()}
    return verdict_of(closed(tmp_path / "c", {**SKILLS, **named}, text, per_category=per))


def test_a_clear_improvement_is_supported(tmp_path: Path) -> None:
    verdict = with_skills(tmp_path)
    assert verdict.word == "supported"
    assert verdict.choice == "double-rate"
    best = judged(verdict, "double-rate")
    assert best.word == "supported"
    assert best.difference is not None
    assert best.difference.point == pytest.approx(0.2)
    # Accuracy is a mean of N = 300 paired differences, here 1 with probability 0.2: standard error √(0.2 · 0.8 / 300) = 0.0231.
    assert best.difference.low == pytest.approx(0.2 - 1.96 * 0.0231, abs=0.01)
    assert best.difference.high == pytest.approx(0.2 + 1.96 * 0.0231, abs=0.01)
    assert best.difference.level == pytest.approx(0.95)
    assert judged(verdict, "half-rate").word == "not supported"
    assert verdict.sentence.startswith("Supported: double-rate has a higher accuracy than control")


def test_control_is_best_is_a_complete_conclusion(tmp_path: Path) -> None:
    verdict = with_skills(tmp_path, double_rate=0.45)
    assert verdict.word == "not supported"
    assert verdict.choice == "control"
    assert "the control is best: none of the 2 variants improves accuracy by 0.05" in verdict.sentence


def test_a_broken_guardrail_outweighs_any_gain(tmp_path: Path) -> None:
    costly = {LABELS[0]: 1.0, LABELS[1]: 1.0, LABELS[2]: 0.3}  # mean 0.77 against 0.6, but −0.3 in one category
    verdict = with_skills(tmp_path, double_rate=costly)
    best = judged(verdict, "double-rate")
    assert best.word == "not supported"
    broken = [row for row in best.guardrails if row.state == "broken"]
    assert [(row.slice, round(row.difference.point, 6)) for row in broken if row.difference] == [(LABELS[2], -0.3)]
    assert "pengembalian dana" in best.sentence
    assert verdict.word == "not supported"
    assert verdict.choice == "control"


def test_an_uncertain_guardrail_makes_it_inconclusive(tmp_path: Path) -> None:
    costly = {LABELS[0]: 1.0, LABELS[1]: 1.0, LABELS[2]: 0.5}  # −0.1 is the tolerance itself: the interval contains it
    verdict = with_skills(tmp_path, double_rate=costly)
    best = judged(verdict, "double-rate")
    assert best.word == "inconclusive"
    assert [row.slice for row in best.guardrails if row.state == "cannot tell"] == [LABELS[2]]
    assert best.resolve is not None and "too close to the limit" in best.resolve
    assert verdict.word == "inconclusive"


def test_a_guardrail_that_cannot_fail_says_so(tmp_path: Path) -> None:
    nothing = {LABELS[0]: 0.6, LABELS[1]: 0.6, LABELS[2]: 0.0}
    gained = {LABELS[0]: 0.9, LABELS[1]: 0.9, LABELS[2]: 0.0}
    verdict = with_skills(tmp_path, control=nothing, double_rate=gained)
    row = next(r for r in judged(verdict, "double-rate").guardrails if r.slice == LABELS[2])
    assert row.state == "holds"
    assert "cannot fail" in row.note


def test_too_few_examples_are_inconclusive_with_an_estimate(tmp_path: Path) -> None:
    """10 examples per category: 0.7 against 0.6 is 3 of 30, with a standard error of √(0.1 · 0.9 / 30) = 0.055."""
    verdict = with_skills(
        tmp_path, ONE_GUARDRAIL.replace("tolerance = 0.30", "tolerance = 0.9"), per=10, double_rate=0.7
    )
    best = judged(verdict, "double-rate")
    assert best.word == "inconclusive"
    assert best.resolve is not None and "test examples instead of 30" in best.resolve and "estimate" in best.resolve
    assert verdict.choice == "control"


def test_better_but_perhaps_too_little_is_inconclusive(tmp_path: Path) -> None:
    """A gain of 0.04 with a standard error of √(0.04 · 0.96 / 600) = 0.008: above zero, and 0.05 is inside the interval."""
    verdict = with_skills(tmp_path, per=200, double_rate=0.64)
    best = judged(verdict, "double-rate")
    assert best.adjusted_p is not None and best.adjusted_p <= 0.05
    assert best.word == "inconclusive"
    assert "less than the 0.05 worth having" in best.sentence


def test_lower_is_better_turns_the_sign(tmp_path: Path) -> None:
    text = PLAN.replace('direction = "higher"', 'direction = "lower"')
    no_guardrails = text[: text.index("[[guardrails]]")] + text[text.index("[data]") :]
    verdict = with_skills(tmp_path, no_guardrails)
    assert judged(verdict, "half-rate").word == "supported"  # 0.5 is lower than the control's 0.6 by 0.1
    assert judged(verdict, "double-rate").word == "not supported"
    assert verdict.choice == "half-rate"
    assert "a lower accuracy" in verdict.sentence


def test_base_as_reference_judges_the_control_too(tmp_path: Path) -> None:
    text = PLAN.replace('reference = "control"', 'reference = "base"')
    verdict = with_skills(tmp_path, text)
    assert [v.variant for v in verdict.variants] == ["control", "half-rate", "double-rate"]
    assert verdict.comparisons == 3
    assert verdict.choice == "double-rate"


def test_training_that_does_not_pay(tmp_path: Path) -> None:
    text = PLAN.replace('reference = "control"', 'reference = "base"')
    verdict = with_skills(tmp_path, text, base=0.9)
    assert verdict.word == "not supported"
    assert "training did not pay: none of the 3 candidates improves the base's accuracy" in verdict.sentence
    assert verdict.choice == "base"


def test_variant_that_always_diverged_is_stated_with_its_cause(tmp_path: Path) -> None:
    verdict = verdict_of(builders.diverged(tmp_path / "c"))
    gone = judged(verdict, "double-rate")
    assert gone.word == "not judged"
    assert [(m.seed, m.status) for m in gone.missing] == [(17, "diverged"), (18, "diverged")]
    assert "the loss was infinite at update 6" in verdict.sentence
    assert verdict.word == "not supported"  # its stop rule was written beforehand: diverging is an answer
    assert verdict.choice == "control"


def test_surviving_seeds_of_a_diverging_variant_are_no_support(tmp_path: Path) -> None:
    verdict = verdict_of(builders.diverged(tmp_path / "c", seeds=(18,)))
    one = judged(verdict, "double-rate")
    assert one.seeds == [17]
    assert one.word == "inconclusive"
    assert "1 of 2 diverged" in one.sentence
    assert "seed 17 only: 18 is not there" in one.sentence


def test_missing_control_gives_no_verdict(tmp_path: Path) -> None:
    record = Record(tmp_path / "c")
    record.begin()
    gone = [run for run in record.runs if run.variant == "control"]
    for run in record.runs:
        if run not in gone:
            record.train(run)
            continue
        record.start(run)
        record.end(run, "failed", "RuntimeError: no space left", updates=3)
    record.test(SKILLS, skipped=[run.id for run in gone])
    record.close()
    verdict = verdict_of(record)
    assert verdict.word == "no verdict"
    assert "the control has no run to compare with" in verdict.sentence
    assert "no space left" in verdict.sentence


def test_runs_that_answered_other_examples_are_not_compared(tmp_path: Path) -> None:
    record = closed(tmp_path / "c")
    path = record.files.run(record.run_id("double-rate", 17)).test_predictions
    path.unlink()
    with prediction_writer(path) as writer:
        for row in builders.answers(0.8)[1:]:
            writer.write(row)
    found = judged(verdict_of(record), "double-rate")
    assert found.word == "not judged"
    assert "test-0-0000" in found.sentence


def test_order_of_rows_in_the_files_changes_nothing(tmp_path: Path) -> None:
    record = closed(tmp_path / "c")
    before = verdict_of(record)
    for run in record.runs[::2]:
        path = record.files.run(run.id).test_predictions
        path.unlink()
        with prediction_writer(path) as writer:
            for row in reversed(builders.answers(SKILLS[run.variant])):
                writer.write(row)
    assert verdict_of(record) == before


def test_second_opening_weakens_the_wording(tmp_path: Path) -> None:
    record = closed(tmp_path / "c")
    record.test(SKILLS, opening=2)
    verdict = verdict_of(record)
    assert verdict.word == "supported"
    assert "opened 2 times, which weakens this" in verdict.sentence


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("never launched", "was not launched"),
        ("launched", "the test set is still sealed"),
        ("training", "still sealed (runs: 7 queued, 1 running)"),
        ("testing", "the evaluation on the test set is not finished (8 of 8 runs are open)"),
    ],
)
def test_unfinished_campaign_says_why_there_is_no_verdict(tmp_path: Path, stage: str, words: str) -> None:
    record = Record(tmp_path / "c")
    if stage != "never launched":
        record.launch()
    if stage in ("training", "testing"):
        record.prepare()
        record.gates()
        record.queue()
        record.start(record.runs[0])
    if stage == "testing":
        record.journal.append("test-opened", opening=1, candidates=[run.id for run in record.runs], reason="")
    verdict = verdict_of(record)
    assert verdict.word == "no verdict"
    assert words in verdict.sentence


def test_failed_gates_are_the_reason(tmp_path: Path) -> None:
    verdict = verdict_of(builders.failed_gate(tmp_path / "c"))
    assert verdict.word == "no verdict"
    assert "the gates failed" in verdict.sentence and "9 GiB asked" in verdict.sentence


def test_estimates_of_what_would_settle_it() -> None:
    """Half the width needs four times the examples. Two seeds' t is 12.7 and three seeds' 4.3, so one more seed more than halves it."""
    found = Difference(variant=0.7, reference=0.6, point=0.1, low=-0.1, high=0.3, level=0.95)
    assert resolve_words(found, 0.1, examples=300, seeds=2, seed_share=0.0).startswith(
        "about 1,200 test examples instead of 300"
    )
    assert resolve_words(found, 0.1, examples=300, seeds=2, seed_share=1.0).startswith("about 3 seeds instead of 2")
    assert "too close" in resolve_words(found, 0.01, examples=300, seeds=2, seed_share=0.0)


def test_a_relaunch_with_other_settings_never_takes_a_planned_runs_place(tmp_path: Path) -> None:
    record = builders.diverged(tmp_path / "c")
    planned = record.run_id("double-rate", 17)
    fields = {"number": 9, "variant": "double-rate", "seed": 17, "kind": "train", "priority": 0, "change": {}}
    record.journal.append("queued", run="r009-double-rate-s17", because="calmer", follows=planned, **fields)
    record.journal.append("run-started", run="r009-double-rate-s17", attempt=1, pid=1, resumed_from=None, placement={})
    end = {"attempt": 1, "status": "completed", "cause": None, "exit_code": 0, "updates": 20}
    record.journal.append("run-ended", run="r009-double-rate-s17", **end)
    record.journal.append("test-ended", run="r009-double-rate-s17", metrics={"accuracy": 0.9}, cause=None)
    state = fold(read_journal(record.files.journal))
    state.runs = dict(reversed(state.runs.items()))  # whatever the queue's order
    gone = judged(reach_verdict(record.files, state, record.plan), "double-rate")
    assert gone.word == "not judged"
    assert [(m.run, m.status) for m in gone.missing if m.seed == 17] == [(planned, "diverged")]
