"""From the plan's files to a data version: checked without writing anything, or written for the runs to read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftui import __version__
from ftui.data.clean import RULES, find_rules
from ftui.data.duplicates import Dropped, Pair, drop_from_train, duplicate_findings, find_pairs, without
from ftui.data.encode import encode_splits
from ftui.data.encoders import make_encoder
from ftui.data.findings import DataError, Finding, Findings, error, warning
from ftui.data.form import Form, FormError, read_form
from ftui.data.hub import HubError, find_dataset
from ftui.data.labels import check_labels, check_model_labels, class_order, slice_names
from ftui.data.leaks import UnnamedUnits, crossing_units, missing_times, time_order
from ftui.data.near import NearPair, find_near, near_drops, near_findings, near_identity
from ftui.data.reading import LeftOut, Reader
from ftui.data.rows import Row
from ftui.data.sources import SPLITS, find_sources
from ftui.data.split import Splits, check_shares, count_categories, cut, empty_splits, how_to_cut
from ftui.data.store import (
    FORM_FILE,
    MANIFEST_SCHEMA,
    describe_files,
    is_intact,
    remove_folder,
    whole_folder,
    write_dropped,
    write_rows,
)
from ftui.plan.load import PLAN_FILE
from ftui.plan.schema import TASK_COLUMNS, Plan, Training
from ftui.plan.settings import DataVersion
from ftui.plan.variants import variant_plan
from ftui.record.files import read_json, replace_json, sha256_json
from ftui.record.layout import CampaignFiles

PREPARATION = 1
"""Version of what happens between files and rows; another number is another data version."""

CURRENT_SCHEMA = 1

CLASSIFICATIONS = ("text-classification", "image-classification")


@dataclass(frozen=True)
class DataReport:
    """What the data is, after cleaning, splitting and dropping, and everything noticed on the way."""

    hash: str
    """16 hex digits over the content of `identity`."""
    identity: dict[str, Any]
    """Everything the data version follows from."""
    files: list[dict[str, Any]]
    """Per input file: split it was named for, name, sha256, bytes, rows."""
    splits: Splits
    split_by: str
    """"files", or the rule that cut them (`split.how_to_cut`)."""
    labels: list[str]
    """Categories in class order; for extraction, the fields in the schema's order."""
    instruction: str | None
    form: dict[str, Any] | None
    """The JSON schema of an answer; None but for extraction."""
    counts: dict[str, dict[str, int]]
    """Rows by category and split."""
    pairs: list[Pair]
    """Equal texts by pair of splits, before anything was dropped."""
    near: list[NearPair]
    """Almost equal texts by pair of splits, among what equal texts left; empty where none were searched."""
    dropped: list[Dropped]
    """Training rows left out by the policy for duplicates."""
    left_out: list[LeftOut] = field(default_factory=list)
    """Rows that cannot be used, left out by `data.bad_rows`."""
    findings: list[Finding] = field(default_factory=list)
    near_searched: bool = True
    """Whether almost equal texts were looked for."""

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "warning"]

    @property
    def version(self) -> DataVersion:
        sizes = {f"{name}_examples": len(self.splits[name]) for name in SPLITS}
        return DataVersion(hash=self.hash, labels=self.labels, instruction=self.instruction, **sizes)


