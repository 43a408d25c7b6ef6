"""Facts over all rows equal a count by hand; data that cannot be used can be looked at; the test split stays sealed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ftui.data.examples import Examples, SealedError, serve, thumbnail
from ftui.data.facts import first_epoch_batches, lengths, padding_of_first_epoch
from ftui.data.findings import DataError
from ftui.data.inspection import Inspection, inspect, inspection_content
from ftui.data.inspection_text import inspection_text
from ftui.data.prepare import prepare
from ftui.data.transform import transform_words
from ftui.plan.load import load_plan
from ftui.plan.schema import Machine, Plan, Training
from ftui.record.layout import CampaignFiles
from tests.builders.processes import ENVIRONMENT
from tests.builders.writing import CHATML, tiny_tokenizer, writing_campaign


@pytest.fixture
def looked(
    build: Callable[..., tuple[Plan, Path]], tiny_model: Path
) -> Callable[..., tuple[Inspection, CampaignFiles]]:
    """`looked(files, data={…}, training={…})`: an inspection of a small campaign; the model's folder holds no weights."""
    (tiny_model / "model.safetensors").unlink()

    def make(files: dict[str, Any] | None = None, **sections: Any) -> tuple[Inspection, CampaignFiles]:
        plan, root = build(files, model={"base": str(tiny_model)}, **sections)
        return inspect(plan, CampaignFiles(root)), CampaignFiles(root)

    return make


