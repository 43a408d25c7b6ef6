"""One run's series as growing arrays: filled in the reader's thread, handed to the screen as snapshots that never change."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ftui.record.journal import parse_time
from ftui.record.lines import LineReader, Row
from ftui.record.series import KIND, SCHEMA, Curve

CHUNK_BYTES = 2 << 20
"""Read at once: small enough that the screen stays alive while a long series is loaded."""

Array = NDArray[np.float64]
EMPTY: Array = np.empty(0)


class Growing:
    """A column that only grows. `view` shares memory with it, and stays valid: values once written are never touched."""

    def __init__(self) -> None:
        self._values = np.empty(256)
        self._count = 0

    def extend(self, values: list[float] | list[int]) -> None:
        needed = self._count + len(values)
        if needed > len(self._values):
            larger = np.empty(max(needed, 2 * len(self._values)))
            larger[: self._count] = self._values[: self._count]
            self._values = larger
        self._values[self._count : needed] = values
        self._count = needed

    def view(self) -> Array:
        return self._values[: self._count]


@dataclass(frozen=True)
class RunCurve:
    """A run's series as of one moment."""

    updates: Array = field(default_factory=lambda: EMPTY)
    loss: Array = field(default_factory=lambda: EMPTY)
    tokens: Array = field(default_factory=lambda: EMPTY)
    """Of each update, not summed."""
    seconds: Array = field(default_factory=lambda: EMPTY)
    """Wall time of each update, not summed."""
    validation_updates: Array = field(default_factory=lambda: EMPTY)
    validation: dict[str, Array] = field(default_factory=dict)
    last_at: float | None = None
    """When the newest row was written, in seconds since the epoch: the run's heartbeat."""

    @property
    def last_update(self) -> int:
        return int(self.updates[-1]) if len(self.updates) else 0


class CurveFollower:
    """Follows one series file, a chunk at a time."""

    def __init__(self, path: Path) -> None:
        self._reader = LineReader(path, KIND, SCHEMA)
        self._clear()

    def _clear(self) -> None:
        self._columns = {name: Growing() for name in ("updates", "loss", "tokens", "seconds")}
        self._validation_updates: list[float] = []
        self._validation: dict[str, list[float]] = {}
        self._last_at: str | None = None

    def read(self) -> bool:
        """Take in the next chunk; whether anything changed. Raises `NewerSchema`."""
        rows = self._reader.read(CHUNK_BYTES)
        if self._reader.restarted:
            self._clear()
        self._add(rows)
        return bool(rows) or self._reader.restarted

    def _add(self, rows: list[Row]) -> None:
        chunk = Curve()
        chunk.add(rows)
        for name, column in self._columns.items():
            column.extend(getattr(chunk, name))
        before = len(self._validation_updates)
        self._validation_updates += chunk.validation_updates
        for name in {*self._validation, *chunk.validation}:
            known = self._validation.setdefault(name, [float("nan")] * before)
            known += chunk.validation.get(name, [])
            known += [float("nan")] * (len(self._validation_updates) - len(known))
        self._last_at = chunk.last_at or self._last_at

    def snapshot(self) -> RunCurve:
        return RunCurve(
            **{name: column.view() for name, column in self._columns.items()},
            validation_updates=np.array(self._validation_updates, dtype=np.float64),
            validation={name: np.array(values, dtype=np.float64) for name, values in self._validation.items()},
            last_at=parse_time(self._last_at).timestamp() if self._last_at else None,
        )
