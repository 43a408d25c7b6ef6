"""What the kernel says about processes it ended and GPUs that failed: its own log, and the counters of the memory groups.

Both are read, never waited for, and both may be closed to us: inside a container the log mostly is, and the process ids it names
are the host's (K32). So a counter that rose is better evidence than a line.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from ftui.machine.cgroup import memory_groups

LOG = Path("/dev/kmsg")


@dataclass(frozen=True)
class KernelLine:
    """One line of the kernel's log."""

    seconds: float
    """Since the machine was started."""
    text: str


_RECORD = re.compile(r"\d+,\d+,(\d+),[^;]*;(.*)")
"""A record of `/dev/kmsg`: priority, number, microseconds, flags; text (Documentation/ABI/testing/dev-kmsg)."""
_PRINTED = re.compile(r"(?:<\d+>)?\[\s*(\d+\.\d+)(?:\]|\s*T\d+\])\s?(.*)")
"""The same as `dmesg` prints it."""


def kernel_lines(path: Path = LOG) -> list[KernelLine]:
    """What the kernel's log holds, oldest first, [] where it cannot be read. `path` may be a file with `dmesg`'s output."""
    try:
        texts = _records(path) if stat.S_ISCHR(path.stat().st_mode) else path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    found = []
    for text in texts:
        if (record := _RECORD.match(text)) is not None:
            found.append(KernelLine(int(record[1]) / 1e6, record[2]))
        elif (printed := _PRINTED.match(text)) is not None:
            found.append(KernelLine(float(printed[1]), printed[2]))
    return found


def _records(path: Path) -> list[str]:
    """Every record of the device; each read gives one."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    found: list[str] = []
    try:
        while True:
            try:
                found.append(os.read(descriptor, 8192).decode("utf-8", "replace").split("\n", 1)[0])
            except BrokenPipeError:  # overwritten before it was read; the next one is not
                continue
            except OSError:
                return found
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Killed:
    """A process that the kernel ended because memory had run out."""

    pid: int
    line: str


_KILLED = re.compile(r"[Oo]ut of memory: Killed process (\d+)")


def killed_for_memory(lines: list[KernelLine], since: float) -> list[Killed]:
    """Processes ended by the kernel's OOM killer since `since` seconds after the start of the machine."""
    return [
        Killed(int(found[1]), line.text)
        for line in lines
        if line.seconds >= since and (found := _KILLED.search(line.text)) is not None
    ]


@dataclass(frozen=True)
class Xid:
    """A fault that NVIDIA's driver reports (docs.nvidia.com/deploy/xid-errors)."""

    number: int
    words: str
    device: str
    line: str


_XID = re.compile(r"NVRM: Xid \((PCI:[0-9a-fA-F:.]+)\): (\d+)(?:, (.*))?")
_XIDS = {
    13: "graphics engine exception",
    31: "memory page fault on the GPU",
    48: "double-bit memory error",
    61: "internal micro-controller breakpoint",
    62: "internal micro-controller halt",
    63: "memory page retired or row remapped",
    64: "a memory row could not be remapped",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "many corrected memory errors",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "the GPU's system processor did not answer",
    120: "the GPU's system processor failed",
}
_FOLLOWS = {43, 45}
"""What the driver says of a process that stopped or was stopped: results of another fault, never the first cause."""


def gpu_faults(lines: list[KernelLine], since: float) -> list[Xid]:
    """Faults of GPUs since `since`, oldest first."""
    found = []
    for line in lines:
        match = _XID.search(line.text) if line.seconds >= since else None
        if match is not None and (number := int(match[2])) not in _FOLLOWS:
            found.append(Xid(number, _XIDS.get(number, "fault"), match[1], line.text))
    return found


def memory_kills(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """How often the kernel has ended a process of this process's memory groups (versions 2 and 1) and those around them, in all.

    Only the difference of two readings says something. 0 where no group counts.
    """
    return sum(_kills_of(folder) for folder in memory_groups(root, own))


def _kills_of(folder: Path) -> int:
    for name in ("memory.events", "memory.oom_control"):
        try:
            words = [line.split() for line in (folder / name).read_text(encoding="ascii").splitlines()]
        except (OSError, ValueError):
            continue
        return next((int(word[1]) for word in words if word[:1] == ["oom_kill"] and len(word) == 2), 0)
    return 0


def boot_id() -> str:
    """Which start of the machine this is, "" where the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
