"""Data as the loss will see it: the checked data, every row encoded, and facts over all of them; nothing is trained (D5, N4).

Data that cannot be used can be looked at all the same: what could be read of it is written to a folder of its own, which no
run reads. The test split is sealed (H4): its sizes and lengths are told, its rows are not.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ftui.data.base import BaseError, find_base
from ftui.data.encode import Encoded, encode_splits
from ftui.data.encoders import Encoder, make_encoder
from ftui.data.facts import Padding, SplitFacts, padding_of_first_epoch, split_facts
from ftui.data.findings import Finding, Findings, error
from ftui.data.labels import check_model_labels
from ftui.data.prepare import CLASSIFICATIONS, DataReport, check_data, trainings, write_version
from ftui.data.sources import SPLITS
from ftui.data.split import count_fields
from ftui.data.tokenizer import TextTokenizer, TokenizerError
from ftui.data.transform import transform_words
from ftui.plan.load import PLAN_FILE
from ftui.plan.schema import Plan
from ftui.record.layout import CampaignFiles

INSPECTION_SCHEMA = 1


@dataclass(frozen=True)
class Inspection:
    """Everything there is to see before a model is loaded."""

    plan: Plan
    report: DataReport
    folder: Path
    """The folder with the rows: a data version, or `data/unusable-…` where the data has errors."""
    model_dir: Path | None
    encoder: Encoder | None
    """None where the base model's tokenizer was not found; then there are no facts about tokens."""
    encoded: Encoded | None
    facts: dict[str, SplitFacts] = field(default_factory=dict)
    padding: Padding | None = None
    findings: list[Finding] = field(default_factory=list)
    """All of them: data, encoding, labels; errors first."""

    @property
    def errors(self) -> int:
        return sum(finding.severity == "error" for finding in self.findings)


def inspect(plan: Plan, files: CampaignFiles) -> Inspection:
    """Read, clean, split, compare and encode the data of `plan`, whatever is wrong with it. Raises OSError.

    Writes the data version that a launch would write, or `data/unusable-<hash>/`; never what a launch reads first
    (`data/current.json`).
    """
    report, noticed = check_data(plan, files.root), Findings()
    _forget_unusable(files, keep=report.hash if report.errors else "")
    folder = files.data_unusable(report.hash) if report.errors else files.data_version(report.hash)
    write_version(report, plan, folder)
    try:
        model_dir: Path | None = find_base(plan.model, files.root, weights=False).directory
    except BaseError as problem:
        model_dir = None
        noticed.add(error(PLAN_FILE, "model.base", f"no tokens can be shown: {problem}", "no tokenizer"))
    encoders: list[Encoder] = []
    if model_dir is not None:
        try:
            encoders = [
                make_encoder(plan.hypothesis.task, report.labels, training, plan.evaluation, model_dir)
                for training in trainings(plan)
            ]
        except TokenizerError as problem:
            noticed.add(error(PLAN_FILE, "model.base", str(problem), "no tokenizer"))
        if plan.hypothesis.task in CLASSIFICATIONS:
            noticed.add(*check_model_labels(report.labels, model_dir))
    every = [encode_splits(folder, encoder, refuse=False) for encoder in encoders]
    for encoded in every:
        noticed.add(*encoded.findings)
    findings = sorted([*report.findings, *noticed.all()], key=lambda f: f.severity != "error")
    if not every:
        return Inspection(plan, report, folder, model_dir, None, None, findings=findings)
    encoder, encoded = encoders[0], every[0]
    tokenizer = tokenizer_of(encoder)
    facts = {
        name: split_facts(
            encoded.splits[name],
            has_targets=encoder.has_targets,
            unknown_id=_unknown(tokenizer),
            tokens=tokenizer is not None,
        )
        for name in SPLITS
    }
    kept = encoded.splits["train"].lengths
    padding = None
    if tokenizer is not None and len(kept):
        padding = padding_of_first_epoch(kept, plan.training, plan.machine, plan.evaluation.seeds[0])
    return Inspection(plan, report, folder, model_dir, encoder, encoded, facts, padding, findings)


def tokenizer_of(encoder: Encoder) -> TextTokenizer | None:
    """The tokenizer behind an encoder, None for pictures."""
    return getattr(encoder, "tokenizer", None)


def inspection_content(inspection: Inspection) -> dict[str, Any]:
    """An inspection as plain JSON values: `ftui inspect --json`, and what the app shows."""
    plan, report = inspection.plan, inspection.report
    tokenizer = tokenizer_of(inspection.encoder) if inspection.encoder is not None else None
    return {
        "schema": INSPECTION_SCHEMA,
        "task": plan.hypothesis.task,
        "data": report.hash,
        "usable": not inspection.errors,
        "files": report.files,
        "splits": {name: len(rows) for name, rows in report.splits.items()},
        "split_by": report.split_by,
        "unit": plan.data.unit,
        "cleaning": plan.data.cleaning,
        "labels": report.labels,
        "fields": count_fields(report.splits, report.labels) if plan.hypothesis.task == "extraction" else None,
        "counts": report.counts,
        "max_length": plan.training.max_length,
        "truncation": plan.training.truncation,
        "batching": plan.training.batching,
        "micro_batch": plan.training.micro_batch,
        "facts": {name: facts.content() for name, facts in inspection.facts.items()},
        "padding": None if inspection.padding is None else asdict(inspection.padding),
        "special_tokens": {} if tokenizer is None else _special(tokenizer),
        "transform": (
            transform_words(inspection.model_dir)
            if plan.hypothesis.task == "image-classification" and inspection.model_dir is not None
            else None
        ),
        "duplicates": [_unsealed(pair.content()) for pair in report.pairs],
        "near": [_unsealed(pair.content()) for pair in report.near],
        "similarity": plan.data.duplicates.similarity,
        "dropped": len(report.dropped) + len(report.left_out),
        "findings": [finding.row() for finding in inspection.findings],
    }


def _unsealed(pair: dict[str, Any]) -> dict[str, Any]:
    """A pair of splits without rows of which none is outside the test."""
    return {**pair, "examples": []} if set(pair["splits"]) == {"test"} else pair


def _special(tokenizer: TextTokenizer) -> dict[str, Any]:
    end, pad = tokenizer.special.get("eos_token"), tokenizer.tokens([tokenizer.pad_id])[0]
    return {
        "named": tokenizer.special,
        "padding": pad,
        "ends": tokenizer.tokens(tokenizer.ends),
        "padding_is_end": pad == end,
        "template": None if tokenizer.template is None else True,
    }


def _unknown(tokenizer: TextTokenizer | None) -> int | None:
    name = None if tokenizer is None else tokenizer.special.get("unk_token")
    return None if tokenizer is None or name is None else tokenizer.id_of(name)


def _forget_unusable(files: CampaignFiles, *, keep: str) -> None:
    """Remove what earlier inspections of unusable data left behind."""
    for left in files.data.glob(f"{files.data_unusable('').name}*"):
        if left != files.data_unusable(keep):
            shutil.rmtree(left, ignore_errors=True)
