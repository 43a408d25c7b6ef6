"""Exactly the parameters change that are meant to, and no others (P3, K13)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from ftui.record.rows import read_gates
from ftui.train.moved import NotAsMeant, check_moved, fingerprints
from tests.builders.gates import frozen_gates
from tests.builders.processes import module
from tests.builders.tiny import tiny_campaign


def adapted() -> nn.Module:
    torch.manual_seed(0)
    model = BertForSequenceClassification(
        BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    )
    return get_peft_model(model, LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"]))


def step(model: nn.Module) -> None:
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2, weight_decay=0.0)
    model(input_ids=torch.arange(4, 12).view(2, 4), labels=torch.tensor([0, 1])).loss.backward()
    optimizer.step()
    model.zero_grad()


def test_the_first_update_moves_b_and_the_second_a() -> None:
    model = adapted()
    before = fingerprints(model)
    step(model)
    counts = check_moved(before, model, 1)
    assert counts["moved"] == counts["trained"] - 2, "lora_A of query and value waits for lora_B"
    with pytest.raises(
        NotAsMeant, match=r"2 trained parameters did not move in 2 updates, the first is .*query.lora_A"
    ):
        check_moved(before, model, 2)
    step(model)
    counts = check_moved(before, model, 2)
    assert counts["moved"] == counts["trained"] and counts["frozen"] > counts["trained"]


def test_a_frozen_parameter_that_changes_is_named_even_by_one_bit() -> None:
    model = adapted()
    before = fingerprints(model)
    step(model)
    step(model)
    frozen = dict(model.named_parameters())["base_model.model.bert.embeddings.word_embeddings.weight"]
    with torch.no_grad():
        frozen.view(torch.int32)[3, 3] ^= 1
    with pytest.raises(NotAsMeant, match=r"1 frozen parameters changed, the first is .*word_embeddings.weight"):
        check_moved(before, model, 2)


def test_two_values_that_change_places_are_a_change() -> None:
    model = nn.Linear(4, 4)
    before = fingerprints(model)
    with torch.no_grad():
        model.weight[0] = model.weight[0].flip(0).clone()
        model.bias += 1
    assert check_moved(before, model, 1)["moved"] == 2


def test_updates_without_a_learning_rate_move_nothing_and_say_nothing() -> None:
    model = adapted()
    assert check_moved(fingerprints(model), model, 0)["moved"] == 0


def test_with_activation_checkpointing_every_adapter_matrix_moves(model: Path, tmp_path: Path) -> None:
    files = tiny_campaign(tmp_path / "c", model, training__activation_checkpointing=True)
    gates = frozen_gates(files)
    answer = module("ftui.train", "pilot", gates.root)
    assert answer.returncode == 0, answer.stdout
    row = next(row for row in read_gates(gates.rows) if row.gate == "parameters moved")
    # 2 layers × (query, value) × (A, B), pooler and classifier with their biases
    assert row.facts["moved"] == row.facts["trained"] == 8 + 4
    assert row.verdict == "passed"
