"""One run from its first update, or its last checkpoint, to its end. Read it from top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from transformers import get_scheduler

from ftui.data.base import find_base
from ftui.data.encode import EncodedSplit, encode_splits
from ftui.data.encoders import make_encoder
from ftui.data.order import longest_first, micro_batches, share, update_examples
from ftui.plan.settings import RunSettings
from ftui.record.journal import stamp
from ftui.record.layout import CampaignFiles, RunFiles
from ftui.record.lines import Row
from ftui.record.series import cut_series_after, read_series, series_writer
from ftui.train.checkpoint import Found, checkpoints, load_checkpoint, require_space, save_checkpoint, sweep
from ftui.train.evaluate import Evaluated, evaluate
from ftui.train.memory import peak_memory
from ftui.train.model import Prepared, prepare_model
from ftui.train.process import StopSignal, agreed, make_accelerator, part_streams
from ftui.train.rules import Ending, StopRules
from ftui.train.task import Batch, Task
from ftui.train.tasks import make_task
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
        """The micro-batches of an update that this process computes, collated."""
        training = self.settings.training
        if training.batching == "length-grouped":
            examples = longest_first(examples, self.splits["train"].lengths)
        parts = micro_batches(examples, training.micro_batch)
        own = share(parts, self.accelerator.process_index, self.accelerator.num_processes)
        return [self.collate(part) for part in own]

    def collate(self, examples: list[int]) -> Batch:
        train = self.splits["train"]
        rows = [train.row(i) for i in examples]
        return self.task.pack(rows) if self.settings.training.batching == "packed" else self.task.collate(rows)

    def update(self, examples: list[int]) -> Update:
        batches = self.batches(examples)
        filler = None if batches else self.collate(examples[:1])
        limit = self.settings.training.max_grad_norm
        update = take_update(self.accelerator, self.model, self.optimizer, self.task, batches, limit, filler)
        self.schedule.step()
        return update

    def evaluate(self, split: str, path: Path) -> Evaluated:
        """Evaluate a split into the prediction file `path`."""
        size = self.settings.evaluation.batch_size
        return evaluate(self.accelerator, self.model, self.task, self.splits[split], size, path)


def set_up(settings: RunSettings, campaign: CampaignFiles, *, alone: bool = False) -> Workshop:
    """Load everything a run needs, in an order that makes it a function of the settings: seed first, then parameters.

    `alone`: in one process, whatever the plan's number.
    """
    accelerator = make_accelerator(settings, alone=alone)
    base = find_base(settings.model, campaign.root)
    training = settings.training
    task = make_task(settings, campaign, base.directory)
    version = campaign.data_version(settings.data.hash)
    labels, about = settings.data.labels, settings.evaluation
    encoder = make_encoder(settings.hypothesis.task, labels, training, about, base.directory)
    splits = encode_splits(version, encoder).splits
    prepared = prepare_model(
        task,
        base,
        settings.method,
        activation_checkpointing=training.activation_checkpointing,
        precision=training.precision,
        device=accelerator.device,
    )
    optimizer = torch.optim.AdamW(
        list(prepared.trainable.values()), lr=training.learning_rate, weight_decay=training.weight_decay
    )
    # The schedule is not given to accelerate: its wrapper would step once per process.
    schedule = get_scheduler(
        training.schedule, optimizer, num_warmup_steps=training.warmup, num_training_steps=max(1, settings.updates)
    )
    model, optimizer = accelerator.prepare(prepared.model, optimizer)
    part_streams(accelerator, settings.seed)
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
        progress.last = shop.evaluate("validation", files.validation_predictions(progress.update))
        return Ending("completed", "its last update had been reached before"), progress
    require_space(files.checkpoints, shop.model, training.keep_checkpoints)
    with _recorder(shop, files) as record:

        def validate() -> Ending | None:
            memory = peak_memory(shop.accelerator.device)
            path = files.validation_predictions(progress.update)
            progress.last = result = shop.evaluate("validation", path)
            if shop.accelerator.is_main_process:
                shown = "  ".join(f"{name} {value:.4f}" for name, value in result.numbers().items())
                print(f"update {progress.update:,}: validation  {shown}  ({result.seconds:.1f} s)", flush=True)
            record(
                {
                    "k": "validation",
                    "update": progress.update,
                    "metrics": result.numbers(),
                    "memory": memory,
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
                {"schedule": schedule_state(shop.schedule), "rules": rules.state()},
                training.keep_checkpoints,
                rules.best_update,
            )
            seconds = round(time.perf_counter() - began, 4)
            record({"k": "checkpoint", "update": progress.update, "bytes": size, "seconds": seconds, "at": stamp()})

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
            record(_series_row(progress.update, update, rate, time.perf_counter() - began))
            ending = rules.after_update(progress.update, update)
            if ending is not None and ending.status == "diverged":
                return ending, progress
            finished = progress.update == settings.updates
            asked, late = agreed(shop.accelerator, stop.requested, rules.hours_are_up())
            if late and not finished:
                limit = f"training.stop.max_hours = {training.stop.max_hours:g}"
                ending = Ending("stopped", f"{limit} was reached at update {progress.update}")
            elif asked and not finished:
                ending = Ending("stopped", f"asked to stop after update {progress.update}")
            validation_due = finished or progress.update % training.validate_every == 0
            checkpoint_due = finished or ending is not None or progress.update % training.checkpoint_every == 0
            if (validation_due or checkpoint_due) and not _all_finite(shop.model):
                return Ending("diverged", f"parameters are no longer finite after update {progress.update}"), progress
            if validation_due:
                ending = validate() or ending
            if checkpoint_due or ending is not None or rules.best_update == progress.update:
                checkpoint()
            if ending is not None:
                return ending, progress
    return Ending("completed", ""), progress


def _all_finite(model: nn.Module) -> bool:
    """Whether the trained parameters are numbers: none that is not ever enters a checkpoint that a run could be resumed from."""
    return all(bool(torch.isfinite(p).all()) for p in model.parameters() if p.requires_grad)


@contextmanager
def _recorder(shop: Workshop, files: RunFiles) -> Iterator[Callable[[Row], None]]:
    """What writes a row of the series: the first process does, the others say nothing."""
    if not shop.accelerator.is_main_process:
        yield lambda row: None
        return
    with series_writer(files.series) as series:
        yield series.write


def _resume(shop: Workshop, files: RunFiles, rules: StopRules) -> Progress:
    """Take up the last complete checkpoint, if there is one, and cut the series back to it."""
    complete, notes = checkpoints(files.checkpoints)
    progress = Progress(notes=notes)
    if complete:
        newest = complete[-1]
        state = load_checkpoint(newest.path, shop.accelerator, shop.model, shop.optimizer)
        restore_schedule(shop.schedule, state["schedule"])
        rules.restore(state["rules"])
        progress.update = progress.resumed_from = newest.update
    if shop.accelerator.is_main_process:
        sweep(files.checkpoints)
        cut_series_after(files.series, progress.update if complete else -1)
        if complete:
            _complete_series(files, complete[-1])
        for path in files.predictions.glob("validation-*") if files.predictions.is_dir() else []:
            whole = path.suffix == ".jsonl"
            if not (whole and complete and int(path.stem.removeprefix("validation-")) <= progress.update):
                path.unlink()
    shop.accelerator.wait_for_everyone()
    return progress


def _complete_series(files: RunFiles, taken_up: Found) -> None:
    """Write the row of the checkpoint that is taken up, where a kill came between the two."""
    rows = read_series(files.series)
    if not any(row["k"] == "checkpoint" and row["update"] == taken_up.update for row in rows):
        size = sum(file.stat().st_size for file in taken_up.path.iterdir())
        with series_writer(files.series) as series:
            series.write({"k": "checkpoint", "update": taken_up.update, "bytes": size, "seconds": None, "at": stamp()})


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
        "skipped": update.skipped,
        "seconds": round(seconds, 4),
        "tokens_per_second": round(update.tokens / seconds, 1),
        "at": stamp(),
    }


def schedule_state(schedule: torch.optim.lr_scheduler.LRScheduler) -> dict[str, Any]:
    return {name: schedule.state_dict()[name] for name in ("last_epoch", "_step_count", "_last_lr", "base_lrs")}


def restore_schedule(schedule: torch.optim.lr_scheduler.LRScheduler, state: dict[str, Any]) -> None:
    schedule.load_state_dict({**schedule.state_dict(), **state})


def last_checkpoint(files: RunFiles) -> Path:
    """The newest complete checkpoint of a run. Raises FileNotFoundError."""
    complete, broken = checkpoints(files.checkpoints)
    if not complete:
        raise FileNotFoundError(f"{files.root.name} has no complete checkpoint" + "".join(f"; {b}" for b in broken))
    return complete[-1].path
