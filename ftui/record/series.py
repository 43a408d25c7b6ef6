"""The curve of one run: updates and validation points in `series.jsonl`, written by rank 0, read by everybody (M6).

Rows:
    {"k": "update", "update": 1, "loss": …, "lr": …, "grad_norm": …, "examples": 16, "targets": 16, "tokens": 310,
     "skipped": null, "seconds": 0.21, "tokens_per_second": 1476.2, "at": …}
    {"k": "validation", "update": 50, "metrics": {"loss": …, "accuracy": …, …}, "memory": {"host": …}, "seconds": 2.1, "at": …}
    {"k": "checkpoint", "update": 50, "bytes": …, "seconds": …, "at": …}

`loss` is the mean over the update's targets; `lr` is the rate this update used; `skipped` says why the parameters stayed as they
were; `tokens` are those of the examples, without padding; `seconds` is the wall time of the update alone; `memory` the peak since the
last validation, in bytes: of the first process on the host, and on its device `allocated` and `reserved`.
A resumed run cuts the file back to its checkpoint first, so that every update stands once. Everything but time and memory is a
function of the settings.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ftui.record.lines import LineReader, LineWriter, Row, encode, header, number, read_rows

KIND, SCHEMA = "series", 1

CLOCK_FIELDS = ("seconds", "tokens_per_second", "memory", "at")
"""Fields that two identical runs may differ in."""


def series_writer(path: Path) -> LineWriter:
    return LineWriter(path, KIND, SCHEMA)


def read_series(path: Path) -> list[Row]:
    return read_rows(path, KIND, SCHEMA)


def cut_series_after(path: Path, update: int) -> int:
    """Drop every row behind `update`: they will be computed again. Returns how many were dropped."""
    rows = read_series(path)
    kept = [row for row in rows if row.get("update", 0) <= update]
    if len(kept) < len(rows):
        aside = path.with_name(path.name + ".cut")
        with aside.open("wb") as file:
            file.write(encode(header(KIND, SCHEMA)) + b"".join(map(encode, kept)))
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    return len(rows) - len(kept)


@dataclass
class Curve:
    """A run's series as columns, filled incrementally by `CurveReader`."""

    updates: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    validation_updates: list[int] = field(default_factory=list)
    validation: dict[str, list[float]] = field(default_factory=dict)
    """Metric name to its values, one per entry of `validation_updates` up to the last that has it; NaN where one lacks it."""
    last_at: str | None = None
    """When the newest row was written: the run's heartbeat."""

    def add(self, rows: list[Row]) -> None:
        for row in rows:
            self.last_at = row.get("at", self.last_at)
            if row["k"] == "update":
                self.updates.append(row["update"])
                self.loss.append(number(row["loss"]))
                self.lr.append(row["lr"])
                self.grad_norm.append(number(row["grad_norm"]))
                self.tokens.append(row.get("tokens", 0))
                self.seconds.append(row["seconds"])
            elif row["k"] == "validation":
                self.validation_updates.append(row["update"])
                for name, value in row["metrics"].items():
                    if isinstance(value, dict):
                        continue  # a table of slices; a curve is made of numbers
                    known = self.validation.setdefault(name, [])
                    known += [float("nan")] * (len(self.validation_updates) - 1 - len(known))
                    known.append(number(value))


class CurveReader:
    """Follows one run's series; `read` returns the curve and whether anything in it changed."""

    def __init__(self, path: Path) -> None:
        self._reader = LineReader(path, KIND, SCHEMA)
        self.curve = Curve()

    def read(self) -> tuple[Curve, bool]:
        rows = self._reader.read()
        if self._reader.restarted:
            self.curve = Curve()
        self.curve.add(rows)
        return self.curve, bool(rows) or self._reader.restarted
