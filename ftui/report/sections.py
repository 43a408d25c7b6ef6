"""The outline's later sections: how the evidence came about. Runs, gates, time and money, data, model, machine, artefact."""

from __future__ import annotations

import json
from typing import Any

from ftui.report.blocks import NONE, Block, Bullets, Code, Heading, Paragraph, Table, moment
from ftui.report.model import ArtefactPart, DataPart, GatesPass, Report, RunRow

LOADERS = {
    "text-classification": ("AutoModelForSequenceClassification", "AutoTokenizer"),
    "image-classification": ("AutoModelForImageClassification", "AutoImageProcessor"),
    "generation": ("AutoModelForCausalLM", "AutoTokenizer"),
    "extraction": ("AutoModelForCausalLM", "AutoTokenizer"),
}
"""Classes of transformers that load the model and what prepares its input, by task."""


def circumstances(report: Report) -> list[Block]:
    return [
        *_runs(report),
        *_batches(report),
        *_gates(report),
        *_rental(report),
        *_data(report),
        *_model(report),
        *_environments(report),
        *_copies(report),
        *_artefacts(report),
        *_notes(report),
    ]


def _runs(report: Report) -> list[Block]:
    if not report.runs:
        return []
    metric = report.hypothesis.metric
    columns = ("run", "status", "updates", "attempts", "training loss", f"{metric} validation", "test")
    blocks: list[Block] = [
        Heading(2, "Every run"),
        Table(columns, [_run_row(run, metric) for run in report.runs], frozenset(range(2, 7))),
    ]
    if followed := [
        f"{run.run} follows {run.follows} with {_settings(run)}; because {run.because}"
        for run in report.runs
        if run.follows
    ]:
        blocks += [Paragraph("Runs with other settings than the one they follow:"), Bullets(followed)]
    if causes := [
        f"{run.run}: {'; '.join(filter(None, (run.cause, run.test_cause)))}"
        for run in report.runs
        if run.cause or run.test_cause
    ]:
        blocks += [Paragraph("Causes:"), Bullets(causes)]
    attempts = []
    for run in report.runs:
        for attempt in run.attempts:
            if len(run.attempts) < 2 and attempt.status in (None, "completed"):
                continue
            start = "" if attempt.resumed_from is None else f", from the checkpoint of update {attempt.resumed_from}"
            cause = f": {attempt.cause}" if attempt.cause else ""
            attempts.append(
                f"{run.run}, attempt {attempt.number} ({moment(attempt.started_at)}{start}): {attempt.status or 'not ended'}{cause}"
            )
    if attempts:
        blocks += [Paragraph("Attempts of runs that were interrupted or did not complete:"), Bullets(attempts)]
    return blocks


def _run_row(run: RunRow, metric: str) -> tuple[str, ...]:
    loss = f"{number(run.curve.first_loss)} → {number(run.curve.last_loss)}" if run.curve else NONE
    return (
        run.run,
        run.status,
        f"{run.updates:,}",
        str(len(run.attempts)),
        loss,
        number(run.validation.get(metric)),
        number(run.test.get(metric)),
    )


def _settings(run: RunRow) -> str:
    """What is different from the control."""
    return ", ".join(f"{name} = {value}" for name, value in run.change.items()) or "the control's settings"


