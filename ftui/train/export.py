"""The artefact: what leaves the rental, tied to its base, with checksums, and reloaded before it is called done (P4, C3, C4)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from torch import nn

from ftui.data.base import find_base
from ftui.data.tokenizer import GENERATION_FILE, TOKENIZER_FILES
from ftui.data.transform import PROCESSOR_FILE
from ftui.plan.settings import SETTINGS_FILE, RunSettings
from ftui.record.files import replace_json, replace_text, sha256_file, sync_tree
from ftui.record.journal import stamp
from ftui.record.layout import CampaignFiles, RunFiles
from ftui.train.checkpoint import load_weights
from ftui.train.control import Agreement, compare_control, write_control
from ftui.train.instructions import instructions
from ftui.train.loop import Workshop, last_checkpoint, set_up
from ftui.train.process import bare
from ftui.train.quantised import four_bit
from ftui.train.tasks import make_task

MANIFEST_SCHEMA = 1
MANIFEST = "manifest.json"
VERIFICATION = "verification.json"


class ExportError(Exception):
    """The artefact would be worthless; nothing is delivered."""


def export(settings: RunSettings, campaign: CampaignFiles, run: RunFiles, target: Path) -> None:
    """Write the artefact of `run` into the folder `target`. Raises `ExportError` for non-finite or unchanged parameters."""
    shop = set_up(settings, campaign, alone=True)
    before = {name: p.detach().clone() for name, p in shop.prepared.trainable.items()}
    load_weights(last_checkpoint(run), shop.model)
    if settings.updates and all(torch.equal(before[name], p) for name, p in shop.prepared.trainable.items()):
        raise ExportError("every parameter is what it was before training")
    write_artefact(settings, shop, run.root, target)


def write_artefact(settings: RunSettings, shop: Workshop, run: Path, target: Path) -> None:
    """Write the model that `shop` holds, with all that belongs to it, into `target`. Raises `ExportError` for non-finite parameters."""
    broken = [name for name, p in shop.prepared.trainable.items() if not torch.isfinite(p).all()]
    if broken:
        raise ExportError(f"{len(broken)} parameters are not finite, the first is {broken[0]}")
    model = shop.accelerator.unwrap_model(shop.model)
    target.mkdir(parents=True, exist_ok=True)
    if isinstance(model, PeftModel):
        own = model.peft_config["default"]
        own.base_model_name_or_path, own.revision = settings.model.base, settings.model.revision
        own.inference_mode = True
    model.save_pretrained(target)
    (target / "README.md").unlink(missing_ok=True)
    for name in (*TOKENIZER_FILES, GENERATION_FILE, PROCESSOR_FILE):
        if (source := shop.prepared.base.directory / name).is_file():
            shutil.copyfile(source, target / name)
    write_control(target, settings, shop.task, bare(shop.model))  # one replica speaks for all
    replace_json(target / "labels.json", {str(i): label for i, label in enumerate(settings.data.labels)})
    shutil.copyfile(run / SETTINGS_FILE, target / SETTINGS_FILE)
    replace_text(target / "README.md", instructions(settings, shop.prepared.base.sha256))
    write_manifest(target, settings, shop.prepared.facts())


def write_manifest(target: Path, settings: RunSettings, facts: dict[str, Any]) -> None:
    """Identity of the base and the SHA-256 of every file but the manifest itself and what is written later."""
    left_out = {MANIFEST, VERIFICATION, "log.txt"}
    files = {
        str(f.relative_to(target)): {"bytes": f.stat().st_size, "sha256": sha256_file(f)}
        for f in sorted(target.rglob("*"))
        if f.is_file() and f.name not in left_out
    }
    content = {
        "schema": MANIFEST_SCHEMA,
        "run": settings.run,
        "kind": "adapter" if settings.method.has_adapter else "model",
        "base": settings.model.base,
        "revision": settings.model.revision,
        "base_sha256": facts["base_sha256"],
        "parameters": facts["parameters"],
        "trainable": facts["trainable"],
        "data": settings.data.hash,
        "plan": settings.plan_hash,
        "files": files,
        "at": stamp(),
    }
    replace_json(target / MANIFEST, content)
    sync_tree(target)


def verify(settings: RunSettings, campaign: CampaignFiles, target: Path) -> Agreement:
    """In a new process: load the artefact as a stranger would and answer the control inputs again.

    Writes `verification.json`; raises `ExportError` when the outputs do not agree.
    """
    base = find_base(settings.model, campaign.root)
    task = make_task(settings, campaign, target)
    model: nn.Module
    if settings.method.has_adapter:
        torch.manual_seed(0)  # new parameters of the base are overwritten by the adapter; another seed proves it
        how = four_bit(settings.method, settings.training.precision, torch.device("cpu"))
        model = PeftModel.from_pretrained(task.load_base(str(base.directory), how)[0], str(target))
    else:
        model = task.load_base(str(target))[0]
    agreement, count = compare_control(target, settings, task, model)
    replace_json(
        target / VERIFICATION,
        {
            "schema": MANIFEST_SCHEMA,
            "agrees": agreement.holds,
            "difference": agreement.difference,
            "tolerance": agreement.tolerance,
            "inputs": count,
            "at": stamp(),
        },
    )
    if not agreement.holds:
        raise ExportError(agreement.sentence(count))
    return agreement