def training(**changes: Any) -> Training:
    return Training.model_validate({"micro_batch": 1, "amount": 1, "learning_rate": 1, **changes})


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    """A writing model's folder: tokenizer and template, no weights."""
    folder = tmp_path / "writer"
    folder.mkdir()
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    named = {"eos_token": "<|im_end|>", "pad_token": "<|im_end|>", "unk_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **named}))
    (folder / "chat_template.jinja").write_text(CHATML)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return folder


def test_quantiles_and_histogram_are_those_of_numpy() -> None:
    whole = np.random.default_rng(5).integers(3, 400, 1001, dtype=np.int32)
    found = lengths(whole)
    expected = np.quantile(whole, [0, 0.5, 0.9, 0.99, 1], method="inverted_cdf").tolist()
    assert [found.shortest, found.median, found.p90, found.p99, found.longest] == expected
    assert [n for _, _, n in found.bars] == [int(((whole >= a) & (whole <= b)).sum()) for a, b, _ in found.bars]
    assert sum(n for _, _, n in found.bars) == 1001
    assert all(after[0] == before[1] + 1 for before, after in zip(found.bars, found.bars[1:], strict=False))


@pytest.mark.parametrize("batching", ["shuffled", "length-grouped", "packed"])
def test_padding_is_what_filling_every_micro_batch_takes(batching: str) -> None:
    kept = np.random.default_rng(6).integers(2, 60, 101, dtype=np.int32)
    about, machine = training(micro_batch=3, accumulation=2, batching=batching), Machine(processes=2, strategy="ddp")
    found = padding_of_first_epoch(kept, about, machine, seed=3)
    batches = first_epoch_batches(kept, about, machine, seed=3)
    assert sorted(i for batch in batches for i in batch) == list(range(101))
    filled = sum(max(int(kept[i]) for i in batch) * len(batch) for batch in batches)
    assert found.tokens == int(kept.sum())
    assert found.padding == (0 if batching == "packed" else filled - int(kept.sum()))


def test_batches_are_those_that_a_run_trains_on(tmp_path: Path) -> None:
    """The order comes from the same place as the training loop's."""
    from ftui.data.order import epoch_order

    kept = np.ones(10, np.int32)
    batches = first_epoch_batches(kept, training(micro_batch=2, accumulation=2), Machine(), seed=9)
    assert [i for batch in batches for i in batch] == epoch_order(10, 9, 0)
    assert [len(batch) for batch in batches] == [2, 2, 2, 2, 2]


def test_facts_of_cut_texts_equal_a_count_by_hand(looked: Callable[..., Any]) -> None:
    rows = [{"text": " ".join(["train"] * n), "label": "ab"[n % 2]} for n in range(1, 9)]
    inspection, _ = looked({"train.jsonl": rows}, training={"max_length": 6, "truncation": "cut"})
    facts = inspection.facts["train"]
    whole = [n + 2 for n in range(1, 9)]  # [CLS] and [SEP]
    assert facts.lengths is not None and (facts.lengths.shortest, facts.lengths.longest) == (3, 10)
    assert (facts.rows, facts.cut_rows) == (8, sum(n > 6 for n in whole))
    assert facts.cut_tokens == sum(max(0, n - 6) for n in whole)
    assert facts.tokens == sum(min(n, 6) for n in whole)
    assert (facts.targets, facts.rows_without_target, facts.loss_share) == (8, 0, None)


def test_unknown_words_are_counted_by_token_and_by_row(looked: Callable[..., Any], tiny_model: Path) -> None:
    config = json.loads((tiny_model / "tokenizer_config.json").read_text())
    (tiny_model / "tokenizer_config.json").write_text(json.dumps({**config, "unk_token": "[UNK]"}))
    rows = [
        {"text": "zażółć gęślą train", "label": "a"},
        {"text": "hello", "label": "b"},
        {"text": "jaźń", "label": "a"},
    ]
    inspection, _ = looked({"train.jsonl": rows})
    assert inspection.facts["train"].unknown == (3, 2)


def test_targets_that_are_cut_off_are_counted(tmp_path: Path, writer: Path) -> None:
    files = writing_campaign(
        tmp_path / "c", writer, task="generation", training__max_length=48, training__truncation="cut"
    )
    plan = load_plan(files.root)
    inspection = inspect(plan, files)
    whole = inspect(plan.model_copy(update={"training": plan.training.model_copy(update={"max_length": 4096})}), files)
    facts, all_of_it = inspection.facts["train"], whole.facts["train"]
    assert all_of_it.targets_lost == 0 and facts.cut_rows > 0
    assert inspection.encoder is not None and inspection.encoded is not None
    examples, lost = Examples(inspection, files.root), 0
    for index in range(facts.rows):
        example = examples.example("train", index)
        lost += example["targets_lost"]
        shown = sum(tokens for _, state, _, tokens in example["pieces"] if state == "loss")
        assert example["problem"] or shown == example["targets"] == inspection.encoded.splits["train"].targets[index]
    unusable = sum(facts.problems.values())
    assert facts.targets_lost == lost > 0
    if not unusable:
        assert facts.targets + lost == all_of_it.targets
    assert all_of_it.loss_share == all_of_it.targets / all_of_it.tokens


def test_data_that_cannot_be_used_can_be_looked_at_and_is_never_trained_on(
    looked: Callable[..., Any], tiny_model: Path
) -> None:
    rows = [{"text": f"train {i}", "label": "ab"[i % 2]} for i in range(6)] + [{"text": None, "label": "a"}]
    inspection, files = looked({"train.jsonl": rows})
    assert inspection.errors == 1 and inspection.folder.name == f"unusable-{inspection.report.hash}"
    assert len(Examples(inspection, files.root).choose("train")) == 6
    assert not files.data_version(inspection.report.hash).exists() and not files.data_current.exists()
    with pytest.raises(DataError):
        prepare(inspection.plan, files, tiny_model)
    (files.root / "data" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    mended = inspect(inspection.plan, files)
    assert not mended.errors and mended.folder == files.data_version(mended.report.hash)
    assert not inspection.folder.exists()


def test_rows_over_the_length_are_chosen_shown_and_refused_at_launch(
    looked: Callable[..., Any], tiny_model: Path
) -> None:
    rows = [{"text": " ".join(["train"] * (2 + 6 * (i == 3))) + f" {i}", "label": "ab"[i % 2]} for i in range(6)]
    inspection, files = looked({"train.jsonl": rows}, training={"max_length": 6})
    examples = Examples(inspection, files.root)
    assert examples.choose("train", only="cut") == examples.choose("train", only="unusable") == [3]
    assert examples.choose("train", order="longest")[0] == 3
    example = examples.example("train", 3)
    assert "training.max_length = 6" in example["problem"] and example["place"] == "data/train.jsonl:4"
    assert inspection.facts["train"].problems == {"too many tokens": 1}
    (tiny_model / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(DataError):
        prepare(inspection.plan, files, tiny_model)


def test_rows_of_the_test_split_are_never_shown(looked: Callable[..., Any]) -> None:
    texts = ["secret one of all", "secret one of all", "secret two of them all", "secret two of them all!"]
    inspection, files = looked({"test.jsonl": [{"text": text, "label": "ab"[i % 2]} for i, text in enumerate(texts)]})
    assert {"equal texts within test", "near duplicates within test"} <= {f.kind for f in inspection.findings}
    examples = Examples(inspection, files.root)
    with pytest.raises(SealedError, match="sealed"):
        examples.choose("test")
    with pytest.raises(SealedError, match="sealed"):
        examples.example("test", 0)
    content = inspection_content(inspection)
    assert content["splits"]["test"] == 4 and content["facts"]["test"]["rows"] == 4
    assert "secret" not in json.dumps(content) + inspection_text(content)


def test_examples_are_found_by_what_they_say_and_by_category(looked: Callable[..., Any]) -> None:
    texts = ["Zażółć GĘŚLĄ jaźń", "예약을 취소해 주세요", "hello label a", "hello"]
    inspection, files = looked({"train.jsonl": [{"text": t, "label": "ab"[i % 2]} for i, t in enumerate(texts)]})
    examples = Examples(inspection, files.root)
    assert examples.choose("train", text="gęślą") == [0]
    assert examples.choose("train", text="취소") == [1]
    assert examples.choose("train", text="label") == [2]
    assert examples.choose("train", text="hello", category="b") == [3]
    assert examples.example("train", 0)["class"] == 0


def test_the_same_classes_in_another_order_than_the_bases_head_are_an_error_until_the_plan_names_them(
    looked: Callable[..., Any], tiny_model: Path
) -> None:
    (tiny_model / "config.json").write_text(json.dumps({"model_type": "bert", "id2label": {"0": "b", "1": "a"}}))
    inspection, _ = looked()
    (finding,) = [f for f in inspection.findings if f.severity == "error"]
    assert finding.field == "data.labels" and 'data.labels = ["b", "a"]' in finding.message
    inspection, _ = looked(data={"labels": ["b", "a"]})
    assert not inspection.errors and inspection.report.labels == ["b", "a"]
    assert inspection.encoded is not None
    assert (
        inspection.encoded.splits["train"].row(0).category == "a"
        and inspection.encoded.splits["train"].row(0).label == 1
    )
    (tiny_model / "config.json").write_text(json.dumps({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}))
    assert not looked()[0].findings


def test_labels_of_the_plan_and_of_the_rows_must_agree(looked: Callable[..., Any]) -> None:
    inspection, _ = looked(data={"labels": ["a", "c"]})
    kinds = {(f.kind, f.field) for f in inspection.findings if f.severity == "error"}
    assert kinds == {("unknown label", "label"), ("class without rows", "data.labels")}


def test_without_a_tokenizer_everything_else_is_still_told(build: Callable[..., tuple[Plan, Path]]) -> None:
    plan, root = build(model={"base": "./nowhere"})
    inspection = inspect(plan, CampaignFiles(root))
    assert [f.kind for f in inspection.findings] == ["no tokenizer"]
    content = inspection_content(inspection)
    assert content["facts"] == {} and content["splits"] == {"train": 8, "validation": 4, "test": 4}
    assert Examples(inspection, root).example("train", 0)["text"] == "train 0"
    assert "train" in inspection_text(content)


def test_words_about_a_picture_are_those_of_its_processor(tmp_path: Path) -> None:
    settings = {
        "size": {"height": 32, "width": 24},
        "do_center_crop": True,
        "crop_size": 16,
        "image_mean": [0.5, 0.4, 0.3],
        "image_std": [1, 1, 1],
    }
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    steps = transform_words(tmp_path)
    assert steps[1:] == [
        "resized to 24 × 32",
        "cut to the middle 16 × 16",
        "values multiplied by 0.003922",
        "minus 0.5/0.4/0.3, divided by 1/1/1 per channel",
    ]
    assert transform_words(tmp_path / "none")[0].startswith("unknown")


def test_a_thumbnail_keeps_the_shape_and_the_colours(tmp_path: Path) -> None:
    Image.new("RGB", (40, 20), (255, 0, 10)).save(tmp_path / "red.png")
    points = thumbnail(tmp_path / "red.png", 10, 10)
    assert (len(points[0]), len(points)) == (10, 5) and {point for line in points for point in line} == {(255, 0, 10)}
    (tmp_path / "torn.png").write_bytes((tmp_path / "red.png").read_bytes()[:40])
    assert thumbnail(tmp_path / "torn.png", 10, 10) == []


def test_questions_are_answered_in_turn_and_a_sealed_one_is_refused(looked: Callable[..., Any]) -> None:
    inspection, files = looked()
    questions = [
        {"id": 1, "ask": "choose", "split": "train", "category": "b"},
        {"id": 2, "ask": "example", "at": 1},
        {"id": 3, "ask": "choose", "split": "test"},
        {"id": 4, "ask": "inspection"},
    ]
    asked, said = iter([*(json.dumps(q) + "\n" for q in questions), ""]), list[dict[str, Any]]()
    serve(Examples(inspection, files.root), {"x": 1}, lambda: next(asked), lambda line: said.append(json.loads(line)))
    assert [answer["id"] for answer in said] == [1, 2, 3, 4]
    assert said[0]["answer"] == {"rows": 4} and said[1]["answer"]["index"] == 3
    assert "sealed" in said[2]["error"] and said[3]["answer"] == {"x": 1}


def command(*words: str | Path) -> subprocess.CompletedProcess[str]:
    script = (
        "import sys; from ftui.cli import main; code = main(sys.argv[1:]); heavy = {'torch', 'transformers', 'textual'};"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}), file=sys.stderr); sys.exit(code)"
    )
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )


