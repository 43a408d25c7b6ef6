"""Writing: masks equal TRL's, loss and gradient transformers' own, and answers do not depend on what else is in a batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ftui.data.chat import ChatEncoder
from ftui.data.encode import Example
from ftui.data.template import TEMPLATE_FILE
from ftui.data.tokenizer import load_tokenizer
from ftui.plan.schema import Generation as Settings
from ftui.plan.schema import Training
from ftui.record.layout import GateFiles
from ftui.record.rows import read_gates, read_predictions
from ftui.record.series import read_series
from ftui.train.generation import Generation, GenerationError
from tests.builders.processes import module
from tests.builders.tiny import frozen_run
from tests.builders.writing import CHATML, MARKED, chats, tiny_writer, writing_campaign

ROWS = chats(24)


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_writer(tmp_path_factory.mktemp("writer"))


def make_task(folder: Path, max_new_tokens: int | None = 12) -> Generation:
    training = Training.model_validate({"micro_batch": 1, "amount": 1, "learning_rate": 1, "max_length": 160})
    encoder = ChatEncoder(load_tokenizer(folder, writes=True), training)
    settings = None if max_new_tokens is None else Settings(max_new_tokens=max_new_tokens)
    return Generation(encoder, 160, settings, None)


def make_examples(task: Generation, rows: list[dict[str, Any]] = ROWS) -> list[Example]:
    examples = []
    for i, row in enumerate(rows):
        whole = task.encoder.whole(row["messages"])
        examples.append(Example(str(i), "all", -1, whole.ids, whole.spans, row["messages"][-1]["content"]))
    return examples


def in_evaluation(task: Generation, folder: Path) -> Any:
    return task.load_base(str(folder))[0].eval()


def trl_labels(folder: Path, rows: list[dict[str, Any]], out: Path, **how: Any) -> list[tuple[list[int], list[int]]]:
    """Ids and labels of each row as TRL's trainer collates them, padding cut off."""
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    how = {
        "use_cpu": True,
        "max_length": None,
        "report_to": "none",
        "output_dir": str(out),
        "disable_tqdm": True,
        **how,
    }
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder),
        args=SFTConfig(**how),
        train_dataset=Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(folder),
    )
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(len(rows))])
    lengths = batch["attention_mask"].sum(1).tolist()
    whole = zip(batch["input_ids"].tolist(), batch["labels"].tolist(), lengths, strict=True)
    return [(ids[:n], labels[:n]) for ids, labels, n in whole]


def our_labels(task: Generation, rows: list[dict[str, Any]]) -> list[tuple[list[int], list[int]]]:
    batch = task.collate(make_examples(task, rows))
    lengths = batch.inputs["attention_mask"].sum(1).tolist()
    whole = zip(batch.inputs["input_ids"].tolist(), batch.labels.tolist(), lengths, strict=True)
    return [(ids[:n], labels[:n]) for ids, labels, n in whole]


def test_masks_of_chats_equal_trls_assistant_only_loss(writer: Path, tmp_path: Path) -> None:
    marked = tmp_path / "marked"
    marked.mkdir()
    for file in writer.iterdir():
        (marked / file.name).symlink_to(file)
    (marked / TEMPLATE_FILE).unlink()
    (marked / TEMPLATE_FILE).write_text(MARKED)
    theirs = trl_labels(marked, ROWS, tmp_path / "out", assistant_only_loss=True)
    assert our_labels(make_task(marked), ROWS) == theirs
    assert sum(label != -100 for _, labels in theirs for label in labels) > 100


def test_masks_of_unmarked_chats_equal_trls_prompt_and_completion(writer: Path, tmp_path: Path) -> None:
    """A chat of one turn is a prompt and its completion; TRL finds the boundary by tokenising both."""
    rows = [row for row in ROWS if sum(m["role"] == "assistant" for m in row["messages"]) == 1]
    pairs = [{"prompt": row["messages"][:-1], "completion": row["messages"][-1:]} for row in rows]
    theirs = trl_labels(writer, pairs, tmp_path / "out")
    assert len(rows) >= 8 and our_labels(make_task(writer), rows) == theirs


