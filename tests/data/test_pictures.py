"""Pictures by a file of paths or by a folder per category: present, hashed, equal ones found; pixels are nobody's business here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ftui.data.encode import EncodedSplit
from ftui.data.prepare import DataReport, check_data, prepare
from ftui.plan.schema import Plan
from ftui.record.layout import CampaignFiles
from tests.builders.tiny import tiny_plan

SPLITS = ("train", "validation", "test")


def picture(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())


def plan(**data: Any) -> Plan:
    content = tiny_plan(hypothesis__task="image-classification")
    content["data"] |= data
    return Plan.model_validate(content)


def indexed(root: Path, **data: Any) -> Plan:
    """`data/train.jsonl` names `img/train-0.png` …, relative to itself."""
    for name in SPLITS:
        rows = [{"image": f"img/{name}-{i}.png", "label": "ab"[i % 2]} for i in range(4)]
        for row in rows:
            picture(root / "data" / row["image"], row["image"])
        (root / "data" / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return plan(**data)


def foldered(root: Path) -> Plan:
    for name in SPLITS:
        for i in range(4):
            picture(root / "data" / name / "ab"[i % 2] / f"{i}.png", f"{name} {i}")
    return plan(**{name: f"data/{name}" for name in SPLITS})


def said(report: DataReport) -> list[str]:
    return [str(f) for f in report.findings]


def test_a_file_of_paths_gives_pictures_relative_to_the_campaign(tmp_path: Path) -> None:
    own = indexed(tmp_path)
    report = check_data(own, tmp_path)
    assert not report.findings, said(report)
    row = report.splits["test"][1]
    assert (row.path, row.label, row.place) == ("data/img/test-1.png", "b", "data/test.jsonl:2")


def test_a_folder_per_category_needs_no_file(tmp_path: Path) -> None:
    own = foldered(tmp_path)
    picture(tmp_path / "data" / "train" / "a" / "notes.txt", "x")
    report = check_data(own, tmp_path)
    assert not report.errors and report.labels == ["a", "b"]
    assert [row.id for row in report.splits["train"]] == [
        f"data/train/{p}" for p in ("a/0.png", "a/2.png", "b/1.png", "b/3.png")
    ]
    assert said(report) == ["data/train/a: 1 files are no pictures; they were passed over"]
    (tmp_path / "data" / "test" / "c").mkdir()
    assert any("data/test/c: holds no pictures" in s for s in said(check_data(own, tmp_path)))


def test_missing_and_empty_pictures_are_named(tmp_path: Path) -> None:
    own = indexed(tmp_path)
    (tmp_path / "data" / "img" / "train-1.png").unlink()
    (tmp_path / "data" / "img" / "train-2.png").write_bytes(b"")
    found = [str(f) for f in check_data(own, tmp_path).errors]
    assert found[0].startswith("data/train.jsonl:2: image: no picture at ") and "relative to the file" in found[0]
    assert found[1] == "data/train.jsonl:3: image: train-2.png is empty; copy it again, or remove the row"


def test_equal_pictures_under_other_names_are_found(tmp_path: Path) -> None:
    own = indexed(tmp_path)
    picture(tmp_path / "data" / "img" / "train-0.png", "img/test-3.png")
    report = check_data(own, tmp_path)
    assert [d.row.path for d in report.dropped] == ["data/img/train-0.png"]
    assert any("with different labels" in s for s in said(report))


def test_another_pixel_is_another_data_version(tmp_path: Path) -> None:
    for name, make in (("file", indexed), ("folder", foldered)):
        root = tmp_path / name
        own = make(root)
        before = check_data(own, root).hash
        assert check_data(own, root).hash == before
        picture(sorted((root / "data").rglob("*.png"))[0], "another")
        assert check_data(own, root).hash != before


def test_encoded_pictures_hold_path_and_class(tmp_path: Path) -> None:
    own, files = indexed(tmp_path), CampaignFiles(tmp_path)
    version = prepare(own, files, tmp_path / "model is not looked at")
    (path,) = files.data_version(version.hash).glob("encoded/*/train.arrow")
    split = EncodedSplit(path)
    assert [(e.path, e.label, e.input_ids, e.targets) for e in split][1] == ("data/img/train-1.png", 1, [], 1)
    assert split.lengths.tolist() == split.targets.tolist() == [1] * 4