def number(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def _batches(report: Report) -> list[Block]:
    if not report.batches:
        return []
    blocks: list[Block] = [Heading(2, "How examples fall into updates")]
    for part in report.batches:
        blocks.append(Bullets([f"{', '.join(part.systems)}: {part.sentences[0]}", *part.sentences[1:]]))
    return blocks


def _gates(report: Report) -> list[Block]:
    blocks: list[Block] = [Heading(2, "Gates before the first run")] if report.gates else []
    before: GatesPass | None = None
    for gates in report.gates:
        if before is not None and before.key != gates.key and before.key and gates.key:
            machine = before.key.split("-")[0] != gates.key.split("-")[0]
            what = "the machine or its versions" if machine else "the plan of the control"
            blocks.append(Paragraph(f"Tried again as {gates.id}: {what} had changed since {before.id}."))
        before = gates
        word = "passed" if gates.passed else "not finished" if gates.passed is None else "failed"
        cause = f": {gates.cause}" if gates.cause else ""
        blocks += [Paragraph(f"{gates.id} ({moment(gates.started_at)}): {word}{cause}"), _gate_table(gates)]
    return blocks


def _gate_table(gates: GatesPass) -> Table:
    columns = (
        "gate",
        "device",
        "verdict",
        "seconds",
        "host peak",
        "allocated peak",
        "reserved peak",
        "device used",
        "cause",
    )
    rows = [
        (
            row.gate,
            row.device,
            row.verdict,
            f"{row.seconds:.2f}",
            *(mebibytes(v) for v in (row.host_peak, row.allocated_peak, row.reserved_peak, row.device_used)),
            row.cause or NONE,
        )
        for row in gates.rows
    ]
    return Table(columns, rows, frozenset(range(3, 8)))


def mebibytes(value: int | None) -> str:
    return NONE if value is None else f"{value / 2**20:,.0f} MiB"


def _rental(report: Report) -> list[Block]:
    rental = report.rental
    price = rental.price_per_hour
    columns = ["phase", "planned h", "spent h"]
    rows = [[p.phase, f"{p.planned_hours:g}", f"{p.spent_hours:.2f}"] for p in rental.phases]
    planned, spent = sum(p.planned_hours for p in rental.phases), sum(p.spent_hours for p in rental.phases)
    rows.append(["together", f"{planned:g}", f"{spent:.2f}"])
    if price is not None:
        columns += [f"planned {rental.currency}", f"spent {rental.currency}"]
        hours = [(p.planned_hours, p.spent_hours) for p in rental.phases] + [(planned, spent)]
        for row, (plan_hours, spent_hours) in zip(rows, hours, strict=True):
            row += [f"{plan_hours * price:,.2f}", f"{spent_hours * price:,.2f}"]
    ends = f", {moment(rental.starts_at)} to {moment(rental.ends_at)}" if rental.ends_at else ""
    return [
        Heading(2, "Time and money"),
        Paragraph(
            f"{rental.days:g} days{ends}" + ("." if price is None else f", {price:g} {rental.currency} per hour.")
        ),
        Table(columns, rows, frozenset(range(1, len(columns)))),
    ]


def _data(report: Report) -> list[Block]:
    blocks: list[Block] = []
    if (data := report.data) is not None:
        counts = f"{data.train_examples:,} train, {data.validation_examples:,} validation, {data.test_examples:,} test"
        blocks += [
            Heading(2, "Data"),
            Bullets([f"Version {data.hash}", f"Examples: {counts}", *_labels(report, data.labels), *_told(data)]),
        ]
        if data.findings:
            blocks += [Paragraph("Found while preparing it:"), Bullets(data.findings)]
        files = data.manifest.get("files") if isinstance(data.manifest, dict) else None
        if files:
            blocks.append(Bullets([f"File: {line}" for line in _lines(files)]))
    if report.test_openings:
        blocks += [
            Heading(3, "Openings of the test set"),
            Bullets(
                [
                    f"Opening {o.opening}, {moment(o.at)}, for {', '.join(o.candidates)}"
                    + (f": {o.reason}" if o.reason else "")
                    for o in report.test_openings
                ]
            ),
        ]
    return blocks


def _labels(report: Report, labels: list[str]) -> list[str]:
    title = {"category": "Categories", "field": "Fields"}[report.slice_word]
    return [f"{title}: {', '.join(labels)}"] if labels else []


def _told(data: DataPart) -> list[str]:
    return [f"Told before each example: {data.instruction}"] if data.instruction else []


def _lines(value: Any) -> list[str]:
    """A list or mapping of unknown form, one line per entry."""
    if isinstance(value, dict):
        return [f"{name}: {compact(part)}" for name, part in value.items()]
    return [compact(part) for part in value] if isinstance(value, list) else [compact(value)]


def compact(value: Any) -> str:
    """A JSON value on one line, without the noise of quotes where it is plain text."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{name} {compact(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(compact, value)) or "none"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return json.dumps(value, ensure_ascii=False)


def _model(report: Report) -> list[Block]:
    model = report.model
    items = [f"Base: {model.base}"]
    if model.revision:
        items.append(f"Revision: {model.revision}")
    if model.source:
        items.append(f"Taken from: {model.source}")
    found = model.found.get("base_sha256")
    if found:
        same = " (as the plan expects)" if found == model.expected_sha256 else ""
        items.append(f"Weights found: sha256 {found}{same}")
    elif model.expected_sha256:
        items.append(f"Weights expected: sha256 {model.expected_sha256}; they were not loaded in a gate")
    items.append(f"Method: {compact(model.method)}")
    if "trainable" in model.found and "parameters" in model.found:
        items.append(f"Trained parameters: {model.found['trainable']:,} of {model.found['parameters']:,}")
    return [Heading(2, "Model and method"), Bullets(items)]


def _environments(report: Report) -> list[Block]:
    blocks: list[Block] = [Heading(2, "Machine and versions")] if report.environments else []
    for part in report.environments:
        versions = part.versions.get("versions")
        flat = {
            **{k: v for k, v in part.versions.items() if k not in ("versions", "schema")},
            **(versions if isinstance(versions, dict) else {}),
        }
        blocks += [
            Paragraph(f"Runs: {', '.join(part.runs)}"),
            Table(("what", "version"), [(str(name), compact(value)) for name, value in flat.items()]),
        ]
    return blocks


def _copies(report: Report) -> list[Block]:
    if (copies := report.copies) is None:
        return []
    what = ", ".join(copies.what)
    proof = "each copy was read back and compared" if copies.read_back else "by the exit code of a program"
    if copies.at is None:
        state = "None had been made when this was written."
    elif copies.cause:
        state = f"Failing since {moment(copies.at)}: {copies.cause}"
    else:
        state = f"Working since {moment(copies.at)}, {proof}. One more follows this report."
    return [Heading(2, "Copies elsewhere"), Bullets([f"To: {copies.target}", f"What: {what}", state])]


def _artefacts(report: Report) -> list[Block]:
    blocks: list[Block] = [Heading(2, "Artefact")]
    if not report.artefacts:
        return [*blocks, Paragraph(f"None yet. {report.deliver_because}")]
    for artefact in report.artefacts:
        checked = {
            True: "a new process loaded it and answered the control inputs the same",
            False: f"its check failed: {artefact.cause or NONE}",
            None: f"not checked: {artefact.cause or 'the check has not ended'}",
        }[artefact.verified]
        blocks += [
            Bullets([f"{artefact.name}, from {artefact.run}, in {artefact.path}", f"Check: {checked}"]),
            *_loading(report, artefact),
        ]
    return blocks


def _loading(report: Report, artefact: ArtefactPart) -> list[Block]:
    """Lines that load it, run in the campaign's folder. Only the task and the form of the artefact decide them."""
    if artefact.verified is not True:
        return []
    task = report.hypothesis.task
    model, reader = LOADERS[task]
    path = repr(artefact.path)
    if report.plan["method"]["kind"] == "full":
        lines = [
            f"from transformers import {model}, {reader}",
            f"model = {model}.from_pretrained({path}).eval()",
        ]
    else:
        revision = f", revision={report.model.revision!r}" if report.model.revision else ""
        # A head for other categories than the base's is new, and its weights come with the adapter.
        head = (
            f", num_labels={len(report.data.labels)}, ignore_mismatched_sizes=True"
            if task.endswith("classification") and report.data
            else ""
        )
        lines = [
            "from peft import PeftModel",
            f"from transformers import {model}, {reader}",
            f"base = {model}.from_pretrained(",
            f"    {report.model.base!r}{revision}{head})",
            f"model = PeftModel.from_pretrained(base, {path}).eval()",
        ]
    if reader == "AutoImageProcessor":
        lines.append(f"processor = {reader}.from_pretrained({path}, backend='pil')")
    else:
        lines.append(f"tokenizer = {reader}.from_pretrained({path})")
    if task.endswith("classification"):
        lines.append("# labels.json beside it names the classes in order")
    return [Paragraph("To load it, in the campaign's folder:"), Code(lines)]


def _notes(report: Report) -> list[Block]:
    blocks: list[Block] = []
    if report.notes:
        blocks += [Heading(2, "Notebook"), Bullets([f"{moment(n.at)} ({n.by}): {n.text}" for n in report.notes])]
    if report.faults:
        blocks += [Heading(2, "Faults"), Bullets([f"{moment(f.at)}, {f.where}: {f.cause}" for f in report.faults])]
    return blocks
