"""What connects rows across splits besides their text: a unit in two of them, a time out of order, a unit nobody named (D3)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ftui.data.findings import Finding, error, warning
from ftui.data.rows import Row, missing, shown
from ftui.data.split import Splits
from ftui.plan.load import PLAN_FILE

_UNIT_NAME = re.compile(
    r"(^|_|\b)(id|group|unit|thread|session|conversation|dialog(ue)?|chat|doc(ument)?|source|patient|subject|user|author|speaker|"
    r"customer|client|case|ticket|episode|article|page|url)(_?id)?$",
    re.IGNORECASE,
)
"""Names by which people call a column that says what rows belong to."""

FEWEST_VALUES = 10
"""Values below which a column is a category rather than a unit."""


def crossing_units(splits: Splits, column: str) -> Iterator[Finding]:
    """An error for each unit that is in more than one split."""
    first: dict[str, dict[str, Row]] = defaultdict(dict)
    for name, rows in splits.items():
        for row in rows:
            if row.unit is not None:
                first[row.unit].setdefault(name, row)
    for unit, places in first.items():
        if len(places) > 1:
            (name, row), *others = places.items()
            also = " and ".join(f"in {other} ({place.place})" for other, place in others)
            message = (
                f"{column} {unit!r} is in {name} and also {also}; keep its rows in one split, "
                "or name only `train` and let the splits be cut by unit"
            )
            yield error(row.place, column, message, "unit in two splits")


def time_of(record: dict[str, Any], column: str, place: str) -> float | Finding:
    """When a record is from: a number as it stands, or a date or time (ISO 8601, UTC where it names no zone) in seconds since 1970."""
    if column not in record:
        return missing(record, column, place)
    value = record[column]
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(value.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            pass
    message = f"the time is {shown(value)}; it must be a number, or a date or time such as 2026-12-01T09:00:00+01:00"
    return error(place, column, message, "no time")


def time_order(splits: Splits, column: str) -> Iterator[Finding]:
    """An error for each pair of splits whose rows are not in order: what is trained on must come before what it is judged by."""
    for earlier, later in (("train", "validation"), ("train", "test"), ("validation", "test")):
        begun = min((row for row in splits[later] if row.time is not None), key=_when, default=None)
        if begun is None:
            continue
        late = [row for row in splits[earlier] if row.time is not None and row.time > _when(begun)]
        if late:
            message = (
                f"{len(late):,} of {len(splits[earlier]):,} rows of {earlier} are later than the first of {later} ({begun.place}), this "
                f"one among them: what lies ahead would be known; move them, or name only `train` and let the splits be cut by {column}"
            )
            yield error(late[0].place, column, message, f"{earlier} after {later} began")


def missing_times(splits: Splits, column: str) -> Iterator[Finding]:
    """An error where rows have no time because their files have no columns (folders of pictures)."""
    for name, rows in splits.items():
        row = next((row for row in rows if row.time is None), None)
        if row is not None:
            message = (
                f"rows of {name} have no {column}: a folder has no columns; list its pictures in a file that has one"
            )
            yield error(PLAN_FILE, "data.time", message, "no time")


class UnnamedUnits:
    """Watches columns the plan does not read and whose name and values look as if they said which rows belong together."""

    def __init__(self, used: set[str]) -> None:
        self._used = used
        self._values: dict[str, dict[str, dict[Any, int]]] = {}

    def see(self, split: str, record: dict[str, Any]) -> None:
        """Count the values of one record of a file of `split`."""
        for column, value in record.items():
            if column not in self._used and isinstance(value, str | int) and _UNIT_NAME.search(column):
                values = self._values.setdefault(column, {}).setdefault(split, {})
                values[value] = values.get(value, 0) + 1

    def findings(self, *, cut: bool) -> Iterator[Finding]:
        """A warning per column of which values repeat and are in several splits; with `cut`, the splits are still to be cut."""
        for column, splits in self._values.items():
            rows = sum(sum(values.values()) for values in splits.values())
            every = {value for values in splits.values() for value in values}
            if len(every) < FEWEST_VALUES or rows < 2 * len(every):
                continue
            about = f"{column} has {len(every):,} values in {rows:,} rows"
            if cut:
                message = (
                    f"{about}, and the splits are cut without it: rows of one {column} can fall on both sides, and what is measured is "
                    f'then partly remembered; if they belong together, set data.unit = "{column}"'
                )
                yield warning(PLAN_FILE, "data.unit", message, "unit not named")
                continue
            trained = splits.get("train", {})
            shared = {
                value for name, values in splits.items() if name != "train" for value in values if value in trained
            }
            if shared:
                message = (
                    f"{about}, and {len(shared):,} of them are in train and also in validation or test: what is measured there may "
                    f'partly be remembered; if rows of one {column} belong together, set data.unit = "{column}" and name only `train`'
                )
                yield warning(PLAN_FILE, "data.unit", message, "unit not named")


def _when(row: Row) -> float:
    return float("inf") if row.time is None else row.time
