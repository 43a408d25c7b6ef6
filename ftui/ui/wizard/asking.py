"""Processes that answer the wizard with one JSON document: what is slow or heavy is theirs, so that the app never waits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

PYTHON = (sys.executable, "-P", "-m")


class AskError(Exception):
    """The process gave no answer; the message is what it said."""


class Asker:
    """Starts the processes and ends those that nobody waits for any more."""

    def __init__(self) -> None:
        self._running: set[asyncio.subprocess.Process] = set()

    async def scout(self, campaign: Path) -> dict[str, Any]:
        """What the draft's data and base model are (`python -m ftui.data scout`). Raises `AskError`."""
        return await self._ask("ftui.data", "scout", str(campaign))

    async def describe(self, campaign: Path, device: str | None = None) -> dict[str, Any]:
        """What `ftui plan C` says, predicted for a device where one is named. Raises `AskError`."""
        return await self._ask("ftui.cli", "plan", str(campaign), "--json", *(["--for", device] if device else []))

    async def end(self) -> None:
        """End what is still running, children included, and wait until it is gone."""
        for process in list(self._running):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in list(self._running):
            await process.wait()

    async def _ask(self, *words: str) -> dict[str, Any]:
        self._running = {process for process in self._running if process.returncode is None}
        process = await _started(*words)
        self._running.add(process)
        try:
            code, out, err = await _finished(process)
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        try:
            answer = json.loads(out)
        except json.JSONDecodeError:
            raise AskError(err.strip() or f"the process ended with code {code}") from None
        if not isinstance(answer, dict):
            raise AskError(f"an answer of another form: {str(answer)[:80]}")
        return answer


async def launch(campaign: Path, because: str | None = None) -> tuple[bool, str]:
    """Whether `ftui run` took the campaign over, and what it said. It is never ended half-way."""
    code, out, err = await _finished(
        await _started("ftui.cli", "run", str(campaign), *(["--because", because] if because else []))
    )
    return code == 0, (err or out).strip()


async def _started(*words: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *PYTHON, *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
    )


async def _finished(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace")
