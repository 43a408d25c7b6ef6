"""What the plan assumes about disagreement and seeds is measured on validation answers, from records made for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ftui.plan.power import DEVIATION, DISAGREEMENT, Measured, power_of
from ftui.plan.schema import WHOLE
from ftui.record.journal import read_journal
from ftui.record.lines import Row
from ftui.record.rows import prediction_writer
from ftui.record.state import fold
from ftui.verdict.disagreement import ASSUMED_FREEDOM, measure_disagreement
from tests.builders.record import LABELS, PLAN, UPDATES, Record, labels_of, plan_for

EXAMPLES = 300
"""Validation examples of the record: 100 in each of three categories."""

CONTROL_ACCURACY, BASE_ACCURACY = ("control", "accuracy", WHOLE), ("base", "accuracy", WHOLE)

Skills = Mapping[tuple[str, int], Any]


def measured(
    root: Path,
    skills: Skills,
    text: str = PLAN,
    task: str = "text-classification",
    without: Callable[[Row], bool] = lambda row: False,
) -> tuple[Measured | None, Record]:
    """What a record says in which these runs, by system and seed, were completed and answered with these skills. Rows `without` are
    no validation examples."""
    record = Record(root, text, labels_of(task))
    record.begin()
    for run in record.runs:
        if (run.variant, run.seed) not in skills:
            continue
        record.train(run)
        path = record.files.run(run.id).validation_predictions(0 if run.variant == "base" else UPDATES)
        with prediction_writer(path) as writer:
            for row in record.answers(skills[run.variant, run.seed]):
                if not without(row):
                    writer.write(row)
    return measure_disagreement(record.files, fold(read_journal(record.files.journal)), record.plan), record


def moved(share: float, examples: float = EXAMPLES) -> float:
    """Laplace's rule: as if one of two further examples differed."""
    return (share * examples + 1) / (examples + 2)


def found(root: Path, skills: Skills, **options: Any) -> Measured:
    measure, _ = measured(root, skills, **options)
    assert measure is not None
    return measure


def test_nothing_is_measured_before_a_run_has_answered(tmp_path: Path) -> None:
    assert measured(tmp_path / "c", {})[0] is None


def test_a_pair_of_runs_gives_the_share_that_exactly_one_answers_rightly(tmp_path: Path) -> None:
    """The better is right wherever the worse is: 0.7 and 0.6 differ on 0.1 of the examples, 0.9 and 0.6 on 0.3."""
    skills = {("control", 17): 0.6, ("half-rate", 17): 0.7, ("double-rate", 17): 0.9, ("double-rate", 18): 0.1}
    measure = found(tmp_path / "c", skills)
    assert measure.disagreement[CONTROL_ACCURACY] == pytest.approx(moved((0.1 + 0.3) / 2))
    for name in LABELS:
        assert measure.disagreement["control", "recall", name] == pytest.approx(moved(0.2, 100))
    assert measure.words == "measured on 300 validation examples (others against the control)"


def test_each_slice_has_its_own_share(tmp_path: Path) -> None:
    other = dict(zip(LABELS, (0.6, 0.7, 1.0), strict=True))
    measure = found(tmp_path / "c", {("control", 17): 0.6, ("half-rate", 17): other})
    shares = [measure.disagreement["control", "recall", name] for name in LABELS]
    assert shares == pytest.approx([moved(share, 100) for share in (0.0, 0.1, 0.4)])
    assert measure.deviation == {} and measure.words.endswith("seeds as assumed")


def test_a_small_category_weighs_more_in_a_macro_metric(tmp_path: Path) -> None:
    """Its variance is Σ ψ/n_k: 0/100, 0.1/100 and, in the category of which every other row is gone, 0.4/50, of 1/100 + 1/100 + 1/50;
    as of 3² / (1/100 + 1/100 + 1/50) examples."""
    text = PLAN.replace('metric = "accuracy"', 'metric = "macro_f1"', 1)
    skills = {("control", 17): 0.6, ("half-rate", 17): dict(zip(LABELS, (0.6, 0.7, 1.0), strict=True))}
    measure = found(
        tmp_path / "c",
        skills,
        text=text,
        without=lambda row: row["category"] == LABELS[2] and int(row["id"][-1]) % 2 == 1,
    )
    expected = moved(0.009 / 0.04, 9 / 0.04)
    assert measure.disagreement["control", "macro_f1", WHOLE] == pytest.approx(expected)


def test_the_baseline_alone_bounds_what_systems_as_good_can_disagree_by(tmp_path: Path) -> None:
    """Independent systems of the share p disagree on 2p(1 − p): 0.5 here; the control is assumed to be nearer to its variants."""
    measure = found(tmp_path / "a", {("base", 17): 0.5})
    assert measure.disagreement[BASE_ACCURACY] == pytest.approx(0.5)
    assert measure.disagreement[CONTROL_ACCURACY] == DISAGREEMENT
    good = moved(0.98)
    measure = found(tmp_path / "b", {("base", 17): 0.98})
    assert measure.disagreement[CONTROL_ACCURACY] == pytest.approx(2 * good * (1 - good))
    assert "from the base's 0.977 on 300 validation examples" in measure.words


def test_two_seeds_of_the_control_stand_in_until_a_variant_has_ended(tmp_path: Path) -> None:
    measure = found(tmp_path / "c", {("control", 17): 0.6, ("control", 18): 0.65})
    assert measure.disagreement[CONTROL_ACCURACY] == pytest.approx(moved(0.05))
    assert "seeds of one setting" in measure.words


