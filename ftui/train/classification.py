"""Text classification: one category per example, one target per example."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification

from ftui.data.encode import Example
from ftui.data.tokenizer import TextTokenizer
from ftui.train.categories import CategoryTask
from ftui.train.pretrained import empty_classifier, load_classifier
from ftui.train.quantised import FourBit
from ftui.train.task import Batch


class TextClassification(CategoryTask):
    """The task on `labels` (position = class id), with the base model's own tokenizer."""

    adapter_type: str | None = "SEQ_CLS"

    def __init__(self, labels: Sequence[str], tokenizer: TextTokenizer, max_length: int) -> None:
        super().__init__(labels)
        self.tokenizer = tokenizer
        self.max_length = max_length

    def load_base(self, directory: str, four_bit: FourBit | None = None) -> tuple[nn.Module, list[str]]:
        return load_classifier(AutoModelForSequenceClassification, directory, self.labels, four_bit)

    def empty_base(self, directory: str) -> nn.Module:
        return empty_classifier(AutoModelForSequenceClassification, directory, self.labels)

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

    def control_outputs(self, model: nn.Module, inputs: Sequence[str]) -> list[list[float]]:
        device = next(model.parameters()).device
        outputs = []
        for ids in self.tokenizer.encode(list(inputs)):
            batch = self.collate([Example("control", "", 0, ids[: self.max_length])]).to(device)
            outputs.append([float(x) for x in self.logits(model, batch)[0]])
        return outputs
