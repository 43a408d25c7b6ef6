"""The gates: the control's real configuration through every operation of the campaign, one row each (S1, S2, S8).

A gate that fails says why; what depends on it is skipped with that reason. Each row is on the disk before the next gate begins.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import torch

from ftui.plan.settings import RunSettings
from ftui.record.journal import stamp
from ftui.record.layout import CampaignFiles, GateFiles
from ftui.record.rows import GATE_NAMES, GateRow, gate_writer
from ftui.train.checkpoint import load_weights, save_checkpoint
from ftui.train.control import compare_control, write_control
from ftui.train.evaluate import by_length
from ftui.train.loop import Workshop, last_checkpoint, set_up
from ftui.train.memory import Meter
from ftui.train.order import update_examples

STEADY_UPDATES = 5
"""Updates measured after the first; their median is the steady update."""
TIMED_BATCHES = 6
"""Evaluation batches timed, spread over all lengths."""


class GateFailed(Exception):
    """A gate did not pass; its row is written."""


class Gatekeeper:
    """Runs gates one after the other and writes their rows."""

    def __init__(self, files: GateFiles, device: torch.device) -> None:
        self._writer = gate_writer(files.rows)
        self._device = device

    @contextmanager
    def gate(self, name: str, **inputs: Any) -> Iterator[dict[str, Any]]:
        """Measure the block as gate `name`; it puts what it finds into the yielded facts. Raises `GateFailed`."""
        facts: dict[str, Any] = {}
        meter = Meter(self._device)
        cause = None
        try:
            with meter:
                yield facts
        except Exception as error:
            cause = f"{type(error).__name__}: {error}".splitlines()[0]
            raise GateFailed(f"{name}: {cause}") from error
        finally:
            row = GateRow(
                gate=name,
                device=str(self._device),
                verdict="failed" if cause else "passed",
                cause=cause,
                inputs=inputs,
                facts=facts,
                at=stamp(),
                **meter.measured(),
            )
            self._writer.write(row.model_dump())
            if cause:
                self._skip_after(name, cause)

    def _skip_after(self, failed: str, cause: str) -> None:
        for name in GATE_NAMES[GATE_NAMES.index(failed) + 1 :]:
            row = GateRow(
                gate=name,
                device=str(self._device),
                verdict="skipped",
                cause=f"depends on {failed!r}, which failed",
                seconds=0.0,
                at=stamp(),
            )
            self._writer.write(row.model_dump())


def run_gates(settings: RunSettings, campaign: CampaignFiles, files: GateFiles) -> None:
    """All gates but the last, which needs a process of its own (`reload_gate`). Raises `GateFailed`."""
    keeper = Gatekeeper(files, torch.device(settings.machine.backend))
    training = settings.training
    with keeper.gate("load") as facts:
        shop = set_up(settings, campaign)
        facts.update(shop.prepared.facts())
        facts["start_seconds"] = time.time() - psutil.Process().create_time()
    shape = {"micro_batch": training.micro_batch, "accumulation": training.accumulation}
    updates = update_examples(settings)
    shop.model.train()
    with keeper.gate("first update", **shape) as facts:
        _one_update(shop, next(updates), facts)
    with keeper.gate("steady update", **shape, updates=STEADY_UPDATES) as facts:
        seconds = []
        for _, examples in zip(range(STEADY_UPDATES), updates, strict=False):
            with Meter(shop.accelerator.device) as meter:
                _one_update(shop, examples, facts)
            seconds.append(meter.seconds)
        if seconds:
            facts.update(
                seconds_per_update=statistics.median(seconds), seconds_low=min(seconds), seconds_high=max(seconds)
            )
    batches = by_length(shop.splits["validation"], settings.evaluation.batch_size)
    longest = int(shop.splits["validation"].lengths.max())
    with keeper.gate("evaluation", batch_size=settings.evaluation.batch_size, longest=longest) as facts:
        _timed_evaluation(shop, batches, facts)
    with keeper.gate("checkpoint") as facts:
        _, size = save_checkpoint(files.run.checkpoints, 1, shop.accelerator, shop.model, shop.optimizer, {}, 1)
        facts["bytes"] = size
        write_control(files.root, settings, shop.task, shop.model)


def reload_gate(settings: RunSettings, campaign: CampaignFiles, files: GateFiles) -> None:
    """The last gate, in a new process: the checkpoint is read and the control inputs are answered again (C3)."""
    keeper = Gatekeeper(files, torch.device(settings.machine.backend))
    with keeper.gate("reload", inputs=len(settings.evaluation.control_inputs)) as facts:
        shop = set_up(settings, campaign)
        load_weights(last_checkpoint(files.run), shop.model)
        agreement, count = compare_control(files.root, settings, shop.task, shop.model)
        facts.update(difference=agreement.difference, tolerance=agreement.tolerance)
        if not agreement.holds:
            raise ValueError(agreement.sentence(count))


def _one_update(shop: Workshop, examples: list[int], facts: dict[str, Any]) -> None:
    update = shop.update(examples)
    facts["loss"], facts["grad_norm"] = update.loss, update.grad_norm
    if not update.finite:
        raise ValueError(f"the loss is {update.loss} and the gradient norm {update.grad_norm}")


def _timed_evaluation(shop: Workshop, batches: list[list[int]], facts: dict[str, Any]) -> None:
    """The longest batch first (memory), then some of all lengths (time for the whole split)."""
    split = shop.splits["validation"]
    step = max(1, len(batches) // TIMED_BATCHES)
    chosen = batches[::step]
    tokens_timed = seconds = 0.0
    shop.model.eval()
    with torch.no_grad():
        for indices in chosen:
            with Meter(shop.accelerator.device) as meter, shop.accelerator.autocast():
                batch = shop.task.collate([split.row(i) for i in indices]).to(shop.accelerator.device)
                rows = shop.task.predict(shop.model, batch)
            if not all(row["loss"] == row["loss"] for row in rows):
                raise ValueError("a validation example has a loss that is no number")
            seconds += meter.seconds
            tokens_timed += batch.labels.shape[0] * max(len(e.input_ids) for e in batch.examples)
    shop.model.train()
    tokens = sum(len(b) * int(split.lengths[b].max()) for b in batches)
    facts.update(batches=len(chosen), examples=len(split), seconds_whole_split=seconds * tokens / tokens_timed)
