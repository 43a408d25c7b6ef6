"""Checkpoints that are complete or absent, and resume exactly (C1, C2, C5).

    checkpoints/step-00000100/
        model.safetensors        trained parameters and persistent buffers, by name; the frozen base is not repeated
        optimizer.safetensors    optimizer state, `parameter|entry`
        rng-0.safetensors        generator states of each rank
        state.json               progress, schedule, stop rules
        manifest.json            size and SHA-256 of every file; written last

Written into `tmp-…`, synced, renamed, and only then are older ones pruned; what a killed process left half-written is swept at
the next start. No pickle anywhere.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
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


def save_checkpoint(
    folder: Path,
    update: int,
    accelerator: Accelerator,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    state: Mapping[str, Any],
    keep: int,
) -> tuple[Path, int]:
    """Write the state after `update` updates; returns its folder and size in bytes. All ranks call it.

    Raises `CheckpointError` in words when the disk is full or a file cannot be written; older checkpoints stay.
    """
    final = folder / f"step-{update:08d}"
    aside = folder / f"tmp-{update:08d}"
    options = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=True)
    weights = get_model_state_dict(model, options=options)
    moments = None if optimizer is None else get_optimizer_state_dict(model, _plain(optimizer), options=options)
    try:
        if accelerator.is_main_process:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
        accelerator.wait_for_everyone()
        save_file(_generators(accelerator), aside / f"rng-{accelerator.process_index}.safetensors")
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            save_file(_tensors(weights), aside / "model.safetensors")
            content = {"schema": CHECKPOINT_SCHEMA, "update": update, "processes": accelerator.num_processes, **state}
            if moments is not None:
                save_file(_flat(moments["state"]), aside / "optimizer.safetensors")
                content["param_groups"] = moments["param_groups"]
            replace_json(aside / "state.json", content)
            _seal(aside)
            shutil.rmtree(final, ignore_errors=True)
            aside.rename(final)
            sync_directory(folder)
    except Exception as error:
        free = shutil.disk_usage(folder if folder.exists() else folder.parent).free
        why = f"the disk is full ({free / 2**20:.0f} MiB free)" if free < 64 * 2**20 else str(error)
        shutil.rmtree(aside, ignore_errors=True)
        raise CheckpointError(f"the checkpoint after update {update} could not be written: {why}") from error
    accelerator.wait_for_everyone()
    size = sum(file.stat().st_size for file in final.iterdir())
    if accelerator.is_main_process:
        complete, _ = checkpoints(folder)
        for old in complete[:-keep]:
            shutil.rmtree(old.path)
    return final, size


def load_weights(path: Path, model: nn.Module) -> None:
    """Put a checkpoint's parameters into a model of the same structure. Raises `CheckpointError` on any mismatch."""
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
