"""One run's answers as arrays of class indices, and the check that two runs answered the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ftui.record.lines import Row
from ftui.record.rows import read_predictions


class PredictionsError(ValueError):
    """Predictions that cannot be judged; the message names the file or run, the example, and what was expected."""


@dataclass(frozen=True)
class Predictions:
    """Answers to N examples, ordered by example id so that the order of rows in a file changes nothing."""

    labels: tuple[str, ...]
    """Categories in class order."""
    ids: tuple[str, ...]
    """N identifiers, ascending, each once."""
    target: NDArray[np.int64]
    """(N,) class index of the right answer."""
    output: NDArray[np.int64]
    """(N,) class index of the answer given."""

    def __len__(self) -> int:
        return len(self.ids)


def load_predictions(path: Path, labels: Sequence[str]) -> Predictions:
    """The predictions in `path`, with classes numbered as in `labels`. Raises `PredictionsError`."""
    if not path.is_file():
        raise PredictionsError(f"{path.parent.name}/{path.name}: no such file")
    return predictions_from_rows(read_predictions(path), labels, f"{path.parent.name}/{path.name}")


def predictions_from_rows(rows: Sequence[Row], labels: Sequence[str], where: str) -> Predictions:
    """Rows with `id`, `target` and `output` (category names) as arrays. `where` names their place in an error."""
    if not rows:
        raise PredictionsError(f"{where}: holds no predictions")
    index = {label: position for position, label in enumerate(labels)}
    answers: dict[str, tuple[int, int]] = {}
    for number, row in enumerate(rows, 1):
        for field in ("id", "target", "output"):
            if field not in row:
                raise PredictionsError(f"{where}: prediction {number} has no field {field!r}")
        for field in ("target", "output"):
            if not isinstance(row[field], str) or row[field] not in index:
                raise PredictionsError(
                    f"{where}: example {row['id']!r} has the {field} {row[field]!r}, which is none of the data's"
                    f" {len(index)} categories"
                )
        example = str(row["id"])
        if example in answers:
            raise PredictionsError(f"{where}: example {example!r} is answered twice")
        answers[example] = index[row["target"]], index[row["output"]]
    ids = sorted(answers)
    pairs = np.array([answers[example] for example in ids], dtype=np.int64)
    return Predictions(tuple(labels), tuple(ids), pairs[:, 0].copy(), pairs[:, 1].copy())


def require_same_examples(first: Predictions, second: Predictions, names: tuple[str, str]) -> None:
    """Raise `PredictionsError` unless both answer exactly the same ids with the same targets and classes."""
    one, other = names
    if first.labels != second.labels:
        raise PredictionsError(f"{one} and {other} number the categories differently and cannot be compared")
    if first.ids != second.ids:
        only = [_some(set(a.ids) - set(b.ids), name) for a, b, name in ((first, second, one), (second, first, other))]
        raise PredictionsError(
            f"{one} and {other} answer different examples and cannot be compared: {'; '.join(filter(None, only))}"
        )
    differing = np.flatnonzero(first.target != second.target)
    if differing.size:
        at = int(differing[0])
        raise PredictionsError(
            f"{one} and {other} disagree about the target of {differing.size} examples, first {first.ids[at]!r}:"
            f" {first.labels[first.target[at]]!r} against {second.labels[second.target[at]]!r}"
        )


def _some(ids: set[str], name: str) -> str:
    if not ids:
        return ""
    shown = ", ".join(map(repr, sorted(ids)[:3]))
    return f"only {name} has {len(ids)} ({shown}{', …' if len(ids) > 3 else ''})"
