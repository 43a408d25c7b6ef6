"""One thread per monitor that follows the campaign's files and tells the screen what changed.

The thread touches no widget: it posts messages, at most one of a kind per poll, and only when something is new. The screen
wishes through `follow_log`; everything else the thread decides itself.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from textual.message import Message

from ftui.plan.followup import run_plan
from ftui.plan.settings import own_batches
from ftui.record.backup import Safety, safety
from ftui.record.journal import journal_reader
from ftui.record.layout import CampaignFiles
from ftui.record.lines import LineReader, NewerSchema, Row
from ftui.record.preflight import describe_gates, gate_notes, place_of
from ftui.record.rows import MACHINE, MACHINE_SCHEMA, GateRow, read_gates
from ftui.record.state import Campaign, fold
from ftui.ui.curves import CurveFollower, RunCurve
from ftui.ui.messages import CopiesRead, CurvesRead, GatesRead, LogRead, MachineRead, Polled, ReadFailed, StateRead

if TYPE_CHECKING:
    from ftui.machine.sample import Sample

POLL_SECONDS = 1.0
COPIES_SECONDS = 10.0
"""Between two looks at what is not safe elsewhere, which asks for every file's size and time."""
MACHINE_TAIL_BYTES = 1 << 20
MACHINE_SAMPLES = 600
LOG_TAIL_BYTES = 64 << 10
LOG_LINES = 1000


class TailReader(LineReader):
    """A cursor that begins near the end of a long file: what came hours ago is not worth the wait."""

    def skip_to_tail(self, tail_bytes: int) -> None:
        """Check the header, then move to the first whole row within the last `tail_bytes`. Raises `NewerSchema`."""
        self.read(256)
        try:
            with self.path.open("rb") as file:
                start = os.fstat(file.fileno()).st_size - tail_bytes
                if start <= self._offset:
                    return
                file.seek(start)
                file.readline()
                self._offset = file.tell()
        except FileNotFoundError:
            return


