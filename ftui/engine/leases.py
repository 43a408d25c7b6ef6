"""Places leased host-wide: of all campaigns of one user on a host, one at a time has a GPU or a CPU slot (B4).

A lease is a lock on a file of the place's name, held by an open descriptor. The supervisor has it, and the training process inherits
it: a process that outlives its supervisor keeps its place, and the place is free when the last of both has ended, however it ended.
Nothing needs to be cleaned up, and what a file says is true only while it is locked.

The files lie in `/tmp/ftui-UID`, or where `FTUI_LEASES` says. Not in `XDG_RUNTIME_DIR`: that is taken away when the user's last session
ends, which training is to survive, and two sessions need not have the same one. The folder is private; one that somebody else owns or
can write to is refused.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ftui.engine.lock import is_locked
from ftui.engine.placement import Place, Places
from ftui.record.journal import stamp
from ftui.record.layout import CampaignFiles

PATIENCE_SECONDS = 0.1
"""How long a lock may be held by somebody who only looks whether it is."""


class LeasesRefused(Exception):
    """The folder of leases cannot be trusted."""


class PlaceTaken(Exception):
    """Another campaign was faster."""


class Leases:
    """The leases of one campaign's supervisor. They end with the process, but for what its training processes inherited."""

    def __init__(self, files: CampaignFiles, folder: Path | None = None) -> None:
        """Raises `LeasesRefused`."""
        self._files = files
        self._folder = private_folder(folder or default_folder())
        self._held: dict[Place, int] = {}
        # Those who tidy /tmp leave alone what lies in a locked folder.
        self._anchor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._anchor, fcntl.LOCK_SH)

    def take(self, places: Places, work: str) -> None:
        """Lease all of `places` for `work`, a job's key; those held already stay. Raises `PlaceTaken`, and then took none."""
        taken: list[Place] = []
        for place in places:
            if place not in self._held:
                descriptor = _lock(self._path(place))
                if descriptor is None:
                    self._release(taken)
                    raise PlaceTaken(f"{place.name} is used by {self.used_by(place)}")
                self._held[place] = descriptor
                taken.append(place)
            self._sign(self._held[place], work)

    def descriptors(self, places: Places) -> tuple[int, ...]:
        """What a process on `places` has to inherit to keep them."""
        return tuple(self._held[place] for place in places)

    def has(self, place: Place) -> bool:
        """Whether this supervisor holds the place's lease."""
        return place in self._held

    def keep_only(self, places: Collection[Place]) -> None:
        """Give back every lease but those of `places`."""
        self._release([place for place in self._held if place not in places])

    def is_free(self, place: Place) -> bool:
        """Whether this campaign has the place or could have it now."""
        return place in self._held or not is_locked(self._path(place))

    def used_by(self, place: Place) -> str:
        """Who has a place that is not free, as far as its file says."""
        try:
            said = json.loads(self._path(place).read_text(encoding="utf-8"))
            return f"campaign {said['campaign']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another campaign"

    def _path(self, place: Place) -> Path:
        return self._folder / place.name.replace(" ", "-")

    def _sign(self, descriptor: int, work: str) -> None:
        own = {"campaign": self._files.name, "directory": str(self._files.root), "work": work}
        text = json.dumps({**own, "supervisor": os.getpid(), "at": stamp()}, ensure_ascii=False) + "\n"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)

    def _release(self, places: Collection[Place]) -> None:
        for place in places:
            os.close(self._held.pop(place))


def default_folder() -> Path:
    """Where the leases of this user lie on this host."""
    return Path(os.environ.get("FTUI_LEASES") or f"/tmp/ftui-{os.getuid()}")


def private_folder(folder: Path) -> Path:
    """The folder, made if need be. Raises `LeasesRefused` where others could change what lies in it."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise LeasesRefused(
            f"{folder} must be a folder of yours that nobody else can enter (chmod 700); it says which campaign uses which GPU. "
            "Remove it, or name another one in FTUI_LEASES"
        )
    return folder


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock on `path`, None where somebody else does."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except BlockingIOError:
            if time.monotonic() > give_up:
                os.close(descriptor)
                return None
            time.sleep(0.005)
        os.close(descriptor)  # held for a moment, or the file was taken away before it was locked