def test_loss_and_gradient_are_those_of_transformers_own_loss(writer: Path) -> None:
    """The library computes all logits and a mean over the batch's targets."""
    task = make_task(writer)
    examples = make_examples(task)
    assert len({len(e.input_ids) for e in examples}) > 5
    batch = task.collate(examples)
    ours, theirs = in_evaluation(task, writer), in_evaluation(task, writer)
    loss = task.loss_sum(ours, batch) / task.targets(batch)
    reference = theirs(**batch.inputs, labels=batch.labels).loss
    loss.backward()
    reference.backward()
    assert float(loss.detach()) == pytest.approx(float(reference.detach()), rel=1e-6)
    for (name, mine), (_, other) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert torch.allclose(mine.grad, other.grad, atol=1e-7, rtol=1e-5), name


def test_logits_are_computed_at_targets_only(writer: Path) -> None:
    task = make_task(writer)
    batch = task.collate(make_examples(task))
    model = in_evaluation(task, writer)
    seen: list[tuple[int, ...]] = []
    model.lm_head.register_forward_hook(lambda _m, _i, out: seen.append(tuple(out.shape)))
    task.loss_sum(model, batch)
    assert seen == [(task.targets(batch), model.config.vocab_size)]
    assert task.targets(batch) < batch.inputs["input_ids"].numel() / 3
    assert model(**batch.inputs).logits.shape[:2] == batch.inputs["input_ids"].shape, "the hook is gone"


def test_the_end_token_carries_loss_though_it_is_the_padding(writer: Path) -> None:
    """K06."""
    task = make_task(writer)
    examples = make_examples(task)
    batch = task.collate(examples)
    assert task.tokenizer.pad_id == task.encoder.ends[0]
    ends = (batch.labels == task.tokenizer.pad_id).sum(1).tolist()
    assert ends == [sum(m["role"] == "assistant" for m in row["messages"]) for row in ROWS]
    assert task.targets(batch) == int((batch.labels != -100).sum()) == sum(len(e.target_ids) for e in examples)


def test_an_update_without_targets_has_loss_zero_with_its_graph(writer: Path) -> None:
    """What a process contributes that has no micro-batch left."""
    task = make_task(writer)
    batch = task.collate(make_examples(task)[:2])
    batch.labels.fill_(-100)
    loss = task.loss_sum(in_evaluation(task, writer), batch)
    assert float(loss.detach()) == 0.0 and loss.requires_grad


def alone(model: Any, task: Generation, prompt: list[int], new: int) -> list[int]:
    """The library's own greedy answer to one prompt, without a batch and without padding, by full passes and no cache."""
    ids = list(prompt)
    for _ in range(new):
        best = int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        if best in task.encoder.ends:
            break
        ids.append(best)
    return ids[len(prompt) :]


def test_answers_in_a_padded_batch_are_those_of_each_prompt_alone(writer: Path) -> None:
    task = make_task(writer)
    model = in_evaluation(task, writer)
    torch.manual_seed(1)
    with torch.no_grad():  # weights so large and a head so far from the embedding that answers differ
        for weight in model.model.layers.parameters():
            weight.mul_(8)
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    prompts = [example.input_ids[: example.spans[-1][0]] for example in make_examples(task)]
    written = task.write(model, prompts)
    expected = [task.tokenizer.decode(alone(model, task, prompt, 12)) for prompt in prompts]
    assert written == expected and len(set(written)) > 5


def test_predictions_do_not_depend_on_the_batch(writer: Path) -> None:
    task = make_task(writer)
    examples, model = make_examples(task), in_evaluation(task, writer)
    with torch.no_grad():
        together = task.predict(model, task.collate(examples))
        single = [task.predict(model, task.collate([e]))[0] for e in examples]
    for a, b in zip(together, single, strict=True):
        assert a | {"loss": 0} == b | {"loss": 0} and a["loss"] == pytest.approx(b["loss"], abs=2e-6)
    assert [row["targets"] for row in together] == [e.targets for e in examples]
    batch = task.collate(examples)
    reference = model(**batch.inputs, labels=batch.labels).loss
    assert task.score(together)["loss"] == pytest.approx(float(reference), abs=1e-5)


def test_scores_follow_from_the_rows_alone() -> None:
    task = Generation.__new__(Generation)
    rows = [
        {"category": "a", "loss": 1.0, "targets": 3, "correct": True},
        {"category": "a", "loss": 2.0, "targets": 1, "correct": False},
        {"category": "b", "loss": 4.0, "targets": 4, "correct": True},
    ]
    assert task.score(rows) == {
        "loss": (3 + 2 + 16) / 8,
        "exact_match": 2 / 3,
        "categories": {
            "a": {"loss": 5 / 4, "exact_match": 0.5, "examples": 2},
            "b": {"loss": 4.0, "exact_match": 1.0, "examples": 1},
        },
    }
    unjudged = [{**row, "correct": None, "category": "all"} for row in rows]
    assert task.score(unjudged) == {"loss": 21 / 8, "categories": {}}


