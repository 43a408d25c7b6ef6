"""Categories in class order: the sorted labels of the training rows (D6)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from ftui.data.findings import Finding, error, warning
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
    for name in ("validation", "test") if known else ():
        for row in splits[name]:
            if row.label not in known:
                near = difflib.get_close_matches(row.label, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "correct it, or add training rows of this category"
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
