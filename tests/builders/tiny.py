"""A tiny random model with a real tokenizer, tiny data, and plans over both: mechanism tests run in seconds on them.

The model says nothing about quality; tests that do use the real one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tomli_w
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from ftui.plan.load import load_plan, plan_hash
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion, RunSettings, dump_settings, run_settings
from ftui.plan.variants import planned_runs
from ftui.record.files import replace_text
from ftui.record.layout import CampaignFiles, RunFiles

CATEGORIES = ("bank", "kitchen", "travel")
WORDS = {
    "bank": ["card", "loan", "money", "cash", "credit", "saldo"],
    "kitchen": ["rice", "bread", "soup", "cook", "salt", "piekarnik"],
    "travel": ["train", "hotel", "visa", "flight", "map", "perjalanan"],
}
FILLERS = ["the", "a", "my", "where", "is", "please", "what", "now", "tomorrow", "again", "예", "żółty"]


def tiny_model(folder: Path, *, dropout: float = 0.1) -> Path:
    """A two-layer BERT with random weights (seed 0) and a word-level tokenizer, in the files a hub repository would hold."""
    import torch
    from transformers import BertConfig, BertModel

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *FILLERS, *(w for ws in WORDS.values() for w in ws)]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64, **names})
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, pad_token_id=0, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    return folder


def tiny_rows(count: int, seed: int) -> list[dict[str, str]]:
    """Rows whose category follows from one of their words; all texts differ."""
    import random

    draw = random.Random(seed)
    rows: list[dict[str, str]] = []
    seen: set[str] = set()
    while len(rows) < count:
        category = CATEGORIES[len(rows) % len(CATEGORIES)]
        words = draw.choices(FILLERS, k=draw.randint(2, 9))
        words.insert(draw.randint(0, len(words)), draw.choice(WORDS[category]))
        text = " ".join(words)
        if text not in seen:
            seen.add(text)
            rows.append({"text": text, "label": category})
    return rows


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def tiny_plan(**changes: Any) -> dict[str, Any]:
    """A plan over `tiny_model` and `tiny_rows`; `changes` are dotted fields, with `__` for the dot."""
    plan: dict[str, Any] = {
        "schema": 1,
        "hypothesis": {"statement": "More is better.", "metric": "macro_f1", "min_improvement": 0.01, "reference": "control"},
        "guardrails": [{"name": "none is lost", "metric": "recall", "slice": "each category", "tolerance": 0.2}],
        "data": {"train": "data/train.jsonl", "validation": "data/validation.jsonl", "test": "data/test.jsonl"},
        "model": {"base": "./model"},
        "method": {"kind": "lora", "rank": 4, "dropout": 0.1, "targets": ["query", "value"], "save_modules": ["pooler", "classifier"]},
        "training": {
            "micro_batch": 4, "accumulation": 2, "amount": 12, "learning_rate": 5e-3, "warmup": 2, "max_length": 32,
            "validate_every": 6, "checkpoint_every": 4, "stop": {"divergence": 50.0},
        },
        "evaluation": {"batch_size": 32, "seeds": [7], "control_inputs": ["where is my card", "cook the rice"], "resamples": 200},
        "machine": {"backend": "cpu", "slots": 2},
        "rental": {
            "days": 1,
            "hours": {"preflight": 1, "experiment": 12, "evaluation": 2, "resume": 1, "export": 1, "margin": 2},
        },
        "variants": [{"id": "slower", "because": "Smaller steps may end lower.", "change": {"training.learning_rate": 1e-3}}],
    }  # fmt: skip
    for name, value in changes.items():
        *sections, field = name.split("__")
        table = plan
        for section in sections:
            table = table[section]
        table[field] = value
    return plan


def tiny_campaign(folder: Path, model: Path, *, train_rows: int = 96, **changes: Any) -> CampaignFiles:
    """A campaign directory with data, a link to the model, and its plan."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model").symlink_to(model)
    rows = tiny_rows(train_rows + 60, seed=1)
    write_rows(folder / "data" / "train.jsonl", rows[:train_rows])
    write_rows(folder / "data" / "validation.jsonl", rows[train_rows : train_rows + 30])
    write_rows(folder / "data" / "test.jsonl", rows[train_rows + 30 :])
    (folder / "campaign.toml").write_text(tomli_w.dumps(tiny_plan(**changes)), encoding="utf-8")
    return CampaignFiles(folder.resolve())


def prepared(files: CampaignFiles) -> tuple[Plan, DataVersion]:
    """The campaign's plan and its data, read and encoded."""
    from ftui.data.base import find_base
    from ftui.data.prepare import prepare

    plan = load_plan(files.root)
    return plan, prepare(plan, files, find_base(plan.model, files.root).directory)


def frozen_run(
    files: CampaignFiles, variant: str = "control", *, name: str | None = None
) -> tuple[RunFiles, RunSettings]:
    """A run of the prepared campaign with its `run.toml`, ready for `python -m ftui.train train`."""
    plan, data = prepared(files)
    planned = next(run for run in planned_runs(plan) if run.variant == variant)
    settings = run_settings(plan, plan_hash(plan), planned, data, "cpu")
    run = files.run(name or planned.id)
    replace_text(run.settings, dump_settings(settings))
    return run, settings
