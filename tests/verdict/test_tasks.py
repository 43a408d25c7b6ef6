"""Generations and extractions are judged like classifications: metrics by other means, direction, slices, whole campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_recall_fscore_support

from ftui.plan.schema import SLICE_METRICS, WHOLE, WHOLE_METRICS
from ftui.record.journal import read_journal
from ftui.record.lines import Row
from ftui.record.rows import prediction_writer
from ftui.record.state import fold
from ftui.verdict.bootstrap import compare
from ftui.verdict.metrics import columns, measure, measure_once, support
from ftui.verdict.model import VariantVerdict, Verdict
from ftui.verdict.predictions import Predictions, PredictionsError, predictions_from_rows
from ftui.verdict.stage import reach_verdict
from ftui.verdict.tasks import Classification, Extraction, Generation, measures_of
from tests.builders import record as builders
from tests.builders.record import LABELS, SKILLS, Record, labels_of, plan_for

FIELDS = ("date", "people", "이름", "never wanted")
CATEGORIES = ("refund", "zwrot")


def texts(seed: int, skill: float = 0.6, examples: int = 120) -> list[Row]:
    """Generations of two categories whose losses and lengths vary."""
    random = np.random.default_rng(seed)
    return [
        {
            "id": f"{i:04d}",
            "category": CATEGORIES[int(i % 3 == 0)],
            "target": f"answer {i}",
            "output": "…",
            "correct": bool(random.random() < skill),
            "loss": float(random.gamma(2.0, 1.0 - skill)),
            "targets": int(random.integers(1, 40)),
        }
        for i in range(examples)
    ]


def objects(seed: int, skill: float = 0.6, examples: int = 120) -> list[Row]:
    """Extractions: per field a value, another one, or none, on both sides."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    for i in range(examples):
        valid = bool(random.random() < 0.9)
        fields = {}
        for position, name in enumerate(FIELDS):
            wanted = position < 3 and random.random() < 0.7
            given = valid and random.random() < 0.7
            fields[name] = [int(wanted and given and random.random() < skill), int(given), int(wanted)]
        exact = valid and all(found == given == wanted for found, given, wanted in fields.values())
        row = {"id": f"{i:04d}", "category": "all", "target": f"{{{i}}}", "output": "{}", "correct": exact}
        row |= {"loss": 1.0, "targets": 9, "valid": valid, "required": valid and random.random() < 0.8}
        rows.append({**row, "fields": fields})
    return rows


def generation(rows: list[Row], answered: bool = True) -> Predictions:
    return predictions_from_rows(rows, Generation(CATEGORIES, answered), "test")


def extraction(rows: list[Row]) -> Predictions:
    return predictions_from_rows(rows, Extraction(FIELDS), "test")


@pytest.mark.parametrize("task", builders.TASKS)
def test_what_a_plan_may_ask_for_is_measured(tmp_path: Path, task: str) -> None:
    plan = Record(tmp_path / "c", plan_for(task), labels_of(task)).plan
    measures = measures_of(plan, ["a", "b"])
    whole = [(metric, WHOLE) for metric in WHOLE_METRICS[task]]
    assert columns(measures) == whole + [(metric, name) for metric in SLICE_METRICS[task] for name in ("a", "b")]


def test_loss_is_per_target_token_of_the_whole_set_not_a_mean_of_examples() -> None:
    """One answer of 1 token with loss 4 and one of 3 tokens with loss 2: (1 · 4 + 3 · 2) / 4 = 2.5, not 3."""
    rows = [{**row, "loss": loss, "targets": n} for row, loss, n in zip(texts(1), (4.0, 2.0), (1, 3), strict=False)]
    found = measure_once(generation(rows))
    assert found["loss", WHOLE] == pytest.approx(2.5)
    assert found["loss", CATEGORIES[1]] == pytest.approx(
        4.0
    )  # every third example, from the first on, is of this category


def test_generation_under_any_weights_is_what_repeated_rows_give() -> None:
    rows = texts(2)
    weights = np.random.default_rng(3).integers(0, 4, (5, len(rows)))
    for found, repeat in zip(measure(generation(rows), weights.astype(float)), weights, strict=True):
        expected = []
        for part in (None, *CATEGORIES):
            of = [r for r, n in zip(rows, repeat, strict=True) for _ in range(n) if part in (None, r["category"])]
            loss = np.average([r["loss"] for r in of], weights=[r["targets"] for r in of])
            expected.append((loss, np.mean([r["correct"] for r in of])))
        (whole, *slices) = expected
        assert list(found) == pytest.approx([*whole, *(s[0] for s in slices), *(s[1] for s in slices)])