def check_data(
    plan: Plan, campaign: Path, *, fetch: bool = True, near_limit: int | None = None, form: Form | None = None
) -> DataReport:
    """Read, clean, split and compare the data of `plan`, whose paths are relative to `campaign`. Writes nothing there.

    Never raises for what is wrong with the data: that is in `findings`, all of it. Without `fetch`, the hub is not asked; among
    more rows than `near_limit`, almost equal texts are not looked for. `form` takes the place of the plan's own.
    """
    data, task, noticed = plan.data, plan.hypothesis.task, Findings()
    rules, unknown = find_rules(data.cleaning)
    noticed.add(*unknown)
    form = form or _form(plan, campaign, noticed)
    if data.validation is None:
        noticed.add(*check_shares(data.split))
    files: list[dict[str, Any]] = []
    splits: Splits = {name: [] for name in SPLITS}
    unnamed = UnnamedUnits({*data.columns.model_dump().values(), data.unit, data.time} - {None})
    reader = Reader(plan, campaign, rules, form, noticed, unnamed)
    root = campaign if data.hub is None else _hub(plan, noticed, fetch=fetch)
    for source in find_sources(data, root, folders=task == "image-classification") if root is not None else ():
        if isinstance(source, Finding):
            noticed.add(source)
            continue
        rows = reader.rows(source)
        splits[source.split] += rows
        files.append({"split": source.split, "name": source.name, "sha256": source.sha256, "bytes": source.bytes})
        files[-1]["rows"] = len(rows)
    for rows in splits.values():
        noticed.add(*_repeated_ids(rows, data.columns.id))
    split_by = "files" if data.validation is not None else how_to_cut(data, has_classes=task in CLASSIFICATIONS)
    if data.time is not None:
        noticed.add(*missing_times(splits, data.time))
    if split_by != "files":
        splits = cut(splits["train"], data.split, split_by)
    else:
        noticed.add(*(crossing_units(splits, data.unit) if data.unit is not None else ()))
        noticed.add(*(time_order(splits, data.time) if data.time is not None else ()))
    if data.unit is None:
        noticed.add(*unnamed.findings(cut=split_by != "files"))
    pairs = find_pairs(splits)
    noticed.add(*duplicate_findings(pairs, data.duplicates, compared_column(plan)))
    dropped = drop_from_train(pairs, data.duplicates)
    splits = without(splits, dropped)
    searched = searches_near(plan) and (near_limit is None or sum(map(len, splits.values())) <= near_limit)
    near = find_near(splits, data.duplicates.similarity) if searched else []
    noticed.add(*near_findings(near, data.duplicates, compared_column(plan)))
    if almost := near_drops(near, data.duplicates):
        splits = without(splits, almost)
        dropped += almost
    if not noticed.errors or any(splits.values()):
        noticed.add(*empty_splits(splits))
    if task in CLASSIFICATIONS:
        noticed.add(*check_labels(splits, data.columns.label, data.labels))
    identity = _identity(plan, files, form, splits, split_by)
    return DataReport(
        hash=sha256_json(identity)[:16],
        identity=identity,
        files=files,
        splits=splits,
        split_by=split_by,
        labels=form.fields
        if form
        else class_order(splits, data.labels)
        if task in CLASSIFICATIONS
        else slice_names(splits),
        instruction=data.instruction,
        form=None if form is None else form.schema,
        counts=count_categories(splits),
        pairs=pairs,
        near=near,
        dropped=dropped,
        left_out=reader.left_out,
        findings=noticed.all(),
        near_searched=searched,
    )


def prepare(plan: Plan, files: CampaignFiles, model_dir: Path | None = None) -> DataVersion:
    """Write the data version of `plan` and make it the current one; encode it when `model_dir` holds the base model.

    Encodes once for each length and truncation that the control or a variant asks for. Raises `DataError` with
    everything noticed, `TokenizerError`, or OSError; the version that was current then stays so.
    """
    report = check_data(plan, files.root)
    if report.errors:
        raise DataError(report.findings)
    write_version(report, plan, files.data_version(report.hash))
    findings = [*report.findings, *(encode_version(report, plan, files, model_dir) if model_dir is not None else [])]
    version = report.version
    if model_dir is not None:
        encoder = make_encoder(plan.hypothesis.task, report.labels, plan.training, plan.evaluation, model_dir)
        targets = encode_splits(files.data_version(report.hash), encoder).splits["train"].targets
        version = version.model_copy(update={"train_targets": int(targets.sum())})
    content = {
        "schema": CURRENT_SCHEMA,
        "data": version.model_dump(mode="json"),
        "findings": [str(finding) for finding in findings],
    }
    replace_json(files.data_current, content)
    return version


