"""The app's side of `python -m ftui.data inspect`: a process that reads and encodes, so that the app never waits or carries it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import Any

from ftui.record.layout import CampaignFiles

LONGEST_ANSWER = 1 << 26
"""Bytes of one answer."""


class InspectorError(Exception):
    """The process cannot answer; the message is what it said."""


class Inspector:
    """One inspection of a campaign, alive as long as its process is."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asked = 0
        self._turn = asyncio.Lock()

    @classmethod
    async def begin(cls, files: CampaignFiles) -> Inspector:
        """Start the process; its first answer, from `read`, comes when all data is read and encoded."""
        command = [sys.executable, "-m", "ftui.data", "inspect", str(files.root)]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, limit=LONGEST_ANSWER, start_new_session=True
        )
        return cls(process)

    async def read(self) -> dict[str, Any]:
        """The next answer. Raises `InspectorError`."""
        assert self._process.stdout is not None and self._process.stderr is not None
        line = await self._process.stdout.readline()
        if not line:
            said = (await self._process.stderr.read()).decode(errors="replace").strip()
            raise InspectorError(said or f"the inspection ended with code {await self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise InspectorError(answer["error"])
        content: dict[str, Any] = answer["answer"]
        return content

    async def ask(self, **question: Any) -> dict[str, Any]:
        """The answer to a question (see `ftui.data.examples.serve`). Raises `InspectorError`."""
        assert self._process.stdin is not None
        async with self._turn:
            self._asked += 1
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._process.stdin.write(json.dumps({"id": self._asked, **question}).encode() + b"\n")
                await self._process.stdin.drain()
            return await self.read()

    async def end(self) -> None:
        """End the process, whatever it is doing, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()
