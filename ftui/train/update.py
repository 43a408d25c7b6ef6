"""One optimizer update: backward over its micro-batches, normalised over the targets of all of them, clip, step.

The loss of an update is the sum over all its targets divided by their number, whatever the batch shape: 16 × 1, 4 × 4 and
1 × 16 give the same gradient (K07). With several replicas, gradients are averaged over them, so each multiplies by their
number and the mean becomes the sum again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import nn

from ftui.train.task import Batch, Task


@dataclass(frozen=True)
class Update:
    """What one update did. `loss` is the mean over its targets."""

    loss: float
    grad_norm: float
    """Norm before clipping."""
    examples: int
    targets: int
    tokens: int
    stepped: bool
    """False when a non-finite loss or gradient kept the parameters as they were."""

    @property
    def finite(self) -> bool:
        return math.isfinite(self.loss) and math.isfinite(self.grad_norm)


def take_update(
    accelerator: Accelerator,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    task: Task,
    batches: Sequence[Batch],
    max_grad_norm: float | None,
) -> Update:
    """Compute the gradient of all micro-batches and step. A non-finite loss or gradient leaves the parameters untouched."""
    counts = torch.tensor(
        [
            sum(task.targets(b) for b in batches),
            sum(len(b.examples) for b in batches),
            sum(b.tokens for b in batches),
        ],
        device=accelerator.device,
    )
    targets, examples, tokens = (int(n) for n in accelerator.reduce(counts, reduction="sum"))
    total = torch.zeros((), device=accelerator.device, dtype=torch.float32)
    for position, batch in enumerate(batches):
        last = position == len(batches) - 1
        with nullcontext() if last else accelerator.no_sync(model):
            with accelerator.autocast():
                loss = task.loss_sum(model, batch.to(accelerator.device)) / targets
            accelerator.backward(loss * accelerator.num_processes)
        total += loss.detach()
    loss_value = float(accelerator.reduce(total, reduction="sum"))
    parameters = [p for p in model.parameters() if p.requires_grad]
    norm = accelerator.clip_grad_norm_(parameters, math.inf if max_grad_norm is None else max_grad_norm)
    update = Update(loss_value, float(norm), examples, targets, tokens, stepped=True)
    if update.finite:
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return update if update.finite else Update(loss_value, float(norm), examples, targets, tokens, stepped=False)
