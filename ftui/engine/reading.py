"""A file of a campaign read for a copy while others may write to it: up to its last complete line, and only if it stayed the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ftui.record.backup import Fingerprint, SafeFile, fingerprint, grows
from ftui.record.journal import stamp

BLOCK = 4 << 20


class SourceChanged(Exception):
    """The file changed in another way than growing while it was read, or is gone. The next copy takes it."""


class Source:
    """One open file. `size` is what there is to copy of it."""

    def __init__(self, root: Path, path: str) -> None:
        """Raises `SourceChanged` when there is no such file any more."""
        self.path, self._file = path, root / path
        try:
            self._open: BinaryIO = self._file.open("rb")
        except FileNotFoundError:
            raise SourceChanged(path) from None
        self._before = fingerprint(os.fstat(self._open.fileno()))
        self.size = complete_size(self._open, self._before.size) if grows(path) else self._before.size

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def blocks(self) -> Iterator[bytes]:
        """Its bytes, and at their end the certainty that they are one state of the file. Raises `SourceChanged`."""
        self._open.seek(0)
        left = self.size
        while left > 0:
            block = self._open.read(min(BLOCK, left))
            if not block:
                raise SourceChanged(self.path)
            left -= len(block)
            yield block
        self._refuse_change()

    def kept(self, digest: str, there: str | None) -> SafeFile:
        """What is written down of its verified copy."""
        return SafeFile(size=self.size, sha256=digest, at=stamp(), source=self._before, there=there)

    def _refuse_change(self) -> None:
        try:
            now = fingerprint(self._file.stat())
        except FileNotFoundError:
            raise SourceChanged(self.path) from None
        if now != self._before and not self._grew(now):
            raise SourceChanged(self.path)

    def _grew(self, now: Fingerprint) -> bool:
        return grows(self.path) and now.inode == self._before.inode and now.size >= self._before.size


def complete_size(file: BinaryIO, size: int) -> int:
    """Bytes up to the last complete line."""
    end = size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(file.fileno(), end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