def current_version(files: CampaignFiles) -> DataVersion | None:
    """The data version prepared last, None when there is none."""
    try:
        return DataVersion.model_validate(read_json(files.data_current)["data"])
    except FileNotFoundError:
        return None


def encode_version(report: DataReport, plan: Plan, files: CampaignFiles, model_dir: Path) -> list[Finding]:
    """Encode the written version for every run of `plan`; the findings about lengths. Raises `DataError`."""
    noticed = Findings()
    if plan.hypothesis.task in CLASSIFICATIONS:
        noticed.add(*check_model_labels(report.labels, model_dir))
    for training in trainings(plan):
        encoder = make_encoder(plan.hypothesis.task, report.labels, training, plan.evaluation, model_dir)
        try:
            noticed.add(*encode_splits(files.data_version(report.hash), encoder).findings)
        except DataError as problem:
            noticed.add(*problem.findings)
    if noticed.errors:
        raise DataError([*report.findings, *noticed.all()])
    return noticed.all()


def trainings(plan: Plan) -> list[Training]:
    """Training sections of control and variants that differ in what encoding depends on."""
    found: dict[tuple[int, str], Training] = {}
    for own in (plan, *(variant_plan(plan, variant.id) for variant in plan.variants)):
        found.setdefault((own.training.max_length, own.training.truncation), own.training)
    return list(found.values())


def write_version(report: DataReport, plan: Plan, target: Path) -> None:
    """Write the version's folder `target`, unless it is there and intact."""
    if is_intact(target / "manifest.json"):
        return
    if target.exists():
        remove_folder(target)  # damaged since it was written
    with whole_folder(target) as aside:
        for name in SPLITS:
            write_rows(aside / f"{name}.jsonl", report.splits[name])
        write_dropped(aside / "dropped.jsonl", [*report.left_out, *report.dropped])
        replace_json(aside / "leakage.json", leakage(report, plan))
        if report.form is not None:
            replace_json(aside / FORM_FILE, report.form)
        replace_json(aside / "manifest.json", {**manifest(report, plan), "written": describe_files(aside)})


def manifest(report: DataReport, plan: Plan) -> dict[str, Any]:
    """What `manifest.json` says, but for the written files. Holds no times: equal data gives equal bytes."""
    return {
        "schema": MANIFEST_SCHEMA,
        "hash": report.hash,
        "made_by": f"ftui {__version__}",
        "identity": report.identity,
        **({} if plan.data.hub is None else {"hub": plan.data.hub, "revision": plan.data.revision}),
        "files": report.files,
        "columns": plan.data.columns.model_dump(),
        "unit": plan.data.unit,
        "split": "files" if report.split_by == "files" else {**plan.data.split.model_dump(), "by": report.split_by},
        "time": plan.data.time,
        "cleaning": [{"rule": name, "meaning": RULES[name].meaning} for name in plan.data.cleaning],
        "splits": {name: len(rows) for name, rows in report.splits.items()},
        "labels": report.labels,
        "counts": report.counts,
        "duplicates": {
            "policy": plan.data.duplicates.model_dump(),
            "texts": {pair.name: len(pair.groups) for pair in report.pairs},
            "near": {pair.name: [len(pair.matches), len(pair.reverse)] for pair in report.near},
            "dropped": len(report.dropped),
        },
        "bad_rows": {"policy": plan.data.bad_rows, "left_out": len(report.left_out)},
        "findings": [finding.row() for finding in report.findings],
    }


