"""Checkpoints that are complete or absent, and resume exactly (C1, C2, C5).

    checkpoints/step-00000100/
        model.safetensors        trained parameters and persistent buffers, by name; the frozen base is not repeated
        optimizer.safetensors    optimizer state, `parameter|entry`
        rng-0.safetensors        generator states of each rank
        state.json               progress, schedule, stop rules, gradient scaler
        manifest.json            size and SHA-256 of every file; written last

Written into `tmp-…`, read again and compared, synced, renamed, and only then are older ones pruned; what a killed process left
half-written is swept at the next start. No pickle anywhere.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

from ftui.record.files import read_json, replace_json, sha256_file, sync_directory, sync_tree
from ftui.record.text import size_words
from ftui.train.process import PeerFault, agreed, bare
from ftui.train.quantised import without_packing

CHECKPOINT_SCHEMA = 1
_NAME = re.compile(r"^step-(\d{8})$")
_SEPARATOR = "|"


class CheckpointError(Exception):
    """A checkpoint could not be written or does not fit the run."""


@dataclass(frozen=True)
class Found:
    """A complete checkpoint."""

    path: Path
    update: int


def checkpoints(folder: Path) -> tuple[list[Found], list[str]]:
    """Complete checkpoints, oldest first, and a sentence for each that is not complete (K11)."""
    complete: list[Found] = []
    broken: list[str] = []
    for path in sorted(folder.glob("step-*")) if folder.is_dir() else []:
        match = _NAME.match(path.name)
        if match is None:
            continue
        problem = _incomplete(path)
        if problem is None:
            complete.append(Found(path, int(match[1])))
        else:
            broken.append(f"{path.name} is not used: {problem}")
    return complete, broken


def _incomplete(path: Path) -> str | None:
    try:
        manifest = read_json(path / "manifest.json")
        for name, entry in manifest["files"].items():
            file = path / name
            if not file.is_file():
                return f"{name} is missing"
            if file.stat().st_size != entry["bytes"]:
                return f"{name} has {file.stat().st_size} bytes instead of {entry['bytes']}"
            if sha256_file(file) != entry["sha256"]:
                return f"{name} is not what was written"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"its manifest cannot be read ({error})"
    return None


def sweep(folder: Path) -> None:
    """Remove what a killed process left half-written."""
    for path in folder.glob("tmp-*") if folder.is_dir() else []:
        shutil.rmtree(path, ignore_errors=True)


def require_space(folder: Path, model: nn.Module, keep: int) -> None:
    """Raise `CheckpointError` when the disk cannot hold the checkpoints of a run: those kept, the best, and one being written (K20)."""
    trained = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
    one = 3 * trained + sum(b.numel() * b.element_size() for b in model.buffers())  # AdamW keeps two moments
    needed = one * (keep + 2)
    folder.mkdir(parents=True, exist_ok=True)
    there = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    free = shutil.disk_usage(folder).free
    if free + there < needed:
        raise CheckpointError(
            f"the disk of {folder} has {size_words(free)} free, but {keep + 2} checkpoints of about {size_words(one)} need "
            f"{size_words(needed)}; free some space, lower training.keep_checkpoints, or move the campaign to a larger disk"
        )


def save_checkpoint(
    folder: Path,
    update: int,
    accelerator: Accelerator,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    state: Mapping[str, Any],
    keep: int,
    best: int | None = None,
) -> tuple[Path, int]:
    """Write the state after `update` updates; returns its folder and size in bytes. All processes call it.

    The last `keep` checkpoints stay, and the one after update `best`. Raises `CheckpointError` in words when the disk is full
    or a file does not read back as it was written; older checkpoints stay.
    """
    final = folder / f"step-{update:08d}"
    aside = folder / f"tmp-{update:08d}"
    options = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=True)
    weights = without_packing(model, _without_frozen(model, get_model_state_dict(model, options=options)))
    moments = None if optimizer is None else get_optimizer_state_dict(model, _plain(optimizer), options=options)

    def make_room() -> None:
        if accelerator.is_main_process:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)

    def write_own() -> None:
        _write(_generators(accelerator), aside / f"rng-{accelerator.process_index}.safetensors")

    def write_shared() -> None:
        if accelerator.is_main_process:
            _write(_tensors(weights), aside / "model.safetensors")
            content = {"schema": CHECKPOINT_SCHEMA, "update": update, "processes": accelerator.num_processes, **state}
            if moments is not None:
                _write(_flat(moments["state"]), aside / "optimizer.safetensors")
                content["param_groups"] = moments["param_groups"]
            if accelerator.scaler is not None:
                content["scaler"] = accelerator.scaler.state_dict()
            replace_json(aside / "state.json", content)
            _seal(aside)
            shutil.rmtree(final, ignore_errors=True)
            aside.rename(final)
            sync_directory(folder)

    for step in (make_room, write_own, write_shared):
        problem = _problem_of(step, folder)
        if agreed(accelerator, problem is not None)[0]:
            if accelerator.is_main_process:
                shutil.rmtree(aside, ignore_errors=True)
            if problem is None:
                raise PeerFault(f"another process could not write its part of the checkpoint after update {update}")
            raise CheckpointError(f"the checkpoint after update {update} could not be written: {problem}")
    size = sum(file.stat().st_size for file in final.iterdir())
    if accelerator.is_main_process:
        complete, _ = checkpoints(folder)
        for old in complete[:-keep]:
            if old.update != best:
                shutil.rmtree(old.path)
    return final, size


def _without_frozen(model: nn.Module, weights: dict[str, Any]) -> dict[str, Any]:
    """What is trained, and buffers. torch leaves a frozen parameter out under its first name only: an output layer that is tied to
    the embeddings would be written whole into every checkpoint under its second."""
    frozen = {name for name, p in bare(model).named_parameters(remove_duplicate=False) if not p.requires_grad}
    return {name: tensor for name, tensor in weights.items() if name not in frozen}


FULL_BYTES = 2**20
"""A disk with less free when a write fails is called full. Libraries hide the reason behind errors of their own."""


def _problem_of(step: Callable[[], None], folder: Path) -> str | None:
    """Take a step; why it failed, None when it did not."""
    try:
        step()
    except Exception as error:
        free = shutil.disk_usage(folder if folder.exists() else folder.parent).free
        return f"the disk is full ({size_words(free)} free)" if free < FULL_BYTES or _is_full(error) else str(error)
    return None


def _is_full(error: BaseException) -> bool:
    return getattr(error, "errno", None) == errno.ENOSPC or f"os error {errno.ENOSPC}" in str(error)


def _write(tensors: dict[str, Tensor], path: Path) -> None:
    """Write and read again: what a file system swallowed is found now, not at the resume (K14). Raises `CheckpointError`."""
    save_file(tensors, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    with safe_open(path, "pt") as written:
        if set(written.keys()) != tensors.keys() or not all(
            _same(written.get_tensor(name), tensor) for name, tensor in tensors.items()
        ):
            raise CheckpointError(f"{path.name} does not read back as it was written")


def _same(one: Tensor, other: Tensor) -> bool:
    """Equal to the bit, values that are no number included."""
    same_form = one.shape == other.shape and one.dtype == other.dtype
    return same_form and torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))


def load_weights(path: Path, model: nn.Module) -> None:
    """Put a checkpoint's parameters into a model of the same structure. Raises `CheckpointError` on any mismatch."""
    model = bare(model)
    tensors: dict[str, Any] = load_file(path / "model.safetensors")
    own = {name for name, p in model.named_parameters() if p.requires_grad}
    missing = sorted(own - tensors.keys())
    if missing:
        raise CheckpointError(f"{path.name} lacks {', '.join(missing[:5])}: it belongs to another method or model")
    options = StateDictOptions(full_state_dict=True, strict=False)
    answer = set_model_state_dict(model, tensors, options=options)
    if answer.unexpected_keys:
        raise CheckpointError(f"{path.name} holds {', '.join(answer.unexpected_keys[:5])}, which this model has not")