def by_sklearn(rows: list[Row]) -> list[float]:
    """Each field of each example is an item to be labelled: found rightly, or one of many wrong values, or absent."""
    wanted: list[str] = []
    given: list[str] = []
    for row in rows:
        for name, (found, answered, target) in row["fields"].items():
            wanted.append(name if target else "none")
            given.append(name if answered and (found or not target) else "wrong" if answered else "none")
    whole = [float(np.mean([row[name] for row in rows])) for name in ("valid", "required", "correct")]
    # A wrong value is a false positive of its field; scikit-learn sees a label of its own, so it is counted apart.
    counts = np.array([list(row["fields"].values()) for row in rows])  # (N, fields, 3)
    pairs = [(t, g) for t, g in zip(wanted, given, strict=True) if g != "wrong"]
    pairs += [pair for t, g in zip(wanted, given, strict=True) if g == "wrong" for pair in ((t, "none"), ("none", t))]
    targets, outputs = zip(*pairs, strict=True)
    every: dict[str, Any] = {"labels": list(FIELDS), "zero_division": 0}
    micro = f1_score(targets, outputs, average="micro", **every)
    precision, recall, f1, there = precision_recall_fscore_support(targets, outputs, average=None, **every)
    assert there.tolist() == counts[:, :, 2].sum(axis=0).tolist()
    return [*whole, micro, *recall, *precision, *f1]


def test_extraction_is_what_scikit_learn_counts_under_any_weights() -> None:
    for seed in range(4):
        rows = objects(seed)
        assert list(measure_once(extraction(rows)).values()) == pytest.approx(by_sklearn(rows))
        weights = np.random.default_rng(seed).integers(0, 4, (3, len(rows)))
        for found, repeat in zip(measure(extraction(rows), weights.astype(float)), weights, strict=True):
            again = [row for row, n in zip(rows, repeat, strict=True) for _ in range(n)]
            assert list(found) == pytest.approx(by_sklearn(again))


def test_field_f1_by_hand() -> None:
    """Two examples. date: found, found. people: a wrong value, missing. 이름: invented once. 2 · 2 / (4 wanted + 4 given) = 0.5."""
    first = {"date": [1, 1, 1], "people": [0, 1, 1], "이름": [0, 0, 0], "never wanted": [0, 0, 0]}
    second = {"date": [1, 1, 1], "people": [0, 0, 1], "이름": [0, 1, 0], "never wanted": [0, 0, 0]}
    rows = [{**row, "fields": fields} for row, fields in zip(objects(1), (first, second), strict=False)]
    found = measure_once(extraction(rows))
    assert found["field_f1", WHOLE] == 0.5
    assert (found["recall", "people"], found["precision", "date"], found["f1", "이름"]) == (0, 1, 0)
    assert support(extraction(rows)) == {"date": 2, "people": 2, "이름": 0, "never wanted": 0}


def test_bootstrap_of_field_f1_is_a_slow_loops() -> None:
    """Draws of one seed are percentiles of resampled differences; a loop over resamples with other draws gives the same ends."""
    one, other, resamples = objects(5, 0.8, 80), objects(6, 0.4, 80), 3000
    for a, b in zip(one, other, strict=True):
        b["target"] = a["target"]
        for name, counts in b["fields"].items():
            counts[2] = a["fields"][name][2]
            counts[0] = min(counts)
    compared = compare({1: extraction(one)}, {1: extraction(other)}, resamples=resamples, entropy=7)
    random, slow = np.random.default_rng(8), []
    for _ in range(resamples):
        drawn = random.integers(0, len(one), len(one))
        f1 = []
        for rows in (one, other):
            found, given, wanted = (sum(c[k] for i in drawn for c in rows[i]["fields"].values()) for k in range(3))
            f1.append(2 * found / (given + wanted))
        slow.append(f1[0] - f1[1])
    ours = compared.draws[:, compared.index["field_f1", WHOLE]]
    # A quantile at 2.5 % of B draws has standard error √(0.025 · 0.975 / B) / (0.0584 / sd), and both sides are drawn.
    allowed = 4 * np.sqrt(2) * np.sqrt(0.025 * 0.975 / resamples) / 0.0584 * np.std(slow)
    for tail in (0.025, 0.975):
        assert np.quantile(ours, tail) == pytest.approx(np.quantile(slow, tail), abs=allowed)
    assert ours.std() == pytest.approx(np.std(slow), rel=4 / np.sqrt(resamples))


