"""What the runs of a campaign have really cost so far, and what every run costs by that (R3).

The pilot measures a few updates of the control. As soon as runs train, their own updates, validations and checkpoints are known
better; a variant of which nothing has run yet is corrected by what the others turned out to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from ftui.plan.budget import Spread
from ftui.plan.durations import RunCosts
from ftui.record.estimates import WIDER
from ftui.record.journal import parse_time
from ftui.record.lines import LineReader, Row
from ftui.record.series import KIND, SCHEMA

ENOUGH_UPDATES = 20
"""Updates of a variant after which they are believed instead of the pilot's."""

BLOCK = 20
"""Updates whose mean is one observation: a single slow update says little about a thousand of them."""

READ_BYTES = 1 << 20
"""Most that one look reads of a run, so that a long series does not hold a supervisor up."""


@dataclass
class Spent:
    """Seconds of one run's operations, summed over its series."""

    updates: int = 0
    """The newest update."""
    counted: int = 0
    seconds: float = 0.0
    """Of all counted updates, the time between them included."""
    lowest: float = float("inf")
    highest: float = 0.0
    """Least and most seconds per update over a block of them."""
    others: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Number and seconds of validations and of checkpoints."""
    _block: list[float] = field(default_factory=list)
    _last_at: str | None = None

    def add(self, rows: list[Row]) -> None:
        for row in rows:
            takes = self._seconds(row)
            self._last_at = row["at"]
            if row["k"] != "update":
                count, seconds = self.others.get(row["k"], (0, 0.0))
                self.others[row["k"]] = (count + 1, seconds + takes)
                continue
            self.updates, self.counted, self.seconds = row["update"], self.counted + 1, self.seconds + takes
            self._block.append(takes)
            if len(self._block) == BLOCK:
                mean = sum(self._block) / BLOCK
                self.lowest, self.highest = min(self.lowest, mean), max(self.highest, mean)
                self._block.clear()

    def _seconds(self, row: Row) -> float:
        """What the row's operation took with what went before it since the last row: reading data, for example. A clock that was set,
        a machine that was suspended and a run that was resumed are no part of it."""
        own = float(row["seconds"])
        if self._last_at is None:
            return own
        between = (parse_time(row["at"]) - parse_time(self._last_at)) / timedelta(seconds=1)
        return between if own <= between <= 2 * own + 1 else own


class SpentReader:
    """Follows one run's series; `read` costs no more than the new rows do."""

    def __init__(self, path: Path) -> None:
        self._reader = LineReader(path, KIND, SCHEMA)
        self.spent = Spent()

    def read(self, limit_bytes: int | None = READ_BYTES) -> Spent:
        """What was spent up to now, or up to so many bytes further than before."""
        rows = self._reader.read(limit_bytes)
        if self._reader.restarted:
            self.spent = Spent()
        self.spent.add(rows)
        return self.spent


def current_costs(
    pilot: Mapping[str, RunCosts], spent: Mapping[str, Spent], variants: Mapping[str, str]
) -> dict[str, RunCosts]:
    """The pilot's costs, corrected by what runs have `spent`; `variants` names the variant of each run.

    A variant's own updates count as soon as there are enough of them: their mean, and as range the extremes of their blocks. Other
    variants' updates are scaled by how much the measured ones differ from the pilot's: on average, and at both extremes.
    """
    own: dict[str, list[Spent]] = {}
    for run, of_run in spent.items():
        own.setdefault(variants[run], []).append(of_run)
    updates = {name: _per_update(group) for name, group in own.items() if name in pilot}
    known = {name: spread for name, spread in updates.items() if spread is not None}
    ratios = [_divided(spread, pilot[name].update.seconds) for name, spread in known.items()]
    everyone = list(spent.values())
    costs = {}
    for name, measured in pilot.items():
        update = known.get(name) or _scaled(measured.update, ratios)
        validation = _once(everyone, "validation") or measured.validation
        checkpoint = _once(everyone, "checkpoint") or measured.checkpoint
        costs[name] = replace(measured, update=update, validation=validation, checkpoint=checkpoint)
    return costs


def _per_update(group: list[Spent]) -> Spread | None:
    counted = sum(one.counted for one in group)
    if counted < ENOUGH_UPDATES:
        return None
    mean = sum(one.seconds for one in group) / counted
    return Spread(mean, min(mean, *(one.lowest for one in group)), max(mean, *(one.highest for one in group)))


def _divided(spread: Spread, seconds: float) -> Spread:
    return spread.times(1 / seconds) if seconds > 0 else Spread(1, 1, 1)


def _scaled(update: Spread, ratios: list[Spread]) -> Spread:
    if not ratios:
        return update
    middle = update.seconds * sum(ratio.seconds for ratio in ratios) / len(ratios)
    low = update.seconds * min(ratio.low for ratio in ratios)
    return Spread(middle, min(low, middle), max(update.seconds * max(ratio.high for ratio in ratios), middle))


def _once(group: list[Spent], kind: str) -> Spread | None:
    """One operation of that kind, by all there were."""
    count = sum(one.others.get(kind, (0, 0.0))[0] for one in group)
    if not count:
        return None
    mean = sum(one.others.get(kind, (0, 0.0))[1] for one in group) / count
    return Spread(mean, mean / WIDER, mean * WIDER)
