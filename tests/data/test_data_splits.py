"""Splits by unit, equal texts across them, and labels (D3, D4, D6)."""

from __future__ import annotations

import json
import random

import pytest

from ftui.data.prepare import check_data, prepare
from ftui.data.rows import Row
from ftui.data.split import split_by_hash
from ftui.plan.schema import Split
from ftui.record.files import read_json
from ftui.record.layout import CampaignFiles


def rows(count: int, unit_of=lambda i: None) -> list[Row]:
    return [Row(str(i), f"text {i}", "a", unit_of(i), "f", i + 1, f"text {i}") for i in range(count)]


def test_split_depends_on_the_unit_alone() -> None:
    given = rows(2000, lambda i: str(i // 4))
    shuffled = random.Random(1).sample(given, len(given))
    first, second = split_by_hash(given, Split()), split_by_hash(shuffled, Split())
    assert {n: {r.id for r in rs} for n, rs in first.items()} == {n: {r.id for r in rs} for n, rs in second.items()}
    fewer = split_by_hash(given[:1000], Split())
    assert all({r.id for r in fewer[name]} <= {r.id for r in first[name]} for name in first)
    units = [{r.unit for r in rs} for rs in first.values()]
    assert not (units[0] & units[1] or units[0] & units[2] or units[1] & units[2])


def test_shares_are_met_within_chance() -> None:
    splits = split_by_hash(rows(20_000), Split(validation=0.2, test=0.1))
    assert len(splits["validation"]) == pytest.approx(4000, abs=300)
    assert len(splits["test"]) == pytest.approx(2000, abs=250)


def test_split_is_the_same_on_every_machine_and_day() -> None:
    splits = split_by_hash(rows(20), Split(validation=0.2, test=0.2))
    assert {name: [int(r.id) for r in given] for name, given in splits.items()} == {
        "train": [0, 4, 6, 9, 11, 14, 16, 17, 18, 19],
        "validation": [2, 3, 5, 12],
        "test": [1, 7, 8, 10, 13, 15],
    }


def test_unit_in_two_given_files_is_refused_with_both_places(build) -> None:
    def data(split: str, units: str) -> list[dict]:
        return [{"text": f"{split} {i}", "label": "ab"[i % 2], "patient": u} for i, u in enumerate(units)]

    files = {f"{s}.jsonl": data(s, u) for s, u in (("train", "pqrs"), ("validation", "tu"), ("test", "vr"))}
    plan, root = build(files, data={"unit": "patient"})
    (finding,) = check_data(plan, root).errors
    assert finding.place == "data/train.jsonl:3" and finding.field == "patient"
    assert "'r'" in finding.message and "data/test.jsonl:2" in finding.message


def test_units_are_cut_whole_when_only_train_is_given(build) -> None:
    given = [{"text": f"t {i}", "label": "ab"[i % 2], "dialogue": f"d{i // 5}"} for i in range(300)]
    plan, root = build({"train.jsonl": given}, data={"unit": "dialogue", "validation": None, "test": None})
    report = check_data(plan, root)
    assert not report.errors and all(report.splits.values())
    units = [{r.unit for r in rs} for rs in report.splits.values()]
    assert not (units[0] & units[1] or units[0] & units[2] or units[1] & units[2])


def test_equal_texts_never_part_when_rows_are_cut(build) -> None:
    given = [{"text": f"same {i % 50}", "label": "a" if i % 50 < 25 else "b"} for i in range(200)]
    plan, root = build({"train.jsonl": given}, data={"validation": None, "test": None})
    pairs = {pair.name: len(pair.groups) for pair in check_data(plan, root).pairs}
    assert pairs["train and validation"] == pairs["train and test"] == pairs["validation and test"] == 0
    assert pairs["within train"] > 0


def test_shares_that_leave_nothing_are_refused(build) -> None:
    plan, root = build(data={"validation": None, "test": None, "split": {"validation": 0.6, "test": 0.4}})
    assert "leave nothing to train on" in check_data(plan, root).errors[0].message


LEAKED = {
    "train.jsonl": [
        {"text": "Pay my  bill", "label": "a"},
        {"text": "plain", "label": "b"},
        {"text": "cafe\u0301", "label": "a"},
        {"text": "twice", "label": "b"},
        {"text": " twice ", "label": "a"},
        {"text": "own a", "label": "a"},
        {"text": "own b", "label": "b"},
    ],
    "validation.jsonl": [
        {"text": "plain", "label": "b"},
        {"text": "caf\u00e9", "label": "a"},
        {"text": "v", "label": "a"},
    ],
    "test.jsonl": [{"text": " Pay my bill", "label": "a"}, {"text": "v", "label": "a"}, {"text": "w", "label": "b"}],
}
CLEANING = ["nfc@1", "strip@1", "collapse-spaces@1"]


def test_leakage_that_cleaning_makes_is_reported_by_pair_and_dropped_from_train(build) -> None:
    """K22."""
    plan, root = build(LEAKED, data={"cleaning": CLEANING})
    files = CampaignFiles(root)
    report = check_data(plan, root)
    assert not report.errors
    found = {p.name: (len(p.groups), p.only_after_cleaning) for p in report.pairs if p.groups}
    assert found == {
        "within train": (1, 1),
        "train and validation": (2, 1),
        "train and test": (1, 1),
        "validation and test": (1, 0),
    }
    assert [r.text for r in report.splits["train"]] == ["twice", "twice", "own a", "own b"]
    version = prepare(plan, files)
    assert version.train_examples == 4
    dropped = [
        json.loads(line) for line in (files.data_version(version.hash) / "dropped.jsonl").read_text().splitlines()[1:]
    ]
    assert [(d["line"], d["reason"], d["at"]) for d in dropped] == [
        (2, "its text is also in validation", "data/validation.jsonl:1"),
        (3, "its text is also in validation", "data/validation.jsonl:2"),
        (1, "its text is also in test", "data/test.jsonl:1"),
    ]
    leakage = read_json(files.leakage(version.hash))
    pair = next(p for p in leakage["pairs"] if p["splits"] == ["train", "test"])
    assert (pair["texts"], pair["rows"], pair["only_after_cleaning"]) == (1, [1, 1], 1)
    assert [(r["split"], r["line"]) for r in pair["examples"][0]["rows"]] == [("train", 1), ("test", 1)]
    sentences = read_json(files.data_current)["findings"]
    assert any("left out of train" in s and "data/test.jsonl:1" in s for s in sentences)
    assert any("different labels" in s for s in sentences)


def test_without_cleaning_rules_only_equal_bytes_are_equal(build) -> None:
    plan, root = build(LEAKED)
    found = {p.name: len(p.groups) for p in check_data(plan, root).pairs if p.groups}
    assert found == {"train and validation": 1, "validation and test": 1}


@pytest.mark.parametrize(
    ("policy", "severity", "left"),
    [
        ({"across": "warn"}, "warning", 7),
        ({"across": "stop"}, "error", 7),
        ({"across": "drop-from-train", "within_train": "drop"}, "warning", 3),
        ({"across": "warn", "within_train": "stop"}, "error", 7),
    ],
)
def test_policy_decides_what_happens_to_equal_texts(build, policy: dict, severity: str, left: int) -> None:
    plan, root = build(LEAKED, data={"cleaning": CLEANING, "duplicates": policy})
    report = check_data(plan, root)
    assert ("error" if report.errors else "warning") == severity
    assert len(report.splits["train"]) == left


def test_unknown_label_absent_class_and_single_class_are_found(build) -> None:
    plan, root = build({"test.jsonl": [{"text": "x", "label": "a"}, {"text": "y", "label": "aa"}]})
    report = check_data(plan, root)
    (unknown,) = report.errors
    assert (unknown.place, unknown.field, unknown.kind) == ("data/test.jsonl:2", "label", "unknown label")
    assert [w.kind for w in report.warnings] == ["class absent"] and "'b'" in report.warnings[0].message
    plan, root = build({n: [{"text": n, "label": "a"}] for n in ("train.jsonl", "validation.jsonl", "test.jsonl")})
    assert [f.kind for f in check_data(plan, root).errors] == ["one class"]


def test_labels_are_sorted_whatever_the_order_of_rows(build) -> None:
    def labels(order: str) -> list[str]:
        given = [{"text": c, "label": c} for c in order]
        plan, root = build(
            {f"{s}.jsonl": [{**r, "text": f"{s} {r['text']}"} for r in given] for s in ("train", "validation", "test")}
        )
        return check_data(plan, root).labels

    assert labels("bca") == labels("abc") == ["a", "b", "c"]
