"""Forms of the smaller records: gate rows, predictions, outcomes, machine samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ftui.record.files import read_json, replace_json
from ftui.record.journal import stamp
from ftui.record.lines import LineReader, LineWriter, Row, read_rows, with_words

GATES, GATES_SCHEMA = "gates", 1
PREDICTIONS, PREDICTIONS_SCHEMA = "predictions", 1
MACHINE, MACHINE_SCHEMA = "machine", 1
OUTCOME_SCHEMA = 1

GATE_NEEDS: dict[str, tuple[str, ...]] = {
    "data": (),
    "load": ("data",),
    "first update": ("load",),
    "steady update": ("first update",),
    "parameters moved": ("steady update",),
    "evaluation": ("load",),
    "checkpoint": ("steady update",),
    "tiny subset": ("first update",),
    "resume": ("checkpoint",),
    "export": ("checkpoint",),
    "disk": ("export",),
    "reload": ("export",),
}
"""The gates in order, and the gates whose success each of them needs; what does not depend on a failed one is tried all the same."""

GATE_NAMES = tuple(GATE_NEEDS)

GATE_PROCESSES = {"pilot": "data", "resume": "resume", "reload": "reload"}
"""The processes that try the gates, by their verb, and the first gate of each: what is proved of a new process needs one."""

Status = Literal["completed", "stopped", "diverged", "failed", "lost"]


class GateRow(BaseModel):
    """One gate on one process (S1, S2). Bytes and seconds; None where the device does not tell."""

    model_config = ConfigDict(frozen=True)

    gate: str
    rank: int = 0
    device: str
    verdict: Literal["passed", "failed", "skipped"]
    cause: str | None = None
    seconds: float
    inputs: dict[str, Any] = {}
    """What the gate ran on, e.g. micro-batch and length."""
    facts: dict[str, Any] = {}
    """What was found besides memory and time, e.g. trainable parameters or seconds per update."""
    allocated_before: int | None = None
    allocated_peak: int | None = None
    reserved_before: int | None = None
    reserved_peak: int | None = None
    device_used: int | None = None
    host_before: int | None = None
    host_peak: int | None = None
    at: str


def gates_that_need(gate: str) -> list[str]:
    """Every gate that cannot be tried once `gate` has failed, in order."""
    lost = {gate}
    for name, needs in GATE_NEEDS.items():
        if lost & set(needs):
            lost.add(name)
    return [name for name in GATE_NAMES if name in lost - {gate}]


def next_gate_process(rows: Sequence[GateRow]) -> str | None:
    """Verb of the process that has gates left to try, None when all were tried or cannot be."""
    tried = {row.gate for row in rows}
    return next((verb for verb, first in GATE_PROCESSES.items() if first not in tried), None)


def gate_writer(path: Path) -> LineWriter:
    return LineWriter(path, GATES, GATES_SCHEMA, sync=True)


def read_gates(path: Path) -> list[GateRow]:
    """Gate rows in the order they were written, [] when there are none yet."""
    return [GateRow.model_validate(row) for row in read_rows(path, GATES, GATES_SCHEMA)]


def prediction_writer(path: Path) -> LineWriter:
    """Writes one row per example: `id`, `category` (its slice), `target`, `output`, `correct`, `loss`, `probability`.

    `probability` is that of the output, `loss` that of the target.
    """
    return LineWriter(path, PREDICTIONS, PREDICTIONS_SCHEMA)


def read_predictions(path: Path) -> list[Row]:
    return read_rows(path, PREDICTIONS, PREDICTIONS_SCHEMA)


class Outcome(BaseModel):
    """How a run's latest attempt ended."""

    outcome_schema: int = OUTCOME_SCHEMA
    status: Status
    cause: str | None = None
    """One sentence, None when completed."""
    updates: int
    """Updates completed, over all attempts."""
    attempt: int
    metrics: dict[str, Any] = {}
    """The last validation's metrics."""
    at: str


def write_outcome(
    path: Path,
    status: Status,
    *,
    updates: int,
    attempt: int,
    cause: str | None = None,
    metrics: dict[str, Any] | None = None,
) -> Outcome:
    kept = with_words(metrics or {})
    outcome = Outcome(status=status, cause=cause, updates=updates, attempt=attempt, metrics=kept, at=stamp())
    replace_json(path, outcome.model_dump())
    return outcome


def read_outcome(path: Path) -> Outcome | None:
    """The outcome, None while there is none."""
    try:
        return Outcome.model_validate(read_json(path))
    except FileNotFoundError:
        return None


def machine_writer(path: Path) -> LineWriter:
    """Writes samples as `ftui.machine.sample.Sample.row` makes them."""
    return LineWriter(path, MACHINE, MACHINE_SCHEMA)


def machine_reader(path: Path) -> LineReader:
    return LineReader(path, MACHINE, MACHINE_SCHEMA)
