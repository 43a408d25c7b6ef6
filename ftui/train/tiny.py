"""Can the loop learn a handful of examples by heart? That proves the mechanism, and nothing about quality (D8).

A mask that hides the target, labels at the wrong rows, an adapter without a gradient: each leaves the loss where it was.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import nn

from ftui.data.encode import EncodedSplit, Example
from ftui.train.loop import Workshop
from ftui.train.process import agreed, bare
from ftui.train.task import Batch
from ftui.train.update import take_update

MOST_UPDATES, FEWEST_UPDATES, MOST_SECONDS = 200, 40, 120.0
"""Updates after which nothing more is expected; of a slow machine fewer, once so many seconds are gone."""
CHECK_EVERY = 10
SUBSETS = {"text-classification": 8, "image-classification": 8, "generation": 4, "extraction": 4}
"""Examples of the subset. Few, for each update is paid by the pilot."""
LEARNT = 0.2
"""Share of the first loss that counts as learnt, where all answers are right as well: a tenth is what such a subset ends near."""
FASTER, SLOWEST, FASTEST, WARMUP = 10.0, 1e-4, 3e-3, 10
"""The subset is learnt at ten times the plan's learning rate, within these bounds and never below the plan's, after so many updates
of warm-up: there is nothing here to overfit but itself."""


class NotLearnt(Exception):
    """The subset was not learnt; the message says what stayed as it was."""


def learn_tiny(shop: Workshop, facts: dict[str, Any]) -> None:
    """Train the plan's model on a few examples until it returns their labels or answers. Raises `NotLearnt`.

    The model is another one afterwards. Every process of a group learns the whole subset.
    """
    settings, training = shop.settings, shop.settings.training
    examples = chosen(shop.splits["train"], SUBSETS[settings.hypothesis.task])
    rate = max(training.learning_rate, min(FASTEST, max(SLOWEST, FASTER * training.learning_rate)))
    optimizer = torch.optim.AdamW(list(shop.prepared.trainable.values()), lr=rate)
    step = shop.accelerator.prepare_optimizer(optimizer)
    batches = [shop.task.collate(examples)]
    first, right = _state(shop, batches)
    facts.update(examples=len(examples), learning_rate=rate, first_loss=first)
    loss, began, number = first, time.perf_counter(), 0
    shop.model.train()
    for number in range(1, MOST_UPDATES + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, number / WARMUP)
        update = take_update(shop.accelerator, shop.model, step, shop.task, batches, training.max_grad_norm)
        if not update.finite and not update.overflowed:
            raise NotLearnt(f"the loss is {update.loss} and the gradient norm {update.grad_norm} at update {number}")
        if number % CHECK_EVERY == 0:
            loss, right = _state(shop, batches)
            facts.update(updates=number, loss=loss, right=right)
            if loss <= LEARNT * first and right in (None, len(examples)):
                return
            late = time.perf_counter() - began > MOST_SECONDS
            if agreed(shop.accelerator, number >= FEWEST_UPDATES and late)[0]:
                break
    answers = "" if right is None else f", {right} of {len(examples)} answers are right"
    raise NotLearnt(
        f"{number} updates on {len(examples)} examples took the loss from {first:.4g} to {loss:.4g}{answers}: a model that "
        "cannot learn a handful by heart learns nothing; look at the examples (`ftui inspect`), their labels, and method.targets"
    )


def chosen(split: EncodedSplit, count: int) -> list[Example]:
    """`count` examples, of as many categories as there are, the short ones first: the same in every process and every time."""
    by_category: dict[str, list[int]] = {}
    for index in range(min(len(split), 2000)):
        by_category.setdefault(split.row(index).category, []).append(index)
    queues = [sorted(rows, key=lambda i: (int(split.lengths[i]), i)) for _, rows in sorted(by_category.items())]
    picked: list[int] = []
    while len(picked) < count and any(queues):
        for queue in queues:
            if queue and len(picked) < count:
                picked.append(queue.pop(0))
    return [split.row(index) for index in picked]


@torch.no_grad()
def _state(shop: Workshop, batches: list[Batch]) -> tuple[float, int | None]:
    """Mean loss of the examples and how many answers are right; None where no answer is written."""
    model: nn.Module = bare(shop.model)
    model.eval()
    rows = []
    for batch in batches:
        with shop.accelerator.autocast():
            rows += shop.task.predict(model, batch.to(shop.accelerator.device))
    model.train()
    loss = math.fsum(row["loss"] for row in rows) / len(rows)
    right = None if any(row["correct"] is None for row in rows) else sum(bool(row["correct"]) for row in rows)
    return loss, right
