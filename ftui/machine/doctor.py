"""Whether this machine is fit for a campaign: what is there, what is missing, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from ftui.machine.cgroup import memory_limit
from ftui.machine.nvidia import GpuAnswer, gpus
from ftui.machine.versions import installed, usable_cores
from ftui.record.layout import campaigns_home

GIB = 1 << 30

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Check:
    """One thing looked at. A problem keeps campaigns from running, a warning may surprise."""

    name: str
    verdict: Verdict
    message: str


def diagnose(folder: Path | None = None) -> list[Check]:
    """Look at this machine; `folder` is where campaigns are to lie (the user's own folder for them unless given).

    Changes nothing, imports no library of training, and takes a few seconds at most.
    """
    place = folder or campaigns_home()
    answer = gpus()
    return [
        _python(),
        _cores(),
        _memory(),
        _disk(place),
        _writable(place),
        _gpus(answer),
        _torch(answer),
        *(_package(name) for name in ("transformers", "peft", "accelerate")),
        _terminal(),
    ]


def _python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} at {sys.executable}")


def _cores() -> Check:
    cores = usable_cores()
    return Check("cores", "ok", f"{cores} usable" + (f" of {os.cpu_count()}" if cores != os.cpu_count() else ""))


def _memory() -> Check:
    memory, limit = psutil.virtual_memory(), memory_limit()
    total, free = memory.total, memory.available
    where = ""
    if limit is not None and limit.limit < total:
        total, free, where = limit.limit, limit.limit - limit.used, " (limit of this container)"
    message = f"{total / GIB:.1f} GiB{where}, {free / GIB:.1f} GiB free"
    if free < 2 * GIB:
        return Check("memory", "warning", f"{message}; one training process alone takes about 0.5 GiB before its model")
    return Check("memory", "ok", message)


def _disk(folder: Path) -> Check:
    place = _existing(folder)
    try:
        free = shutil.disk_usage(place).free
    except OSError as problem:
        return Check("disk", "problem", f"{place}: cannot be looked at: {problem.strerror}")
    message = f"{free / GIB:.1f} GiB free at {place}"
    if free < GIB:
        return Check("disk", "problem", f"{message}; checkpoints will not fit: free some, or use another disk")
    if free < 10 * GIB:
        return Check("disk", "warning", f"{message}; checkpoints of larger models need more")
    return Check("disk", "ok", message)


def _writable(folder: Path) -> Check:
    place = _existing(folder)
    if not place.is_dir():
        return Check("campaigns", "problem", f"{place} is a file, so {folder} cannot be a folder; move it away")
    if not os.access(place, os.W_OK | os.X_OK):
        return Check("campaigns", "problem", f"{place} is not writable for this user; campaigns can lie anywhere else")
    return Check("campaigns", "ok", f"{folder}" + ("" if place == folder else " can be made"))


def _gpus(answer: GpuAnswer) -> Check:
    listed = ", ".join(f"{gpu.index}: {gpu.name} ({gpu.memory_total / GIB:.0f} GiB)" for gpu in answer.gpus)
    if answer.problem:
        return Check("gpus", "warning", "; ".join(filter(None, [listed, answer.problem])))
    if not answer.gpus:
        return Check("gpus", "ok", "no NVIDIA GPU; training runs on the processor")
    return Check("gpus", "ok", f"{listed}; driver {answer.driver}, CUDA up to {answer.cuda}")


def _torch(answer: GpuAnswer) -> Check:
    version = installed("torch")
    if version is None:
        return Check("torch", "problem", "is not installed, so nothing can be trained here; reports can be read")
    if answer.gpus and version.endswith("+cpu"):
        return Check("torch", "warning", f"{version} is built for the processor only and leaves the GPUs idle")
    return Check("torch", "ok", version)


def _package(name: str) -> Check:
    version = installed(name)
    if version is None:
        return Check(name, "problem", f"is not installed, so nothing can be trained here; `pip install {name}`")
    return Check(name, "ok", version)


def _terminal() -> Check:
    if os.environ.get("TMUX") or os.environ.get("STY"):
        inside = "tmux" if os.environ.get("TMUX") else "screen"
        return Check("terminal", "ok", f"inside {inside}; in tmux `set -s escape-time 20` makes Esc quick")
    if shutil.which("tmux"):
        return Check("terminal", "ok", "training goes on without the terminal; tmux is here for what you type yourself")
    return Check("terminal", "ok", "training goes on without the terminal")


def _existing(folder: Path) -> Path:
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return place
