"""What a task has to say; nothing else in the room knows what examples mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ftui.data.encode import Example
from ftui.record.lines import Row


@dataclass(frozen=True)
class Batch:
    """Collated examples, padded to the longest. `inputs` are the model's keyword arguments, `labels` what carries loss."""

    examples: Sequence[Example]
    inputs: dict[str, Tensor]
    labels: Tensor

    @property
    def tokens(self) -> int:
        """Tokens that are no padding."""
        return sum(len(example.input_ids) for example in self.examples)

    def to(self, device: torch.device) -> Batch:
        return Batch(self.examples, {k: v.to(device) for k, v in self.inputs.items()}, self.labels.to(device))


class Task(Protocol):
    """A task's meaning of examples, loss and quality."""

    def load_base(self, directory: str) -> tuple[nn.Module, list[str]]:
        """The base model on the CPU in fp32, and the names of parameters that are new because the base has none of them."""
        ...

    def collate(self, examples: Sequence[Example]) -> Batch: ...

    def targets(self, batch: Batch) -> int:
        """How many targets of the batch carry loss; the loss is normalised over their sum in an update."""
        ...

    def loss_sum(self, model: nn.Module, batch: Batch) -> Tensor:
        """Loss summed over the batch's targets: a scalar in fp32 with its graph."""
        ...

    def predict(self, model: nn.Module, batch: Batch) -> list[Row]:
        """One prediction row per example (see `record.rows.prediction_writer`), without a graph."""
        ...

    def score(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Metrics of a whole evaluation: `loss`, the task's own, and under `categories` those of each slice."""
        ...

    def control_outputs(self, model: nn.Module, inputs: Sequence[str]) -> list[list[float]]:
        """What the model answers to control inputs, as numbers that can be compared within a tolerance."""
        ...
