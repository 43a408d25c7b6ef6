"""Writing that survives SIGKILL, a full disk and a power cut: replaced whole or appended under a lock, then synced."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def replace_text(path: Path, text: str) -> None:
    """Replace `path` by `text`: readers see the old or the new content, never a part. Creates the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def replace_json(path: Path, value: Any) -> None:
    """Replace `path` by `value` as indented JSON. Raises ValueError for values that JSON cannot hold, NaN among them."""
    replace_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def sync_directory(path: Path) -> None:
    """Make the names in `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(root: Path) -> None:
    """Make every file and folder under `root` durable."""
    for folder, _, names in os.walk(root):
        for name in names:
            descriptor = os.open(Path(folder, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_directory(Path(folder))


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Hold an exclusive lock on `path` (created if absent, for its user alone); yields its descriptor. Released by death, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def sha256_file(path: Path) -> str:
    """Hash of a file's bytes, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_json(value: Any) -> str:
    """Hash of a JSON value, independent of the order of its keys."""
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
