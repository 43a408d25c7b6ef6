"""One category per example, whatever the example is: the loss, the predictions and the scores of both classifications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support
from torch import Tensor, nn
from torch.nn import functional

from ftui.data.encode import Example
from ftui.record.lines import Row
from ftui.train.task import Batch


class CategoryTask:
    """What a classification does with a batch, on `labels` (position = class id). A subclass says what examples look like."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = list(labels)

    def facts(self) -> dict[str, Any]:
        return {}

    def pack(self, examples: Sequence[Example]) -> Batch:
        raise ValueError('training.batching = "packed" is for tasks that write text; use "length-grouped"')

    def targets(self, batch: Batch) -> int:
        return len(batch.examples)

    def loss_sum(self, model: nn.Module, batch: Batch) -> Tensor:
        return functional.cross_entropy(self.logits(model, batch), batch.labels, reduction="sum")

    def predict(self, model: nn.Module, batch: Batch) -> list[Row]:
        log_probabilities = self.logits(model, batch).log_softmax(-1).cpu()
        best = log_probabilities.max(-1)
        rows: list[Row] = []
        for i, example in enumerate(batch.examples):
            output = int(best.indices[i])
            rows.append(
                {
                    "id": example.id,
                    "category": example.category,
                    "target": self.labels[example.label],
                    "output": self.labels[output],
                    "correct": output == example.label,
                    "loss": round(-float(log_probabilities[i, example.label]), 6),
                    "probability": round(float(best.values[i].exp()), 6),
                }
            )
        return rows

    def score(self, rows: Sequence[Row]) -> dict[str, Any]:
        targets = [row["target"] for row in rows]
        outputs = [row["output"] for row in rows]
        precision, recall, f1, support = precision_recall_fscore_support(
            targets, outputs, labels=self.labels, zero_division=0
        )
        return {
            "loss": sum(row["loss"] for row in rows) / len(rows),
            "accuracy": float(accuracy_score(targets, outputs)),
            "macro_f1": float(f1_score(targets, outputs, labels=self.labels, average="macro", zero_division=0)),
            "categories": {
                label: {
                    "recall": float(recall[i]),
                    "precision": float(precision[i]),
                    "f1": float(f1[i]),
                    "examples": int(support[i]),
                }
                for i, label in enumerate(self.labels)
            },
        }

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        """Of every example and category, in fp32: [examples, categories]."""
        logits: Tensor = model(**batch.inputs).logits
        return logits.float()
