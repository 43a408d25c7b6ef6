"""Saving as one types: each text replaces the file whole, on a thread, in order; what somebody else wrote is never overwritten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from ftui.record.files import replace_text


class _Changed(Exception):
    """The file is not what was last read or written here."""


class Saver:
    """Writes the latest text to `path`. `saved` is called with "" or the sentence that says why it could not be written;
    `conflict` when somebody else has changed the file, which is then left as it is."""

    def __init__(self, path: Path, saved: Callable[[str], None], conflict: Callable[[], None]) -> None:
        self._path, self._report, self._conflict = path, saved, conflict
        self._known = ""
        """What the file says as far as is known here."""
        self._waiting: str | None = None
        self._task: asyncio.Task[None] | None = None

    def read(self) -> str:
        """The file's text, from now on the one that is known. Raises OSError, UnicodeDecodeError."""
        self._known = self._path.read_bytes().decode("utf-8-sig")
        return self._known

    def save(self, text: str) -> None:
        """Have `text` written soon; a text that was still waiting is not written any more."""
        self._waiting = text
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def settled(self) -> None:
        """Wait until nothing is waiting to be written."""
        while self._task is not None and not self._task.done():
            await asyncio.shield(self._task)

    async def _work(self) -> None:
        while self._waiting is not None:
            text, self._waiting = self._waiting, None
            try:
                await asyncio.to_thread(self._replace, text)
            except _Changed:
                self._waiting = None
                self._conflict()
                return
            except OSError as problem:
                self._report(f"{self._path} cannot be written: {problem.strerror or problem}")
            else:
                self._report("")

    def _replace(self, text: str) -> None:
        try:
            there = self._path.read_bytes().decode("utf-8-sig")
        except (FileNotFoundError, UnicodeDecodeError):
            there = None
        if there is not None and there != self._known:
            raise _Changed
        replace_text(self._path, text)
        self._known = text
