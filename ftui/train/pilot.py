"""The gates: the control's real configuration through every operation of the campaign, one row each (S1, S2, S8).

A gate that fails says why; what depends on it is skipped with that reason. Each row is on the disk before the next gate begins.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import psutil
import torch
from accelerate.utils import gather_object

from ftui.data.order import update_examples
from ftui.plan.settings import RunSettings
from ftui.record.journal import stamp
from ftui.record.layout import CampaignFiles, GateFiles
from ftui.record.rows import GATE_NAMES, GateRow, gate_writer
from ftui.train.checkpoint import load_weights, save_checkpoint
from ftui.train.control import compare_control, write_control
from ftui.train.evaluate import by_length
from ftui.train.loop import Workshop, last_checkpoint, set_up
from ftui.train.memory import Meter
from ftui.train.moved import check_moved, fingerprints
from ftui.train.process import announced, bare, is_lost_peer

STEADY_UPDATES = 5
"""Updates measured after the first; their median is the steady update."""
TIMED_BATCHES = 6
"""Evaluation batches timed, spread over all lengths."""


class GateFailed(Exception):
    """A gate did not pass; its row is written."""


class Gatekeeper:
    """Runs gates one after the other. Of several processes the first writes the rows of all (S1), and one that fails its own."""

    def __init__(self, files: GateFiles, device: torch.device) -> None:
        self._files = files
        self._device = device
        self._rank, self._world = announced()

    @contextmanager
    def gate(self, name: str, **inputs: Any) -> Iterator[dict[str, Any]]:
        """Measure the block as gate `name`; it puts what it finds into the yielded facts. Raises `GateFailed`."""
        facts: dict[str, Any] = {}
        meter = Meter(self._device)
        try:
            with meter:
                yield facts
        except Exception as error:
            cause = f"{type(error).__name__}: {error}".splitlines()[0]
            if not (self._world > 1 and is_lost_peer(error)):
                failed = self._row(name, "failed", cause, inputs=inputs, facts=facts, **meter.measured())
                self._write([failed, *self._skipped_after(name)])
            raise GateFailed(f"{name}: {cause}") from error
        passed = self._row(name, "passed", None, inputs=inputs, facts=facts, **meter.measured())
        rows = gather_object([passed]) if self._world > 1 else [passed]
        if self._rank == 0:
            self._write(rows)

    def _skipped_after(self, failed: str) -> list[GateRow]:
        cause = f"depends on {failed!r}, which failed"
        later = GATE_NAMES[GATE_NAMES.index(failed) + 1 :]
        return [self._row(name, "skipped", cause, seconds=0.0) for name in later]

    def _row(
        self, gate: str, verdict: Literal["passed", "failed", "skipped"], cause: str | None, **more: Any
    ) -> GateRow:
        device = str(self._device)
        return GateRow(gate=gate, rank=self._rank, device=device, verdict=verdict, cause=cause, at=stamp(), **more)

    def _write(self, rows: list[GateRow]) -> None:
        writer = gate_writer(self._files.rows)
        for row in rows:
            writer.write(row.model_dump())
        writer.close()


def run_gates(settings: RunSettings, campaign: CampaignFiles, files: GateFiles) -> None:
    """All gates but the last, which needs a process of its own (`reload_gate`). Raises `GateFailed`."""
    keeper = Gatekeeper(files, torch.device(settings.machine.backend))
    training = settings.training
    with keeper.gate("load") as facts:
        shop = set_up(settings, campaign)
        facts.update(shop.prepared.facts(), inputs=shop.task.facts())
        facts["start_seconds"] = time.time() - psutil.Process().create_time()
    shape = {"micro_batch": training.micro_batch, "accumulation": training.accumulation}
    updates = update_examples(settings)
    shop.model.train()
    before, steps = fingerprints(bare(shop.model)), 0
    with keeper.gate("first update", **shape) as facts:
        examples = next(updates)
        if training.batching == "packed":
            facts["packing_difference"] = _packing_difference(shop, examples[: training.micro_batch])
        steps += _one_update(shop, examples, facts)
    with keeper.gate("steady update", **shape, updates=STEADY_UPDATES) as facts:
        seconds = []
        for _, examples in zip(range(STEADY_UPDATES), updates, strict=False):
            with Meter(shop.accelerator.device) as meter:
                steps += _one_update(shop, examples, facts)
            seconds.append(meter.seconds)
        if seconds:
            facts.update(
                seconds_per_update=statistics.median(seconds), seconds_low=min(seconds), seconds_high=max(seconds)
            )
    with keeper.gate("parameters moved") as facts:
        facts.update(check_moved(before, bare(shop.model), steps))
    batches = by_length(shop.splits["validation"], settings.evaluation.batch_size)
    longest = int(shop.splits["validation"].lengths.max())
    with keeper.gate("evaluation", batch_size=settings.evaluation.batch_size, longest=longest) as facts:
        _timed_evaluation(shop, batches, facts)
    with keeper.gate("checkpoint") as facts:
        _, size = save_checkpoint(files.run.checkpoints, 1, shop.accelerator, shop.model, shop.optimizer, {}, 1)
        facts["bytes"] = size
        if shop.accelerator.is_main_process:
            write_control(files.root, settings, shop.task, bare(shop.model))


def reload_gate(settings: RunSettings, campaign: CampaignFiles, files: GateFiles) -> None:
    """The last gate, in a new process: the checkpoint is read and the control inputs are answered again (C3)."""
    keeper = Gatekeeper(files, torch.device(settings.machine.backend))
    with keeper.gate("reload", inputs=len(settings.evaluation.control_inputs)) as facts:
        shop = set_up(settings, campaign, alone=True)
        load_weights(last_checkpoint(files.run), shop.model)
        agreement, count = compare_control(files.root, settings, shop.task, shop.model)
        facts.update(difference=agreement.difference, tolerance=agreement.tolerance)
        if not agreement.holds:
            raise ValueError(agreement.sentence(count))


PACKING_TOLERANCE = {"fp32": 1e-4, "bf16": 2e-2, "fp16": 2e-2}
"""Largest relative difference of a packed micro-batch's loss that is still rounding."""


