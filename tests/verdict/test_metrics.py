"""Metrics mean what scikit-learn means by them, for every weighting of the examples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from ftui.record.rows import prediction_writer
from ftui.verdict.metrics import columns, measure, measure_once, support
from ftui.verdict.predictions import (
    Predictions,
    PredictionsError,
    load_predictions,
    predictions_from_rows,
    require_same_examples,
)
from ftui.verdict.tasks import Classification
from tests.builders.predictions import classified

LABELS = ("환불", "zwrot płatności", "pengembalian dana", "never answered", "never present")
CATEGORIES = Classification(LABELS)


def random_predictions(seed: int, examples: int = 200) -> Predictions:
    """Class 3 is never an answer and class 4 never a target, so that undefined ratios occur."""
    random = np.random.default_rng(seed)
    target = random.integers(0, 4, examples)
    output = np.where(random.random(examples) < 0.6, target, random.integers(0, 5, examples))
    output[output == 3] = 4
    return classified(LABELS, target, output)


def by_sklearn(answers: Predictions, repeat: np.ndarray) -> list[float]:
    target, output = np.repeat(answers.targets, repeat), np.repeat(answers.outputs, repeat)
    every = {"labels": LABELS, "zero_division": 0}
    slices = [f(target, output, average=None, **every) for f in (recall_score, precision_score, f1_score)]
    return [accuracy_score(target, output), f1_score(target, output, average="macro", **every), *np.concatenate(slices)]


def test_metrics_are_scikit_learns() -> None:
    for seed in range(5):
        answers = random_predictions(seed)
        expected = by_sklearn(answers, np.ones(len(answers), dtype=int))
        assert list(measure_once(answers).values()) == pytest.approx(expected)


def test_a_weight_is_a_repeated_row() -> None:
    answers = random_predictions(7)
    weights = np.random.default_rng(8).integers(0, 4, (6, len(answers)))
    found = measure(answers, weights.astype(float))
    for row, repeat in zip(found, weights, strict=True):
        assert list(row) == pytest.approx(by_sklearn(answers, repeat))


def test_columns_name_what_is_measured() -> None:
    answers = random_predictions(1)
    assert list(measure_once(answers)) == columns(CATEGORIES)
    assert support(answers)["never present"] == 0
    assert measure_once(answers)["recall", "never present"] == 0
    assert measure_once(answers)["precision", "never answered"] == 0


def rows(*triples: tuple[str, str, str]) -> list[dict[str, object]]:
    return [{"id": i, "category": t, "target": t, "output": o, "correct": t == o} for i, t, o in triples]


def written(path, content):  # type: ignore[no-untyped-def]
    with prediction_writer(path) as writer:
        for row in content:
            writer.write(row)
    return path


def test_order_of_rows_changes_nothing(tmp_path) -> None:  # type: ignore[no-untyped-def]
    content = rows(("b", "환불", "환불"), ("a", "zwrot płatności", "환불"), ("c", "환불", "zwrot płatności"))
    one = load_predictions(written(tmp_path / "one.jsonl", content), CATEGORIES)
    other = load_predictions(written(tmp_path / "other.jsonl", content[::-1]), CATEGORIES)
    assert one.ids == other.ids == ("a", "b", "c")
    assert one.targets == other.targets == (LABELS[1], LABELS[0], LABELS[0])
    assert one.outputs == other.outputs == (LABELS[0], LABELS[0], LABELS[1])
    assert (one.sums != other.sums).nnz == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], ["holds no predictions"]),
        (rows(("a", "환불", "cat")), ["'a'", "output", "'cat'", "5 categories"]),
        (rows(("a", "환불", "환불"), ("a", "환불", "환불")), ["'a'", "twice"]),
        ([{"id": "a", "target": "환불"}], ["prediction 1", "'output'"]),
    ],
)
def test_unusable_predictions_are_named(tmp_path, content, words) -> None:  # type: ignore[no-untyped-def]
    path = written(tmp_path / "test.jsonl", content)
    with pytest.raises(PredictionsError) as error:
        load_predictions(path, CATEGORIES)
    assert all(word in str(error.value) for word in [*words, "test.jsonl"])


def test_missing_file_is_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PredictionsError, match=r"test\.jsonl: no such file"):
        load_predictions(tmp_path / "test.jsonl", CATEGORIES)


def test_runs_with_other_examples_cannot_be_compared() -> None:
    content = rows(("a", LABELS[0], LABELS[0]), ("b", LABELS[1], LABELS[0]))
    one, fewer = (predictions_from_rows(part, CATEGORIES, "test") for part in (content, content[:1]))
    with pytest.raises(PredictionsError, match=r"only r1 has 1 \('b'\)"):
        require_same_examples(one, fewer, ("r1", "r2"))
    moved = predictions_from_rows([{**row, "target": LABELS[2]} for row in content], CATEGORIES, "test")
    with pytest.raises(PredictionsError, match="disagree about the target of 2 examples, first 'a'"):
        require_same_examples(one, moved, ("r1", "r2"))
