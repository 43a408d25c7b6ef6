"""Rows that are left out are written, every one, with file, line, field and reason (D9)."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ftui.data.findings import SHOWN
from ftui.data.prepare import check_data, prepare
from ftui.plan.load import load_plan
from ftui.plan.schema import Plan
from ftui.record.files import read_json
from ftui.record.layout import CampaignFiles
from tests.builders.writing import chats, writing_campaign

DROP = {"bad_rows": "drop"}


def dropped(plan: Plan, root: Path) -> list[dict[str, Any]]:
    """What `dropped.jsonl` of the prepared version says, without its first line."""
    files = CampaignFiles(root)
    version = prepare(plan, files)
    lines = (files.data_version(version.hash) / "dropped.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {"file": "dropped", "schema": 1}
    return [json.loads(line) for line in lines[1:]]


def test_every_row_that_is_left_out_is_written_not_only_those_that_are_shown(build) -> None:
    rows = [{"text": f"t{i}", "label": None if i % 2 else "ab"[i // 2 % 2]} for i in range(100)]
    plan, root = build({"train.jsonl": rows}, data=DROP)
    left = dropped(plan, root)
    assert [(row["file"], row["line"], row["field"]) for row in left] == [
        ("data/train.jsonl", line, "label") for line in range(2, 101, 2)
    ]
    assert all(row["reason"] == "the label is null; fill it, or remove the row" for row in left)
    assert [row["record"] for row in left] == rows[1::2]
    report = check_data(plan, root)
    assert not report.errors and len(report.splits["train"]) == 50
    assert sum(f.kind == "null label" for f in report.warnings) == SHOWN + 1
    (summary,) = [f for f in report.warnings if f.kind == "rows left out"]
    assert summary.place == "data/train.jsonl"
    assert summary.message.startswith("50 rows were left out") and "dropped.jsonl" in summary.message


def test_a_row_is_written_once_with_all_that_is_wrong_with_it(build) -> None:
    rows = [{"text": f"t{i}", "label": "ab"[i % 2]} for i in range(4)] + [{"text": 5, "label": 0.5}]
    plan, root = build({"train.jsonl": rows}, data=DROP)
    (row,) = dropped(plan, root)
    assert (row["line"], row["field"], row["record"]) == (5, "text", {"text": 5, "label": 0.5})
    assert [also["field"] for also in row["also"]] == ["label"]


def test_bad_rows_and_repeated_rows_stand_in_one_file(build) -> None:
    rows = [
        {"text": "x", "label": "a"},
        {"text": "", "label": "a"},
        {"text": "x", "label": "a"},
        {"text": "y", "label": "b"},
    ]
    plan, root = build({"train.jsonl": rows}, data={**DROP, "duplicates": {"within_train": "drop"}})
    bad, repeated = dropped(plan, root)
    assert (bad["line"], bad["field"], "equals" in bad) == (2, "text", False)
    assert (repeated["line"], repeated["reason"], repeated["at"]) == (3, "repeats a row of train", "data/train.jsonl:1")
    manifest = read_json(CampaignFiles(root).manifest(check_data(plan, root).hash))
    assert manifest["bad_rows"] == {"policy": "drop", "left_out": 1} and manifest["duplicates"]["dropped"] == 1


def test_bad_chats_are_written_as_the_file_has_them(tmp_path: Path) -> None:
    files = writing_campaign(tmp_path / "c", tmp_path / "no-model", "generation", data__bad_rows="drop")
    bad = {"messages": [{"role": "user", "content": "who?"}], "note": "nobody answers"}
    (files.data / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*chats(4, start=500), bad]))
    (row,) = dropped(load_plan(files.root), files.root)
    assert (row["line"], row["field"], row["record"]) == (5, "messages", bad)


def test_what_json_cannot_hold_is_written_in_words(build) -> None:
    """Half a surrogate pair comes back as it was; bytes and infinities of a Parquet file are said."""
    lines = b'{"text": "\\ud83d", "label": "a"}\n{"text": "x", "label": "a"}\n{"text": "y", "label": "b"}\n'
    file = io.BytesIO()
    table = {"text": pa.array([b"\xff", None]), "label": [float("inf"), float("nan")]}
    pq.write_table(pa.table(table), file)
    plan, root = build(
        {"train.jsonl": lines, "more.parquet": file.getvalue()},
        data={**DROP, "train": ["data/train.jsonl", "data/more.parquet"]},
    )
    first, second, third = dropped(plan, root)
    assert first["record"]["text"] == "\ud83d"
    assert (second["file"], second["line"]) == ("data/more.parquet", 1)
    assert second["record"] == {"text": "of the type binary", "label": "inf"}
    assert third["record"] == {"text": None, "label": "nan"}


def test_without_bad_rows_the_file_is_empty_but_for_its_head(build) -> None:
    plan, root = build(data=DROP)
    assert dropped(plan, root) == []
    assert not [f for f in check_data(plan, root).findings if f.kind == "rows left out"]
