"""The same data, order, seed and settings give the loss curve of transformers' own Trainer: classification and causal LM, full and LoRA.

Models without dropout, whose random stream the two draw from differently. Micro-batches differ in length and in targets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import SequentialSampler
from transformers import Trainer, TrainingArguments

from ftui.data.encode import Example
from ftui.data.order import update_examples
from ftui.record.layout import CampaignFiles
from ftui.record.series import read_series
from ftui.train.loop import Workshop, set_up, train
from ftui.train.process import StopSignal
from tests.builders.tiny import frozen_run, tiny_campaign, tiny_model
from tests.builders.writing import tiny_writer, writing_campaign

UPDATES = 24
SHARED: dict[str, Any] = {
    "training__amount": UPDATES, "training__warmup": 3, "training__weight_decay": 0.01, "training__max_grad_norm": 0.5,
    "training__micro_batch": 4, "training__accumulation": 2, "training__checkpoint_every": UPDATES,
    "training__validate_every": UPDATES, "training__learning_rate": 2e-3,
}  # fmt: skip


def collate(rows: list[Example]) -> dict[str, torch.Tensor]:
    """As the library's own collators: padded, padding masked, -100 where no loss is."""
    longest = max(len(row.input_ids) for row in rows)
    ids = [row.input_ids + [0] * (longest - len(row.input_ids)) for row in rows]
    mask = [[1] * len(row.input_ids) + [0] * (longest - len(row.input_ids)) for row in rows]
    if rows[0].spans:
        labels = [[-100] * longest for _ in rows]
        for label, row in zip(labels, rows, strict=True):
            for start, end in row.spans:
                label[start:end] = row.input_ids[start:end]
    else:
        labels = [row.label for row in rows]  # type: ignore[misc]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "labels": torch.tensor(labels)}


class InOurOrder(Trainer):
    def _get_train_sampler(self, *_: Any) -> Any:
        return SequentialSampler(self.train_dataset)  # type: ignore[arg-type]


def their_losses(shop: Workshop, out: Path) -> list[float]:
    training = shop.settings.training
    split = shop.splits["train"]
    rows = [split.row(i) for examples in update_examples(shop.settings) for i in examples]
    micro, accumulation = training.micro_batch, training.accumulation
    if not rows[0].spans:
        # transformers 5.24 adds up the means of a classifier's micro-batches instead of averaging them: here it gets each update whole.
        micro, accumulation = micro * accumulation, 1
    arguments = TrainingArguments(
        output_dir=str(out), use_cpu=True, report_to="none", disable_tqdm=True, save_strategy="no", logging_steps=1,
        max_steps=UPDATES, per_device_train_batch_size=micro, remove_unused_columns=False,
        gradient_accumulation_steps=accumulation, learning_rate=training.learning_rate,
        lr_scheduler_type=training.schedule, warmup_steps=training.warmup, weight_decay=training.weight_decay,
        max_grad_norm=training.max_grad_norm, optim="adamw_torch", seed=shop.settings.seed,
    )  # fmt: skip
    trainer = InOurOrder(model=shop.model, args=arguments, train_dataset=rows, data_collator=collate)
    # Ours has no groups: weight decay is for every parameter, as the plan says.
    trainer.optimizer = torch.optim.AdamW(
        [p for p in shop.model.parameters() if p.requires_grad], lr=training.learning_rate,
        weight_decay=training.weight_decay,
    )  # fmt: skip
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def both(files: CampaignFiles, out: Path) -> tuple[list[float], list[float]]:
    run, settings = frozen_run(files)
    ours = set_up(settings, files)
    theirs = their_losses(set_up(settings, files), out)
    train(ours, run, StopSignal())
    return [row["loss"] for row in read_series(run.series) if row["k"] == "update"], theirs


@pytest.mark.parametrize("method", ["full", "lora"])
def test_classification_has_the_loss_curve_of_the_trainer(tmp_path: Path, method: str) -> None:
    model = tiny_model(tmp_path / "calm", dropout=0.0)
    how: dict[str, Any] = {"kind": "full"} if method == "full" else {
        "kind": "lora", "rank": 4, "targets": ["query", "value"], "save_modules": ["pooler", "classifier"]
    }  # fmt: skip
    ours, theirs = both(tiny_campaign(tmp_path / "c", model, method=how, **SHARED), tmp_path / "out")
    assert len(ours) == len(theirs) == UPDATES
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-4
    assert max(ours) - min(ours) > 0.01, "a curve that does not move proves nothing"


@pytest.mark.parametrize("batching", ["shuffled", "length-grouped", "packed"])
@pytest.mark.parametrize("method", ["full", "lora"])
def test_causal_lm_has_the_loss_curve_of_the_trainer(tmp_path: Path, method: str, batching: str) -> None:
    """Also with batches without waste: they change how an update is computed, not what it is."""
    model = tiny_writer(tmp_path / "writer")
    how: dict[str, Any] = (
        {"kind": "full"} if method == "full" else {"kind": "lora", "rank": 4, "targets": ["all-linear"]}
    )
    files = writing_campaign(tmp_path / "c", model, method=how, training__batching=batching, **SHARED)
    ours, theirs = both(files, tmp_path / "out")
    assert len(ours) == len(theirs) == UPDATES
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-4
    assert max(ours) - min(ours) > 0.2
