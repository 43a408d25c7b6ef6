"""Train, validation and test, split by a unit that prevents leakage (D3)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ftui.data.findings import Finding, error
from ftui.data.rows import Row
from ftui.data.sources import SPLITS
from ftui.plan.load import PLAN_FILE
from ftui.plan.schema import Split

SALT = "ftui split 1"
"""Makes the hash of a unit independent of other uses of the same hash; its number is the rule's version."""

Splits = dict[str, list[Row]]
"""Rows by split, in the order of the files."""


def unit_key(row: Row) -> str:
    """What decides a row's split: its unit, else its cleaned text, so that equal texts never part."""
    return f"unit {row.unit}" if row.unit is not None else f"text {row.text}"


def unit_position(key: str) -> float:
    """Where a unit falls in [0, 1): the first 8 bytes of SHA-256 over salt and key, as a share."""
    digest = hashlib.sha256(f"{SALT}\0{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def split_by_hash(rows: Sequence[Row], shares: Split) -> Splits:
    """Cut `rows` by the hash of their unit. A row's split depends on its unit alone: not on order or other rows."""
    splits: Splits = {name: [] for name in SPLITS}
    for row in rows:
        position = unit_position(unit_key(row))
        if position < shares.test:
            splits["test"].append(row)
        elif position < shares.test + shares.validation:
            splits["validation"].append(row)
        else:
            splits["train"].append(row)
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
