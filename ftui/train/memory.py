"""Memory and time of one operation, between the same boundaries everywhere (S1, S2).

Synchronise, reset the peaks, run, synchronise, read. Allocated and reserved are kept apart and never added. On a CPU the
device rows are empty and the host's peak is the kernel's high-water mark of this process, reset at the boundary.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import torch

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class Meter:
    """Context manager; after it, the attributes hold what `record.rows.GateRow` asks for, in bytes and seconds."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds = 0.0
        self.allocated_before: int | None = None
        self.allocated_peak: int | None = None
        self.reserved_before: int | None = None
        self.reserved_peak: int | None = None
        self.device_used: int | None = None
        self.host_before: int | None = None
        self.host_peak: int | None = None

    def __enter__(self) -> Self:
        self._synchronise()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            self.allocated_before = torch.cuda.memory_allocated(self.device)
            self.reserved_before = torch.cuda.memory_reserved(self.device)
        self.host_before = psutil.Process().memory_info().rss
        self._peak_reset = _reset_host_peak()
        self._began = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._synchronise()
        self.seconds = time.perf_counter() - self._began
        if self.device.type == "cuda":
            self.allocated_peak = torch.cuda.max_memory_allocated(self.device)
            self.reserved_peak = torch.cuda.max_memory_reserved(self.device)
            free, total = torch.cuda.mem_get_info(self.device)
            self.device_used = total - free
        self.host_peak = _host_peak() if self._peak_reset else None

    def measured(self) -> dict[str, float | int | None]:
        names = (
            "seconds", "allocated_before", "allocated_peak", "reserved_before", "reserved_peak",
            "device_used", "host_before", "host_peak",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def _synchronise(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def peak_memory(device: torch.device) -> dict[str, int]:
    """Bytes at the highest point since the last call, for the series: of the device's allocator, and of this process on the host."""
    peaks = {"host": _host_peak() or psutil.Process().memory_info().rss}
    _reset_host_peak()
    if device.type == "cuda":
        peaks["allocated"] = torch.cuda.max_memory_allocated(device)
        peaks["reserved"] = torch.cuda.max_memory_reserved(device)
        torch.cuda.reset_peak_memory_stats(device)
    return peaks


def _reset_host_peak() -> bool:
    """Start the kernel's high-water mark anew; False where it does not allow that."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return False
    return True


def _host_peak() -> int | None:
    for line in _STATUS.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None
