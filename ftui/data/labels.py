"""Categories in class order: as the plan names them, else the sorted labels of the training rows (D6)."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from ftui.data.findings import Finding, error, warning
from ftui.data.rows import Row
from ftui.data.split import Splits, count_categories
from ftui.plan.load import PLAN_FILE

_NAMELESS = re.compile(r"LABEL_\d+")
"""What transformers calls a class nobody named."""


def class_order(splits: Splits, named: Sequence[str] | None = None) -> list[str]:
    """Labels of train in class order: the position is the class id. `named` is the plan's order."""
    return list(named) if named is not None else sorted({row.label for row in splits["train"]})


def slice_names(splits: Splits) -> list[str]:
    """Categories of all splits, sorted: for a generation they are slices of its answers, not classes that train must know."""
    return sorted({row.label for rows in splits.values() for row in rows})


def check_labels(splits: Splits, column: str, named: Sequence[str] | None = None) -> Iterator[Finding]:
    """Labels that training does not know, classes absent from a split, and data with fewer than two classes."""
    trained = {row.label for row in splits["train"]}
    known = class_order(splits, named)
    hints = dict.fromkeys(trained if named is None else known, "")
    within = "data.labels" if named is not None else "train"
    yield from _mixed_kinds(splits, column)
    yield from _near_names(splits, column)
    for name in ("train", "validation", "test") if known else ():
        for row in splits[name]:
            if row.label not in hints:
                near = difflib.get_close_matches(row.label, known, n=1)
                hints[row.label] = (
                    f"did you mean {near[0]!r}?" if near else "correct it, or add training rows of this category"
                )
            if hint := hints[row.label]:
                message = f"the label {row.label!r} of {name} is not among the {len(known)} labels of {within}; {hint}"
                yield error(row.place, column, message, "unknown label")
    if len(trained) == 1 and splits["train"]:
        message = f"train holds one label only ({min(trained)!r}); there is nothing to tell apart"
        yield error(PLAN_FILE, "data.train", message, "one class")
    for label in known if splits["train"] else ():
        if label not in trained:
            message = f"no row of train has the label {label!r}, so it cannot be learnt; add rows, or take it out"
            yield error(PLAN_FILE, "data.labels", message, "class without rows")
    for label, counts in count_categories(splits).items():
        for name in ("validation", "test"):
            if label in trained and splits[name] and not counts[name]:
                message = f"no row of {name} has the label {label!r}; nothing will be known about it there"
                yield warning(PLAN_FILE, f"data.{name}", message, "class absent")


def check_model_labels(labels: Sequence[str], model_dir: Path) -> Iterator[Finding]:
    """What the base model calls its classes against the plan's: a trained head of as many outputs is kept, in its own order.

    The same classes in another order would make every answer of the base wrong: an error. Other names are a warning.
    """
    own = model_labels(model_dir)
    if len(own) != len(labels) or own == list(labels):
        return
    if set(own) == set(labels):
        index = next(i for i, (mine, theirs) in enumerate(zip(labels, own, strict=True)) if mine != theirs)
        order = json.dumps(own, ensure_ascii=False)
        message = (
            f"the base model has a trained head for the same {len(own)} categories in another order: its class {index} is {own[index]!r}, "
            f"here it is {labels[index]!r}; take its order: data.labels = {order}"
        )
        yield error(PLAN_FILE, "data.labels", message, "order of classes")
    else:
        message = (
            f"the base model has a trained head with as many outputs ({len(own)}: {', '.join(own[:5])}{' …' if len(own) > 5 else ''}), "
            "which the run starts from; say with data.labels which of your categories takes which place"
        )
        yield warning(PLAN_FILE, "data.labels", message, "classes of the base")


def model_labels(model_dir: Path) -> list[str]:
    """The classes the base model names in its `config.json`, in order; [] where it names none."""
    try:
        stored = json.loads((model_dir / "config.json").read_text(encoding="utf-8")).get("id2label")
        names = [str(stored[key]) for key in sorted(stored, key=int)] if isinstance(stored, dict) else []
    except (OSError, ValueError, AttributeError):
        return []
    return [] if all(_NAMELESS.fullmatch(name) for name in names) else names


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
