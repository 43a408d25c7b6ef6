"""A data set of the hub is read at its pinned revision, from the cache first, and never with code (D1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ftui.data.hub import HubError, find_dataset
from ftui.data.prepare import check_data, prepare
from ftui.plan.load import load_plan, plan_hash
from ftui.plan.schema import Data, Plan
from ftui.record.files import read_json
from ftui.record.layout import CampaignFiles
from tests.data.conftest import SEED

REVISION = "0123456789abcdef0123456789abcdef01234567"
HUB = {"hub": "owner/tickets", "revision": REVISION}


def rows(split: str, count: int = 4) -> str:
    return "".join(json.dumps({"text": f"{split} {i}", "label": "ab"[i % 2]}) + "\n" for i in range(count))


@pytest.fixture
def cached(tmp_path: Path, monkeypatch) -> Path:
    """A snapshot as the hub's library lays it out: links into a store of blobs. Two files have the same content."""
    home = tmp_path / "hub"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(home))
    folder = home / "datasets--owner--tickets"
    snapshot, blobs = folder / "snapshots" / REVISION, folder / "blobs"
    blobs.mkdir(parents=True)
    contents = {"data/train-0.jsonl": rows("train"), "data/train-1.jsonl": rows("more"), "test.jsonl": rows("test")}
    contents |= {"validation.jsonl": rows("validation"), "tickets.py": "raise RuntimeError('run')", "README.md": "x"}
    for number, (name, content) in enumerate(contents.items()):
        (blobs / str(number)).write_text(content)
        (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / name).symlink_to(blobs / str(number))
    return snapshot


NAMED: dict[str, Any] = {"train": "data/*.jsonl", "validation": "validation.jsonl", "test": "test.jsonl", **HUB}


def test_a_cached_data_set_is_read_offline_and_its_files_keep_their_names(build, cached: Path) -> None:
    plan, root = build(data=NAMED)
    report = check_data(plan, root)
    assert not report.errors
    assert [row.text for row in report.splits["train"]] == [f"train {i}" for i in range(4)] + [
        f"more {i}" for i in range(4)
    ]
    assert [file["name"] for file in report.files] == [
        "data/train-0.jsonl",
        "data/train-1.jsonl",
        "validation.jsonl",
        "test.jsonl",
    ]
    (warned,) = [f for f in report.warnings if f.field == "data.hub"]
    assert "does not say whether it has every file" in warned.message


def test_the_version_is_its_content_and_the_manifest_says_where_it_came_from(build, cached: Path) -> None:
    plan, root = build(data=NAMED)
    version = prepare(plan, CampaignFiles(root))
    manifest = read_json(CampaignFiles(root).manifest(version.hash))
    assert (manifest["hub"], manifest["revision"]) == ("owner/tickets", REVISION)
    assert "hub" not in manifest["identity"]
    local, _ = build(data={name: value for name, value in NAMED.items() if name not in HUB})
    for path in (root / "data").glob("*.jsonl"):
        path.unlink()
    for name in ("data/train-0.jsonl", "data/train-1.jsonl", "validation.jsonl", "test.jsonl"):
        (root / name).write_bytes((cached / name).read_bytes())
    assert check_data(local, root).hash == version.hash
    blob = (cached / "test.jsonl").resolve()
    blob.write_text(rows("test", 5))
    assert check_data(plan, root).hash != version.hash


def test_a_data_set_may_call_its_files_like_what_a_preparation_writes(build, cached: Path) -> None:
    (cached / "data" / "0123456789abcdef").mkdir()
    for name in ("data/current.json", "data/0123456789abcdef/rows.json"):
        (cached / name).write_text(json.dumps([{"text": name, "label": "a"}]))
    plan, root = build(data={**NAMED, "train": ["data/*.jsonl", "data/**/*.json"]})
    texts = {row.text for row in check_data(plan, root).splits["train"]}
    assert {"data/current.json", "data/0123456789abcdef/rows.json"} <= texts


def test_equal_files_of_two_splits_are_two_files(build, cached: Path) -> None:
    """Both are links to one blob; what they repeat is found row by row."""
    (cached / "test.jsonl").unlink()
    (cached / "test.jsonl").symlink_to((cached / "validation.jsonl").resolve())
    plan, root = build(data=NAMED)
    report = check_data(plan, root)
    assert not report.errors and any(f.kind == "equal texts validation and test" for f in report.warnings)