def load_checkpoint(
    path: Path, accelerator: Accelerator, model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """Restore parameters, optimizer and this rank's generators; returns `state.json`. Raises `CheckpointError`."""
    state: dict[str, Any] = read_json(path / "state.json")
    if state["processes"] != accelerator.num_processes:
        raise CheckpointError(
            f"{path.name} was written by {state['processes']} processes and cannot be resumed by {accelerator.num_processes}"
        )
    load_weights(path, model)
    options = StateDictOptions(full_state_dict=True, strict=False)
    moments = {"state": _nested(load_file(path / "optimizer.safetensors")), "param_groups": state["param_groups"]}
    set_optimizer_state_dict(model, _plain(optimizer), moments, options=options)
    if accelerator.scaler is not None:
        accelerator.scaler.load_state_dict(state["scaler"])
    _restore_generators(load_file(path / f"rng-{accelerator.process_index}.safetensors"), accelerator)
    return state


def _plain(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer inside accelerate's wrapper, if it is wrapped."""
    inner: torch.optim.Optimizer = getattr(optimizer, "optimizer", optimizer)
    return inner


def _seal(folder: Path) -> None:
    """Write the manifest and make everything durable."""
    files = {f.name: {"bytes": f.stat().st_size, "sha256": sha256_file(f)} for f in sorted(folder.iterdir())}
    replace_json(folder / "manifest.json", {"schema": CHECKPOINT_SCHEMA, "files": files})
    sync_tree(folder)


def _tensors(state: Mapping[str, Any]) -> dict[str, Tensor]:
    # Cloned: safetensors refuses tensors that share memory.
    return {name: torch.as_tensor(value).contiguous().clone() for name, value in state.items()}


def _flat(state: Any) -> dict[str, Tensor]:
    return {
        f"{name}{_SEPARATOR}{entry}": torch.as_tensor(value).contiguous().clone()
        for name, entries in state.items()
        for entry, value in entries.items()
    }


def _nested(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    state: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        name, entry = key.rsplit(_SEPARATOR, 1)
        state.setdefault(name, {})[entry] = tensor
    return state


def _generators(accelerator: Accelerator) -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if accelerator.device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(accelerator.device)
    return states


def _restore_generators(states: Mapping[str, Tensor], accelerator: Accelerator) -> None:
    torch.set_rng_state(states["cpu"])
    if accelerator.device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], accelerator.device)
