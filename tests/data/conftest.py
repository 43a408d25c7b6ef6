"""Builders for tests of the data room: small campaigns on disk, the seed campaign, and a tiny model's folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from ftui.plan.load import load_plan
from ftui.plan.schema import Plan

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")

SEED = Path(__file__).parents[2] / "campaigns" / "three-learning-rates"

PLAN: dict[str, Any] = {
    "schema": 1,
    "hypothesis": {"statement": "it gets better", "min_improvement": 0.02},
    "data": {"train": "data/train.jsonl", "validation": "data/validation.jsonl", "test": "data/test.jsonl"},
    "model": {"base": "./model"},
    "method": {"kind": "full"},
    "training": {"micro_batch": 2, "amount": 4, "learning_rate": 1e-4, "validate_every": 2, "checkpoint_every": 2},
    "evaluation": {"seeds": [1], "control_inputs": ["hello"]},
    "rental": {
        "days": 1,
        "hours": {"preflight": 1, "experiment": 4, "evaluation": 1, "resume": 1, "export": 1, "margin": 1},
    },
}

Content = str | bytes | list[dict[str, Any]]
Build = Callable[..., tuple[Plan, Path]]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """`build(files, data={…}, training={…})` writes a campaign and gives its plan and directory.

    `files` maps names under `data/` to bytes, text or rows (written as JSON Lines). Files the plan names by default
    are good ones unless given.
    """

    def make(files: dict[str, Content] | None = None, **sections: dict[str, Any]) -> tuple[Plan, Path]:
        root = tmp_path / "campaign"
        (root / "data").mkdir(parents=True, exist_ok=True)
        good: dict[str, Content] = {
            "train.jsonl": [{"text": f"train {i}", "label": "ab"[i % 2]} for i in range(8)],
            "validation.jsonl": [{"text": f"validation {i}", "label": "ab"[i % 2]} for i in range(4)],
            "test.jsonl": [{"text": f"test {i}", "label": "ab"[i % 2]} for i in range(4)],
        }
        for name, content in {**good, **(files or {})}.items():
            path = root / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, list):
                content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        plan = {
            name: {**value, **sections.get(name, {})} if isinstance(value, dict) else value
            for name, value in PLAN.items()
        }
        plan |= {name: value for name, value in sections.items() if name not in plan}
        return Plan.model_validate(plan), root

    return make


@pytest.fixture
def seed_campaign(tmp_path: Path) -> tuple[Plan, Path]:
    """A copy of the seed campaign: its plan and data, nothing prepared."""
    root = tmp_path / "three-learning-rates"
    (root / "data").mkdir(parents=True)
    shutil.copy(SEED / "campaign.toml", root)
    for path in (SEED / "data").glob("*.jsonl"):
        (root / "data" / path.name).write_bytes(path.read_bytes())
    return load_plan(root), root


@pytest.fixture
def words() -> list[str]:
    """The tiny tokenizer's words; the position is the id."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    return [*special, "train", "validation", "test", "hello", *"abcdef", *map(str, range(10))]


@pytest.fixture
def tiny_model(tmp_path: Path, words: list[str]) -> Path:
    """A model's folder with a word tokenizer that adds [CLS] and [SEP], and weights nobody looks into."""
    folder = tmp_path / "model"
    folder.mkdir()
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # As authors leave it behind: padded and cut to what they used last.
    tokenizer.enable_padding(length=4)
    tokenizer.enable_truncation(4)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"pad_token": "[PAD]"}')
    (folder / "config.json").write_text('{"model_type": "bert"}')
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder
