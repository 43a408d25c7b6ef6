"""What operations of a run cost on a device nobody has measured: the forecast's range for an update, and stated allowances for the
rest (S7). Everything is a range from what the device can do at best to what is assumed at worst; its middle is the geometric mean,
as far from the one as from the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ftui.plan.budget import Spread
from ftui.plan.durations import RunCosts
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion, own_batches
from ftui.plan.variants import BASE, CONTROL, variant_plan

FORWARD_SHARE = 1 / 3
"""Of an update's arithmetic that is its forward pass: the backward pass computes twice as much (Kaplan et al. 2020,
arXiv:2001.08361, section 2.1)."""
LAUNCH_SECONDS = 20e-6
"""At most for one operation to be started from Python, however small it is."""
START_SECONDS = (15.0, 120.0)
"""A process that starts and imports its libraries."""
DISK_BYTES_PER_SECOND = (2e9, 2e8)
"""Reading weights and writing checkpoints, at best and at worst."""
FILES_SECONDS = (0.1, 2.0)
"""The small files of a checkpoint, and their hashes."""
BYTES_PER_PARAMETER = 4
STATES_PER_PARAMETER = 3
"""What a checkpoint keeps of each trained parameter: itself and AdamW's two moments."""

ASSUMPTIONS = (
    "one such device for each process of a run, so that one run follows another",
    "an update: the forecast's range, and at most 20 microseconds for each operation to start",
    "a validation: a third of an update's time for each example, as its forward pass takes",
    "written answers: at most all their tokens, each as many operations to start as a forward pass",
    "a start: 15 to 120 s, and the weights read at 0.2 to 2 GB/s",
    "a checkpoint: 0.1 to 2 s, and trained parameters and two moments written at 0.2 to 2 GB/s",
)
"""What the durations stand on, in words."""


@dataclass(frozen=True)
class PredictedUpdate:
    """What the forecast says of one variant's update on a device."""

    low: float
    """Seconds at best."""
    high: float | None
    """Seconds at worst by arithmetic; None where memory traffic alone gives the least time and nothing gives the most."""
    operations: int
    """Kernels to start in one update of one process."""
    parameters: int
    trainable: int


def predicted_costs(plan: Plan, data: DataVersion, updates: Mapping[str, PredictedUpdate]) -> dict[str, RunCosts]:
    """Costs of each variant named in `updates`; the baseline's are those of the control."""
    found = {name: _costs(variant_plan(plan, name), data, update) for name, update in updates.items()}
    return {BASE: found[CONTROL], **found} if CONTROL in found else found


def predicted_closing(data: DataVersion, costs: Mapping[str, RunCosts]) -> dict[str, Spread]:
    """What remains when the last run has ended: `evaluation` of one run on the test split, and `export` of the artefact, written and
    loaded again. {} while nothing is predicted for the control."""
    if CONTROL not in costs:
        return {}
    own = costs[CONTROL]
    share = data.test_examples / max(1, data.validation_examples)
    return {
        "evaluation": own.start + own.validation.times(share),
        "export": own.start + own.start + own.checkpoint.times(2),
    }


def _costs(own: Plan, data: DataVersion, update: PredictedUpdate) -> RunCosts:
    started = update.operations * LAUNCH_SECONDS
    seconds = (update.low, max(update.low, update.high or 0.0, started))
    passes = data.validation_examples / own_batches(own, data).examples_per_update * FORWARD_SHARE
    writing = _writing_seconds(own, data, started)
    weights = update.parameters * BYTES_PER_PARAMETER
    kept = update.trainable * BYTES_PER_PARAMETER * STATES_PER_PARAMETER
    fast, slow = DISK_BYTES_PER_SECOND
    return RunCosts(
        update=_between(*seconds),
        validation=_between(seconds[0] * passes, seconds[1] * passes + writing),
        checkpoint=_between(FILES_SECONDS[0] + kept / fast, FILES_SECONDS[1] + kept / slow),
        start=_between(START_SECONDS[0] + weights / fast, START_SECONDS[1] + weights / slow),
    )


def _writing_seconds(own: Plan, data: DataVersion, started: float) -> float:
    """At most for all answers of a validation: token after token, each waits for the operations of a forward pass to be started."""
    generation = own.evaluation.generation
    if generation is None:
        return 0.0
    batches = -(-data.validation_examples // own.evaluation.batch_size)
    return batches * generation.max_new_tokens * started / own.training.accumulation * FORWARD_SHARE


def _between(low: float, high: float) -> Spread:
    return Spread(math.sqrt(low * high), low, high)