def test_the_command_says_it_as_text_and_as_json_without_a_training_library(
    seed_campaign: tuple[Plan, Path],
) -> None:
    _, root = seed_campaign
    done = command("inspect", root, "--json")
    content = json.loads(done.stdout)
    assert done.returncode == 0 and done.stderr.splitlines()[-1] == "[]"
    assert content["counts"]["out_of_scope"] == {"train": 100, "validation": 50, "test": 200}
    assert content["facts"]["train"]["rows"] == 3200
    text = command("inspect", root)
    assert text.returncode == 0 and "out_of_scope" in text.stdout and "test is sealed" in text.stdout
    example = command("inspect", root, "--example", "1", "--longest")
    assert example.returncode == 0 and "[CLS]" in example.stdout and "╵" in example.stdout
    assert command("inspect", root, "--example", "4000").returncode == 2
    assert command("inspect", root, "--example", "1", "--split", "test").returncode == 2


def test_the_command_exits_with_1_when_the_data_cannot_be_used(
    build: Callable[..., tuple[Plan, Path]], tiny_model: Path
) -> None:
    import tomli_w

    plan, root = build({"train.jsonl": b'{"text": "x"\n'}, model={"base": str(tiny_model)})
    (root / "campaign.toml").write_text(tomli_w.dumps(plan.model_dump(mode="json", by_alias=True, exclude_none=True)))
    done = command("inspect", root, "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["usable"] is False
