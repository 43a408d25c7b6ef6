"""This process: its backend, its seeds, its signals, the group it belongs to, and a guard that proves it is what the plan asked for."""

from __future__ import annotations

import ctypes
import os
import signal
from datetime import timedelta
from types import FrameType

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs, set_seed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ftui.plan.settings import RunSettings

GROUP_TIMEOUT = timedelta(minutes=10)
"""How long a process waits for the others. A dead one is noticed at once; this is for one that neither computes nor ends (K19)."""

_PR_SET_PDEATHSIG = 1


class WrongProcess(Exception):
    """The process was not started as the settings say; launchers get this wrong silently."""


class PeerFault(Exception):
    """Another process of the group failed, and its own words say why."""


def announced() -> tuple[int, int]:
    """Rank and number of processes, as the launcher says."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def die_with_launcher() -> None:
    """End when the launcher above does: it would otherwise leave its workers behind, training on without anyone."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def make_accelerator(settings: RunSettings, *, alone: bool = False) -> Accelerator:
    """The accelerator of this process, checked against the settings. Sets threads and the seed, the same in every process.

    `alone`: for what one process does whatever the plan's number, such as writing the artefact. Raises `WrongProcess` when
    device, precision or number of processes are not the planned ones.
    """
    torch.set_num_threads(settings.machine.threads)
    if settings.machine.backend == "cuda" and not torch.cuda.is_available():
        raise WrongProcess(f"the plan wants a GPU, but torch {torch.__version__} finds none in this process")
    if settings.training.precision == "fp16" and settings.machine.backend == "cpu":
        raise WrongProcess('training.precision = "fp16" needs a GPU; on a CPU choose "bf16" or "fp32"')
    accelerator = Accelerator(
        cpu=settings.machine.backend == "cpu",
        mixed_precision={"fp32": "no"}.get(settings.training.precision, settings.training.precision),
        kwargs_handlers=[InitProcessGroupKwargs(timeout=GROUP_TIMEOUT)],
    )
    planned, (_, world) = 1 if alone else settings.machine.processes, announced()
    if accelerator.num_processes != world or world != planned:
        raise WrongProcess(
            f"{planned} processes are planned, the launcher announced {world}, "
            f"and this process joined a group of {accelerator.num_processes}"
        )
    if accelerator.device.type != settings.machine.backend:
        raise WrongProcess(f"the plan wants {settings.machine.backend}, this process computes on {accelerator.device}")
    set_seed(settings.seed)
    return accelerator


def part_streams(accelerator: Accelerator, seed: int) -> None:
    """Give every process its own stream of dropout. Called when the model exists, for its parameters are the same in all."""
    if accelerator.process_index:
        set_seed(int(np.random.SeedSequence([seed, accelerator.process_index]).generate_state(1)[0]))


def agreed(accelerator: Accelerator, *wishes: bool) -> list[bool]:
    """Each wish that at least one process has: what all of them then act on, so that none waits for another in vain."""
    if accelerator.num_processes == 1:
        return list(wishes)
    flags = torch.tensor([int(wish) for wish in wishes], device=accelerator.device)
    return [bool(count) for count in accelerator.reduce(flags, reduction="sum")]


def bare(model: nn.Module) -> nn.Module:
    """The model without the wrapper that makes it one replica of several: its forward pass speaks to no other process."""
    return model.module if isinstance(model, DistributedDataParallel) else model


def is_lost_peer(error: BaseException) -> bool:
    """Whether `error` only says that another process of the group failed or is gone: gloo in words, NCCL by its type."""
    if isinstance(error, PeerFault | torch.distributed.DistError):
        return True
    return isinstance(error, RuntimeError) and "gloo" in str(error)


class StopSignal:
    """Set by SIGTERM: the loop finishes its update, writes a checkpoint and ends with exit code 75."""

    def __init__(self) -> None:
        self.requested = False
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
