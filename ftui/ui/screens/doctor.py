"""What `ftui doctor` finds on this machine. It asks a process of its own: a GPU library that hangs holds nothing here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from time import monotonic
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType

from ftui.record.text import safe, wrap
from ftui.ui import keys
from ftui.ui.screens.base import FtuiScreen
from ftui.ui.theme import STYLES
from ftui.ui.widgets.lines import KeyLine, Part, StatusLine
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import pad

COMMAND = (sys.executable, "-P", "-m", "ftui.cli", "doctor", "--json")
PATIENCE_SECONDS = 0.5
"""How long a killed process is waited for; one that a driver holds may never end."""

ROLES = {"ok": "good", "warning": "warn", "problem": "bad"}


class DoctorPanel(Panel):
    """One line for each thing that was looked at, wrapped under itself; a sentence while there is none."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("This machine", id=id)
        self.checks: list[dict[str, Any]] = []
        self.sentence = ""

    def show(self, checks: list[dict[str, Any]], sentence: str = "") -> None:
        self.checks, self.sentence = checks, sentence
        self.changed()

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        if not self.checks:
            return None, [Text(line, STYLES["muted"]) for line in wrap(self.sentence, max(8, width))]
        names = max(cell_len(safe(check["name"])) for check in self.checks)
        lines: list[Text] = []
        for check in self.checks:
            head: list[tuple[str, Any]] = [
                (pad(check["verdict"], 8), STYLES[ROLES.get(check["verdict"], "text")]),
                (f" {pad(check['name'], names)}  ", STYLES["bright"]),
            ]
            for line in wrap(check["message"], max(20, width - 11 - names)):
                lines.append(Text.assemble(*head, (line, STYLES["text"]), no_wrap=True, end=""))
                head = [(" " * (11 + names), STYLES["text"])]
        return None, lines


class DoctorScreen(FtuiScreen):
    """Shows at once that it waits; leaving ends the process that is asked, whatever it does."""

    KEYS = keys.DOCTOR
    BINDINGS: ClassVar[list[BindingType]] = list(keys.DOCTOR)
    name_for_help = "This machine"
    has_notebook = False

    def __init__(self) -> None:
        super().__init__()
        self._process: asyncio.subprocess.Process | None = None
        self._asked_at = 0.0

    def compose(self) -> ComposeResult:
        yield StatusLine(id="status")
        yield DoctorPanel(id="doctor")
        yield KeyLine((*keys.DOCTOR, *self.everywhere))

    def on_mount(self) -> None:
        self.query_one(DoctorPanel).focus()
        self.set_interval(1.0, self._tick)
        self.load()

    async def on_unmount(self) -> None:
        await self._end()

    @work(exclusive=True)
    async def load(self) -> None:
        """Ask, and show what is answered."""
        await self._end()
        self._asked_at = monotonic()
        self.query_one(DoctorPanel).show([], "No answer yet. Esc leaves at any time.")
        pipe = asyncio.subprocess.PIPE
        process = self._process = await asyncio.create_subprocess_exec(
            *COMMAND, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
        )
        self._tick()
        said, complaint = await process.communicate()
        if self._process is not process:
            return
        self._process = None
        try:
            checks = json.loads(said)
        except ValueError:
            why = complaint.decode(errors="replace").strip().splitlines()[-1:] or [f"code {process.returncode}"]
            self.query_one(DoctorPanel).show([], f"The machine could not be looked at: {why[0]}")
        else:
            self.query_one(DoctorPanel).show(checks)
        self._tick()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)

    def _tick(self) -> None:
        left: list[Part] = [("ftui", "bright"), ("  this machine", "muted")]
        checks = self.query_one(DoctorPanel).checks
        if self._process is not None:
            self.query_one(StatusLine).show(left, [(f"no answer for {monotonic() - self._asked_at:.0f} s", "busy")])
            return
        said = {verdict: sum(check["verdict"] == verdict for check in checks) for verdict in ("problem", "warning")}
        words = [f"{count} {verdict}{'s' if count != 1 else ''}" for verdict, count in said.items() if count]
        role = "bad" if said["problem"] else "warn" if said["warning"] else "good"
        self.query_one(StatusLine).show(left, [(", ".join(words) or "nothing stands out", role)] if checks else [])

    def action_reload(self) -> None:
        self.load()
