"""One moment of the machine: host, GPUs, and what each run's process tree uses (M3)."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from ftui.machine.cgroup import memory_limit
from ftui.machine.nvidia import GpuSample, NvidiaLibrary
from ftui.record.journal import stamp


@dataclass(frozen=True)
class HostSample:
    """The host, or the container this runs in where that has the tighter memory limit. Bytes and percent."""

    cpu_percent: float
    """Of all cores together, 0 to 100, since the sample before."""
    memory_used: int
    memory_total: int
    disk_free: int
    """Free for this user where the campaign lies."""
    disk_total: int


@dataclass(frozen=True)
class ProcessSample:
    """A process tree."""

    rss_bytes: int
    """Resident memory summed over its processes; pages they share count once for each."""
    cpu_percent: float
    """Of one core, since the sample before: 200 is two busy cores."""


_T = TypeVar("_T", HostSample, GpuSample, ProcessSample)


@dataclass(frozen=True)
class Sample:
    """Everything measured at one moment."""

    at: str
    """UTC, as the journal writes times."""
    host: HostSample
    gpus: list[GpuSample] = field(default_factory=list)
    runs: dict[str, ProcessSample] = field(default_factory=dict)
    """By run id. A run whose processes are gone is absent."""
    gpu_problem: str | None = None
    """Why `gpus` may be incomplete, None when nothing is wrong."""

    def row(self) -> dict[str, Any]:
        """As one row of `machine.jsonl`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Sample:
        """The sample of a row. Fields a later version added are ignored; raises KeyError or TypeError for another row."""
        return cls(
            at=row["at"],
            host=_known(HostSample, row["host"]),
            gpus=[_known(GpuSample, gpu) for gpu in row["gpus"]],
            runs={run: _known(ProcessSample, process) for run, process in row["runs"].items()},
            gpu_problem=row.get("gpu_problem"),
        )


def _known(kind: type[_T], content: Mapping[str, Any]) -> _T:
    names = {f.name for f in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in content.items() if name in names})


class Sampler:
    """Takes samples; keeps what is needed to turn processor times into percentages between two of them."""

    def __init__(self, disk_path: Path, library: NvidiaLibrary | None = None) -> None:
        self._disk_path = disk_path
        self._library = library or NvidiaLibrary()
        self._seconds: dict[tuple[int, float], float] = {}
        """Processor seconds of each process at the last sample, by pid and start: pids come again."""
        self._last = time.monotonic()
        self._last_clock = time.time()
        psutil.cpu_percent(None)

    def sample(self, trees: Mapping[str, int] | None = None) -> Sample:
        """Measure now. `trees` maps run ids to the pid at the root of their processes. Never raises for a process that ends."""
        answer = self._library.gpus()
        return Sample(
            at=stamp(),
            host=self._host(),
            gpus=answer.gpus,
            runs=self._runs(trees or {}),
            gpu_problem=answer.problem,
        )

    def _host(self) -> HostSample:
        memory, limit = psutil.virtual_memory(), memory_limit()
        disk = psutil.disk_usage(str(self._disk_path))
        used, total = memory.total - memory.available, memory.total
        if limit is not None and limit.limit < total:
            used, total = limit.used, limit.limit
        return HostSample(psutil.cpu_percent(None), used, total, disk.free, disk.total)

    def _runs(self, trees: Mapping[str, int]) -> dict[str, ProcessSample]:
        moment, clock = time.monotonic(), time.time()
        elapsed = max(moment - self._last, 1e-3)
        children = _children() if trees else {}
        before, self._seconds = self._seconds, {}
        runs = {}
        for run, root in trees.items():
            members = [m for pid in _tree(root, children) if (m := _measure(pid)) is not None]
            if not members:
                continue
            spent = 0.0
            for member in members:
                self._seconds[member.key] = member.seconds
                # A process born since the last sample spent all its time since then.
                born = member.key[1] >= self._last_clock
                spent += max(0.0, member.seconds - before.get(member.key, 0.0 if born else member.seconds))
            runs[run] = ProcessSample(sum(m.rss for m in members), round(100 * spent / elapsed, 1))
        self._last, self._last_clock = moment, clock
        return runs


@dataclass(frozen=True)
class _Member:
    key: tuple[int, float]
    rss: int
    seconds: float


def _measure(pid: int) -> _Member | None:
    """One process, None when it is gone, a zombie, or not ours to look at."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            times = process.cpu_times()
            return _Member((pid, process.create_time()), process.memory_info().rss, times.user + times.system)
    except psutil.Error:
        return None


def _children() -> dict[int, list[int]]:
    """Child pids by parent pid, for the whole host: read once for all trees."""
    found: dict[int, list[int]] = defaultdict(list)
    for pid in psutil.pids():
        try:
            found[psutil.Process(pid).ppid()].append(pid)
        except psutil.Error:
            continue
    return found


def _tree(root: int, children: Mapping[int, list[int]]) -> Iterable[int]:
    """`root` and all processes below it, each once."""
    seen, waiting = set(), [root]
    while waiting:
        pid = waiting.pop()
        if pid not in seen:
            seen.add(pid)
            waiting += children.get(pid, [])
            yield pid
