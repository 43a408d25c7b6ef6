"""The pilot: the control's real configuration through every operation of the campaign, a gate each (S1, S2, S8).

In three processes, for some things are only proved by a new one: `run_gates` tries everything up to a checkpoint, `resume_gates`
takes the checkpoint up and writes the artefact, `reload_gate` loads the artefact as a stranger would.
"""

from __future__ import annotations

import shutil
import statistics
import time
from itertools import islice
from typing import Any

import numpy as np
import psutil
import torch
from numpy.typing import NDArray

from ftui.data.base import find_base
from ftui.data.encode import EncodedSplit, encode_splits
from ftui.data.encoders import make_encoder
from ftui.data.order import longest_first, micro_batches, update_examples
from ftui.data.store import is_intact
from ftui.plan.load import load_plan
from ftui.plan.settings import RunSettings
from ftui.plan.variants import planned_runs
from ftui.record.files import read_json, replace_json
from ftui.record.layout import CampaignFiles, GateFiles
from ftui.train.checkpoint import checkpoints, load_checkpoint, load_weights, save_checkpoint
from ftui.train.evaluate import by_length
from ftui.train.export import verify, write_artefact
from ftui.train.gates import GateFailed, Gatekeeper
from ftui.train.loop import Workshop, last_checkpoint, restore_schedule, schedule_state, set_up
from ftui.train.memory import Meter
from ftui.train.moved import check_moved, fingerprints
from ftui.train.process import announced, bare, make_accelerator
from ftui.train.tiny import learn_tiny

STEADY_UPDATES = 5
"""Updates measured after the first; their median is the steady update."""
TIMED_BATCHES = 6
"""Evaluation batches timed, spread over all lengths."""
RESUMED_UPDATES = 2
"""Updates taken after the checkpoint, once going on and once in a new process."""
RESUME_TOLERANCE = {"cpu": 0.0, "cuda": 1e-3}
"""Largest relative difference of a loss after a resume: a CPU computes the same bits again, a GPU adds up in another order."""
SHORTEST_LIMIT = 120.0
"""Seconds that every gate has, however few hours the plan leaves the preflight."""


class PilotFailed(Exception):
    """At least one gate did not pass; the rows are written."""


def gate_limit(settings: RunSettings, campaign: CampaignFiles) -> float:
    """Seconds one gate may take: all the hours the plan has for the preflight."""
    return max(SHORTEST_LIMIT, load_plan(campaign.root).rental.hours.preflight * 3600)


def run_gates(settings: RunSettings, campaign: CampaignFiles, files: GateFiles) -> None:
    """The gates of one process, from the data to the checkpoint and the tiny subset. Raises `PilotFailed`, `GateFailed`."""
    keeper = Gatekeeper(files, torch.device(settings.machine.backend), gate_limit(settings, campaign))
    training = settings.training
    shop: Workshop | None = None
    with keeper.gate("data") as facts:
        if announced()[1] > 1:
            make_accelerator(settings)  # joins the group, through which the rows of all come together
        facts.update(_check_data(settings, campaign))
    if keeper.can_try("load"):
        with keeper.gate("load") as facts:
            shop = set_up(settings, campaign)
            facts.update(shop.prepared.facts(), inputs=shop.task.facts())
            facts["start_seconds"] = time.time() - psutil.Process().create_time()
    if shop is None or not keeper.can_try("first update"):
        raise PilotFailed("; ".join(keeper.failed))
    shape = {"micro_batch": training.micro_batch, "accumulation": training.accumulation}
    shop.model.train()
    before, steps = fingerprints(bare(shop.model)), 0
    longest = longest_update(shop)
    with keeper.gate("first update", **shape, longest=_longest(shop.splits["train"], longest)) as facts:
        if training.batching == "packed":
            facts["packing_difference"] = _packing_difference(shop, longest[: training.micro_batch])
        steps += _one_update(shop, longest, facts)
    updates, taken = update_examples(settings), 0
    if keeper.can_try("steady update"):
        with keeper.gate("steady update", **shape, updates=STEADY_UPDATES) as facts:
            seconds = []
            for _, examples in zip(range(STEADY_UPDATES), updates, strict=False):
                with Meter(shop.accelerator.device) as meter:
                    steps += _one_update(shop, examples, facts)
                seconds.append(meter.seconds)
            taken = len(seconds)
            facts.update(
                seconds_per_update=statistics.median(seconds), seconds_low=min(seconds), seconds_high=max(seconds)
            )
    if keeper.can_try("parameters moved"):
        with keeper.gate("parameters moved") as facts:
            facts.update(check_moved(before, bare(shop.model), steps))
    if keeper.can_try("evaluation"):
        batches = by_length(shop.splits["validation"], settings.evaluation.batch_size)
        widest = int(shop.splits["validation"].lengths.max())
        with keeper.gate("evaluation", batch_size=settings.evaluation.batch_size, longest=widest) as facts:
            _timed_evaluation(shop, batches, facts)
    if keeper.can_try("checkpoint"):
        with keeper.gate("checkpoint") as facts:
            state = {"schedule": schedule_state(shop.schedule)}
            with Meter(shop.accelerator.device) as meter:
                _, size = save_checkpoint(
                    files.run.checkpoints, taken, shop.accelerator, shop.model, shop.optimizer, state, 1
                )
            facts.update(bytes=size, seconds=meter.seconds)
            _go_on(shop, files, taken)
    if keeper.can_try("tiny subset"):
        with keeper.gate("tiny subset") as facts:
            learn_tiny(shop, facts)
    if keeper.failed:
        raise PilotFailed("; ".join(keeper.failed))


