"""Categories in class order: as the plan names them, else the sorted labels of the training rows (D6)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ftui.data.findings import Finding, error, warning
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
    allowed = trained if named is None else set(known)
    within = "data.labels" if named is not None else "train"
    for name in ("train", "validation", "test") if known else ():
        for row in splits[name]:
            if row.label not in allowed:
                near = difflib.get_close_matches(row.label, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "correct it, or add training rows of this category"
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
