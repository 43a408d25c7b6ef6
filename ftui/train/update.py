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
    skipped: str | None = None
    """Why the parameters stayed as they were; None when the optimizer stepped."""

    @property
    def finite(self) -> bool:
        return math.isfinite(self.loss) and math.isfinite(self.grad_norm)

    @property
    def overflowed(self) -> bool:
        """The scaled gradient left the range of fp16; the scale is lower now, and the run goes on."""
        return self.skipped == OVERFLOW


NONFINITE = "non-finite loss or gradient"
OVERFLOW = "overflow of the scaled gradient"


def accumulate(
    accelerator: Accelerator, model: nn.Module, task: Task, batches: Sequence[Batch], weight: float, targets: int
) -> torch.Tensor:
    """Add the gradient of `weight` × loss sum / `targets` of this process's micro-batches; gives that loss in fp32, without its graph.

    Gradients are exchanged between processes with the last micro-batch only.
    """
    total = torch.zeros((), device=accelerator.device, dtype=torch.float32)
    for position, batch in enumerate(batches):
        last = position == len(batches) - 1
        with nullcontext() if last else accelerator.no_sync(model):
            with accelerator.autocast():
                loss = task.loss_sum(model, batch.to(accelerator.device)) * weight / targets
            accelerator.backward(loss * accelerator.num_processes)
        total += loss.detach()
    return total


def take_update(
    accelerator: Accelerator,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    task: Task,
    batches: Sequence[Batch],
    max_grad_norm: float | None,
    filler: Batch | None = None,
) -> Update:
    """Compute the gradient of all micro-batches of all processes and step. All processes call it and return the same.

    `batches` are this process's share. One that has none computes `filler` with the weight 0, so that it takes part where
    gradients are exchanged. A non-finite loss or gradient leaves the parameters untouched, and running statistics.
    """
    counts = torch.tensor(
        [
            sum(task.targets(b) for b in batches),
            sum(len(b.examples) for b in batches),
            sum(b.tokens for b in batches),
        ],
        device=accelerator.device,
    )
    targets, examples, tokens = (int(n) for n in accelerator.reduce(counts, reduction="sum"))
    statistics = _running_statistics(model)
    work, weight = (batches, 1.0) if batches or filler is None else ([filler], 0.0)
    total = accumulate(accelerator, model, task, work, weight, targets)
    loss_value = float(accelerator.reduce(total, reduction="sum"))
    scaler, plain = accelerator.scaler, getattr(optimizer, "optimizer", optimizer)
    if scaler is not None:
        scaler.unscale_(plain)
    parameters = [p for p in model.parameters() if p.requires_grad]
    limit = math.inf if max_grad_norm is None else max_grad_norm
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, limit))
    skipped = None if math.isfinite(loss_value) and math.isfinite(norm) else NONFINITE
    if scaler is not None:
        if skipped and math.isfinite(loss_value):
            skipped = OVERFLOW
        scaler.step(plain)  # does not step on a gradient that is not finite
        scaler.update()
    elif skipped is None:
        optimizer.step()
    if skipped is not None:
        for buffer, before in statistics:
            buffer.copy_(before)
    optimizer.zero_grad(set_to_none=True)
    return Update(loss_value, norm, examples, targets, tokens, skipped)


def _running_statistics(model: nn.Module) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Buffers that a forward pass changes (batch normalisation in training), each with a copy; mostly there are none."""
    norms = (m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training)
    return [(buffer, buffer.detach().clone()) for norm in norms for buffer in norm.buffers(recurse=False)]