BAD_SETTINGS = {"do_sample": False, "temperature": 0.3}
"""What some published models have: no harm while training, an exception when the model is saved."""


def test_settings_that_would_fail_at_the_save_are_refused_when_the_model_is_loaded(tmp_path: Path) -> None:
    """K37."""
    folder = tiny_writer(tmp_path / "m")
    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | BAD_SETTINGS))
    with pytest.raises(GenerationError, match=r"generation_config.json contradicts itself.*temperature"):
        make_task(folder).load_base(str(folder))


def test_more_positions_than_the_model_has_are_refused(writer: Path) -> None:
    with pytest.raises(GenerationError, match="add up to 1160 positions, the base model has 256"):
        make_task(writer, max_new_tokens=1000).load_base(str(writer))


def test_the_pilot_refuses_them_before_anything_trains(tmp_path: Path) -> None:
    """K37, in the process that the engine starts."""
    folder = tiny_writer(tmp_path / "m")
    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | BAD_SETTINGS))
    files = writing_campaign(tmp_path / "c", folder, "generation")
    run, _ = frozen_run(files)
    gates = GateFiles(files.root / "gates" / "g001")
    gates.root.mkdir(parents=True)
    (gates.root / "run.toml").write_text(run.settings.read_text().replace('purpose = "train"', 'purpose = "pilot"'))
    answer = module("ftui.train", "pilot", gates.root)
    assert answer.returncode == 1 and "generation_config.json contradicts itself" in answer.stdout
    failed = next(row for row in read_gates(gates.rows) if row.verdict != "passed")
    assert (failed.gate, failed.verdict) == ("load", "failed")


def test_a_model_learns_to_write_in_real_processes(writer: Path, tmp_path: Path) -> None:
    """Train, test, export and verify as the engine does: the loss falls, every row has its parts, the artefact answers alike."""
    also = {"evaluation__generation": {"max_new_tokens": 8}, "training__amount": 30, "training__learning_rate": 0.03}
    files = writing_campaign(tmp_path / "c", writer, "generation", **also)
    run, _ = frozen_run(files)
    artefact = files.root / "exports" / "a"
    for words in (("train", run.root), ("test", run.root), ("export", run.root, artefact), ("verify", artefact)):
        answer = module("ftui.train", *words)
        assert answer.returncode == 0, answer.stdout + answer.stderr
    updates = [row for row in read_series(run.series) if row["k"] == "update"]
    assert updates[-1]["loss"] < updates[0]["loss"] - 0.4
    assert all(row["targets"] > row["examples"] for row in updates)
    rows = read_predictions(run.test_predictions)
    assert [row["id"] for row in rows] == [f"data/test.jsonl:{i}" for i in range(1, 13)]
    assert {type(row["correct"]) for row in rows} == {bool}
    assert (artefact / TEMPLATE_FILE).read_text() == CHATML
    assert json.loads((artefact / "adapter_config.json").read_text())["task_type"] == "CAUSAL_LM"


def test_without_settings_nothing_is_written_and_nothing_judged(writer: Path) -> None:
    task = make_task(writer, max_new_tokens=None)
    with torch.no_grad():
        rows = task.predict(in_evaluation(task, writer), task.collate(make_examples(task)[:3]))
    assert {(row["correct"], row["output"]) for row in rows} == {(None, "")}
    assert set(task.score(rows)) == {"loss", "categories"}


def test_collated_tensors_are_padded_behind(writer: Path) -> None:
    task = make_task(writer)
    batch = task.collate(make_examples(task))
    mask: Tensor = batch.inputs["attention_mask"]
    assert mask[:, 0].all() and not mask[:, -1].all()
    assert (mask.diff(dim=1) <= 0).all()


def test_packed_rows_have_the_same_targets_and_the_same_loss(writer: Path) -> None:
    """K02."""
    task = make_task(writer)
    examples = make_examples(task)
    padded, packed = task.collate(examples), task.pack(examples)
    assert padded.labels[padded.labels != -100].tolist() == packed.labels[packed.labels != -100].tolist()
    model = in_evaluation(task, writer)
    one, other = float(task.loss_sum(model, padded).detach()), float(task.loss_sum(model, packed).detach())
    assert other == pytest.approx(one, rel=1e-6)
