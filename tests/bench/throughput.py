"""How fast this loop trains, against TRL's `SFTTrainer` on the same model, data, order and update definition.

    make bench      or      python -m pytest -m bench -s tests/bench/throughput.py      (needs trl and datasets)

A small Llama with an adapter; prompts and answers whose lengths vary as those of people do (log-normal); 16 examples per update.
Every contestant is a process of its own with one thread. Counted are real tokens, no padding, over the processor time of all updates
but the first two (one thread spends as much of it as of the wall's on an idle machine, and a busy one does not blur it), and the
largest resident memory of the process. The same examples are in the same updates for all but
`group_by_length`, so losses must agree: within rounding in fp32, roughly under bf16, which is TRL's default.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from ftui.record.layout import CampaignFiles, RunFiles
from ftui.record.series import read_series
from tests.builders.processes import ENVIRONMENT
from tests.builders.tiny import frozen_run, tiny_plan, write_rows

UPDATES, SKIPPED, EXAMPLES = 14, 2, 16
WORDS = 8192
LAYERS, HIDDEN = 6, 256

OURS: dict[str, dict[str, Any]] = {
    "ftui, shuffled 4 × 4": {"micro_batch": 4, "accumulation": 4},
    "ftui, length-grouped 4 × 4": {"micro_batch": 4, "accumulation": 4, "batching": "length-grouped"},
    "ftui, packed 4 × 4": {"micro_batch": 4, "accumulation": 4, "batching": "packed"},
    "ftui, packed 2 × 8": {"micro_batch": 2, "accumulation": 8, "batching": "packed"},
}
PLAIN = {"bf16": False, "gradient_checkpointing": False}
THEIRS: dict[str, dict[str, Any]] = {
    "TRL, default 8 × 2": {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 2},
    "TRL, fp32 16 × 1": PLAIN | {"per_device_train_batch_size": 16, "gradient_accumulation_steps": 1},
    "TRL, fp32 4 × 4": PLAIN | {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4},
    "TRL, fp32 1 × 16": PLAIN | {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 16},
    "TRL, fp32 padding-free 4 × 4": PLAIN
    | {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4, "padding_free": True, "max_length": None},
    "TRL, fp32 grouped by length 4 × 4": PLAIN
    | {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 4,
        "train_sampling_strategy": "group_by_length",
    },
}


@pytest.mark.bench
@pytest.mark.timeout(3600)
def test_throughput(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="trl and datasets are not installed")
    pytest.importorskip("datasets", reason="trl and datasets are not installed")
    results: dict[str, dict[str, Any]] = {}
    for number, (name, training) in enumerate({**THEIRS, **OURS}.items()):
        files = campaign(tmp_path / f"c{number}", training if name in OURS else {"micro_batch": 4, "accumulation": 4})
        run, _ = frozen_run(files)
        out, arguments = tmp_path / "out.json", [] if name in OURS else [json.dumps(training)]
        peak = _run("-m", "tests.bench.throughput", run.root, out, *arguments, log=tmp_path / "log.txt")
        results[name] = {**json.loads(out.read_text()), "peak": peak}
    print(table(results))
    reference = results["ftui, shuffled 4 × 4"]["losses"]
    for name, result in results.items():
        if "grouped by length" in name:
            continue
        difference = max(abs(a - b) for a, b in zip(reference, result["losses"], strict=True))
        assert difference < (0.1 if "default" in name else 1e-3), f"{name}: another loss, so another update"


def campaign(folder: Path, training: dict[str, Any]) -> CampaignFiles:
    """Questions and answers over a random small Llama; equal for equal `training` but for that."""
    _model(folder / "model")
    for seed, (split, count) in enumerate({"train": UPDATES * EXAMPLES, "validation": 4, "test": 4}.items()):
        write_rows(folder / "data" / f"{split}.jsonl", _rows(count, seed))
    plan = tiny_plan()
    plan["hypothesis"] |= {"task": "generation", "metric": "loss", "direction": "lower"}
    plan["guardrails"], plan["variants"] = [], []
    plan["method"] = {"kind": "lora", "rank": 8, "targets": ["all-linear"]}
    plan["training"] = {
        "amount": UPDATES, "learning_rate": 1e-3, "schedule": "constant", "max_length": 1024, "validate_every": UPDATES,
        "checkpoint_every": UPDATES, **training,
    }  # fmt: skip
    (folder / "campaign.toml").write_text(tomli_w.dumps(plan), encoding="utf-8")
    return CampaignFiles(folder.resolve())


def _rows(count: int, seed: int) -> list[dict[str, str]]:
    draw = random.Random(seed)

    def words(middle: float, spread: float, most: int) -> str:
        return " ".join(
            f"w{draw.randrange(WORDS)}" for _ in range(min(most, max(2, int(draw.lognormvariate(middle, spread)))))
        )

    return [{"prompt": words(4.2, 0.9, 700), "answer": words(2.8, 0.7, 120)} for _ in range(count)]


def _model(folder: Path) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM

    folder.mkdir(parents=True)
    names = ["<pad>", "<end>", "<unk>", *(f"w{i}" for i in range(WORDS))]
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "<end>",
        "unk_token": "<unk>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(names), hidden_size=HIDDEN, intermediate_size=3 * HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=4,
        max_position_embeddings=1024, tie_word_embeddings=True, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


def _run(*words: str | Path, log: Path) -> int:
    """Run Python to its end and return its largest resident memory in bytes."""
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, *map(str, words)], env=ENVIRONMENT, stdout=file, stderr=file)
        _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, log.read_text(errors="replace")[-3000:]
    return usage.ru_maxrss * 1024


def ours(run: Path, out: Path) -> None:
    """Train the run with this loop, as `python -m ftui.train train` does; write losses, tokens and seconds of every update."""
    from ftui.plan.settings import read_settings
    from ftui.train.loop import set_up, train
    from ftui.train.process import StopSignal

    files = RunFiles(run)
    shop = set_up(read_settings(run), CampaignFiles(run.parent.parent))
    update, seconds = shop.update, list[float]()

    def timed(examples: list[int]) -> Any:
        began = time.process_time()
        done = update(examples)
        seconds.append(time.process_time() - began)
        return done

    shop.update = timed  # type: ignore[method-assign]
    train(shop, files, StopSignal())
    rows = [row for row in read_series(files.series) if row["k"] == "update"]
    content = {"losses": [row["loss"] for row in rows], "tokens": [row["tokens"] for row in rows], "seconds": seconds}
    out.write_text(json.dumps(content))


def theirs(run: Path, out: Path, arguments: dict[str, Any]) -> None:
    """Train the run's model on the run's examples in the run's order with `SFTTrainer`; write losses, tokens and seconds."""
    from datasets import Dataset
    from transformers import AutoTokenizer, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    from ftui.data.order import update_examples
    from ftui.plan.settings import read_settings
    from ftui.train.loop import set_up

    settings, files = read_settings(run), CampaignFiles(run.parent.parent)
    shop = set_up(settings, files)
    updates = list(update_examples(settings))
    rows = [shop.splits["train"].row(i) for examples in updates for i in examples]
    marked = [
        {
            "input_ids": row.input_ids,
            "completion_mask": [int(any(s <= at < e for s, e in row.spans)) for at in range(len(row.input_ids))],
        }
        for row in rows
    ]
    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            if not ends:
                ends.append(time.process_time())

        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append(time.process_time())

    # For rows that are tokens already, loss on the answer alone must be asked for.
    own = {"max_length": 1024, "train_sampling_strategy": "sequential", "completion_only_loss": True, **arguments}
    config = SFTConfig(
        output_dir=str(out.parent / "trl"), use_cpu=True, report_to="none", disable_tqdm=True, save_strategy="no", logging_steps=1,
        max_steps=len(updates), learning_rate=1e-3, lr_scheduler_type="constant", max_grad_norm=1.0, seed=settings.seed, **own,
    )  # fmt: skip
    tokenizer = AutoTokenizer.from_pretrained(files.root / "model")
    trainer = SFTTrainer(
        model=shop.model,
        args=config,
        train_dataset=Dataset.from_list(marked),
        processing_class=tokenizer,
        callbacks=[Clock()],
    )
    trainer.train()
    content = {
        "losses": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
        "tokens": [sum(len(row.input_ids) for row in rows[at : at + EXAMPLES]) for at in range(0, len(rows), EXAMPLES)],
        "seconds": [after - before for before, after in itertools.pairwise(ends)],
    }
    out.write_text(json.dumps(content))


def table(results: dict[str, dict[str, Any]]) -> str:
    speeds = {name: sum(r["tokens"][SKIPPED:]) / sum(r["seconds"][SKIPPED:]) for name, r in results.items()}
    default = next(speed for name, speed in speeds.items() if "default" in name)
    best = max(speed for name, speed in speeds.items() if name in THEIRS)
    memory = next(result["peak"] for name, result in results.items() if "default" in name)
    lines = [
        f"{'':36s}{'tokens/s':>10s}{'× default':>11s}{'× best':>9s}{'peak MiB':>10s}{'× default':>11s}   loss, first → last"
    ]
    for name, result in results.items():
        speed, losses = speeds[name], result["losses"]
        lines.append(
            f"{name:36s}{speed:10.0f}{speed / default:11.2f}{speed / best:9.2f}{result['peak'] / 2**20:10.0f}"
            f"{result['peak'] / memory:11.2f}   {losses[0]:.4f} → {losses[-1]:.4f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    run_folder, out_file, *rest = sys.argv[1:]
    theirs(Path(run_folder), Path(out_file), json.loads(rest[0])) if rest else ours(Path(run_folder), Path(out_file))
