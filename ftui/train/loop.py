"""One run from its first update, or its last checkpoint, to its end. Read it from top to bottom."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from transformers import get_scheduler

from ftui.data.base import find_base
from ftui.data.encode import EncodedSplit, encode_splits
from ftui.data.tokenizer import load_tokenizer
from ftui.plan.settings import RunSettings
from ftui.record.journal import stamp
from ftui.record.layout import CampaignFiles, RunFiles
from ftui.record.series import cut_series_after, series_writer
from ftui.train.checkpoint import checkpoints, load_checkpoint, save_checkpoint, sweep
from ftui.train.classification import TextClassification
from ftui.train.evaluate import Evaluated, evaluate, write_predictions
from ftui.train.model import Prepared, prepare_model
from ftui.train.order import micro_batches, update_examples
from ftui.train.process import StopSignal, make_accelerator
from ftui.train.rules import Ending, StopRules
from ftui.train.task import Batch, Task
from ftui.train.update import Update, take_update


@dataclass
class Workshop:
    """Everything one process trains or evaluates with."""

    settings: RunSettings
    accelerator: Accelerator
    task: Task
    prepared: Prepared
    splits: dict[str, EncodedSplit]
    model: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler

    def batches(self, examples: list[int]) -> list[Batch]:
        """An update's micro-batches, collated."""
        train = self.splits["train"]
        parts = micro_batches(examples, self.settings.training.micro_batch)
        return [self.task.collate([train.row(i) for i in part]) for part in parts]

    def update(self, examples: list[int]) -> Update:
        limit = self.settings.training.max_grad_norm
        update = take_update(self.accelerator, self.model, self.optimizer, self.task, self.batches(examples), limit)
        self.schedule.step()
        return update

    def evaluate(self, split: str) -> Evaluated:
        size = self.settings.evaluation.batch_size
        return evaluate(self.accelerator, self.model, self.task, self.splits[split], size)


def set_up(settings: RunSettings, campaign: CampaignFiles) -> Workshop:
    """Load everything a run needs, in an order that makes it a function of the settings: seed first, then parameters."""
    accelerator = make_accelerator(settings)
    base = find_base(settings.model, campaign.root)
    tokenizer = load_tokenizer(base.directory)
    training = settings.training
    task = TextClassification(settings.data.labels, tokenizer, training.max_length)
    version = campaign.data_version(settings.data.hash)
    splits = encode_splits(version, settings.data.labels, tokenizer, training).splits
    prepared = prepare_model(task, base, settings.method, activation_checkpointing=training.activation_checkpointing)
    optimizer = torch.optim.AdamW(
        list(prepared.trainable.values()), lr=training.learning_rate, weight_decay=training.weight_decay
    )
    # The schedule is not given to accelerate: its wrapper would step once per process.
    schedule = get_scheduler(
        training.schedule, optimizer, num_warmup_steps=training.warmup, num_training_steps=max(1, settings.updates)
    )
    model, optimizer = accelerator.prepare(prepared.model, optimizer)
    return Workshop(settings, accelerator, task, prepared, splits, model, optimizer, schedule)


@dataclass
class Progress:
    """Where a run stands."""

    update: int = 0
    resumed_from: int | None = None
    last: Evaluated | None = None
    notes: list[str] = field(default_factory=list)