def test_seeds_that_differ_in_loss_widen_its_interval_at_any_level() -> None:
    """Two seeds whose losses differ by 0 and 1 around a level of exactly 1, where p(1 − p) of a share would be 0."""
    rows = [{**row, "loss": 1.0, "targets": 1} for row in texts(1)]
    reference = generation([{**row, "loss": 0.75} for row in rows])
    apart = {
        17: generation([{**row, "loss": 0.75} for row in rows]),
        18: generation([{**row, "loss": 1.75} for row in rows]),
    }
    compared = compare(apart, {17: reference, 18: reference}, resamples=2000, entropy=2)
    at = compared.index["loss", WHOLE]
    assert (compared.variant[at] + compared.reference[at]) / 2 == pytest.approx(1.0)
    assert compared.seed_share[at] > 0.9
    low, high = compared.interval(("loss", WHOLE), 0.1)
    assert low < 0 < high


@pytest.mark.parametrize(
    ("of", "change", "words"),
    [
        ("generation", {"targets": 0}, ["0 target tokens"]),
        ("generation", {"loss": "nan"}, ["'nan'", "finite"]),
        ("generation", {"correct": None}, ["'correct'", "neither true nor false"]),
        ("generation", {"category": "new"}, ["'new'", "2 categories"]),
        ("extraction", {"fields": {"colour": [1, 1, 1]}}, ["'colour'", "4 fields"]),
        ("extraction", {"fields": {"date": [1, 0, 1]}}, ["[1, 0, 1]", "'date'"]),
        ("extraction", {"valid": 3}, ["'valid'"]),
    ],
)
def test_a_row_that_cannot_be_counted_is_named(of: str, change: Row, words: list[str]) -> None:
    make, rows = (generation, texts(1)[:1]) if of == "generation" else (extraction, objects(1)[:1])
    with pytest.raises(PredictionsError) as error:
        make([{**rows[0], **change}])
    assert all(word in str(error.value) for word in [*words, "'0000'"])


def test_without_written_answers_the_loss_is_all_there_is() -> None:
    rows = [{name: value for name, value in row.items() if name not in ("output", "correct")} for row in texts(1)]
    assert set(measure_once(generation(rows, answered=False))) == {("loss", part) for part in (WHOLE, *CATEGORIES)}


@pytest.mark.parametrize("task", ["classification", "generation", "extraction"])
def test_the_verdict_s_metrics_are_those_the_runs_report(task: str) -> None:
    """Two implementations: sums over many weightings here, the training process's own counting there."""
    from ftui.data.form import Form
    from ftui.train.categories import CategoryTask
    from ftui.train.extraction import Extraction as TrainedExtraction
    from ftui.train.generation import Generation as TrainedGeneration

    rows: list[Row]
    if task == "classification":
        rows = builders.answers(dict(zip(LABELS, (0.3, 0.9, 0.0), strict=True)))
        scored = CategoryTask(LABELS).score(rows)
        answers = predictions_from_rows(rows, Classification(tuple(LABELS)), "test")
    elif task == "generation":
        rows = texts(4)
        scored = TrainedGeneration.__new__(TrainedGeneration).score(rows)  # it needs no model to count
        answers = generation(rows)
    else:
        rows = objects(4)
        judge = TrainedExtraction.__new__(TrainedExtraction)
        judge.form = Form({"properties": {name: {} for name in FIELDS}})
        scored, answers = judge.score(rows), extraction(rows)
    for (metric, part), value in measure_once(answers).items():
        reported = scored[metric] if part == WHOLE else scored["categories"][part][metric]
        assert value == pytest.approx(reported), (metric, part)
    assert support(answers) == {name: row["examples"] for name, row in scored["categories"].items()}


def verdict_of(record: Record) -> Verdict:
    return reach_verdict(record.files, fold(read_journal(record.files.journal)), record.plan)


