"""This process: its backend, its seeds, its signals, and a guard that proves it is what the plan asked for."""

from __future__ import annotations

import os
import signal
from types import FrameType

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

from ftui.plan.settings import RunSettings


class WrongProcess(Exception):
    """The process was not started as the settings say; launchers get this wrong silently."""


def make_accelerator(settings: RunSettings) -> Accelerator:
    """The accelerator of this process, checked against the settings. Sets threads and the seed.

    Raises `WrongProcess` when the device or the number of processes is not the planned one.
    """
    torch.set_num_threads(settings.machine.threads)
    if settings.machine.backend == "cuda" and not torch.cuda.is_available():
        raise WrongProcess(f"the plan wants a GPU, but torch {torch.__version__} finds none in this process")
    accelerator = Accelerator(
        cpu=settings.machine.backend == "cpu",
        mixed_precision={"fp32": "no", "bf16": "bf16"}[settings.training.precision],
    )
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if accelerator.num_processes != world or world != settings.machine.processes:
        raise WrongProcess(
            f"{settings.machine.processes} processes are planned, the launcher announced {world}, "
            f"and this process joined a group of {accelerator.num_processes}"
        )
    if accelerator.device.type != settings.machine.backend:
        raise WrongProcess(f"the plan wants {settings.machine.backend}, this process computes on {accelerator.device}")
    set_seed(settings.seed)
    return accelerator


class StopSignal:
    """Set by SIGTERM: the loop finishes its update, writes a checkpoint and ends with exit code 75."""

    def __init__(self) -> None:
        self.requested = False
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
