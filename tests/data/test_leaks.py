"""Leakage planted in real data is found: by group, by time, by a group nobody named; the clean set raises no alarm (D3)."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ftui.data.findings import Finding
from ftui.data.leaks import time_of
from ftui.data.prepare import check_data
from ftui.data.rows import Row
from ftui.data.sources import SPLITS
from ftui.data.split import split_by_category, split_by_time
from ftui.plan.schema import Data, Plan, Split

SEED = Path(__file__).parents[2] / "campaigns" / "three-learning-rates" / "data"
SHARES = Split(validation=0.2, test=0.1)


def real_rows(split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SEED / f"{split}.jsonl").read_text().splitlines()]


def real(**columns: Callable[[str, int], Any]) -> dict[str, list[dict[str, Any]]]:
    """The seed campaign's rows with further columns; each is a function of split and row number."""
    return {
        f"{split}.jsonl": [
            {
                "text": row["text"],
                "label": row["category"],
                **{name: value(split, i) for name, value in columns.items()},
            }
            for i, row in enumerate(real_rows(split))
        ]
        for split in SPLITS
    }


def kinds(findings: list[Finding]) -> set[str]:
    return {finding.kind for finding in findings}


def test_the_clean_set_raises_no_alarm(build: Callable[..., tuple[Plan, Path]]) -> None:
    begin = {"train": 0, "validation": 10_000, "test": 20_000}
    files = real(dialogue_id=lambda s, i: f"{s}{i // 4}", day=lambda s, i: begin[s] + i)
    plan, root = build(files, data={"unit": "dialogue_id", "time": "day"})
    assert check_data(plan, root).errors == []
    plan, root = build(files)
    assert "unit not named" not in kinds(check_data(plan, root).findings)


def test_a_group_in_two_splits_is_found_named_or_not(build: Callable[..., tuple[Plan, Path]]) -> None:
    files = real(dialogue_id=lambda s, i: f"{s if i >= 12 else 'train'}{i // 4}")
    plan, root = build(files, data={"unit": "dialogue_id"})
    errors = check_data(plan, root).errors
    assert [f.kind for f in errors] == ["unit in two splits"] * 3
    assert {f.message.split("'")[1] for f in errors} == {"train0", "train1", "train2"}
    plan, root = build(files)
    (found,) = [f for f in check_data(plan, root).findings if f.kind == "unit not named"]
    assert found.severity == "warning" and 'data.unit = "dialogue_id"' in found.message and "3 of them" in found.message