def leakage(report: DataReport, plan: Plan) -> dict[str, Any]:
    """What `leakage.json` says: equal texts by pair of splits, as found before anything was dropped, and almost equal ones after.

    Versions with the same rows are one version: `near` and `similarity` are as they were when it was first written, unless they
    decided what was dropped.
    """
    return {
        "schema": 1,
        "compared": "texts after cleaning, equal to the last character",
        "policy": plan.data.duplicates.model_dump(),
        "pairs": [pair.content() for pair in report.pairs],
        "near": {
            "compared": "character trigrams of texts without case and punctuation, of rows left after equal texts were treated",
            "similarity": plan.data.duplicates.similarity,
            "pairs": [pair.content() for pair in report.near],
        },
        "dropped_from_train": len(report.dropped),
    }


def _identity(
    plan: Plan, files: list[dict[str, Any]], form: Form | None, splits: Splits, split_by: str
) -> dict[str, Any]:
    data, task = plan.data, plan.hypothesis.task
    identity: dict[str, Any] = {
        "preparation": PREPARATION,
        "files": [[file["split"], file["name"], file["sha256"]] for file in files],
        "columns": {name: getattr(data.columns, name) for name in TASK_COLUMNS[task]},
        "unit": data.unit,
        "split": None if split_by == "files" else {**data.split.model_dump(), "by": split_by},
        "cleaning": data.cleaning,
        "duplicates": data.duplicates.equal,
    }
    also = {
        "task": task if task != "text-classification" else None,
        "bad_rows": data.bad_rows if data.bad_rows != "stop" else None,
        "instruction": data.instruction,
        "time": data.time,
        "labels": data.labels,
        "form": None if form is None else form.schema,
        # Names and places are in the files; what the pictures show is not.
        "pictures": _pictures(splits) if task == "image-classification" else None,
        "near": near_identity(data.duplicates) or None if searches_near(plan) else None,
    }
    return identity | {name: value for name, value in also.items() if value is not None}


def _pictures(splits: Splits) -> str:
    return sha256_json([[row.path, row.text] for rows in splits.values() for row in rows])


def searches_near(plan: Plan) -> bool:
    """Whether almost equal texts are looked for. A picture's text is the hash of its file: near ones look like any others."""
    return plan.data.duplicates.near != "off" and plan.hypothesis.task != "image-classification"


def compared_column(plan: Plan) -> str:
    """The column that equal rows are equal in."""
    columns = plan.data.columns
    match plan.hypothesis.task:
        case "generation":
            return columns.messages or columns.prompt
        case "image-classification":
            return columns.image
    return columns.text


def _hub(plan: Plan, noticed: Findings, *, fetch: bool) -> Path | None:
    if plan.hypothesis.task == "image-classification":
        message = "pictures are read from a folder only; download the data set, name its files, and leave data.hub out"
        noticed.add(error(PLAN_FILE, "data.hub", message, "pictures of a hub"))
        return None
    try:
        found = find_dataset(plan.data, fetch=fetch)
    except HubError as problem:
        noticed.add(error(PLAN_FILE, "data.hub", str(problem), "no data set"))
        return None
    if not found.proven:
        message = (
            "the globs were matched in the hub's cache, which does not say whether it has every file of the revision; "
            "connect to the network once to be sure"
        )
        noticed.add(warning(PLAN_FILE, "data.hub", message, "cache not proven"))
    return found.directory


def _form(plan: Plan, campaign: Path, noticed: Findings) -> Form | None:
    name = plan.evaluation.format
    if plan.hypothesis.task != "extraction" or name is None:
        return None
    try:
        return read_form(campaign / name)
    except FormError as problem:
        noticed.add(error(name, "", f"{problem}; it is the JSON schema that evaluation.format names", "no schema"))
        return None


def _repeated_ids(rows: list[Row], column: str | None) -> list[Finding]:
    first: dict[str, Row] = {}
    found = []
    for row in rows:
        if (other := first.setdefault(row.id, row)) is not row:
            message = f"the id {row.id!r} is already that of {other.place}; ids are unique within a split"
            found.append(error(row.place, column or "id", message, "repeated id"))
    return found
