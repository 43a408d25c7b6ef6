"""An artefact loads elsewhere as its instructions say and gives the same outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ftui.record.files import sha256_file
from ftui.record.layout import RunFiles
from tests.builders.processes import module
from tests.builders.tiny import frozen_run, tiny_campaign


@pytest.fixture(scope="module")
def exported(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFiles, Path]:
    """A trained run and its artefact."""
    files = tiny_campaign(tmp_path_factory.mktemp("export") / "c", model, training__amount=30)
    run, _ = frozen_run(files)
    assert module("ftui.train", "train", run.root).returncode == 0
    target = files.exports / run.root.name
    answer = module("ftui.train", "export", run.root, target)
    assert answer.returncode == 0, answer.stdout
    return run, target


def test_the_artefact_loads_as_its_instructions_say_and_answers_the_same(
    exported: tuple[RunFiles, Path], model: Path
) -> None:
    """By the libraries alone, without any code of ours."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    _, target = exported
    control = json.loads((target / "control.json").read_text())
    labels = json.loads((target / "labels.json").read_text())
    torch.manual_seed(12345)
    base = AutoModelForSequenceClassification.from_pretrained(model, num_labels=len(labels))
    loaded = PeftModel.from_pretrained(base, str(target)).eval()
    tokenizer = AutoTokenizer.from_pretrained(str(target))
    for text, expected in zip(control["inputs"], control["outputs"], strict=True):
        with torch.no_grad():
            logits = loaded(**tokenizer(text, return_tensors="pt")).logits[0]
        assert torch.allclose(logits, torch.tensor(expected), atol=1e-5)


def test_the_artefact_is_verified_in_a_new_process_and_tied_to_its_base(exported: tuple[RunFiles, Path]) -> None:
    run, target = exported
    assert module("ftui.train", "verify", target).returncode == 0
    assert json.loads((target / "verification.json").read_text())["agrees"] is True
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["run"] == run.root.name
    assert len(manifest["base_sha256"]) == 64
    assert "adapter_model.safetensors" in manifest["files"]
    for name, entry in manifest["files"].items():
        assert sha256_file(target / name) == entry["sha256"], name


def test_an_artefact_that_was_changed_is_not_verified(exported: tuple[RunFiles, Path], tmp_path: Path) -> None:
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    _, target = exported
    elsewhere = tmp_path / "campaign"
    shutil.copytree(target.parent.parent, elsewhere, symlinks=True)
    weights = elsewhere / "exports" / target.name / "adapter_model.safetensors"
    tensors = load_file(weights)
    name = next(n for n in tensors if "classifier" in n and n.endswith("weight"))
    save_file(tensors | {name: tensors[name] + torch.ones_like(tensors[name])}, weights)
    answer = module("ftui.train", "verify", weights.parent)
    assert answer.returncode == 1
    assert "do not agree" in answer.stdout.splitlines()[-1]


def test_parameters_that_are_not_finite_are_never_exported(exported: tuple[RunFiles, Path], tmp_path: Path) -> None:
    import shutil

    from safetensors.torch import load_file, save_file

    from ftui.record.files import read_json, replace_json

    run, target = exported
    elsewhere = tmp_path / "campaign"
    shutil.copytree(target.parent.parent, elsewhere, symlinks=True)
    copy = elsewhere / "runs" / run.root.name
    newest = max((copy / "checkpoints").glob("step-*"))
    tensors = load_file(newest / "model.safetensors")
    tensors[next(iter(tensors))].view(-1)[0] = float("inf")
    save_file(tensors, newest / "model.safetensors")
    manifest = read_json(newest / "manifest.json")
    manifest["files"]["model.safetensors"]["sha256"] = sha256_file(newest / "model.safetensors")
    replace_json(newest / "manifest.json", manifest)
    answer = module("ftui.train", "export", copy, tmp_path / "out")
    assert answer.returncode == 1
    assert "not finite" in answer.stdout.splitlines()[-1]
    assert not (tmp_path / "out").exists()
