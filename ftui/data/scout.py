"""What fits a half-written plan: the data it names, the base it names, and what its method would train, as one JSON document.

For whoever writes the plan, while it is written. Nothing is written to the disk and no hub is asked, so the process may be ended
at any moment. The test split is sealed (H4): its sizes and categories are told, its rows are not.
"""

from __future__ import annotations

import math
import random
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ftui.data.base import How
from ftui.data.base_facts import EMPTY, base_facts, locate
from ftui.data.bases import bases_here
from ftui.data.candidates import candidates
from ftui.data.clean import RULES
from ftui.data.columns import look_at, suggested_columns, suggested_task
from ftui.data.findings import Finding
from ftui.data.form import Form
from ftui.data.hub import HubError, find_dataset
from ftui.data.prepare import CLASSIFICATIONS, DataReport, check_data
from ftui.data.rows import Row
from ftui.data.sources import Source, find_sources
from ftui.data.tokenizer import TokenizerError
from ftui.plan.provisional import Provisional, provisional_plan
from ftui.plan.schema import Plan
from ftui.record.layout import CampaignFiles

SCOUT_SCHEMA = 1

MOST_ENCODED = 20_000
"""Training rows that are encoded; of more, as many are drawn."""

MOST_NEAR = 50_000
"""Rows among which almost equal texts are looked for."""

_BATCH = 2_048

Document = dict[str, Any]


def scout(files: CampaignFiles) -> Document:
    """The document for the draft in a campaign's directory. What fails has its sentence; everything else is there."""
    content, unreadable = read_draft(files.plan)
    draft = provisional_plan(content)
    document: Document = {
        "schema": SCOUT_SCHEMA,
        "problem": unreadable,
        "problems": {},
        "filled": list(draft.filled),
        "candidates": candidates(files),
        "files": [],
        "columns": [],
        "suggested": {},
        "suggested_format": None,
        "task_suggestion": None,
        "splits": None,
        "split_by": None,
        "counts": {},
        "labels": [],
        "lengths": None,
        "train_targets": None,
        "findings": [],
        "near_searched": False,
        "base": {"problem": None, **EMPTY},
        "trainable": None,
        "bases": bases_here(files.root),
        "cleaning_rules": {rule.name: rule.meaning for rule in RULES.values()},
    }
    report: DataReport | None = None

    def part(name: str, work: Callable[[], Document]) -> None:
        # One part that fails must not take the others with it, whatever the reason.
        try:
            document.update(work())
        except (TokenizerError, HubError, OSError) as problem:
            document["problems"][name] = str(problem)
        except Exception as problem:
            document["problems"][name] = f"{type(problem).__name__}: {problem}"

    def data() -> Document:
        nonlocal report
        schema = _schema(draft, files)
        form = None if schema is None else Form(schema)
        report = check_data(draft.plan, files.root, fetch=False, near_limit=MOST_NEAR, form=form)
        return {"suggested_format": schema, **_data(draft.plan, report)}

    if _names_data(content, draft):
        part("data", data)
        part("columns", lambda: _columns(draft.plan, files, report))
    if document["task_suggestion"] is None and _only_folders(files, document):
        document["task_suggestion"] = "image-classification"
    folder, how, missing = _located(draft, files)
    if folder is None:
        document["base"]["problem"] = missing
        return document
    part("base", lambda: _base(draft, folder, how, report))
    if "base" in document["problems"]:
        document["base"]["problem"] = document["problems"]["base"]
    if report is not None:
        checked = report
        part("lengths", lambda: _lengths(draft.plan, checked, folder, document["findings"]))
    return document