def resume_gates(settings: RunSettings, campaign: CampaignFiles, files: GateFiles) -> None:
    """In a new process: the checkpoint goes on as if nothing had happened (C1), the artefact is written, the disk is large enough.

    Raises `PilotFailed`, `GateFailed`.
    """
    keeper = Gatekeeper(files, torch.device(settings.machine.backend), gate_limit(settings, campaign))
    shop: Workshop | None = None
    with keeper.gate("resume", updates=RESUMED_UPDATES) as facts:
        shop = set_up(settings, campaign)
        _resume(shop, files, facts)
    if shop is None:
        keeper.skip("export", "resume")
        raise PilotFailed("; ".join(keeper.failed))
    artefact = files.artefact
    if keeper.can_try("export"):
        with keeper.gate("export") as facts:
            if shop.accelerator.is_main_process:
                load_weights(last_checkpoint(files.run), shop.model)
                shutil.rmtree(artefact, ignore_errors=True)
                write_artefact(settings, shop, files.root, artefact)
                facts["bytes"] = sum(file.stat().st_size for file in artefact.rglob("*") if file.is_file())
    if keeper.can_try("disk"):
        with keeper.gate("disk") as facts:
            if shop.accelerator.is_main_process:
                _check_disk(settings, campaign, files, facts)
    if keeper.failed:
        raise PilotFailed("; ".join(keeper.failed))


def reload_gate(settings: RunSettings, campaign: CampaignFiles, files: GateFiles) -> None:
    """In a new process: the artefact is loaded without anything of the run and answers the control inputs alike (C3).

    What the pilot wrote besides its record is removed when it passes. Raises `PilotFailed`.
    """
    keeper = Gatekeeper(files, torch.device(settings.machine.backend), gate_limit(settings, campaign))
    with keeper.gate("reload", inputs=len(settings.evaluation.control_inputs)) as facts:
        agreement = verify(settings, campaign, files.artefact)
        facts.update(difference=agreement.difference, tolerance=agreement.tolerance)
    if keeper.failed:
        raise PilotFailed("; ".join(keeper.failed))
    shutil.rmtree(files.artefact, ignore_errors=True)
    shutil.rmtree(files.run.checkpoints, ignore_errors=True)


def _check_data(settings: RunSettings, campaign: CampaignFiles) -> dict[str, Any]:
    """The prepared data is what was prepared, and encodes as the plan wants it."""
    version = campaign.data_version(settings.data.hash)
    if not is_intact(campaign.manifest(settings.data.hash)):
        raise GateFailed(
            f"{version} is not what its manifest describes; take data/current.json away and run again to prepare it anew"
        )
    base = find_base(settings.model, campaign.root, weights=False)
    encoder = make_encoder(
        settings.hypothesis.task, settings.data.labels, settings.training, settings.evaluation, base.directory
    )
    splits = encode_splits(version, encoder).splits
    train = splits["train"]
    return {
        **{f"{name}_examples": len(split) for name, split in splits.items()},
        "longest": int(train.whole_lengths.max()),
        "targets": int(train.targets.sum()),
    }


