"""Evaluation of one split: the same for every run, in batches of similar length, rows back in the split's order."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn

from ftui.data.encode import EncodedSplit
from ftui.record.lines import Row
from ftui.record.rows import prediction_writer
from ftui.train.task import Task


@dataclass(frozen=True)
class Evaluated:
    """Predictions in the split's order, their metrics, and the seconds both took."""

    rows: list[Row]
    metrics: dict[str, Any]
    seconds: float

    def numbers(self) -> dict[str, float]:
        """The metrics that are single numbers: what a curve shows."""
        return {name: value for name, value in self.metrics.items() if isinstance(value, float)}


def by_length(split: EncodedSplit, batch_size: int) -> list[list[int]]:
    """Indices in batches of similar length, longest first: if it does not fit into memory, that shows at once."""
    order = np.argsort(-split.lengths, kind="stable")
    return [[int(i) for i in order[start : start + batch_size]] for start in range(0, len(order), batch_size)]


@torch.no_grad()
def evaluate(accelerator: Accelerator, model: nn.Module, task: Task, split: EncodedSplit, batch_size: int) -> Evaluated:
    """Evaluate the whole split. Draws no random number, so that training goes on as if nothing had happened."""
    began = time.perf_counter()
    training = model.training
    model.eval()
    rows: list[Row | None] = [None] * len(split)
    for indices in by_length(split, batch_size):
        batch = task.collate([split.row(i) for i in indices]).to(accelerator.device)
        with accelerator.autocast():
            answers = task.predict(model, batch)
        for index, row in zip(indices, answers, strict=True):
            rows[index] = row
    model.train(training)
    complete = [row for row in rows if row is not None]
    return Evaluated(complete, task.score(complete), time.perf_counter() - began)


def write_predictions(path: Path, rows: list[Row]) -> None:
    """Write all rows or nothing: aside, then renamed."""
    aside = path.with_name(path.name + ".part")
    aside.unlink(missing_ok=True)
    with prediction_writer(aside) as writer:
        for row in rows:
            writer.write(row)
    aside.replace(path)
