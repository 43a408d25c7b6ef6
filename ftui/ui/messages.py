"""What the reader tells a screen. A message carries values that nobody changes afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.message import Message

from ftui.record.backup import Safety
from ftui.record.rows import GateRow
from ftui.record.state import Campaign
from ftui.ui.curves import RunCurve

if TYPE_CHECKING:
    from ftui.machine.sample import Sample


@dataclass
class StateRead(Message):
    """The journal has new events, or the supervisor appeared or went."""

    state: Campaign
    alive: bool
    totals: dict[str, int]
    """Updates each run is to make; 0 for the baseline."""


@dataclass
class CurvesRead(Message):
    """Series have new rows: the runs that changed, whole."""

    curves: dict[str, RunCurve]


@dataclass
class MachineRead(Message):
    """New samples of the machine, oldest first, those already known included."""

    samples: list[Sample]


@dataclass
class GatesRead(Message):
    """The rows of the latest pass through the gates."""

    gates: str
    rows: list[GateRow]
    notes: list[str] = field(default_factory=list)
    """What the pilot's choice costs, and what would need less memory."""


@dataclass
class LogRead(Message):
    """The end of a run's log; `run` is None for the supervisor's own."""

    run: str | None
    lines: list[str]


@dataclass
class CopiesRead(Message):
    """What would be lost if the machine ended now; only for plans that say where copies go."""

    safety: Safety


class Polled(Message):
    """The reader has looked at everything; what is new was said before. About once a second."""


@dataclass
class ReadFailed(Message):
    """A file cannot be read; the sentence names it."""

    sentence: str
