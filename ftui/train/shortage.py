"""What ran out of memory, in which part of an update, and how much it asked for (S3)."""

from __future__ import annotations

import re
import traceback
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch

from ftui.record.text import size_words

Part = Literal["weights", "activations", "logits", "gradients", "optimizer", "evaluation", "unknown"]

_CPU = re.compile(r"can't allocate memory|not enough memory|Cannot allocate memory", re.IGNORECASE)
_CPU_BYTES = re.compile(r"you tried to allocate (\d+) bytes")
_CUDA_SIZE = re.compile(r"Tried to allocate ([\d.]+) (KiB|MiB|GiB)")
_CUDA_FREE = re.compile(r"of which ([\d.]+) (KiB|MiB|GiB) is free")
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

_FRAMES: tuple[tuple[str, str, Part], ...] = (
    ("optim/", "", "optimizer"),
    ("accelerate/optimizer.py", "", "optimizer"),
    ("torch/autograd/", "", "gradients"),
    ("", "backward", "gradients"),
    ("", "cross_entropy", "logits"),
    ("", "predict", "evaluation"),
    ("", "write", "evaluation"),
    ("", "loss_sum", "activations"),
    ("", "set_up", "weights"),
    ("", "prepare_model", "weights"),
)
"""File ending or function of a frame, and the part of the work it belongs to; the first that is found in the traceback decides."""

_WORDS: dict[Part, str] = {
    "weights": "the model's weights were loaded",
    "activations": "the forward pass kept what the backward pass needs",
    "logits": "the loss was computed from the logits",
    "gradients": "gradients were computed",
    "optimizer": "the optimizer made room for its state",
    "evaluation": "examples were evaluated",
    "unknown": "the gate was tried",
}


@dataclass(frozen=True)
class Shortage:
    """One allocation that was refused."""

    part: Part
    asked: int | None
    """Bytes that were asked for last, None where the library does not say."""
    free: int | None
    """Bytes that were free on the device, None where the library does not say."""

    def sentence(self) -> str:
        asked = "" if self.asked is None else f": {size_words(self.asked)} were asked for"
        free = "" if self.free is None else f", {size_words(self.free)} were free"
        return f"out of memory while {_WORDS[self.part]}{asked}{free}"

    def content(self) -> dict[str, Any]:
        return asdict(self)


def find_shortage(error: BaseException) -> Shortage | None:
    """The shortage that `error` tells of, None when it is about something else."""
    text = str(error)
    if isinstance(error, torch.OutOfMemoryError):
        return Shortage(_part(error), _bytes(_CUDA_SIZE, text), _bytes(_CUDA_FREE, text))
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError | OSError) and _CPU.search(text)):
        found = _CPU_BYTES.search(text)
        return Shortage(_part(error), int(found[1]) if found else None, None)
    return None


def _part(error: BaseException) -> Part:
    frames = traceback.extract_tb(error.__traceback__)
    for file, function, part in _FRAMES:
        if any(file in frame.filename and function in ("", frame.name) for frame in frames):
            return part
    return "unknown"


def _bytes(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return int(float(found[1]) * _UNITS[found[2]]) if found else None
