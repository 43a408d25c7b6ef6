"""One run's answers as sums per example, and the check that two runs answered the same questions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ftui.record.lines import Row
from ftui.record.rows import read_predictions

if TYPE_CHECKING:
    from ftui.verdict.metrics import Measures, Part


class PredictionsError(ValueError):
    """Predictions that cannot be judged; the message names the file or run, the example, and what was expected."""


@dataclass(frozen=True)
class Predictions:
    """Answers to N examples, ordered by example id so that the order of rows in a file changes nothing."""

    measures: Measures
    ids: tuple[str, ...]
    """N identifiers, ascending, each once."""
    targets: tuple[str, ...]
    """N right answers."""
    outputs: tuple[str, ...]
    """N answers given, empty where none were written."""
    sums: sparse.csr_array
    """(C, N): what each example adds to the sums of `measures`."""

    def __len__(self) -> int:
        return len(self.ids)


def load_predictions(path: Path, measures: Measures) -> Predictions:
    """The predictions in `path`, measured by `measures`. Raises `PredictionsError`."""
    if not path.is_file():
        raise PredictionsError(f"{path.parent.name}/{path.name}: no such file")
    return predictions_from_rows(read_predictions(path), measures, f"{path.parent.name}/{path.name}")


def predictions_from_rows(rows: Sequence[Row], measures: Measures, where: str) -> Predictions:
    """Rows with `id`, `target` and what `measures` counts. `where` names their place in an error."""
    if not rows:
        raise PredictionsError(f"{where}: holds no predictions")
    answers: dict[str, tuple[Row, list[Part]]] = {}
    for number, row in enumerate(rows, 1):
        try:
            example, _ = str(row["id"]), row["target"]
            parts = list(measures.sums_of(row))
        except KeyError as error:
            raise PredictionsError(f"{where}: prediction {number} has no field {error}") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise PredictionsError(f"{where}: example {row['id']!r} {error}") from None
        if example in answers:
            raise PredictionsError(f"{where}: example {example!r} is answered twice")
        answers[example] = row, parts
    ids = tuple(sorted(answers))
    parts = [part for example in ids for part in answers[example][1]]
    ends = np.cumsum([0, *(len(answers[example][1]) for example in ids)])
    values, positions = np.array([value for _, value in parts]), np.array([position for position, _ in parts])
    sums = sparse.csr_array((values, positions, ends), (len(ids), measures.width)).T.tocsr()
    targets, outputs = (
        tuple(sys.intern(str(answers[example][0].get(field, ""))) for example in ids) for field in ("target", "output")
    )  # interned: all runs have the same targets, and classes are few
    return Predictions(measures, ids, targets, outputs, sums)


def require_same_examples(first: Predictions, second: Predictions, names: tuple[str, str]) -> None:
    """Raise `PredictionsError` unless both answer exactly the same ids with the same targets, measured alike."""
    one, other = names
    if first.measures != second.measures:
        raise PredictionsError(f"{one} and {other} do not have the same slices and cannot be compared")
    if first.ids != second.ids:
        only = [_some(set(a.ids) - set(b.ids), name) for a, b, name in ((first, second, one), (second, first, other))]
        raise PredictionsError(
            f"{one} and {other} answer different examples and cannot be compared: {'; '.join(filter(None, only))}"
        )
    if first.targets != second.targets:
        pairs = zip(first.ids, first.targets, second.targets, strict=True)
        differing = [(example, a, b) for example, a, b in pairs if a != b]
        example, a, b = differing[0]
        raise PredictionsError(
            f"{one} and {other} disagree about the target of {len(differing)} examples, first {example!r}: {a!r} against {b!r}"
        )


def _some(ids: set[str], name: str) -> str:
    if not ids:
        return ""
    shown = ", ".join(map(repr, sorted(ids)[:3]))
    return f"only {name} has {len(ids)} ({shown}{', …' if len(ids) > 3 else ''})"