class LogTail:
    """The last lines of a text file that grows. A carriage return overwrites its line, as progress bars mean it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset: int | None = None
        self._rest = b""
        self._lines: deque[str] = deque(maxlen=LOG_LINES)

    def read(self) -> bool:
        """Take in what is new; whether anything is."""
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if self._offset is None:
                    self._offset = max(0, size - LOG_TAIL_BYTES)
                    file.seek(self._offset)
                    self._offset += len(file.readline()) if self._offset else 0
                elif size < self._offset:
                    self._offset, self._rest = 0, b""
                    self._lines.clear()
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return False
        self._offset += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(map(_visible, whole))
        return bool(data)

    def lines(self) -> list[str]:
        return [*self._lines, *([_visible(self._rest)] if self._rest else [])]


def _visible(line: bytes) -> str:
    return line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")


class CampaignWatch:
    """The cursors of one campaign. `poll` reads what is new; used by one thread, or by none in a test."""

    def __init__(self, files: CampaignFiles) -> None:
        self.files = files
        self._journal = journal_reader(files.journal)
        self._events: list[Row] = []
        self._state = Campaign()
        self._alive: bool | None = None
        self._curves: dict[str, CurveFollower] = {}
        self._machine = TailReader(files.machine, MACHINE, MACHINE_SCHEMA)
        self._machine_begun = False
        self._samples: deque[Sample] = deque(maxlen=MACHINE_SAMPLES)
        self._gates: tuple[str, list[GateRow]] | None = None
        self._log: LogTail | None = None
        self._log_run: str | None = None
        self._safety: Safety | None = None
        self._safety_at = -COPIES_SECONDS
        self._failed: set[str] = set()
        self.wanted_log: str | None = None
        """Run whose log is shown, None for the supervisor's; set by the screen, read at the next poll."""

    def poll(self) -> Iterator[Message]:
        """Messages for everything that changed since the last poll, what a person looks at first coming first."""
        for source in (
            self._poll_state,
            self._poll_gates,
            self._poll_machine,
            self._poll_log,
            self._poll_copies,
            self._poll_curves,
        ):
            try:
                yield from source()
            except (NewerSchema, OSError, ValueError, KeyError) as error:
                sentence = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)
                if sentence not in self._failed:  # once is enough: the file is tried again each second
                    self._failed.add(sentence)
                    yield ReadFailed(sentence)

    def _poll_state(self) -> Iterator[Message]:
        from ftui.engine.client import supervisor_alive

        rows, alive = self._journal.read(), supervisor_alive(self.files)
        if self._journal.restarted:
            self._events = []
        if rows or self._journal.restarted or alive != self._alive:
            self._events, self._alive = self._events + rows, alive
            # Folded anew, so that the screen may keep the state it was given while the next one is made.
            self._state = fold(self._events)
            yield StateRead(self._state, alive, planned_updates(self._state))

    def _poll_curves(self) -> Iterator[Message]:
        pending = [run.id for run in self._state.runs.values() if run.kind == "train"]
        for run_id in pending:
            self._curves.setdefault(run_id, CurveFollower(self.files.run(run_id).series))
        while pending:
            changed = {run_id: self._curves[run_id] for run_id in pending if self._curves[run_id].read()}
            if changed:
                yield CurvesRead({run_id: follower.snapshot() for run_id, follower in changed.items()})
            pending = list(changed)

    def _poll_machine(self) -> Iterator[Message]:
        from ftui.machine.sample import Sample

        if not self._machine_begun and self.files.machine.exists():
            self._machine.skip_to_tail(MACHINE_TAIL_BYTES)
            self._machine_begun = True
        rows = self._machine.read()
        if rows:
            self._samples.extend(Sample.from_row(row) for row in rows[-MACHINE_SAMPLES:])
            yield MachineRead(list(self._samples))

    def _poll_gates(self) -> Iterator[Message]:
        if not self._state.gates:
            return
        latest = self._state.gates[-1].id
        found = (latest, sorted(read_gates(self.files.gates(latest).rows), key=place_of))
        if found != self._gates:
            self._gates = found
            plan = self._state.plan
            notes = gate_notes(describe_gates(self.files, self._state, plan)) if plan is not None else []
            yield GatesRead(*found, notes)

    def _poll_log(self) -> Iterator[Message]:
        wanted, fresh = self.wanted_log, False
        if self._log is None or wanted != self._log_run:
            path = self.files.supervisor_log if wanted is None else self.files.run(wanted).log
            self._log, self._log_run, fresh = LogTail(path), wanted, True
        if self._log.read() or fresh:
            yield LogRead(wanted, self._log.lines())

    def _poll_copies(self) -> Iterator[Message]:
        plan = self._state.plan
        if plan is None or plan.backup is None or time.monotonic() < self._safety_at + COPIES_SECONDS:
            return
        self._safety_at = time.monotonic()
        found = safety(self.files, plan.backup)
        if found != self._safety:
            self._safety = found
            yield CopiesRead(found)

    def curve(self, run_id: str) -> RunCurve:
        return self._curves[run_id].snapshot()


def planned_updates(state: Campaign) -> dict[str, int]:
    """Updates each run of the journal is to make; {} before the data is ready."""
    if state.plan is None or state.data is None:
        return {}
    totals: dict[str, int] = {}
    for run in state.runs.values():
        try:
            plan = run_plan(state.plan, run.variant, run.follow_up)
            totals[run.id] = 0 if run.kind == "baseline" else own_batches(plan, state.data).updates
        except (KeyError, ValueError):  # an amendment removed the variant of a run that was already queued
            totals[run.id] = run.updates
    return totals


class Reader(Thread):
    """Polls a `CampaignWatch` once a second and posts what it found."""

    def __init__(self, files: CampaignFiles, post: Callable[[Message], object]) -> None:
        super().__init__(name=f"reader of {files.name}", daemon=True)
        self._watch, self._post = CampaignWatch(files), post
        self._wake, self._ended = Event(), False

    def follow_log(self, run: str | None) -> None:
        """Show the log of `run` from the next poll on, which comes at once."""
        if self._watch.wanted_log != run:
            self._watch.wanted_log = run
            self._wake.set()

    def end(self) -> None:
        self._ended = True
        self._wake.set()

    def run(self) -> None:
        while not self._ended:
            self._wake.clear()
            for message in self._watch.poll():
                if self._ended:
                    return
                self._post(message)
            self._post(Polled())
            self._wake.wait(POLL_SECONDS)
