"""Extraction: metrics follow from counts one can check by hand, and the whole thread runs in real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from ftui.data.encode import Example
from ftui.data.form import Form
from ftui.plan.schema import Generation as Settings
from ftui.record.rows import read_predictions
from ftui.train.extraction import Extraction
from tests.builders.processes import module
from tests.builders.tiny import frozen_run
from tests.builders.writing import SCHEMA, tiny_writer, writing_campaign

TARGET = {"drink": "tea", "size": "large", "name": "Ada"}


def judged(*outputs: dict[str, Any] | str) -> dict[str, Any]:
    """Metrics of these outputs, all of which should have been `TARGET`."""
    task = Extraction.__new__(Extraction)
    task.form = Form(SCHEMA)
    example = Example("1", "all", -1, [1, 2, 3], [(1, 3)], task.form.text(TARGET))
    texts = [output if isinstance(output, str) else json.dumps(output) for output in outputs]
    return task.score([task.row(example, text, 0.5) for text in texts])


def test_metrics_of_hand_made_answers() -> None:
    score = judged(
        TARGET, TARGET | {"size": "small"}, {"drink": "tea", "name": None}, {"drink": "beer", "name": "Ada"}, "tea"
    )
    # valid: the first three; beer is none of the drinks. The required ones, drink and name, stand in the first four.
    assert (score["valid_json"], score["required_fields"], score["exact_match"]) == (3 / 5, 4 / 5, 1 / 5)
    # found 3 drinks + 1 size + 3 names = 7 of 4 + 2 + 3 = 9 answered and 15 wanted
    assert score["field_f1"] == pytest.approx(2 * 7 / (9 + 15))
    assert score["categories"]["drink"] == {"recall": 3 / 5, "precision": 3 / 4, "f1": 2 * 3 / 9, "examples": 5}
    assert score["categories"]["size"] == {"recall": 1 / 5, "precision": 1 / 2, "f1": 2 / 7, "examples": 5}
    assert score["categories"]["name"]["precision"] == 1.0
    assert score["loss"] == 0.5


def test_micro_f1_equals_that_of_scikit_learn() -> None:
    """As (example, field, value) decisions: a wrong value is one false answer and one missed field."""
    from sklearn.metrics import f1_score

    outputs = [TARGET, TARGET | {"size": "small"}, {"drink": "tea", "name": None}, {"drink": "beer", "name": "Ada"}]
    said, wanted = [], []
    for output in outputs:
        for field, value in TARGET.items():
            for candidate in {value, output.get(field)} - {None}:
                wanted.append(candidate == value)
                said.append(candidate == output.get(field))
    assert judged(*outputs)["field_f1"] == pytest.approx(f1_score(wanted, said))


def test_nothing_valid_gives_zeros_and_no_division_by_zero() -> None:
    score = judged("", "no")
    assert {score[name] for name in ("valid_json", "required_fields", "exact_match", "field_f1")} == {0.0}


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_writer(tmp_path_factory.mktemp("writer"))


def test_extraction_runs_from_data_to_test_evaluation_in_real_processes(writer: Path, tmp_path: Path) -> None:
    files = writing_campaign(tmp_path / "c", writer)
    run, settings = frozen_run(files)
    assert settings.data.labels == ["drink", "size", "name"] and settings.data.instruction == "Answer in JSON."
    for verb in ("train", "test"):
        answer = module("ftui.train", verb, run.root)
        assert answer.returncode == 0, answer.stdout + answer.stderr
    rows = read_predictions(run.test_predictions)
    assert len(rows) == 12
    for row in rows:
        assert row.keys() >= {
            "id",
            "category",
            "target",
            "output",
            "correct",
            "loss",
            "targets",
            "valid",
            "required",
            "fields",
        }
        assert set(row["fields"]) == {"drink", "size", "name"}
        assert row["fields"]["name"][2] == (json.loads(row["target"])["name"] is not None)
    metrics = json.loads(run.test_metrics.read_text())
    assert {"valid_json", "required_fields", "exact_match", "field_f1"} <= metrics.keys()


@pytest.mark.slow
def test_a_real_model_learns_the_form_in_a_few_updates() -> None:
    """SmolLM2-135M-Instruct, eight real messages seen twenty times: the mechanism on a real tokenizer and template, no quality.

    Needs `campaigns/bookings-as-json/model` (make bookings).
    """
    from ftui.data.dialogues import extraction_row
    from ftui.data.encoders import make_chat_encoder
    from ftui.data.form import read_form
    from ftui.data.rows import Row
    from ftui.plan.load import load_plan

    campaign = Path(__file__).parents[2] / "campaigns" / "bookings-as-json"
    if not (campaign / "model" / "model.safetensors").is_file():
        pytest.skip("the model is not unpacked; `make bookings` does it")
    plan, form = load_plan(campaign), read_form(campaign / "booking.schema.json")
    encoder = make_chat_encoder("extraction", plan.training, plan.evaluation, campaign / "model")
    task = Extraction(encoder, 256, Settings(max_new_tokens=60), plan.data.instruction, form)
    examples, lines = [], (campaign / "data" / "train.jsonl").read_text().splitlines()
    for line, text in enumerate(lines[::150], 1):  # the file is sorted by what a message gives
        (row,) = extraction_row("train", line, json.loads(text), plan.data, [], form)
        assert isinstance(row, Row)
        whole = encoder.whole(row.messages)
        examples.append(Example(row.id, "all", -1, whole.ids, whole.spans, row.answer))
    torch.manual_seed(0)
    model, _ = task.load_base(str(campaign / "model"))
    batch = task.collate(examples)
    with torch.no_grad():
        before = task.score(task.predict(model.eval(), batch))
    optimizer = torch.optim.AdamW(model.model.layers.parameters(), lr=5e-4)
    for _ in range(20):
        (task.loss_sum(model, batch) / task.targets(batch)).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        after = task.score(task.predict(model, batch))
    assert before["field_f1"] < 0.3 and after["valid_json"] == 1.0 and after["field_f1"] > 0.6
    assert after["loss"] < before["loss"] / 4
