"""Extraction: writing a JSON object of a given form, judged by its form and field by field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ftui.data.chat import ChatEncoder
from ftui.data.encode import Example
from ftui.data.form import Form
from ftui.plan.schema import Generation as Settings
from ftui.record.lines import Row
from ftui.train.generation import Generation


class Extraction(Generation):
    """Generation whose answers are objects of the form. Metrics are shares of the examples, but for `field_f1` (micro) and the
    fields' own."""

    def __init__(
        self, encoder: ChatEncoder, max_length: int, settings: Settings, instruction: str | None, form: Form
    ) -> None:
        super().__init__(encoder, max_length, settings, instruction)
        self.form = form

    def row(self, example: Example, output: str | None, loss: float) -> Row:
        judged = self.form.judge(output or "", example.answer)
        own = {"correct": judged.correct, "valid": judged.valid, "required": judged.required, "fields": judged.fields}
        return super().row(example, output, loss) | own

    def score(self, rows: Sequence[Row]) -> dict[str, Any]:
        examples = valid = required = 0
        counts = {name: [0, 0, 0] for name in self.form.fields}
        for row in rows:
            examples += 1
            valid += row["valid"]
            required += row["required"]
            for name, found in row["fields"].items():
                counts[name] = [a + b for a, b in zip(counts[name], found, strict=True)]
        return super().score(rows) | {
            "valid_json": valid / examples,
            "required_fields": required / examples,
            "field_f1": _measures(*map(sum, zip(*counts.values(), strict=True)))["f1"],
            "categories": {name: {**_measures(*c), "examples": c[2]} for name, c in counts.items()},
        }


def _measures(found: int, given: int, wanted: int) -> dict[str, float]:
    """Precision, recall and F1 of a field; 0 where there is nothing to divide by."""
    return {
        "recall": found / wanted if wanted else 0.0,
        "precision": found / given if given else 0.0,
        "f1": 2 * found / (wanted + given) if wanted + given else 0.0,
    }
