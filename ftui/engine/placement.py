"""Which device or core a run gets. Each run has one place to itself; runs of one device fit side by side (B4)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

from ftui.machine.nvidia import gpus
from ftui.plan.schema import Machine


class NoPlace(Exception):
    """The plan wants a device this machine does not have."""


@dataclass(frozen=True)
class Place:
    """Where one run computes."""

    backend: Literal["cpu", "cuda"]
    index: int
    """GPU index, or the number of the place among equals on a machine without GPU."""

    def record(self) -> dict[str, Any]:
        return {"device": f"gpu {self.index}" if self.backend == "cuda" else f"cpu place {self.index}"}


def places(machine: Machine) -> list[Place]:
    """All places of this host under the plan. Raises `NoPlace`."""
    if machine.backend != "cpu":
        answer = gpus()
        if answer.gpus:
            return [Place("cuda", gpu.index) for gpu in answer.gpus]
        if machine.backend == "cuda":
            raise NoPlace(
                'the plan wants a GPU (machine.backend = "cuda"), but ' + (answer.problem or "this machine shows none")
            )
    cores = len(os.sched_getaffinity(0))
    count = machine.slots or max(1, cores // machine.threads)
    return [Place("cpu", index) for index in range(count)]