def test_a_cache_that_lacks_a_named_file_is_no_data_set(build, cached: Path) -> None:
    plan, root = build(data={**NAMED, "test": "gone.jsonl"})
    (finding,) = [f for f in check_data(plan, root).errors if f.field == "data.hub"]
    assert finding.place == "campaign.toml"
    for words in (
        "owner/tickets",
        REVISION,
        "holds no gone.jsonl",
        "HF_HUB_OFFLINE is set",
        "Ways out: connect to the network",
    ):
        assert words in finding.message


def test_the_librarys_own_list_of_files_proves_a_cache_complete_or_partial(build, cached: Path) -> None:
    from huggingface_hub._tree_cache import TreeCacheEntry, write_tree_cache

    def list_files(*more: str) -> None:
        names = [path.relative_to(cached).as_posix() for path in cached.rglob("*") if path.is_file()]
        entry = TreeCacheEntry(size=1, blob_id="0", lfs_sha256=None, lfs_size=None, xet_hash=None)
        write_tree_cache(str(cached.parents[1]), REVISION, dict.fromkeys([*names, *more], entry))

    plan, root = build(data=NAMED)
    list_files()
    report = check_data(plan, root)
    assert not report.errors and not [f for f in report.findings if f.field == "data.hub"]
    list_files("data/train-2.jsonl")
    (finding,) = [f for f in check_data(plan, root).errors if f.field == "data.hub"]
    assert "or part of it only" in finding.message


def test_another_revision_is_never_taken_instead(cached: Path) -> None:
    with pytest.raises(HubError, match="has no such revision"):
        find_dataset(Data(train="data/*.jsonl", hub="owner/tickets", revision="f" * 40))


def test_only_the_named_files_are_asked_for_and_never_code(monkeypatch, tmp_path: Path) -> None:
    """Online, without a network: what the library is asked to fetch."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    asked: list[dict[str, Any]] = []

    def download(hub: str, **options: Any) -> str:
        asked.append({"hub": hub, **options})
        if options["local_files_only"]:
            raise LocalEntryNotFoundError("not here")
        (tmp_path / "train.jsonl").write_text(rows("train"))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    found = find_dataset(Data(train=["train.jsonl", "more/**/*.csv"], **HUB))
    assert (found.directory, found.proven) == (tmp_path, True)
    assert [call["local_files_only"] for call in asked] == [True, False]
    for call in asked:
        assert (call["hub"], call["repo_type"], call["revision"]) == ("owner/tickets", "dataset", REVISION)
        assert call["allow_patterns"] == ["train.jsonl", "more/**/*.csv", "more/*.csv"]
        assert "*.py" in call["ignore_patterns"]


def test_a_hub_that_does_not_answer_is_one_sentence(monkeypatch, tmp_path: Path) -> None:
    def download(hub: str, **options: Any) -> str:
        raise OSError("no route to host\nand more")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(HubError) as raised:
        find_dataset(Data(train="train.jsonl", **HUB))
    assert "the hub did not give it (no route to host)" in str(raised.value) and "\n" not in str(raised.value)


def test_pictures_of_a_hub_are_refused_with_the_way_out(build) -> None:
    plan, root = build(data=HUB, hypothesis={"task": "image-classification"})
    (finding,) = [f for f in check_data(plan, root).errors if f.field == "data.hub"]
    assert "download the data set" in finding.message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"hub": "owner/name"}, "needs the commit it was taken from"),
        ({"revision": REVISION}, "name it in hub"),
        ({"hub": "name", "revision": REVISION}, "pattern"),
        ({"hub": "owner/name", "revision": "main"}, "pattern"),
        ({**HUB, "train": "../secret.jsonl"}, "leads out of the data set"),
        ({**HUB, "train": "/etc/x.jsonl"}, "leads out of the data set"),
        ({**HUB, "train": "~/x.jsonl"}, "leads out of the data set"),
        ({**HUB, "train": "load.py"}, "is code, which is never fetched"),
    ],
)
def test_half_a_hub_and_paths_out_of_it_are_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Data(**{"train": "train.jsonl", **data})


def test_a_plan_without_a_hub_keeps_its_content_and_so_its_hash() -> None:
    """Campaigns that began before there was a hub to name go on."""
    plan = load_plan(SEED)
    content = plan.content()
    assert not {"hub", "revision"} & set(content["data"]) and Plan.model_validate(content) == plan
    content["data"] |= HUB
    named = Plan.model_validate(content)
    assert named.content()["data"]["revision"] == REVISION and plan_hash(named) != plan_hash(plan)
