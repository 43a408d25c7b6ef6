"""What each task measures: the sums it keeps of every example, and its metrics as functions of those sums.

Where a ratio has nothing below its line it is 0, as with scikit-learn's `zero_division=0`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ftui.plan.schema import SLICE_METRICS, WHOLE_METRICS, Plan
from ftui.record.lines import Row
from ftui.verdict.metrics import Floats, Measures, Part


@dataclass(frozen=True)
class Classification:
    """One category per example, of texts or of images. Sums per category: examples present, answers given, hits.

    macro-F1 is `f1_score(average="macro", labels=<all categories>, zero_division=0)` of scikit-learn: a category that is never
    answered has precision and F1 of 0, and one without examples (possible in a resample) recall and F1 of 0.
    """

    slices: tuple[str, ...]

    slice_word: ClassVar[str] = "category"
    whole_metrics: ClassVar[tuple[str, ...]] = WHOLE_METRICS["text-classification"]
    slice_metrics: ClassVar[tuple[str, ...]] = SLICE_METRICS["text-classification"]
    meaning: ClassVar[str] = (
        "Macro-F1 is the plain mean of F1 over all categories of the data; a category that is never answered counts as 0."
    )

    @property
    def width(self) -> int:
        return 3 * len(self.slices)

    def sums_of(self, row: Row) -> Iterator[Part]:
        count = len(self.slices)
        target, output = (self._class(row, field) for field in ("target", "output"))
        yield target, 1.0
        yield count + output, 1.0
        if target == output:
            yield 2 * count + target, 1.0

    def _class(self, row: Row, field: str) -> int:
        if row[field] not in self.slices:
            raise ValueError(
                f"has the {field} {row[field]!r}, which is none of the data's {len(self.slices)} categories"
            )
        return self.slices.index(row[field])

    def whole(self, sums: Floats) -> dict[str, Floats]:
        present, _, hits = np.split(sums, 3, axis=1)
        return {
            "accuracy": _ratio(hits.sum(axis=1), present.sum(axis=1)),
            "macro_f1": self.per_slice(sums)["f1"].mean(axis=1),
        }

    def per_slice(self, sums: Floats) -> dict[str, Floats]:
        present, given, hits = np.split(sums, 3, axis=1)
        return _recall_precision_f1(hits, given, present)

    def support(self, sums: Floats) -> Floats:
        return sums[:, : len(self.slices)]


@dataclass(frozen=True)
class Generation:
    """A text per example. Sums per category: target tokens, loss over them, examples, exact answers; the whole is their sum."""

    slices: tuple[str, ...]
    answered: bool
    """Whether answers were written; otherwise the loss is all there is."""

    slice_word: ClassVar[str] = "category"

    @property
    def whole_metrics(self) -> tuple[str, ...]:
        return self._written(WHOLE_METRICS["generation"])

    @property
    def slice_metrics(self) -> tuple[str, ...]:
        return self._written(SLICE_METRICS["generation"])

    def _written(self, metrics: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(metric for metric in metrics if self.answered or metric == "loss")

    @property
    def meaning(self) -> str:
        exact = " exact_match is the share of examples whose output is the target." if self.answered else ""
        return f"Loss is the mean over the target tokens of all examples together.{exact}"

    @property
    def width(self) -> int:
        return 4 * len(self.slices)

    def sums_of(self, row: Row) -> Iterator[Part]:
        category, targets, loss, count = row["category"], row["targets"], row["loss"], len(self.slices)
        if category not in self.slices:
            raise ValueError(f"has the category {category!r}, which is none of the data's {count} categories")
        if not isinstance(targets, int) or targets < 1:
            raise ValueError(f"has {targets!r} target tokens, where at least the stop token is one")
        if not isinstance(loss, int | float) or not math.isfinite(loss):
            raise ValueError(f"has the loss {loss!r}, which is no finite number")
        at = self.slices.index(category)
        yield at, float(targets)
        yield count + at, float(loss) * targets
        yield 2 * count + at, 1.0
        if self.answered:
            yield 3 * count + at, _truth(row, "correct")

    def whole(self, sums: Floats) -> dict[str, Floats]:
        return self._metrics(*(part.sum(axis=1) for part in np.split(sums, 4, axis=1)))

    def per_slice(self, sums: Floats) -> dict[str, Floats]:
        return self._metrics(*np.split(sums, 4, axis=1))

    def _metrics(self, targets: Floats, loss: Floats, examples: Floats, exact: Floats) -> dict[str, Floats]:
        return {"loss": _ratio(loss, targets), "exact_match": _ratio(exact, examples)}

    def support(self, sums: Floats) -> Floats:
        return np.split(sums, 4, axis=1)[2]


@dataclass(frozen=True)
class Extraction:
    """An object of fields per example. Sums per field: found rightly, answered, wanted; of all examples together: their number,
    and how many are valid JSON of the schema, have the required fields, are exactly right.

    `field_f1` is F1 of the fields' counts summed over all fields (micro): of scikit-learn `f1_score(average="micro")` on the
    pairs of field and value that were answered and wanted.
    """

    slices: tuple[str, ...]

    slice_word: ClassVar[str] = "field"
    whole_metrics: ClassVar[tuple[str, ...]] = WHOLE_METRICS["extraction"]
    slice_metrics: ClassVar[tuple[str, ...]] = SLICE_METRICS["extraction"]
    meaning: ClassVar[str] = (
        "valid_json, required_fields and exact_match are shares of the examples; field_f1 is the F1 of all fields' values"
        " counted together (micro)."
    )

    @property
    def width(self) -> int:
        return 3 * len(self.slices) + 4

    def sums_of(self, row: Row) -> Iterator[Part]:
        count = len(self.slices)
        for field, counts in row["fields"].items():
            if field not in self.slices:
                raise ValueError(f"has the field {field!r}, which is none of the schema's {count} fields")
            found, given, wanted = counts
            if not 0 <= found <= min(given, wanted):
                raise ValueError(
                    f"has the impossible counts {counts!r} (found, answered, wanted) of the field {field!r}"
                )
            for kind, value in enumerate((found, given, wanted)):
                yield kind * count + self.slices.index(field), float(value)
        yield 3 * count, 1.0
        for kind, field in enumerate(("valid", "required", "correct"), 1):
            yield 3 * count + kind, _truth(row, field)

    def whole(self, sums: Floats) -> dict[str, Floats]:
        counts, (examples, valid, required, exact) = self._fields(sums), sums[:, 3 * len(self.slices) :].T
        return {
            "valid_json": _ratio(valid, examples),
            "required_fields": _ratio(required, examples),
            "exact_match": _ratio(exact, examples),
            "field_f1": _recall_precision_f1(*(part.sum(axis=1) for part in counts))["f1"],
        }

    def per_slice(self, sums: Floats) -> dict[str, Floats]:
        return _recall_precision_f1(*self._fields(sums))

    def _fields(self, sums: Floats) -> list[Floats]:
        return np.split(sums[:, : 3 * len(self.slices)], 3, axis=1)

    def support(self, sums: Floats) -> Floats:
        return self._fields(sums)[2]


def _truth(row: Row, field: str) -> float:
    if not isinstance(row[field], bool):
        raise ValueError(f"has {row[field]!r} as {field!r}, which is neither true nor false")
    return float(row[field])


def _recall_precision_f1(hits: Floats, given: Floats, wanted: Floats) -> dict[str, Floats]:
    # F1 = 2PR / (P + R) = 2·hits / (wanted + given), which needs no special case where P or R is undefined.
    return {"recall": _ratio(hits, wanted), "precision": _ratio(hits, given), "f1": _ratio(2 * hits, wanted + given)}


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def measures_of(plan: Plan, labels: list[str]) -> Measures:
    """What the plan's task measures; `labels` are the data's categories, for extraction its fields."""
    match plan.hypothesis.task:
        case "generation":
            return Generation(tuple(labels), answered=plan.evaluation.generation is not None)
        case "extraction":
            return Extraction(tuple(labels))
        case _:
            return Classification(tuple(labels))
