"""Categories in class order: the sorted labels of the training rows (D6)."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator

from ftui.data.findings import Finding, error, warning
from ftui.data.rows import Row
from ftui.data.split import Splits, count_categories
from ftui.plan.load import PLAN_FILE


def class_order(splits: Splits) -> list[str]:
    """Labels of train, sorted; the position is the class id."""
    return sorted({row.label for row in splits["train"]})


def slice_names(splits: Splits) -> list[str]:
    """Categories of all splits, sorted: for a generation they are slices of its answers, not classes that train must know."""
    return sorted({row.label for rows in splits.values() for row in rows})


def check_labels(splits: Splits, column: str) -> Iterator[Finding]:
    """Labels that training does not know, classes absent from a split, and data with fewer than two classes."""
    known = class_order(splits)
    hints = dict.fromkeys(known, "")
    yield from _mixed_kinds(splits, column)
    yield from _near_names(splits, column)
    for name in ("validation", "test") if known else ():
        for row in splits[name]:
            if row.label not in hints:
                near = difflib.get_close_matches(row.label, known, n=1)
                hints[row.label] = (
                    f"did you mean {near[0]!r}?" if near else "correct it, or add training rows of this category"
                )
            if hint := hints[row.label]:
                message = f"the label {row.label!r} of {name} is not among the {len(known)} labels of train; {hint}"
                yield error(row.place, column, message, "unknown label")
    if len(known) < 2 and splits["train"]:
        message = f"train holds one label only ({known[0]!r}); there is nothing to tell apart"
        yield error(PLAN_FILE, "data.train", message, "one class")
    for label, counts in count_categories(splits).items():
        for name in ("validation", "test"):
            if label in known and splits[name] and not counts[name]:
                message = f"no row of {name} has the label {label!r}; nothing will be known about it there"
                yield warning(PLAN_FILE, f"data.{name}", message, "class absent")


def _mixed_kinds(splits: Splits, column: str) -> Iterator[Finding]:
    """Categories that one file writes as a text here and as a number there, which become one name."""
    found: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for rows in splits.values():
        for row in rows:
            found[row.file, row.label][row.label_as].append(row)
    for (_, label), kinds in found.items():
        if len(kinds) > 1:
            ways = " and ".join(f"as {kind} in {_rows(rows)}" for kind, rows in kinds.items())
            place = min((rows[0] for rows in kinds.values()), key=lambda row: row.line).place
            message = f"the label {label!r} is written {ways}; they were taken for one category: write them alike"
            yield warning(place, column, message, "label of two kinds")


def _near_names(splits: Splits, column: str) -> Iterator[Finding]:
    """Categories of train that differ only in case, spaces, hyphens or underscores."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in splits["train"]:
        rows[row.label].append(row)
    names: dict[str, list[str]] = defaultdict(list)
    for label in rows:
        names[_plain_name(label)].append(label)
    for alike in names.values():
        if len(alike) > 1:
            said = " and ".join(f"{label!r} ({_rows(rows[label])})" for label in alike)
            rarest = min(alike, key=lambda label: len(rows[label]))
            message = (
                f"the labels {said} differ only in how they are written, and are separate categories; write them alike"
            )
            yield warning(rows[rarest][0].place, column, message, "labels alike")


def _plain_name(label: str) -> str:
    return re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", label).casefold()).strip() or label


def _rows(rows: list[Row]) -> str:
    return f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}, first {rows[0].place}"