def read_draft(path: Path) -> tuple[Document, str | None]:
    """The parsed draft, and why it cannot be read; then it is empty."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig")), None
    except FileNotFoundError:
        return {}, f"{path.name}: no such file; `ftui new NAME` writes one to start from"
    except OSError as problem:
        return {}, f"{path.name}: cannot be read: {problem.strerror}"
    except UnicodeDecodeError:
        return {}, f"{path.name}: is not UTF-8; save it as UTF-8"
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        return {}, f"{path.name}: is not valid TOML: {problem}"


def _located(draft: Provisional, files: CampaignFiles) -> tuple[Path | None, How | None, str | None]:
    """Where the base is and how it was found, or why it was not."""
    model = draft.plan.model
    if draft.stands_in("model.base"):
        return None, None, "no base model is named yet; name its folder, or its id on the hub, in model.base"
    if draft.stands_in("model.revision") and model.source is None:
        return None, None, f"{model.base}: a hub id needs model.revision, the commit it was taken from"
    return locate(model, files.root)


def _names_data(content: Document, draft: Provisional) -> bool:
    """Whether the draft names files of data, and the whole of where they are."""
    data = content.get("data")
    named = data.get("train") if isinstance(data, dict) else None
    names = named if isinstance(named, list) else [named]
    somewhere = not {"data.hub", "data.revision"} & set(draft.filled)
    return somewhere and any(isinstance(name, str) and name.strip() for name in names)


def _only_folders(files: CampaignFiles, document: Document) -> bool:
    named = [files.root / file["name"] for file in document["files"] if file["split"] == "train"]
    looked = named or [files.root / name for name in document["candidates"]]
    return bool(looked) and all(path.is_dir() for path in looked)


def _data(plan: Plan, report: DataReport) -> Document:
    from ftui.data.split import count_fields

    task = plan.hypothesis.task
    return {
        "files": [{key: file[key] for key in ("split", "name", "bytes", "rows")} for file in report.files],
        "splits": {name: len(rows) for name, rows in report.splits.items()},
        "split_by": report.split_by,
        "counts": count_fields(report.splits, report.labels) if task == "extraction" else report.counts,
        "labels": report.labels,
        "findings": _rows_of(report.findings),
        "near_searched": report.near_searched,
    }


def _columns(plan: Plan, files: CampaignFiles, report: DataReport | None) -> Document:
    """Columns of the files for training. A value is shown only of a row that is trained on."""
    trained: set[tuple[str, int]] = set()
    if report is not None and plan.data.validation is None:
        trained = {(row.file, row.line) for row in report.splits["train"]}
    own_test = plan.data.validation is not None
    seen = look_at(_train_files(plan, files), lambda name, line: own_test or (name, line) in trained)
    return {
        "columns": seen.rows(),
        "suggested": suggested_columns(plan.hypothesis.task, seen),
        "task_suggestion": suggested_task(seen),
    }


def _schema(draft: Provisional, files: CampaignFiles) -> Document | None:
    """The form of the answers in the data, where an extraction names none yet."""
    plan = draft.plan
    if plan.hypothesis.task != "extraction" or not draft.stands_in("evaluation.format"):
        return None
    seen = look_at(_train_files(plan, files), lambda _name, _line: False)
    column = seen.columns.get(plan.data.columns.fields)
    return None if column is None else column.schema


def _train_files(plan: Plan, files: CampaignFiles) -> list[tuple[Path, str]]:
    root = files.root
    if plan.data.hub is not None:
        root = find_dataset(plan.data, fetch=False).directory
    folders = plan.hypothesis.task == "image-classification"
    sources = (source for source in find_sources(plan.data, root, folders=folders) if isinstance(source, Source))
    return [(source.path, source.name) for source in sources if source.split == "train"]


def _base(draft: Provisional, folder: Path, how: How | None, report: DataReport | None) -> Document:
    plan = draft.plan
    # A method of which a part stands in is nobody's.
    method = None if draft.stands_in("method") else plan.method
    named = plan.data.labels if plan.data.labels is not None else report.labels if report is not None else []
    facts, trained = base_facts(folder, how, plan.hypothesis.task, len(named) or None, method)
    return {"base": facts, "trainable": trained}


def _lengths(plan: Plan, report: DataReport, folder: Path, findings: list[Document]) -> Document:
    """Lengths of training rows as the run encodes them. Raises `TokenizerError`."""
    from ftui.data.encoders import make_encoder
    from ftui.data.labels import check_model_labels

    task, rows = plan.hypothesis.task, report.splits["train"]
    noticed: list[Finding] = []
    if task in CLASSIFICATIONS and report.labels:
        noticed += check_model_labels(report.labels, folder)
    said: Document = {}
    if task != "image-classification" and rows:
        encoder = make_encoder(task, report.labels, plan.training, plan.evaluation, folder)
        noticed += encoder.findings()
        chosen = _some(rows)
        coded = [one for at in range(0, len(chosen), _BATCH) for one in encoder.encode(chosen[at : at + _BATCH])]
        whole = sorted(one.whole_length for one in coded)
        everything = len(chosen) == len(rows)
        said["lengths"] = {
            "rows": len(chosen),
            "all": everything,
            "longest": whole[-1],
            "p95": whole[math.ceil(0.95 * len(whole)) - 1],
            "over": sum(length > encoder.limit for length in whole),
            "targets_lost": sum(one.lost_targets for one in coded) if encoder.has_targets else None,
        }
        if encoder.has_targets and everything:
            usable = (one.spans for one in coded if one.problem is None)
            said["train_targets"] = sum(end - start for spans in usable for start, end in spans)
    said["findings"] = sorted([*findings, *_rows_of(noticed)], key=lambda row: row["severity"] != "error")
    return said


def _some(rows: Sequence[Row]) -> Sequence[Row]:
    """All rows, or of many a part that is the same every time."""
    if len(rows) <= MOST_ENCODED:
        return rows
    return [rows[i] for i in sorted(random.Random(0).sample(range(len(rows)), MOST_ENCODED))]


def _rows_of(findings: Sequence[Finding]) -> list[Document]:
    return [finding.row() for finding in sorted(findings, key=lambda finding: finding.severity != "error")]
