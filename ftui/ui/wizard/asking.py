"""Processes that answer the wizard with one JSON document: what is slow or heavy is theirs, so that the app never waits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

PYTHON = (sys.executable, "-P", "-m")


class AskError(Exception):
    """The process gave no answer; the message is what it said."""


async def ask(*words: str) -> dict[str, Any]:
    """The JSON document that `python -m WORDS` writes, whatever its exit code. Raises `AskError`. Cancelled, it ends the process."""
    code, out, err = await run(*words)
    try:
        answer = json.loads(out)
    except json.JSONDecodeError:
        raise AskError(err.strip() or f"the process ended with code {code}") from None
    if not isinstance(answer, dict):
        raise AskError(f"an answer of another form: {str(answer)[:80]}")
    return answer


async def run(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `python -m WORDS`. Cancelled, it ends the process and its children."""
    process = await asyncio.create_subprocess_exec(
        *PYTHON,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        _kill(process)
        await process.wait()
        raise
    return process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace")


def _kill(process: asyncio.subprocess.Process) -> None:
    import os
    import signal

    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def scout(campaign: Path) -> dict[str, Any]:
    """What the draft's data and base model are (`python -m ftui.data scout`)."""
    return await ask("ftui.data", "scout", str(campaign))


async def describe(campaign: Path, device: str | None = None) -> dict[str, Any]:
    """What `ftui plan C` says, predicted for a device where one is named."""
    return await ask("ftui.cli", "plan", str(campaign), "--json", *(["--for", device] if device else []))


async def launch(campaign: Path, because: str | None = None) -> tuple[bool, str]:
    """Whether `ftui run` took the campaign over, and what it said."""
    code, out, err = await run("ftui.cli", "run", str(campaign), *(["--because", because] if because else []))
    return code == 0, (err or out).strip()
