"""Evaluation of one split: the same for every run, in batches of similar length, rows back in the split's order.

Batches are dealt to the processes in turn; each writes the rows of its own to a part of the file as they come, and the first
one puts them in order. So the answers do not depend on the number of processes, and no more than a batch is in memory (K12).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from numpy.typing import NDArray
from torch import nn

from ftui.data.encode import EncodedSplit
from ftui.record.lines import Row, encode, header, number
from ftui.record.rows import PREDICTIONS, PREDICTIONS_SCHEMA
from ftui.train.process import bare
from ftui.train.task import Task


@dataclass(frozen=True)
class Evaluated:
    """Metrics of the predictions in `path`, and the seconds both took."""

    path: Path
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
def evaluate(
    accelerator: Accelerator, model: nn.Module, task: Task, split: EncodedSplit, batch_size: int, path: Path
) -> Evaluated:
    """Evaluate the whole split into the prediction file `path`, whole or not at all. All processes call it and return the same.

    Draws no random number, so that training goes on as if nothing had happened.
    """
    began = time.perf_counter()
    alone = bare(model)
    _share_buffers(accelerator, alone)
    training = alone.training
    alone.eval()
    rank, world = accelerator.process_index, accelerator.num_processes
    batches = by_length(split, batch_size)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _part(path, rank).open("wb") as file:
        for indices in batches[rank::world]:
            batch = task.collate([split.row(i) for i in indices]).to(accelerator.device)
            with accelerator.autocast():
                answers = task.predict(alone, batch)
            for _, row in zip(indices, answers, strict=True):
                file.write(encode(row))
    alone.train(training)
    accelerator.wait_for_everyone()
    metrics: list[dict[str, Any]] = [{}]
    if accelerator.is_main_process:
        parts = [(_part(path, r), list(chain(*batches[r::world]))) for r in range(world)]
        metrics = [task.score(_in_order(path, parts, len(split)))]
    if world > 1:
        metrics = broadcast_object_list(metrics)
    return Evaluated(path, metrics[0], time.perf_counter() - began)


class PredictionRows(Sequence[Row]):
    """The rows of a prediction file, read from the disk one by one whenever they are asked for."""

    def __init__(self, path: Path, starts: NDArray[np.int64]) -> None:
        self._path, self._starts = path, starts

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Row]:
        with self._path.open("rb") as file:
            next(file)
            for line in file:
                yield _row(line)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        with self._path.open("rb") as file:
            file.seek(int(self._starts[index]))
            return _row(file.readline())


def _row(line: bytes) -> Row:
    row: Row = json.loads(line)
    return row | {name: number(row[name]) for name in ("loss", "probability") if name in row}


def _part(path: Path, rank: int) -> Path:
    return path.with_name(f"{path.name}.part-{rank}")


def _in_order(path: Path, parts: list[tuple[Path, list[int]]], count: int) -> PredictionRows:
    """Put the rows of all parts into `path`, in the split's order. Each part comes with the indices of its rows."""
    where = np.full((count, 3), -1, dtype=np.int64)  # part, offset and length of every row
    for number_of_part, (part, indices) in enumerate(parts):
        offset = 0
        with part.open("rb") as file:
            for index, line in zip(indices, file, strict=True):
                where[index] = number_of_part, offset, len(line)
                offset += len(line)
    aside = path.with_name(path.name + ".part")
    first = encode(header(PREDICTIONS, PREDICTIONS_SCHEMA))
    files = [part.open("rb") for part, _ in parts]
    try:
        with aside.open("wb") as file:
            file.write(first)
            for part_number, offset, length in where.tolist():
                files[part_number].seek(offset)
                file.write(files[part_number].read(length))
            file.flush()
            os.fsync(file.fileno())
    finally:
        for opened in files:
            opened.close()
    aside.replace(path)
    for part, _ in parts:
        part.unlink()
    lengths = where[:, 2]
    return PredictionRows(path, len(first) + np.cumsum(lengths) - lengths)


def _share_buffers(accelerator: Accelerator, model: nn.Module) -> None:
    """Give every process the first one's running statistics: they are what a checkpoint keeps."""
    if accelerator.num_processes > 1:
        for buffer in model.buffers():
            if buffer.is_floating_point():
                torch.distributed.broadcast(buffer, 0)
