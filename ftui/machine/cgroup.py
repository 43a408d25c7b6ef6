"""Memory limits of the control group this process runs in: inside a container the host's memory is not ours to use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class MemoryLimit:
    """A control group's memory, in bytes."""

    used: int
    """Without file pages the kernel can drop at once."""
    limit: int


def memory_limit(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> MemoryLimit | None:
    """The tightest limit on this process's groups (versions 2 and 1), None without one."""
    found = [limit for folder in memory_groups(root, own) if (limit := _limit_of(folder)) is not None]
    return min(found, key=lambda limit: limit.limit, default=None)


def memory_groups(root: Path, own: Path) -> list[Path]:
    """Folders of a process's memory group and all groups around it; `own` is its `cgroup` file under `/proc`."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    folders: list[Path] = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", "", ""][:3]
        base = root / "memory" if "memory" in controllers.split(",") else root if not controllers else None
        if base is None:
            continue
        inside = Path(path.lstrip("/"))
        # In a container the path may be the host's; the folders that do not exist here are passed over.
        folders += [base / inside, *(base / parent for parent in inside.parents)]
    return folders


def _limit_of(folder: Path) -> MemoryLimit | None:
    for limit_name, used_name, cache_key in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            text = (folder / limit_name).read_text(encoding="ascii").strip()
            used = int((folder / used_name).read_text(encoding="ascii"))
            statistics = dict(
                line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines()
            )
        except (OSError, ValueError):
            continue
        # Version 1 writes "no limit" as a number near 2^63.
        if text != "max" and int(text) < 1 << 62:
            return MemoryLimit(max(0, used - int(statistics.get(cache_key, 0))), int(text))
    return None
