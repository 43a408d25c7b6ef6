"""Train, validation and test, split by a unit or a time that prevents leakage, or in proportion where there is neither (D3).

A cut follows from the rows' content alone, never from their order: shuffled files give the same splits.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from ftui.data.findings import Finding, error
from ftui.data.rows import Row
from ftui.data.sources import SPLITS
from ftui.plan.load import PLAN_FILE
from ftui.plan.schema import Data, Split

SALT = "ftui split 1"
"""Makes the hash of a unit independent of other uses of the same hash; its number is the rule's version."""

Splits = dict[str, list[Row]]
"""Rows by split, in the order of the files."""

How = Literal["hash", "stratified", "time"]


def how_to_cut(data: Data, *, has_classes: bool) -> How:
    """The rule that cuts the splits of `data`, where no files are given for them (see `plan.schema.Split.by`)."""
    if data.split.by is not None:
        return data.split.by
    if data.time is not None:
        return "time"
    return "hash" if data.unit is not None or not has_classes else "stratified"


def cut(rows: Sequence[Row], shares: Split, how: How) -> Splits:
    """Cut `rows` into splits; each keeps the order of `rows`."""
    match how:
        case "stratified":
            return split_by_category(rows, shares)
        case "time":
            return split_by_time(rows, shares)
    return split_by_hash(rows, shares)


def unit_key(row: Row) -> str:
    """What decides a row's split: its unit, else its cleaned text, so that equal texts never part."""
    return f"unit {row.unit}" if row.unit is not None else f"text {row.text}"


def unit_position(key: str) -> float:
    """Where a unit falls in [0, 1): the first 8 bytes of SHA-256 over salt and key, as a share."""
    digest = hashlib.sha256(f"{SALT}\0{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def split_by_hash(rows: Sequence[Row], shares: Split) -> Splits:
    """Cut `rows` by the hash of their unit. A row's split depends on its unit alone: not on order or other rows."""
    return _dealt(rows, {key: _split_at(unit_position(key), shares) for key in {unit_key(row) for row in rows}})


def split_by_category(rows: Sequence[Row], shares: Split) -> Splits:
    """Cut `rows` so that the shares are met within each category; one of three texts or more is in every split.

    Within a category, texts are taken in the order of their hashes. A text that stands in several categories counts in the
    first of them by name.
    """
    category: dict[str, str] = {}
    for row in rows:
        key = unit_key(row)
        category[key] = min(category.get(key, row.label), row.label)
    members: dict[str, list[str]] = defaultdict(list)
    for key, label in category.items():
        members[label].append(key)
    chosen: dict[str, str] = {}
    for keys in members.values():
        keys.sort(key=lambda key: (unit_position(key), key))
        test, validation = _parts(len(keys), shares)
        names = ["test"] * test + ["validation"] * validation + ["train"] * (len(keys) - test - validation)
        chosen |= dict(zip(keys, names, strict=True))
    return _dealt(rows, chosen)


def split_by_time(rows: Sequence[Row], shares: Split) -> Splits:
    """Cut `rows` by time: the earliest are trained on, the latest are the test. Rows of one moment never part.

    A unit counts with the time of its last row and stays whole, so what is trained on has ended when the test's units end.
    Rows without a time are left to train; a finding says so before (`leaks.missing_times`).
    """
    last: dict[str, float] = {}
    size: dict[str, int] = defaultdict(int)
    for index, row in enumerate(rows):
        key = _time_key(row, index)
        size[key] += 1
        last[key] = max(last.get(key, -math.inf), -math.inf if row.time is None else row.time)
    wanted = {"test": round(len(rows) * shares.test), "validation": round(len(rows) * shares.validation)}
    chosen: dict[str, str] = {}
    names, taken, now = iter(wanted), 0, math.inf
    name = next(names)
    for key in sorted(last, key=lambda key: (-last[key], key)):
        if taken >= wanted.get(name, len(rows)) and last[key] < now:
            name, taken = next(names, "train"), 0
        chosen[key], taken, now = name, taken + size[key], last[key]
    splits: Splits = {name: [] for name in SPLITS}
    for index, row in enumerate(rows):
        splits[chosen[_time_key(row, index)]].append(row)
    return splits


def check_shares(shares: Split) -> Iterator[Finding]:
    """Shares that leave a split without rows, whatever the data."""
    if shares.validation + shares.test >= 1:
        total = shares.validation + shares.test
        message = f"validation and test take {total:g} of the rows and leave nothing to train on; make them smaller"
        yield error(PLAN_FILE, "data.split", message, "shares")
    for name in ("validation", "test"):
        if getattr(shares, name) == 0:
            message = f"the share is 0, and no file is given for {name}; every campaign needs one"
            yield error(PLAN_FILE, f"data.split.{name}", message, "shares")


def empty_splits(splits: Splits) -> Iterator[Finding]:
    """An error for each split without rows."""
    for name, rows in splits.items():
        if not rows:
            message = "no rows are left in this split; give it more data or a larger share"
            yield error(PLAN_FILE, f"data.{name}", message, "empty split")


def count_categories(splits: Splits) -> dict[str, dict[str, int]]:
    """Rows per category and split: `counts[category][split]`, categories sorted."""
    counts = {label: dict.fromkeys(SPLITS, 0) for label in sorted({r.label for rows in splits.values() for r in rows})}
    for name, rows in splits.items():
        for row in rows:
            counts[row.label][name] += 1
    return counts


def count_fields(splits: Splits, fields: Sequence[str]) -> dict[str, dict[str, int]]:
    """Extraction: rows of each split whose answer gives a field, `counts[field][split]`."""
    counts = {field: dict.fromkeys(SPLITS, 0) for field in fields}
    for name, rows in splits.items():
        for row in rows:
            for field, value in json.loads(row.answer).items():
                if field in counts:  # a schema may allow more than it describes
                    counts[field][name] += value not in (None, "", [])
    return counts


def _split_at(position: float, shares: Split) -> str:
    if position < shares.test:
        return "test"
    return "validation" if position < shares.test + shares.validation else "train"


def _parts(count: int, shares: Split) -> tuple[int, int]:
    """How many of `count` texts go to test and to validation."""
    least = int(count >= len(SPLITS))
    test, validation = max(least, round(count * shares.test)), max(least, round(count * shares.validation))
    return min(test, count), min(validation, max(0, count - test))


def _time_key(row: Row, index: int) -> str:
    return unit_key(row) if row.unit is not None else str(index)


def _dealt(rows: Sequence[Row], chosen: dict[str, str]) -> Splits:
    splits: Splits = {name: [] for name in SPLITS}
    for row in rows:
        splits[chosen[unit_key(row)]].append(row)
    return splits
