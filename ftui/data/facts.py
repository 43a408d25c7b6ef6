"""What the encoded examples are, counted over all rows and not a sample: lengths, cuts, targets, padding (D5, S3)."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftui.data.encode import EncodedSplit
from ftui.data.order import epoch_order, longest_first, micro_batches
from ftui.plan.schema import Machine, Training

BARS = 12
"""Bars of the histogram of lengths."""


@dataclass(frozen=True)
class Lengths:
    """How many tokens examples have before anything is cut. Quantiles are lengths that occur (none is interpolated)."""

    shortest: int
    median: int
    p90: int
    p99: int
    longest: int
    bars: list[tuple[int, int, int]]
    """Histogram: from, to (both included), rows."""


@dataclass(frozen=True)
class SplitFacts:
    """Facts about one encoded split. Tokens are those the model sees unless said otherwise."""

    rows: int
    tokens: int
    lengths: Lengths | None
    """None without rows, and for pictures."""
    cut_rows: int
    """Rows longer than `training.max_length`."""
    cut_tokens: int
    targets: int
    """Targets that carry loss: tokens, or one label per row."""
    targets_lost: int
    rows_that_lost_targets: int
    rows_without_target: int
    loss_share: float | None
    """Targets per token; None where a target is a label."""
    unknown: tuple[int, int] | None
    """How often the tokenizer had to write its unknown token, and in how many rows; None where it has none."""
    problems: dict[str, int]
    """Rows that cannot be used, by what is wrong with them."""

    def content(self) -> dict[str, Any]:
        return asdict(self)


def split_facts(split: EncodedSplit, *, has_targets: bool, unknown_id: int | None, tokens: bool) -> SplitFacts:
    """Facts about `split`. `has_targets`: targets are tokens; `tokens` False for pictures."""
    whole, kept, targets, lost = split.whole_lengths, split.lengths, split.targets, split.lost
    problems = Counter(kind for kind in split.problems() if kind)
    total = int(kept.sum()) if tokens else 0
    return SplitFacts(
        rows=len(split),
        tokens=total,
        lengths=lengths(whole) if tokens and len(split) else None,
        cut_rows=int((whole > kept).sum()) if tokens else 0,
        cut_tokens=int((whole - kept).clip(min=0).sum()) if tokens else 0,
        targets=int(targets.sum()),
        targets_lost=int(lost.sum()),
        rows_that_lost_targets=int((lost > 0).sum()),
        rows_without_target=int((targets == 0).sum()),
        loss_share=int(targets.sum()) / total if has_targets and total else None,
        unknown=split.count_token(unknown_id) if tokens and unknown_id is not None else None,
        problems=dict(problems.most_common()),
    )


def lengths(whole: NDArray[np.int32]) -> Lengths:
    """Quantiles and histogram of the lengths of at least one example."""
    ordered = np.sort(whole)
    shortest, longest = int(ordered[0]), int(ordered[-1])
    width = max(1, -(-(longest - shortest + 1) // BARS))
    counts = np.bincount((whole - shortest) // width)
    bars = [(shortest + i * width, min(longest, shortest + (i + 1) * width - 1), int(n)) for i, n in enumerate(counts)]
    median, p90, p99 = (int(ordered[max(0, int(np.ceil(q * len(ordered))) - 1)]) for q in (0.5, 0.9, 0.99))
    return Lengths(shortest, median, p90, p99, longest, bars)


@dataclass(frozen=True)
class Padding:
    """Tokens computed in one pass over the training examples that are padding, as the plan forms its batches."""

    tokens: int
    padding: int

    @property
    def share(self) -> float:
        """Of everything computed."""
        return self.padding / (self.tokens + self.padding) if self.tokens else 0.0


def padding_of_first_epoch(kept: NDArray[np.int32], training: Training, machine: Machine, seed: int) -> Padding:
    """Padding of the first epoch of the run with `seed`, batch by batch; none where examples are packed."""
    total = int(kept.sum())
    if training.batching == "packed":
        return Padding(total, 0)
    padding = 0
    for batch in first_epoch_batches(kept, training, machine, seed):
        sizes = kept[batch]
        padding += int(sizes.max()) * len(batch) - int(sizes.sum())
    return Padding(total, padding)


def first_epoch_batches(kept: NDArray[np.int32], training: Training, machine: Machine, seed: int) -> list[list[int]]:
    """The micro-batches of the first epoch, of all processes, in order."""
    size = training.micro_batch * training.accumulation * machine.processes
    order = epoch_order(len(kept), seed, 0)
    batches: list[list[int]] = []
    for start in range(0, len(order), size):
        update = order[start : start + size]
        if training.batching == "length-grouped":
            update = longest_first(update, kept)
        batches += micro_batches(update, training.micro_batch)
    return batches