def train(shop: Workshop, files: RunFiles, stop: StopSignal) -> tuple[Ending, Progress]:
    """Train to the end, to a stop rule or to SIGTERM, and return why it ended and where it stands.

    The baseline is a run of no updates: it is validated and its parameters are kept, so that every later comparison is
    against this concrete starting point (H3).
    """
    settings, training = shop.settings, shop.settings.training
    rules = StopRules(training.stop, settings.hypothesis.direction == "higher")
    progress = _resume(shop, files, rules)
    if progress.update >= settings.updates and progress.resumed_from is not None:
        progress.last = shop.evaluate("validation")
        return Ending("completed", "its last update had been reached before"), progress
    with series_writer(files.series) as series:

        def validate() -> Ending | None:
            progress.last = result = shop.evaluate("validation")
            write_predictions(files.validation_predictions(progress.update), result.rows)
            shown = "  ".join(f"{name} {value:.4f}" for name, value in result.numbers().items())
            print(f"update {progress.update:,}: validation  {shown}  ({result.seconds:.1f} s)", flush=True)
            series.write(
                {
                    "k": "validation",
                    "update": progress.update,
                    "metrics": result.numbers(),
                    "seconds": round(result.seconds, 4),
                    "at": stamp(),
                }
            )
            return rules.after_validation(progress.update, result.metrics[settings.hypothesis.metric])

        def checkpoint() -> None:
            began = time.perf_counter()
            _, size = save_checkpoint(
                files.checkpoints,
                progress.update,
                shop.accelerator,
                shop.model,
                shop.optimizer,
                {"schedule": _schedule_state(shop.schedule), "rules": rules.state()},
                training.keep_checkpoints,
            )
            seconds = round(time.perf_counter() - began, 4)
            series.write(
                {"k": "checkpoint", "update": progress.update, "bytes": size, "seconds": seconds, "at": stamp()}
            )

        if settings.updates == 0:
            validate()
            checkpoint()
            return Ending("completed", ""), progress

        shop.model.train()
        for examples in update_examples(settings, progress.update):
            began = time.perf_counter()
            rate = float(shop.schedule.get_last_lr()[0])
            update = shop.update(examples)
            progress.update += 1
            series.write(_series_row(progress.update, update, rate, time.perf_counter() - began))
            ending = rules.after_update(progress.update, update)
            if ending is not None and ending.status == "diverged":
                return ending, progress
            finished = progress.update == settings.updates
            if finished or progress.update % training.validate_every == 0:
                ending = validate() or ending
            if finished or ending or stop.requested or progress.update % training.checkpoint_every == 0:
                checkpoint()
            if ending is not None:
                return ending, progress
            if stop.requested and not finished:
                return Ending("stopped", f"asked to stop after update {progress.update}"), progress
    return Ending("completed", ""), progress


def _resume(shop: Workshop, files: RunFiles, rules: StopRules) -> Progress:
    """Take up the last complete checkpoint, if there is one, and cut the series back to it."""
    sweep(files.checkpoints)
    complete, notes = checkpoints(files.checkpoints)
    progress = Progress(notes=notes)
    if complete:
        newest = complete[-1]
        state = load_checkpoint(newest.path, shop.accelerator, shop.model, shop.optimizer)
        _restore_schedule(shop.schedule, state["schedule"])
        rules.restore(state["rules"])
        progress.update = progress.resumed_from = newest.update
    cut_series_after(files.series, progress.update if complete else -1)
    for path in files.predictions.glob("validation-*.jsonl") if files.predictions.is_dir() else []:
        if int(path.stem.removeprefix("validation-")) > progress.update or not complete:
            path.unlink()
    return progress


def _series_row(number: int, update: Update, rate: float, seconds: float) -> dict[str, Any]:
    return {
        "k": "update",
        "update": number,
        "loss": update.loss,
        "lr": rate,
        "grad_norm": update.grad_norm,
        "examples": update.examples,
        "targets": update.targets,
        "tokens": update.tokens,
        "stepped": update.stepped,
        "seconds": round(seconds, 4),
        "at": stamp(),
    }


def _schedule_state(schedule: torch.optim.lr_scheduler.LRScheduler) -> dict[str, Any]:
    return {name: schedule.state_dict()[name] for name in ("last_epoch", "_step_count", "_last_lr", "base_lrs")}


def _restore_schedule(schedule: torch.optim.lr_scheduler.LRScheduler, state: dict[str, Any]) -> None:
    schedule.load_state_dict({**schedule.state_dict(), **state})


def last_checkpoint(files: RunFiles) -> Path:
    """The newest complete checkpoint of a run. Raises FileNotFoundError."""
    complete, broken = checkpoints(files.checkpoints)
    if not complete:
        raise FileNotFoundError(f"{files.root.name} has no complete checkpoint" + "".join(f"; {b}" for b in broken))
    return complete[-1].path
