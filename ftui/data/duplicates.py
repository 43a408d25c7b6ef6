"""Equal texts within and across splits, compared after cleaning, and the plan's policy for them (D4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from ftui.data.findings import Finding, error, warning
from ftui.data.rows import Row
from ftui.data.sources import SPLITS
from ftui.data.split import Splits
from ftui.plan.schema import Duplicates
from ftui.record.text import safe

EXAMPLES = 20
"""Groups of equal rows written out for each pair of splits."""


@dataclass(frozen=True)
class Dropped:
    """A training row that was left out, and why."""

    row: Row
    reason: str
    equals: Row
    """The row that stays."""


@dataclass(frozen=True)
class Pair:
    """Texts found in both of two splits; the same split twice means repeated within it."""

    first: str
    second: str
    groups: list[tuple[list[Row], list[Row]]]
    """Per text: the rows of `first` and of `second`; within one split, the first row and its repetitions."""

    @property
    def name(self) -> str:
        return f"within {self.first}" if self.first == self.second else f"{self.first} and {self.second}"

    @property
    def only_after_cleaning(self) -> int:
        """Texts of which no two rows on either side were equal before cleaning."""
        return sum(not {r.raw for r in a} & {r.raw for r in b} for a, b in self.groups)

    @property
    def other_labels(self) -> int:
        """Texts whose rows do not all have the same label or answer."""
        return sum(len({row.wanted for row in (*a, *b)}) > 1 for a, b in self.groups)

    def content(self) -> dict[str, Any]:
        """For `leakage.json`: counts, and the first groups with the places of their rows."""
        return {
            "splits": [self.first, self.second],
            "texts": len(self.groups),
            "rows": [sum(len(a) for a, _ in self.groups), sum(len(b) for _, b in self.groups)],
            "only_after_cleaning": self.only_after_cleaning,
            "with_other_labels": self.other_labels,
            "examples": [
                {
                    "text": a[0].text,
                    "rows": [row_place(self.first, r) for r in a] + [row_place(self.second, r) for r in b],
                }
                for a, b in self.groups[:EXAMPLES]
            ],
        }


def row_place(split: str, row: Row) -> dict[str, Any]:
    """Where a row is, for `leakage.json`."""
    return {"split": split, "id": row.id, "file": row.file, "line": row.line, "label": row.label, "raw": row.raw}


def find_pairs(splits: Splits) -> list[Pair]:
    """Every pair of splits, the same one twice included, with the texts they share (none, often)."""
    by_text: dict[str, dict[str, list[Row]]] = {name: defaultdict(list) for name in SPLITS}
    for name, rows in splits.items():
        for row in rows:
            by_text[name][row.text].append(row)
    pairs = []
    for first, second in combinations_with_replacement(SPLITS, 2):
        if first == second:
            groups = [(rows[:1], rows[1:]) for rows in by_text[first].values() if len(rows) > 1]
        else:
            groups = [(rows, by_text[second][text]) for text, rows in by_text[first].items() if text in by_text[second]]
        pairs.append(Pair(first, second, groups))
    return pairs


def drop_from_train(pairs: list[Pair], policy: Duplicates) -> list[Dropped]:
    """Training rows that the policy leaves out, each once, in the order of the pairs."""
    dropped: dict[int, Dropped] = {}
    for pair in pairs:
        if pair.first != "train":
            continue
        if pair.second == "train" and policy.within_train == "drop":
            for (kept, *_), repeated in pair.groups:
                for row in repeated:
                    dropped[id(row)] = Dropped(row, "repeats a row of train", kept)
        elif pair.second != "train" and policy.across == "drop-from-train":
            for rows, others in pair.groups:
                for row in rows:
                    dropped[id(row)] = Dropped(row, f"its text is also in {pair.second}", others[0])
    return list(dropped.values())


def without(splits: Splits, dropped: list[Dropped]) -> Splits:
    """The splits without the dropped rows."""
    gone = {id(drop.row) for drop in dropped}
    return {name: [row for row in rows if id(row) not in gone] for name, rows in splits.items()}


def duplicate_findings(pairs: list[Pair], policy: Duplicates, column: str) -> Iterator[Finding]:
    """One finding per pair that shares texts, by the policy; one more where equal texts carry different labels."""
    for pair in pairs:
        if not pair.groups:
            continue
        place, kind = pair.groups[0][0][0].place, f"equal texts {pair.name}"
        yield _finding(pair, policy, place, column, kind)
        if pair.other_labels:
            kept, others = next((a, b) for a, b in pair.groups if len({r.wanted for r in (*a, *b)}) > 1)
            other = next((r for r in (*kept, *others) if r.wanted != kept[0].wanted), others[0])
            message = (
                f"{_many(pair.other_labels, 'text')} {_where(pair)} with different {'answers' if kept[0].answer else 'labels'}, first "
                f"{safe(kept[0].wanted, 60)!r} here and {safe(other.wanted, 60)!r} in {other.place}; decide which is right"
            )
            yield warning(kept[0].place, column, message, f"other labels {pair.name}")


def _finding(pair: Pair, policy: Duplicates, place: str, column: str, kind: str) -> Finding:
    (first, *_), (second, *_) = pair.groups[0]
    cleaned = f", {pair.only_after_cleaning} of them only after cleaning" if pair.only_after_cleaning else ""
    sealed = pair.first == pair.second == "test"  # what stands in the test alone is not shown (H4)
    said = "this one" if sealed else repr(safe(first.text, 60))
    found = f"{_many(len(pair.groups), 'text')} {_where(pair)}{cleaned}, first {said}, equal to {second.place}"
    within = pair.first == pair.second
    action = policy.within_train if within else policy.across
    if within and pair.first != "train":
        return warning(place, column, f"{found}; they count more than once in every evaluation", kind)
    if action == "stop":
        field = "data.duplicates.within_train" if within else "data.duplicates.across"
        return error(
            place, column, f'{found}; {field} = "stop" refuses this: remove them, or choose another policy', kind
        )
    if action in ("drop", "drop-from-train") and pair.first == "train":
        rows = sum(len(b if within else a) for a, b in pair.groups)
        return warning(place, column, f"{found}; {_many(rows, 'row')} left out of train (dropped.jsonl)", kind)
    consequence = "they were kept" if within else "what is measured there is partly remembered, not learnt"
    if pair.first == "validation":
        consequence = "settings chosen on validation have then seen part of the test"
    return warning(place, column, f"{found}; {consequence}", kind)


def _where(pair: Pair) -> str:
    return (
        f"repeated within {pair.first}" if pair.first == pair.second else f"both in {pair.first} and in {pair.second}"
    )


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
