"""A base in 4 bits trains, resumes exactly and is delivered as an adapter; where it cannot, one sentence says why."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from ftui.data.base import BaseFiles
from ftui.data.tokenizer import load_tokenizer
from ftui.plan.schema import Method
from ftui.record.layout import RunFiles
from ftui.record.rows import read_outcome, read_predictions
from ftui.record.series import CLOCK_FIELDS, read_series
from ftui.train.classification import TextClassification
from ftui.train.model import Prepared, prepare_model
from ftui.train.quantised import NotHere, require_bitsandbytes
from tests.builders.processes import ENVIRONMENT, module, start_module, until
from tests.builders.tiny import CATEGORIES, frozen_run, tiny_campaign

pytestmark = pytest.mark.slow  # minutes of real processes

four_bits = pytest.mark.skipif(
    importlib.util.find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed; pip install '.[qlora]'"
)
QLORA = {
    "kind": "qlora",
    "rank": 4,
    "dropout": 0.1,
    "targets": ["all-linear"],
    "save_modules": ["word_embeddings", "pooler", "classifier"],  # a random base says little; its embeddings must learn
}


def quantised(folder: Path, precision: str = "fp32") -> Prepared:
    task = TextClassification(CATEGORIES, load_tokenizer(folder), 32)
    torch.manual_seed(1)
    base = BaseFiles(folder, "directory", "", {})
    return prepare_model(task, base, Method.model_validate(QLORA), activation_checkpointing=False, precision=precision)


@four_bits
def test_the_frozen_base_is_packed_and_what_is_trained_is_whole(model: Path) -> None:
    import bitsandbytes

    prepared = quantised(model, "bf16")
    packed = {n: m for n, m in prepared.model.named_modules() if isinstance(m, bitsandbytes.nn.Linear4bit)}
    assert len(packed) == 2 * 6, "two layers of query, key, value, output, intermediate, output"
    for layer in packed.values():
        state = layer.weight.quant_state
        assert (state.quant_type, state.nested, layer.compute_dtype) == ("nf4", True, torch.bfloat16)
        # Two weights in a byte; each nf4 value is within half of the widest gap of its block's largest value.
        assert layer.weight.numel() == state.shape.numel() // 2
    assert all(p.dtype == torch.float32 for p in prepared.trainable.values())
    assert {
        n.split(".modules_to_save")[0].rsplit(".", 1)[-1] for n in prepared.trainable if "modules_to_save" in n
    } == {
        "word_embeddings",
        "pooler",
        "classifier",
    }


@four_bits
def test_parameters_are_counted_as_weights_not_as_bytes(model: Path) -> None:
    whole = TextClassification(CATEGORIES, load_tokenizer(model), 32).load_base(str(model))[0]
    facts = quantised(model).facts()
    adapter = sum(p.numel() for n, p in quantised(model).trainable.items() if "lora_" in n)
    doubled = sum(
        p.numel()
        for n, p in whole.named_parameters()
        if n.startswith(("bert.embeddings.word", "bert.pooler", "classifier"))
    )
    assert facts["parameters"] == sum(p.numel() for p in whole.parameters()) + adapter + doubled


@pytest.fixture(scope="module")
def reference(model: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """A run on a quantised base that was never interrupted."""
    changes = {"training__amount": 160, "training__learning_rate": 1e-3, "training__schedule": "constant"}
    changes |= {"training__checkpoint_every": 40, "training__validate_every": 80, "variants": []}
    files = tiny_campaign(tmp_path_factory.mktemp("qlora") / "c", model, method=QLORA, **changes)
    run, _ = frozen_run(files)
    answer = module("ftui.train", "train", run.root)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return run


def losses(run: RunFiles) -> list[dict[str, object]]:
    return [{k: v for k, v in row.items() if k not in (*CLOCK_FIELDS, "bytes")} for row in read_series(run.series)]


@four_bits
def test_it_learns_and_its_checkpoint_holds_nothing_of_the_base(reference: RunFiles) -> None:
    outcome = read_outcome(reference.outcome)
    assert outcome is not None and outcome.metrics["loss"] < 0.6, "guessing among three has ln 3 = 1.10"
    with safe_open(reference.checkpoints / "step-00000160" / "model.safetensors", "pt") as file:
        names = list(file.keys())
    assert names and all("lora_" in name or "modules_to_save" in name for name in names)


@four_bits
def test_a_killed_run_on_a_quantised_base_continues_to_the_bit(reference: RunFiles, tmp_path: Path) -> None:
    campaign = tmp_path / "copy"
    written = shutil.ignore_patterns("checkpoints", "predictions", "series.jsonl", "outcome.json")
    shutil.copytree(reference.root.parent.parent, campaign, symlinks=True, ignore=written)
    again = RunFiles(campaign / "runs" / reference.root.name)
    process = start_module("ftui.train", "train", again.root)
    until((again.checkpoints / "step-00000040" / "manifest.json").exists, "the first checkpoint")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert module("ftui.train", "train", again.root).returncode == 0
    assert losses(again) == losses(reference)
    last = "validation-00000160.jsonl"
    assert read_predictions(again.predictions / last) == read_predictions(reference.predictions / last)
    weights = Path("step-00000160") / "model.safetensors"
    assert (again.checkpoints / weights).read_bytes() == (reference.checkpoints / weights).read_bytes()


@four_bits
def test_the_adapter_loads_on_a_base_quantised_by_the_libraries_alone(reference: RunFiles, model: Path) -> None:
    import bitsandbytes
    from peft import PeftModel
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, BitsAndBytesConfig

    target = reference.root.parent.parent / "exports" / reference.root.name
    answer = module("ftui.train", "export", reference.root, target)
    assert answer.returncode == 0, answer.stdout
    assert module("ftui.train", "verify", target).returncode == 0
    assert json.loads((target / "manifest.json").read_text())["kind"] == "adapter"
    control = json.loads((target / "control.json").read_text())
    config = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float32,
        llm_int8_skip_modules=["classifier", "bert.pooler"],
    )  # fmt: skip
    base = AutoModelForSequenceClassification.from_pretrained(
        model, num_labels=3, quantization_config=config, device_map="cpu", dtype=torch.float32
    )
    for layer in base.modules():
        if isinstance(layer, bitsandbytes.nn.Linear4bit):
            layer.support_avx512bf16_for_cpu = False  # else the library computes these products in bf16 where it can
    loaded = PeftModel.from_pretrained(base, str(target)).eval()
    tokenizer = AutoTokenizer.from_pretrained(str(target))
    for text, expected in zip(control["inputs"], control["outputs"], strict=True):
        with torch.no_grad():
            logits = loaded(**tokenizer(text, return_tensors="pt")).logits[0]
        assert torch.allclose(logits, torch.tensor(expected), atol=1e-5)


# Where it cannot run


BLOCKED = """
import importlib.abc, importlib.metadata, sys
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "bitsandbytes":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
found = importlib.metadata.version
def version(name):
    if name == "bitsandbytes":
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)
importlib.metadata.version = version
"""
"""A process in which bitsandbytes is not installed, whatever is on the disk."""


def without_bitsandbytes(program: str) -> subprocess.CompletedProcess[str]:
    code = BLOCKED + program
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False)


def test_where_bitsandbytes_is_missing_the_run_is_refused_in_one_sentence(model: Path, tmp_path: Path) -> None:
    run, _ = frozen_run(tiny_campaign(tmp_path / "c", model, method=QLORA))
    answer = without_bitsandbytes(f"from ftui.train.__main__ import main\nsys.exit(main(['train', {str(run.root)!r}]))")
    assert answer.returncode == 70
    outcome = read_outcome(run.outcome)
    assert outcome is not None
    assert outcome.cause == (
        'method.kind = "qlora" needs bitsandbytes, which is not installed here; '
        "`pip install 'ftui[qlora]'`, or choose kind = \"lora\""
    )


def test_ftui_run_says_it_before_anything_is_started(model: Path, tmp_path: Path) -> None:
    files = tiny_campaign(tmp_path / "c", model, method=QLORA)
    answer = without_bitsandbytes(f"from ftui.cli import main\nsys.exit(main(['run', {str(files.root)!r}]))")
    assert answer.returncode == 1
    assert "needs bitsandbytes, which is not installed here; `pip install 'ftui[qlora]'`" in answer.stderr
    assert not files.journal.exists()


@four_bits
def test_a_backend_without_four_bit_weights_is_refused_by_name() -> None:
    with pytest.raises(NotHere, match=r"bitsandbytes .* has no 4-bit weights for meta"):
        require_bitsandbytes(torch.device("meta"))
