"""Which training examples belong to which update, micro-batch and process: a pure function of seed, epoch and batch shape.

Nothing is drawn from a global generator, so the order neither shifts dropout nor depends on where a run was resumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ftui.plan.settings import RunSettings


def epoch_order(examples: int, seed: int, epoch: int) -> list[int]:
    """A permutation of `range(examples)`, equal for equal arguments on every machine."""
    return [int(i) for i in np.random.default_rng([seed, epoch]).permutation(examples)]


def update_examples(settings: RunSettings, first_update: int = 0) -> Iterator[list[int]]:
    """Example indices of every update from `first_update` (0-based) to the last.

    An epoch's last update holds what is left of it. When examples are held, the run's last update is cut to their number.
    """
    total, size = settings.data.train_examples, settings.examples_per_update
    per_epoch = -(-total // size)
    epoch, order = -1, list[int]()
    for update in range(first_update, settings.updates):
        if update // per_epoch != epoch:
            epoch = update // per_epoch
            order = epoch_order(total, settings.seed, epoch)
        start = update % per_epoch * size
        chosen = order[start : start + size]
        if update == settings.updates - 1:
            seen_before = epoch * total + start
            chosen = chosen[: max(1, settings.examples - seen_before)]
        yield chosen


def micro_batches(examples: Sequence[int], size: int) -> list[list[int]]:
    """Cut an update's examples into micro-batches of at most `size`, in order."""
    return [list(examples[i : i + size]) for i in range(0, len(examples), size)]


def longest_first(examples: Sequence[int], lengths: NDArray[np.int32]) -> list[int]:
    """An update's examples by length, equal ones in their order: neighbours need little padding, and what does not fit shows at once.

    Only within the update, so that its examples, and with them its gradient, stay what they are.
    """
    return sorted(examples, key=lambda i: -int(lengths[i]))


def share(parts: list[list[int]], rank: int, world: int) -> list[list[int]]:
    """The micro-batches that process `rank` of `world` computes: dealt in turn; [] for one that comes too late."""
    return parts[rank::world]
