"""Checkpoints on a disk that fills up, and which of them stay (K11, K20)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from torch import nn

from ftui.record.layout import RunFiles
from ftui.record.rows import read_outcome
from ftui.record.series import CLOCK_FIELDS, read_series
from ftui.train.checkpoint import CheckpointError, checkpoints, load_checkpoint, require_space, save_checkpoint
from tests.builders.tiny import frozen_run, tiny_campaign
from tests.builders.warm import Warm


class SmallDisk:
    """A file system of its own size under `path`, in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mount(self, kibibytes: int) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        how = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(self.path)]
        if os.geteuid() != 0 or subprocess.run(how, capture_output=True, check=False).returncode:
            pytest.skip("a small file system can only be mounted by root")

    def grow(self, kibibytes: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={kibibytes}k", str(self.path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    small = SmallDisk(tmp_path / "c" / "runs" / "r002-control-s7" / "checkpoints")
    yield small
    subprocess.run(["umount", str(small.path)], capture_output=True, check=False)


def curve(run: RunFiles) -> list[dict[str, object]]:
    rows = read_series(run.series)
    return [{k: v for k, v in row.items() if k not in (*CLOCK_FIELDS, "bytes")} for row in rows]


def test_a_disk_that_fills_in_the_middle_of_a_checkpoint_costs_nothing_but_that_checkpoint(
    model: Path, warm: Warm, tmp_path: Path, disk: SmallDisk
) -> None:
    undisturbed, _ = frozen_run(tiny_campaign(tmp_path / "undisturbed", model))
    assert warm.train(undisturbed.root) == [0]
    run, _ = frozen_run(tiny_campaign(tmp_path / "c", model))
    disk.mount(128)  # two checkpoints of 48 KiB in blocks, and half of one
    assert warm.train(run.root) == [70]
    outcome = read_outcome(run.outcome)
    assert outcome is not None and outcome.status == "failed"
    assert str(outcome.cause).startswith("the checkpoint after update 8 could not be written: the disk is full (")
    complete, broken = checkpoints(run.checkpoints)
    assert ([found.update for found in complete], broken) == ([4, 6], [])
    assert not list(run.checkpoints.glob("tmp-*"))
    disk.grow(1024)
    assert warm.train(run.root) == [0], run.log.read_text()
    assert curve(run) == curve(undisturbed)


def test_space_for_all_checkpoints_is_asked_for_before_the_first_update(
    model: Path, warm: Warm, tmp_path: Path, disk: SmallDisk
) -> None:
    run, _ = frozen_run(tiny_campaign(tmp_path / "c", model))
    disk.mount(64)
    assert warm.train(run.root) == [70]
    outcome = read_outcome(run.outcome)
    # LoRA 1,024 + pooler 1,056 + classifier 99 parameters of 4 bytes and two moments: 26 KB; two kept, the best, one being written
    assert outcome is not None and "has 0.1 MiB free, but 4 checkpoints of about 0.0 MiB need 0.1 MiB" in str(
        outcome.cause
    )
    assert read_series(run.series) == []


def test_the_last_ones_and_the_best_stay(tmp_path: Path) -> None:
    accelerator, model = Accelerator(cpu=True), nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    for update in range(1, 8):
        save_checkpoint(tmp_path, update, accelerator, model, optimizer, {}, keep=2, best=3 if update >= 3 else 1)
    assert [found.update for found in checkpoints(tmp_path)[0]] == [3, 6, 7]


def test_parameters_that_are_no_number_read_back_as_they_are(tmp_path: Path) -> None:
    accelerator, model = Accelerator(cpu=True), nn.Linear(2, 2)
    with torch.no_grad():
        model.bias[0] = float("nan")
    path, _ = save_checkpoint(tmp_path, 1, accelerator, model, None, {}, keep=1)
    assert checkpoints(tmp_path)[0][0].path == path


def test_the_gradient_scaler_is_part_of_a_checkpoint(tmp_path: Path) -> None:
    accelerator, model = Accelerator(cpu=True), nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    path, _ = save_checkpoint(tmp_path, 1, accelerator, model, optimizer, {}, keep=1)
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    load_checkpoint(path, accelerator, model, optimizer)
    assert accelerator.scaler.get_scale() == 8.0
    accelerator.scaler = None


def test_too_little_space_is_an_error_in_words(tmp_path: Path) -> None:
    with torch.device("meta"):
        huge = nn.Linear(2**22, 2**22, bias=False)
    with pytest.raises(
        CheckpointError, match=r"4 checkpoints of about 196608.00 GiB need 786432.00 GiB; free some space"
    ):
        require_space(tmp_path / "checkpoints", huge, keep=2)


def test_a_frozen_output_layer_that_is_tied_to_the_embeddings_is_not_in_the_checkpoint(
    warm: Warm, tmp_path: Path
) -> None:
    """Its second name would otherwise bring the whole vocabulary into every checkpoint of an adapter."""
    from safetensors import safe_open

    from tests.builders.writing import tiny_writer, writing_campaign

    files = writing_campaign(tmp_path / "c", tiny_writer(tmp_path / "m"), "generation", training__amount=6)
    run, _ = frozen_run(files)
    assert warm.train(run.root) == [0], run.log.read_text()
    (path, *_) = [found.path for found in checkpoints(run.checkpoints)[0]]
    with safe_open(path / "model.safetensors", "pt") as file:
        assert file.keys() and all("lora_" in name for name in file.keys())  # noqa: SIM118  # no mapping
