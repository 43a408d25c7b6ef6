"""One supervisor per campaign: a lock held for life, and a file that says who holds it."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import Any

from ftui.record.files import read_json, replace_json
from ftui.record.journal import stamp
from ftui.record.layout import CampaignFiles

SUPERVISOR_SCHEMA = 1


class AlreadySupervised(Exception):
    """Another supervisor holds the campaign."""


class SupervisorLock:
    """Held from `take` until the process ends, however it ends."""

    def __init__(self, files: CampaignFiles) -> None:
        self._files = files
        self._descriptor: int | None = None

    def take(self, patience_seconds: float = 2.0) -> None:
        """Take the lock. Raises `AlreadySupervised` when it stays taken; short looks by readers are waited for."""
        self._files.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._files.supervisor_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        give_up = time.monotonic() + patience_seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    os.close(descriptor)
                    who = supervisor_identity(self._files).get("pid", "unknown")
                    raise AlreadySupervised(f"{self._files.name} is already supervised by process {who}") from None
                time.sleep(0.02)
        self._descriptor = descriptor
        self.beat()

    def beat(self) -> None:
        """Say who holds the lock and that it still works."""
        replace_json(
            self._files.supervisor,
            {"schema": SUPERVISOR_SCHEMA, "pid": os.getpid(), "host": socket.gethostname(), "at": stamp()},
        )


def supervisor_identity(files: CampaignFiles) -> dict[str, Any]:
    """Who supervises or did last; {} when nobody ever did."""
    try:
        content: dict[str, Any] = read_json(files.supervisor)
    except (OSError, ValueError):
        return {}
    return content


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file exclusively. Never creates it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