def test_what_seeds_vary_by_themselves_is_told_from_what_their_answers_vary(tmp_path: Path) -> None:
    """0.5 and 0.7 vary by 0.2² / 2 = 0.02. They differ on 0.2 · 300 examples, each with a variance of 0.5 between the two: that
    explains 0.2 · 300 · 0.5 / 300²."""
    measure = found(tmp_path / "c", {("control", 17): 0.5, ("control", 18): 0.7})
    excess = 0.02 - 0.2 * 0.5 / EXAMPLES
    expected = (excess + DEVIATION**2 * ASSUMED_FREEDOM) / (1 + ASSUMED_FREEDOM)
    assert measure.deviation[CONTROL_ACCURACY] == pytest.approx(math.sqrt(expected))


def test_seeds_that_move_both_sides_alike_cost_nothing(tmp_path: Path) -> None:
    """Both are better by 0.2 with seed 18 and stay 0.1 apart, on other examples: the difference does not vary, and the assumption fades."""
    alike = {("control", 17): 0.5, ("control", 18): 0.7, ("half-rate", 17): 0.6, ("half-rate", 18): 0.8}
    measure = found(tmp_path / "c", alike)
    assert measure.deviation[CONTROL_ACCURACY] < DEVIATION
    assert measure.agreement["control"] < 0.01


def test_differences_that_are_the_same_in_every_seed_are_seen_to_be(tmp_path: Path) -> None:
    same = {("control", 17): 0.5, ("control", 18): 0.5, ("half-rate", 17): 0.6, ("half-rate", 18): 0.6}
    assert found(tmp_path / "c", same).agreement["control"] == pytest.approx(1.0)


def test_a_category_that_is_always_recognised_is_not_moved_by_seeds(tmp_path: Path) -> None:
    one, other = (dict(zip(LABELS, shares, strict=True)) for shares in ((1.0, 0.5, 0.5), (1.0, 0.7, 0.3)))
    deviation = found(tmp_path / "c", {("control", 17): one, ("control", 18): other}).deviation
    moved_by = [deviation["control", "recall", name] for name in LABELS]
    assert moved_by[0] == 0.0
    assert moved_by[1] > DEVIATION and moved_by[2] > DEVIATION


def test_the_sealed_test_set_is_not_looked_at(tmp_path: Path) -> None:
    skills = {("control", 17): 0.6, ("half-rate", 17): 0.7}
    before, record = measured(tmp_path / "c", skills)
    for run in record.runs:
        record.files.run(run.id).predictions.mkdir(parents=True, exist_ok=True)
        record.files.run(run.id).test_predictions.write_text("no one may read this\n")
    state = fold(read_journal(record.files.journal))
    assert measure_disagreement(record.files, state, record.plan) == before


def test_only_completed_runs_count(tmp_path: Path) -> None:
    _, record = measured(tmp_path / "c", {("control", 17): 0.6})
    run = next(run for run in record.runs if (run.variant, run.seed) == ("half-rate", 17))
    record.start(run)
    with prediction_writer(record.files.run(run.id).validation_predictions(10)) as writer:
        for row in record.answers(0.1):
            writer.write(row)
    record.end(run, "diverged", "the loss was infinite at update 10", updates=10)
    measure = measure_disagreement(record.files, fold(read_journal(record.files.journal)), record.plan)
    assert measure is not None and "measured" not in measure.words


def test_an_extraction_is_measured_by_its_fields_and_forms(tmp_path: Path) -> None:
    """0.6 and 0.8 of each field: 0.2 of the examples differ, all of them valid; a form is valid in both or in none."""
    text = plan_for("extraction") + '\n[[guardrails]]\nname = "readable"\nmetric = "valid_json"\ntolerance = 0.02\n'
    labels = labels_of("extraction")
    skills = {("control", 17): 0.6, ("half-rate", 17): 0.8}
    measure = found(tmp_path / "c", skills, text=text, task="extraction")
    assert measure.disagreement["control", "field_f1", WHOLE] == pytest.approx(moved(0.2))
    assert measure.disagreement["control", "valid_json", WHOLE] == pytest.approx(moved(0.0))
    for name in labels:
        assert measure.disagreement["control", "recall", name] == pytest.approx(moved(0.2))


def test_a_generation_is_measured_by_exact_answers_and_its_loss_is_left_alone(tmp_path: Path) -> None:
    skills = {("control", 17): 0.6, ("half-rate", 17): 0.65}
    measure = found(tmp_path / "c", skills, text=plan_for("generation"), task="generation")
    assert measure.disagreement["control", "exact_match", WHOLE] == pytest.approx(moved(0.05))
    assert not any(metric == "loss" for _, metric, _ in measure.disagreement)


def test_the_plan_says_what_was_measured_and_where(tmp_path: Path) -> None:
    measure, record = measured(tmp_path / "c", {("control", 17): 0.6, ("half-rate", 17): 0.62})
    assumed, known = (power_of(record.plan, 300, dict.fromkeys(LABELS, 100), m) for m in (None, measure))
    assert known.measured and known.disagreement == pytest.approx(moved(0.02))
    assert known.smallest is not None and assumed.smallest is not None and known.smallest < assumed.smallest
    assert known.assumption.startswith("measured on 300 validation examples")
