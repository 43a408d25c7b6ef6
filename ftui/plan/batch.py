"""Batch arithmetic (S4, S5): micro-batch × accumulation × replicas = examples per update, and what follows from it.

2 × 8 × 1 = 16 examples per update; 3,200 examples seen once = 200 updates. An epoch ends with a partial update when its
examples do not divide evenly: it is an update like any other, normalised over the examples it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ftui.plan.schema import Plan, Training


@dataclass(frozen=True)
class Batches:
    """How a run's examples fall into updates."""

    micro_batch: int
    accumulation: int
    replicas: int
    train_examples: int
    updates: int
    """Optimizer steps of the whole run."""
    tokens: int
    """Targets seen over the whole run, repeats counted: exactly for whole epochs, else as many as the average example gives."""
    limit: int | None = None
    """Examples the run may see, where that is what is held; its last update is cut to it."""

    @property
    def examples_per_update(self) -> int:
        return self.micro_batch * self.accumulation * self.replicas

    @property
    def updates_per_epoch(self) -> int:
        return -(-self.train_examples // self.examples_per_update)

    @property
    def partial_examples(self) -> int:
        """Examples of the last update of an epoch, 0 when all are full."""
        return self.train_examples % self.examples_per_update

    @property
    def epochs(self) -> float:
        return self.updates / self.updates_per_epoch

    @property
    def examples(self) -> int:
        """Examples seen over the whole run, repeats counted."""
        whole, rest = divmod(self.updates, self.updates_per_epoch)
        seen = whole * self.train_examples + min(rest * self.examples_per_update, self.train_examples)
        return seen if self.limit is None else min(seen, self.limit)

    def sentences(self) -> list[str]:
        """The arithmetic as a person would check it."""
        first = (
            f"{self.micro_batch} × {self.accumulation} × {self.replicas} = {self.examples_per_update} examples per update"
            " (micro-batch × accumulation × replicas)"
        )
        second = (
            f"{self.train_examples:,} training examples = {self.updates_per_epoch:,} updates per epoch; "
            f"{self.updates:,} updates = {self.examples:,} examples seen = {self.epochs:.2f} epochs"
        )
        if not self.partial_examples:
            return [first, second]
        return [
            first,
            second,
            f"the last update of each epoch has {self.partial_examples} examples and is normalised over them",
        ]


def batches(training: Training, train_examples: int, replicas: int = 1, train_targets: int | None = None) -> Batches:
    """The arithmetic of one run. `train_examples` counts the rows left after cleaning; raises ValueError when there are none.

    `train_targets` counts the targets of one epoch, one per example if None. Where tokens are held, the run takes as many whole
    updates as come nearest to them; the record says how many targets each update had.
    """
    if train_examples < 1:
        raise ValueError("no training examples are left")
    per_update = training.micro_batch * training.accumulation * replicas
    per_epoch = -(-train_examples // per_update)
    targets = train_targets or train_examples
    if training.hold == "updates":
        updates = training.amount
    elif training.hold == "epochs":
        updates = training.amount * per_epoch
    elif training.hold == "tokens":
        updates = max(1, round(training.amount / targets * per_epoch))
    else:
        whole, rest = divmod(training.amount, train_examples)
        updates = whole * per_epoch + -(-rest // per_update)
    limit = training.amount if training.hold == "examples" else None
    whole, rest = divmod(updates, per_epoch)
    seen = whole * train_examples + min(rest * per_update, train_examples)
    tokens = training.amount if training.hold == "tokens" else round(seen * targets / train_examples)
    return Batches(training.micro_batch, training.accumulation, replicas, train_examples, updates, tokens, limit)


def describe_excess(plan: Plan) -> Iterator[tuple[str, str]]:
    """Intervals that a run of a fixed number of updates would never reach, as (message, field)."""
    if plan.training.hold != "updates":
        return
    for field in ("warmup", "validate_every", "checkpoint_every"):
        value = getattr(plan.training, field)
        if value > plan.training.amount:
            yield f"{value} is more than the {plan.training.amount} updates of a run", field
