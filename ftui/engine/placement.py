"""Which device or core a run gets. Each run has one place to itself; runs of one device fit side by side (B4)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
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

    @property
    def name(self) -> str:
        return f"gpu {self.index}" if self.backend == "cuda" else f"cpu place {self.index}"


Places = tuple[Place, ...]
"""What one job has to itself: a place for each of its processes; () for one that computes nothing."""


def places_record(places: Places) -> dict[str, Any]:
    """What the journal keeps."""
    return {"device": ", ".join(place.name for place in places)} if places else {}


def recorded_places(known: Iterable[Place], record: Mapping[str, Any]) -> Places:
    """The places of a journal entry, those of `known` that still exist."""
    names = str(record.get("device", "")).split(", ")
    return tuple(place for place in known if place.name in names)


def places(machine: Machine) -> list[Place]:
    """All places of this host under the plan. Raises `NoPlace`, also when they are too few for one run."""
    found = _all_places(machine)
    if len(found) < machine.processes:
        kind = "GPUs" if found and found[0].backend == "cuda" else "places (machine.slots)"
        raise NoPlace(
            f"a run takes {machine.processes} processes, but this machine has {len(found)} {kind}; lower machine.processes"
        )
    return found


def _all_places(machine: Machine) -> list[Place]:
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