def _packing_difference(shop: Workshop, examples: list[int]) -> float:
    """Relative difference of the loss of a micro-batch, packed and padded. Not every architecture keeps packed examples apart (K02)."""
    rows = [shop.splits["train"].row(i) for i in examples]
    model = bare(shop.model)
    model.eval()
    losses = []
    for batch in (shop.task.collate(rows), shop.task.pack(rows)):
        with torch.no_grad(), shop.accelerator.autocast():
            losses.append(float(shop.task.loss_sum(model, batch.to(shop.accelerator.device))))
    model.train()
    difference = abs(losses[1] - losses[0]) / abs(losses[0])
    allowed = PACKING_TOLERANCE[shop.settings.training.precision]
    if difference > allowed:
        raise ValueError(
            f"packed examples see each other in this model: their loss differs by {difference:.2g}, allowed is {allowed:g}; "
            'use training.batching = "length-grouped"'
        )
    return difference


def _one_update(shop: Workshop, examples: list[int], facts: dict[str, Any]) -> int:
    """Take an update; returns 1 when it changed parameters, 0 when its learning rate was 0 or its step skipped."""
    rate = float(shop.schedule.get_last_lr()[0])
    update = shop.update(examples)
    facts["loss"], facts["grad_norm"] = update.loss, update.grad_norm
    if not update.finite and not update.overflowed:
        raise ValueError(f"the loss is {update.loss} and the gradient norm {update.grad_norm}")
    return int(rate > 0 and update.skipped is None)


def _timed_evaluation(shop: Workshop, batches: list[list[int]], facts: dict[str, Any]) -> None:
    """The longest batch first (memory), then some of all lengths (time for the whole split)."""
    split = shop.splits["validation"]
    step = max(1, len(batches) // TIMED_BATCHES)
    chosen = batches[::step]
    tokens_timed = seconds = 0.0
    model = bare(shop.model)
    model.eval()
    with torch.no_grad():
        for indices in chosen:
            with Meter(shop.accelerator.device) as meter, shop.accelerator.autocast():
                batch = shop.task.collate([split.row(i) for i in indices]).to(shop.accelerator.device)
                rows = shop.task.predict(model, batch)
            if not all(row["loss"] == row["loss"] for row in rows):
                raise ValueError("a validation example has a loss that is no number")
            seconds += meter.seconds
            tokens_timed += len(indices) * int(split.lengths[indices].max())
    model.train()
    tokens = sum(len(b) * int(split.lengths[b].max()) for b in batches)
    whole = seconds * tokens / tokens_timed / shop.accelerator.num_processes
    facts.update(batches=len(chosen), examples=len(split), seconds_whole_split=whole)
