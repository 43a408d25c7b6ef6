"""Text classification: one category per example, one target per example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForSequenceClassification

from ftui.data.encode import Example
from ftui.data.tokenizer import TextTokenizer
from ftui.record.lines import Row
from ftui.train.task import Batch


class TextClassification:
    """The task on `labels` (position = class id), with the base model's own tokenizer."""

    def __init__(self, labels: Sequence[str], tokenizer: TextTokenizer, max_length: int) -> None:
        self.labels = list(labels)
        self.tokenizer = tokenizer
        self.max_length = max_length

    def load_base(self, directory: str) -> tuple[nn.Module, list[str]]:
        model, info = AutoModelForSequenceClassification.from_pretrained(
            directory,
            num_labels=len(self.labels),
            id2label=dict(enumerate(self.labels)),
            label2id={label: i for i, label in enumerate(self.labels)},
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
        return model, sorted(info["missing_keys"])

    def collate(self, examples: Sequence[Example]) -> Batch:
        longest = max(len(example.input_ids) for example in examples)
        ids = torch.full((len(examples), longest), self.tokenizer.pad_id, dtype=torch.long)
        mask = torch.zeros((len(examples), longest), dtype=torch.long)
        for row, example in enumerate(examples):
            length = len(example.input_ids)
            ids[row, :length] = torch.as_tensor(example.input_ids, dtype=torch.long)
            mask[row, :length] = 1
        labels = torch.tensor([example.label for example in examples])
        return Batch(examples, {"input_ids": ids, "attention_mask": mask}, labels)

    def targets(self, batch: Batch) -> int:
        return len(batch.examples)

    def loss_sum(self, model: nn.Module, batch: Batch) -> Tensor:
        return functional.cross_entropy(self._logits(model, batch), batch.labels, reduction="sum")

    def predict(self, model: nn.Module, batch: Batch) -> list[Row]:
        log_probabilities = self._logits(model, batch).log_softmax(-1).cpu()
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

    def control_outputs(self, model: nn.Module, inputs: Sequence[str]) -> list[list[float]]:
        device = next(model.parameters()).device
        outputs = []
        for ids in self.tokenizer.encode(list(inputs)):
            batch = self.collate([Example("control", "", 0, ids[: self.max_length])]).to(device)
            outputs.append([float(x) for x in self._logits(model, batch)[0]])
        return outputs

    def _logits(self, model: nn.Module, batch: Batch) -> Tensor:
        logits: Tensor = model(**batch.inputs).logits
        return logits.float()
