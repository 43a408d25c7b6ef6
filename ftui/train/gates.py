"""Trying one operation as a gate: measured, under a time limit, with its row on the disk before the next begins (S1, S2)."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal

import torch
from accelerate.utils import gather_object

from ftui.record.journal import stamp
from ftui.record.layout import GateFiles
from ftui.record.rows import GATE_NAMES, GateRow, gate_writer, gates_that_need
from ftui.record.secrets import redact
from ftui.train.memory import Meter
from ftui.train.process import announced, is_lost_peer
from ftui.train.shortage import find_shortage

HUNG = 1
"""Exit code of a process whose gate did not end in time."""


class GateFailed(Exception):
    """A gate did not pass, and nothing else can be tried in this process; its row is written."""


class Gatekeeper:
    """Tries gates one after the other. Of several processes the first writes the rows of all, and one that fails its own.

    A gate that fails is written down together with those that need it, and the others go on; where several processes would wait
    for each other, nothing does. `limit` is the seconds one gate may take: then the process says so and ends, whatever it hangs in.
    """

    def __init__(self, files: GateFiles, device: torch.device, limit: float) -> None:
        self._files, self._device, self._limit = files, device, limit
        self._rank, self._world = announced()
        self._lost: dict[str, str] = {}
        """Gates that are not tried any more, and the failed gate they need."""
        self.failed: list[str] = []
        """What failed, each as `gate: cause`."""

    def can_try(self, name: str) -> bool:
        """Whether all that gate `name` needs has passed in this process."""
        return name not in self._lost

    @contextmanager
    def gate(self, name: str, **inputs: Any) -> Iterator[dict[str, Any]]:
        """Measure the block as gate `name`; it puts what it finds into the yielded facts.

        An exception in it is the gate's failure and ends here. Raises `GateFailed` where several processes compute together.
        """
        facts: dict[str, Any] = {}
        meter = Meter(self._device)
        watch = threading.Timer(self._limit, self._end_hung, (name, inputs))
        watch.daemon = True
        watch.start()
        try:
            with meter:
                yield facts
        except Exception as error:
            watch.cancel()
            self._fail(name, error, inputs, facts, meter)
            return
        watch.cancel()
        passed = self._row(name, "passed", None, inputs=inputs, facts=facts, **meter.measured())
        rows = gather_object([passed]) if self._world > 1 else [passed]
        if self._rank == 0:
            self._write(rows)

    def skip(self, name: str, failed: str) -> None:
        """Gate `name` and those that need it cannot be tried any more, for `failed` left nothing to try them with."""
        new = [gate for gate in (name, *gates_that_need(name)) if gate not in self._lost]
        self._lost |= dict.fromkeys(new, failed)
        if self._rank == 0:
            self._write([self._skipped(gate, failed) for gate in new])

    def _fail(self, name: str, error: Exception, inputs: dict[str, Any], facts: dict[str, Any], meter: Meter) -> None:
        shortage = find_shortage(error)
        text = redact(" ".join(str(error).split()))
        cause = text if type(error).__module__.startswith("ftui.") else f"{type(error).__name__}: {text}"
        if shortage is not None:
            cause, facts["out_of_memory"] = shortage.sentence(), shortage.content()
        self.failed.append(f"{name}: {cause}")
        later = gates_that_need(name) if self._world == 1 else list(GATE_NAMES[GATE_NAMES.index(name) + 1 :])
        new = [gate for gate in later if gate not in self._lost]
        self._lost |= dict.fromkeys(new, name)
        if not (self._world > 1 and is_lost_peer(error)):
            failed = self._row(name, "failed", cause, inputs=inputs, facts=facts, **meter.measured())
            self._write([failed, *(self._skipped(gate, name) for gate in new)])
        if self._world > 1:
            raise GateFailed(f"{name}: {cause}") from error

    def _end_hung(self, name: str, inputs: dict[str, Any]) -> None:
        """Write the row of a gate that does not end, and end the process: what hangs in a library cannot be interrupted."""
        cause = f"did not end within {self._limit:,.0f} s, the time the plan leaves a gate"
        failed = self._row(name, "failed", cause, inputs=inputs, seconds=self._limit)
        later = [gate for gate in GATE_NAMES[GATE_NAMES.index(name) + 1 :] if gate not in self._lost]
        with suppress(OSError):
            self._write([failed, *(self._skipped(gate, name) for gate in later)])
        with suppress(OSError):
            print(f"ftui: {name}: {cause}", flush=True)
            sys.stdout.flush()
        os._exit(HUNG)

    def _skipped(self, gate: str, failed: str) -> GateRow:
        return self._row(gate, "skipped", f"depends on {failed!r}, which failed", seconds=0.0)

    def _row(
        self, gate: str, verdict: Literal["passed", "failed", "skipped"], cause: str | None, **more: Any
    ) -> GateRow:
        device = str(self._device)
        return GateRow(gate=gate, rank=self._rank, device=device, verdict=verdict, cause=cause, at=stamp(), **more)

    def _write(self, rows: list[GateRow]) -> None:
        with gate_writer(self._files.rows) as writer:
            for row in rows:
                writer.write(row.model_dump())
