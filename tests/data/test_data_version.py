"""A data version is identified by content: same input, same hash; another byte or rule, another version (D2)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ftui.data.clean import RULES, clean, find_rules
from ftui.data.findings import DataError
from ftui.data.prepare import check_data, current_version, prepare
from ftui.plan.load import load_plan
from ftui.plan.schema import Plan
from ftui.record.files import read_json, sha256_file
from ftui.record.layout import CampaignFiles


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_seed_campaign_is_prepared_twice_to_the_same_bytes(seed_campaign: tuple[Plan, Path]) -> None:
    plan, root = seed_campaign
    files = CampaignFiles(root)
    version = prepare(plan, files)
    assert (version.train_examples, version.validation_examples, version.test_examples) == (3200, 550, 2200)
    assert len(version.labels) == 11 and version.labels == sorted(version.labels)
    first = content(files.data_version(version.hash))
    shutil.rmtree(files.data_version(version.hash))
    assert prepare(plan, files) == version == current_version(files)
    assert content(files.data_version(version.hash)) == first


def test_manifest_describes_inputs_counts_and_written_files(seed_campaign: tuple[Plan, Path]) -> None:
    plan, root = seed_campaign
    files = CampaignFiles(root)
    version = prepare(plan, files)
    manifest = read_json(files.manifest(version.hash))
    train = manifest["files"][0]
    path = root / "data" / "train.jsonl"
    assert (train["name"], train["rows"], train["bytes"], train["sha256"]) == (
        "data/train.jsonl",
        3200,
        path.stat().st_size,
        sha256_file(path),
    )
    assert manifest["counts"]["out_of_scope"] == {"train": 100, "validation": 50, "test": 200}
    assert [rule["rule"] for rule in manifest["cleaning"]] == plan.data.cleaning
    for name, described in manifest["written"].items():
        assert sha256_file(files.data_version(version.hash) / name) == described["sha256"]
    assert read_json(files.data_current)["data"]["hash"] == version.hash


def test_one_byte_or_one_rule_makes_another_version_and_a_comment_does_not(seed_campaign: tuple[Plan, Path]) -> None:
    plan, root = seed_campaign
    original = check_data(plan, root).hash
    text = (root / "campaign.toml").read_text()
    (root / "campaign.toml").write_text(
        "# another thought\n" + text.replace("learning_rate = 1e-4", "learning_rate = 3e-4")
    )
    assert check_data(load_plan(root), root).hash == original
    (root / "campaign.toml").write_text(text.replace('"collapse-spaces@1"', '"collapse-spaces@1", "lower@1"'))
    assert check_data(load_plan(root), root).hash != original
    train = root / "data" / "train.jsonl"
    train.write_bytes(train.read_bytes().replace(b"panera", b"panero", 1))
    changed = check_data(plan, root).hash
    assert changed != original
    train.write_bytes(train.read_bytes().replace(b"panero", b"panera", 1))
    assert check_data(plan, root).hash == original


@pytest.mark.parametrize(
    "change",
    [
        {"duplicates": {"across": "warn"}},
        {"columns": {"text": "text", "label": "label", "id": "id"}},
        {"unit": "group"},
        {"validation": None, "test": None},
    ],
)
def test_whatever_decides_the_rows_is_part_of_the_hash(build, change: dict) -> None:
    rows = [{"text": f"t{i}", "label": "ab"[i % 2], "id": i, "group": i} for i in range(40)]
    plan, root = build({"train.jsonl": rows})
    changed, _ = build({"train.jsonl": rows}, data=change)
    assert check_data(plan, root).hash != check_data(changed, root).hash


def test_damaged_version_is_written_anew(build) -> None:
    plan, root = build()
    files = CampaignFiles(root)
    version = prepare(plan, files)
    train = files.data_version(version.hash) / "train.jsonl"
    good = train.read_bytes()
    train.write_bytes(good[:-9])
    prepare(plan, files)
    assert train.read_bytes() == good
    assert [p.name for p in files.data.iterdir() if p.is_dir()] == [version.hash]


def test_data_with_errors_writes_nothing_and_keeps_the_current_version(build) -> None:
    plan, root = build()
    files = CampaignFiles(root)
    version = prepare(plan, files)
    with (root / "data" / "train.jsonl").open("a") as file:
        file.write('{"text": "x"}\n')
    with pytest.raises(DataError) as raised:
        prepare(plan, files)
    assert "data/train.jsonl:9: label: " in str(raised.value)
    assert current_version(files) == version
    assert [p.name for p in files.data.iterdir() if p.is_dir()] == [version.hash]


def test_unknown_rule_is_named_with_its_nearest(build) -> None:
    plan, root = build(data={"cleaning": ["nfc@1", "colapse-spaces@1"]})
    (finding,) = check_data(plan, root).errors
    assert finding.field == "data.cleaning[1]" and "did you mean 'collapse-spaces@1'?" in finding.message


def test_rules_do_what_their_version_says() -> None:
    def after(text: str, *names: str) -> str:
        rules, unknown = find_rules(names)
        assert not unknown
        return clean(text, rules)

    assert after("zaz\u0307o\u0301łc\u0301", "nfc@1") == "zażółć"
    assert after("\u1112\u1161\u11ab", "nfc@1") == "한"
    assert after("\u00a0 a\t\n", "strip@1") == "a"
    assert after(" a \t\n b\u3000c ", "collapse-spaces@1") == " a b c "
    assert after("\n", "collapse-spaces@1") == " "
    assert after("ŻÓŁW", "lower@1") == "żółw"
    assert after("a\0b\x1b[31m\tc\n", "drop-control@1") == "ab[31m\tc\n"
    assert set(RULES) == {"nfc@1", "strip@1", "collapse-spaces@1", "lower@1", "drop-control@1"}


def test_command_prepares_the_seed_campaign_and_imports_no_training_library(seed_campaign: tuple[Plan, Path]) -> None:
    _, root = seed_campaign
    script = (
        "import sys; from ftui.data.__main__ import main; code = main([sys.argv[1]]);"
        "print(sorted({'torch', 'transformers', 'textual', 'accelerate'} & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].endswith("3,200 training, 550 validation, 2,200 test examples in 11 categories")
    assert lines[1] == "[]"
    encoded = list((root / "data").glob("*/encoded/*/train.arrow"))
    assert len(encoded) == 1


def test_command_says_every_problem_in_sentences(seed_campaign: tuple[Plan, Path]) -> None:
    _, root = seed_campaign
    text = (root / "campaign.toml").read_text()
    (root / "campaign.toml").write_text(text.replace("53aa5117", "00000000"))
    with (root / "data" / "test.jsonl").open("a") as file:
        file.write(json.dumps({"id": "x", "text": None, "category": "bank"}) + "\n")
    done = subprocess.run([sys.executable, "-m", "ftui.data", str(root)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "00000000" in done.stderr and "data/test.jsonl:2201: text: the text is null" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (root / "data" / "current.json").exists()