def longest_update(shop: Workshop) -> list[int]:
    """The examples of that update of the first epoch that has the largest micro-batch: if it does not fit, that shows at once."""
    settings, kept = shop.settings, shop.splits["train"].lengths
    training = settings.training

    def largest(examples: list[int]) -> int:
        chosen = longest_first(examples, kept) if training.batching == "length-grouped" else examples
        return max(_tokens(kept[part], training.batching) for part in micro_batches(chosen, training.micro_batch))

    per_epoch = -(-len(kept) // settings.examples_per_update)
    return max(islice(update_examples(settings), per_epoch), key=largest)


def _tokens(lengths: NDArray[np.int32], batching: str) -> int:
    """Tokens computed for one micro-batch."""
    return int(lengths.sum()) if batching == "packed" else int(lengths.max()) * len(lengths)


def _longest(split: EncodedSplit, examples: list[int]) -> int:
    return int(split.lengths[examples].max())


def _go_on(shop: Workshop, files: GateFiles, taken: int) -> None:
    """Take the updates behind the checkpoint and keep what they were, for a new process to compare."""
    updates = list(islice(update_examples(shop.settings, taken), RESUMED_UPDATES))
    went = [_seen(shop, examples) for examples in updates]
    if shop.accelerator.is_main_process:
        replace_json(files.continued, {"schema": 1, "from": taken, "updates": went})


def _resume(shop: Workshop, files: GateFiles, facts: dict[str, Any]) -> None:
    complete, broken = checkpoints(files.run.checkpoints)
    if not complete:
        raise ValueError("there is no complete checkpoint" + "".join(f"; {sentence}" for sentence in broken))
    kept = read_json(files.continued)
    state = load_checkpoint(complete[-1].path, shop.accelerator, shop.model, shop.optimizer)
    restore_schedule(shop.schedule, state["schedule"])
    shop.model.train()
    updates = list(islice(update_examples(shop.settings, complete[-1].update), RESUMED_UPDATES))
    again = [_seen(shop, examples) for examples in updates]
    if not again:
        facts["note"] = "the plan has no update behind the checkpoint to compare"
        return
    allowed, worst = RESUME_TOLERANCE[shop.accelerator.device.type], 0.0
    for number, (before, after) in enumerate(zip(kept["updates"], again, strict=False), complete[-1].update + 1):
        for name in ("lr", "loss", "grad_norm"):
            difference = abs(after[name] - before[name]) / max(abs(before[name]), 1e-12)
            worst = max(worst, difference)
            if difference > allowed:
                raise ValueError(
                    f"update {number} has {name} = {after[name]!r} after a resume and {before[name]!r} without one, so the run does "
                    "not go on where it was; what differs between two processes here must be found first"
                )
    if len(kept["updates"]) != len(again):
        raise ValueError(f"{len(again)} updates follow after a resume and {len(kept['updates'])} without one")
    facts.update(updates=len(again), difference=worst)


def _seen(shop: Workshop, examples: list[int]) -> dict[str, float]:
    """Take an update; its learning rate, loss and gradient norm."""
    rate = float(shop.schedule.get_last_lr()[0])
    update = shop.update(examples)
    return {"lr": rate, "loss": update.loss, "grad_norm": update.grad_norm}


def _check_disk(settings: RunSettings, campaign: CampaignFiles, files: GateFiles, facts: dict[str, Any]) -> None:
    """Room for the checkpoints of every run, one being written, and the artefact. Raises ValueError."""
    checkpoint = sum(file.stat().st_size for file in last_checkpoint(files.run).iterdir())
    artefact = sum(file.stat().st_size for file in files.artefact.rglob("*") if file.is_file())
    keep = settings.training.keep_checkpoints + 1  # the best so far
    runs = len(planned_runs(load_plan(campaign.root)))
    needed = (runs * keep + settings.machine.processes) * checkpoint + artefact
    campaign.runs.mkdir(parents=True, exist_ok=True)
    there = sum(file.stat().st_size for file in campaign.runs.glob("*/checkpoints/*/*") if file.is_file())
    free = shutil.disk_usage(campaign.root).free
    facts.update(runs=runs, checkpoint_bytes=checkpoint, needed=needed, free=free)
    if free + there < needed:
        raise ValueError(
            f"the disk of {campaign.root} has {free / 2**30:.2f} GiB free, {runs} runs that keep {keep} checkpoints each and the "
            f"artefact need {needed / 2**30:.2f} GiB; free some space, lower training.keep_checkpoints, or move the campaign"
        )


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