def judged(verdict: Verdict, name: str) -> VariantVerdict:
    return next(v for v in verdict.variants if v.variant == name)


def test_a_lower_loss_is_the_gain_a_hypothesis_asks_for(tmp_path: Path) -> None:
    """Skill s has the loss 2 − 1.5 s: 0.8 against the control's 1.1, and half-rate's 1.25."""
    text = plan_for("generation").replace(
        'metric = "exact_match"\ndirection = "higher"', 'metric = "loss"\ndirection = "lower"'
    )
    verdict = verdict_of(builders.closed(tmp_path / "c", SKILLS, text, labels_of("generation")))
    best = judged(verdict, "double-rate")
    assert (verdict.word, verdict.choice, best.word) == ("supported", "double-rate", "supported")
    assert best.difference is not None and best.difference.point == pytest.approx(-0.3, abs=0.01)
    assert "double-rate has a lower loss than control" in verdict.sentence
    assert judged(verdict, "half-rate").word == "not supported"


@pytest.mark.parametrize(("skill", "state"), [(0.8, "holds"), (0.59, "holds"), (0.55, "cannot tell"), (0.2, "broken")])
def test_a_guardrail_on_the_loss_holds_while_it_does_not_rise(tmp_path: Path, skill: float, state: str) -> None:
    """The loss rises by 1.5 · (0.6 − skill); tolerated is 0.1. Of 0.075 the interval (± 0.03) contains 0.1."""
    verdict = verdict_of(builders.of_task(tmp_path / "c", "generation", {**SKILLS, "double-rate": skill}))
    row = next(r for r in judged(verdict, "double-rate").guardrails if r.metric == "loss")
    assert (row.state, row.cannot_fail) == (state, False)
    assert row.difference is not None and row.difference.point == pytest.approx(1.5 * (0.6 - skill), abs=0.01)


def test_a_loss_has_no_floor_that_a_guardrail_could_rest_on(tmp_path: Path) -> None:
    """A tolerance above the reference's value makes a share unable to fail; a loss can rise without end."""
    text = plan_for("generation").replace("tolerance = 0.10", "tolerance = 2.0")
    verdict = verdict_of(builders.closed(tmp_path / "c", SKILLS, text, labels_of("generation")))
    row = next(r for r in judged(verdict, "double-rate").guardrails if r.metric == "loss")
    assert row.state == "holds" and "cannot fail" not in row.note


def test_a_field_that_is_given_up_breaks_its_guardrail(tmp_path: Path) -> None:
    lost = {"date": 1.0, "people": 1.0, "이름": 0.2}
    verdict = verdict_of(builders.of_task(tmp_path / "c", "extraction", {**SKILLS, "double-rate": lost}))
    best = judged(verdict, "double-rate")
    assert best.word == "not supported"
    assert [row.slice for row in best.guardrails if row.state == "broken"] == ["이름"]
    assert "of 이름" in best.sentence


def test_a_field_a_guardrail_names_but_the_data_lacks_is_no_silent_pass(tmp_path: Path) -> None:
    text = plan_for("extraction").replace('slice = "each category"', 'slice = "colour"')
    verdict = verdict_of(builders.closed(tmp_path / "c", SKILLS, text, labels_of("extraction")))
    best = judged(verdict, "double-rate")
    assert best.word == "inconclusive"
    assert "recall was not measured for the field 'colour'" in best.sentence


def test_images_are_judged_as_texts_are(tmp_path: Path) -> None:
    text, image = (verdict_of(builders.of_task(tmp_path / task, task)) for task in builders.TASKS[:2])
    assert image.word == text.word == "supported"
    assert [v.word for v in image.variants] == [v.word for v in text.variants]


def test_a_run_with_an_unusable_row_is_not_judged_and_says_which(tmp_path: Path) -> None:
    record = builders.of_task(tmp_path / "c", "generation")
    path = record.files.run(record.run_id("double-rate", 17)).test_predictions
    path.unlink()
    with prediction_writer(path) as writer:
        for row in builders.texts(0.8):
            writer.write({**row, "loss": float("inf")} if row["id"] == "test-0003" else row)
    best = judged(verdict_of(record), "double-rate")
    assert best.seeds == [18]
    assert "example 'test-0003' has the loss 'inf'" in best.missing[0].cause