def test_a_group_nobody_named_is_told_before_splits_are_cut(build: Callable[..., tuple[Plan, Path]]) -> None:
    files = real(patient=lambda s, i: i // 5, site=lambda s, i: i % 3)
    plan, root = build(files, data={"validation": None, "test": None})
    (found,) = [f for f in check_data(plan, root).findings if f.kind == "unit not named"]
    assert "patient has 640 values in 3,200 rows" in found.message
    plan, root = build(files, data={"validation": None, "test": None, "unit": "patient"})
    assert "unit not named" not in kinds(check_data(plan, root).findings)


def test_rows_of_train_later_than_the_test_are_found(build: Callable[..., tuple[Plan, Path]]) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    begin = {"train": 0, "validation": 10_000, "test": 20_000}

    def day(split: str, i: int) -> str:
        late = split == "train" and i in (7, 100, 2000)
        return (start + timedelta(hours=30_000 if late else begin[split] + i)).isoformat()

    plan, root = build(real(seen_at=day), data={"time": "seen_at"})
    errors = check_data(plan, root).errors
    assert [(f.kind, f.place) for f in errors] == [
        ("train after validation began", "data/train.jsonl:8"),
        ("train after test began", "data/train.jsonl:8"),
    ]
    assert "3 of 3,200 rows" in errors[0].message and "data/validation.jsonl:1" in errors[0].message


def test_times_cut_by_us_are_in_order_and_units_stay_whole(build: Callable[..., tuple[Plan, Path]]) -> None:
    draw = random.Random(4)
    days = [draw.randrange(400) for _ in range(640)]
    files = real(day=lambda s, i: days[i // 5], case=lambda s, i: i // 5)
    plan, root = build(
        files,
        data={
            "validation": None,
            "test": None,
            "time": "day",
            "unit": "case",
            "split": {"validation": 0.1, "test": 0.2},
        },
    )
    report = check_data(plan, root)
    assert report.split_by == "time" and not report.errors
    times = {name: [row.time for row in rows if row.time is not None] for name, rows in report.splits.items()}
    assert max(times["train"]) < min(times["validation"]) and max(times["validation"]) < min(times["test"])
    units = [{row.unit for row in rows} for rows in report.splits.values()]
    assert not units[0] & units[1] and not units[0] & units[2] and not units[1] & units[2]
    assert abs(len(report.splits["test"]) / 3200 - 0.2) < 0.02


def rows_of(labels: list[str], times: list[float] | None = None) -> list[Row]:
    return [
        Row(str(i), f"text {i}", label, None, "f", i, "", time=None if times is None else times[i])
        for i, label in enumerate(labels)
    ]


def test_each_category_keeps_its_proportion_whatever_the_order() -> None:
    rows = rows_of(["common"] * 300 + ["rare"] * 20 + ["three"] * 3)
    splits = split_by_category(rows, SHARES)
    counts = {name: Counter(row.label for row in part) for name, part in splits.items()}
    assert counts["test"] == {"common": 30, "rare": 2, "three": 1}
    assert counts["validation"] == {"common": 60, "rare": 4, "three": 1}
    shuffled = random.Random(1).sample(rows, len(rows))
    again = split_by_category(shuffled, SHARES)
    assert {name: {r.id for r in part} for name, part in again.items()} == {
        name: {r.id for r in part} for name, part in splits.items()
    }


def test_rows_of_one_moment_never_part() -> None:
    splits = split_by_time(rows_of(["a"] * 100, [float(i // 25) for i in range(100)]), SHARES)
    assert {name: sorted({row.time for row in part}) for name, part in splits.items()} == {
        "train": [0.0, 1.0], "validation": [2.0], "test": [3.0],
    }  # fmt: skip


def test_a_cut_by_time_does_not_depend_on_the_order_of_rows() -> None:
    rows = rows_of(["a"] * 50, [float(i * 7 % 50) for i in range(50)])
    splits = split_by_time(rows, SHARES)
    again = split_by_time(list(reversed(rows)), SHARES)
    assert {n: {r.id for r in p} for n, p in splits.items()} == {n: {r.id for r in p} for n, p in again.items()}
    assert [len(splits[name]) for name in SPLITS] == [35, 10, 5]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3.0),
        ("2026.5", 2026.5),
        ("2026-01-01", 1767225600.0),
        ("2026-01-01T01:00:00+01:00", 1767225600.0),
        ("2026-01-01T00:00:00Z", 1767225600.0),
    ],
)
def test_times_are_numbers_or_iso_8601(value: Any, expected: float) -> None:
    assert time_of({"t": value}, "t", "f:1") == expected


@pytest.mark.parametrize("value", ["yesterday", "", None, True, [1], float("nan")])
def test_what_is_no_time_is_named(value: Any) -> None:
    found = time_of({"t": value}, "t", "f:1")
    assert isinstance(found, Finding) and (found.place, found.field, found.kind) == ("f:1", "t", "no time")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"split": {"by": "time"}}, "needs data.time"),
        ({"split": {"by": "stratified"}, "unit": "u"}, "rows belong together"),
        ({"labels": ["a", "a"]}, "named twice"),
    ],
)
def test_a_split_without_what_it_needs_is_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Data.model_validate({"train": "x.jsonl", **data})
