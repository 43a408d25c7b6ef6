"""What a task has to say; nothing else in the room knows what examples mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ftui.data.encode import Example
from ftui.record.lines import Row
from ftui.train.quantised import FourBit


@dataclass(frozen=True)
class Batch:
    """Collated examples, padded to the longest. `inputs` are the model's keyword arguments, `labels` what carries loss."""

    examples: Sequence[Example]
    inputs: dict[str, Tensor]
    labels: Tensor
    where: tuple[Tensor, Tensor] | None = None
    """Row and position of every target in `labels`, in order, where targets are tokens. Known before the batch is on its device:
    to look for them there would make the device wait, and a step without numbers could not find them at all."""

    @property
    def tokens(self) -> int:
        """Tokens that are no padding."""
        return sum(len(example.input_ids) for example in self.examples)

    def to(self, device: torch.device) -> Batch:
        inputs = {name: tensor.to(device) for name, tensor in self.inputs.items()}
        where = None if self.where is None else (self.where[0].to(device), self.where[1].to(device))
        return Batch(self.examples, inputs, self.labels.to(device), where)


class Task(Protocol):
    """A task's meaning of examples, loss and quality."""

    adapter_type: str | None
    """peft's name for the task (`SEQ_CLS`, `CAUSAL_LM`), which an adapter's configuration carries; None where it has none."""

    def load_base(self, directory: str, four_bit: FourBit | None = None) -> tuple[nn.Module, list[str]]:
        """The base model and the names of parameters that are new because the base has none of them.

        On the CPU in fp32; with `four_bit`, its frozen linear modules in 4 bits (see `pretrained.py`).
        """
        ...

    def empty_base(self, directory: str) -> nn.Module:
        """The structure of the base, in fp32 on the meta device: every shape and no weight, from the configuration alone."""
        ...

    def facts(self) -> dict[str, Any]:
        """How an example becomes the model's input, as far as the record does not say it yet; plain JSON values."""
        ...

    def collate(self, examples: Sequence[Example]) -> Batch: ...

    def pack(self, examples: Sequence[Example]) -> Batch:
        """The same examples one behind the other in one row: no padding, and none sees another. Loss and gradient are those of
        `collate` (K02). Raises ValueError for a task whose model cannot."""
        ...

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
