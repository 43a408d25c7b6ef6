"""`ftui plan C --for DEVICE`: what each method of the plan needs on a device nobody has rented yet (S7, N3).

A process of its own follows the step (`python -m ftui.train predict`), so that this one loads no training library. What it says is
set beside the device's data sheet here; what it cannot know is named, and covered by a margin that is named, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from ftui.data.prepare import DataReport, write_version
from ftui.engine.launch import predict_command
from ftui.machine.devices import BUSY, GIB, IDLE, Device, update_seconds
from ftui.plan.load import plan_hash
from ftui.plan.predicted import PredictedUpdate
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion, RunSettings, dump_settings, run_settings
from ftui.plan.variants import BASE, CONTROL, planned_runs, variant_plan
from ftui.record.files import read_json, replace_text
from ftui.record.layout import CampaignFiles, RunFiles
from ftui.record.rows import GateRow

MARGIN_BYTES = GIB
MARGIN_SHARE = 0.05

NOT_COVERED = (
    "where a GPU's kernels need other memory than the CPU's that were followed, with attention taken as fused",
    "the context of CUDA, its libraries and their workspaces",
    "rounding and fragmentation in torch's allocator",
    "NCCL's buffers where several GPUs train one run",
    "other processes on the same GPU",
)
"""What no step on pretended tensors shows; the margin stands for it."""

_SECTIONS: dict[str, tuple[str, ...]] = {
    "training": ("micro_batch", "accumulation", "batching", "precision", "activation_checkpointing", "max_length", "truncation",
                 "hold", "amount"),
    "evaluation": ("batch_size", "generation"),
    "machine": ("processes",),
}  # fmt: skip
"""Fields that decide about memory or time, besides the model and the method."""


def forecast(
    plan: Plan, version: DataVersion, report: DataReport, files: CampaignFiles, device: Device
) -> dict[str, Any]:
    """Every distinct step of control and variants on `device`, as plain JSON values.

    Writes the data version that a launch would write. Takes seconds to minutes, and says on standard error what it is at.
    """
    methods = []
    write_version(report, plan, files.data_version(report.hash))
    with tempfile.TemporaryDirectory(prefix="ftui-predict-") as folder:
        for number, (names, settings) in enumerate(_distinct(plan, version)):
            print(f"following a step of {', '.join(names)} without a GPU", file=sys.stderr, flush=True)
            answer = _predict(settings, files, Path(folder) / f"{number:03d}")
            rows = [_on_device(p, answer, device) for p in answer.get("predictions", ())]
            methods.append({"variants": names, "kind": settings.method.kind, **answer, "rows": rows})
    planned = [row["fits"] for method in methods for row in method["rows"] if row["planned"]]
    unknown = any(method["problem"] for method in methods)
    return {
        "device": asdict(device),
        "margin": {"bytes": MARGIN_BYTES, "share_of_peak": MARGIN_SHARE, "stands_for": list(NOT_COVERED)},
        "utilisation": {"low": IDLE, "high": BUSY},
        "methods": methods,
        "fits": False if not all(planned) else None if unknown else True,
    }


def predicted_updates(told: Mapping[str, Any]) -> dict[str, PredictedUpdate]:
    """What a forecast (see `forecast`) says of the update of each variant, those left out of which it knows no time."""
    found = {}
    for method in told["methods"]:
        for row in method["rows"]:
            if row["planned"] and row["seconds_per_update"] is not None:
                low, high = row["seconds_per_update"]
                sizes = method["parameters"], method["trainable"]
                update = PredictedUpdate(low, high, row["operations_per_update"], *sizes)
                found.update(dict.fromkeys(method["variants"], update))
    return found


def beside_measured(
    plan: Plan, version: DataVersion, files: CampaignFiles, rows: Sequence[GateRow], backend: Literal["cpu", "cuda"]
) -> dict[str, Any]:
    """The control's step as it is predicted, beside what its updates took in the pilot (S7); `sentence` says it in words.

    On a GPU both are what tensors hold (`max_memory_allocated`). On a CPU nothing counts tensors: there the process itself is looked
    at, which grew from its load on, and whose allocator keeps more than is used.
    """
    control = next(run for run in planned_runs(plan) if run.variant == CONTROL)
    settings = run_settings(plan, plan_hash(plan), control, version, backend)
    with tempfile.TemporaryDirectory(prefix="ftui-predict-") as folder:
        answer = _predict(settings, files, Path(folder) / "control")
    if answer["problem"]:
        return {"predicted": None, "measured": None, "sentence": f"not predicted: {answer['problem']}"}
    predicted = next(p["peak"] for p in answer["predictions"] if p["planned"])
    measured, how = _measured(rows)
    if measured is None:
        return {
            "predicted": predicted,
            "measured": None,
            "sentence": f"predicted {_gib(predicted)} GiB; nothing was measured",
        }
    sentence = (
        f"predicted {_gib(predicted)} GiB, measured {_gib(measured)} GiB ({how}): {measured / predicted:.2f} of it"
    )
    return {"predicted": predicted, "measured": measured, "sentence": sentence}


def _measured(rows: Sequence[GateRow]) -> tuple[int | None, str]:
    """Bytes that the updates of the pilot took at most, and how that was told."""
    updates = [row for row in rows if row.gate in ("first update", "steady update") and row.rank == 0]
    allocated = [row.allocated_peak for row in updates if row.allocated_peak is not None]
    if allocated:
        return max(allocated), "allocated on the device"
    before = next((row.host_before for row in rows if row.gate == "load" and row.rank == 0), None)
    peaks = [row.host_peak for row in updates if row.host_peak is not None]
    if before is None or not peaks:
        return None, ""
    return max(peaks) - before, "growth of the process, allocator and caches included"


def _distinct(plan: Plan, version: DataVersion) -> Iterator[tuple[list[str], RunSettings]]:
    """Settings of the first run of each distinct step, with the names of all variants that share it."""
    found: dict[str, tuple[list[str], RunSettings]] = {}
    digest = plan_hash(plan)
    for run in planned_runs(plan):
        if run.variant == BASE:
            continue
        content = variant_plan(plan, run.variant).content()
        step = {name: {field: content[name][field] for field in fields} for name, fields in _SECTIONS.items()}
        key = json.dumps([content["model"], content["method"], step], sort_keys=True)
        if key not in found:
            found[key] = ([], run_settings(plan, digest, run, version, "cuda"))
        if run.variant not in found[key][0]:
            found[key][0].append(run.variant)
    yield from found.values()


def _predict(settings: RunSettings, files: CampaignFiles, folder: Path) -> dict[str, Any]:
    """What the process says, with `problem` None, or the sentence with which it ended."""
    folder.mkdir()
    replace_text(RunFiles(folder).settings, dump_settings(settings))
    command, out = predict_command(folder, files, folder / "prediction.json"), folder / "prediction.json"
    with command.log.open("wb") as log:
        done = subprocess.run(
            command.words, env=command.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    if done.returncode == 0 and out.is_file():
        answer: dict[str, Any] = read_json(out)
        return {**answer, "problem": None}
    lines = command.log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = next((line for line in reversed(lines) if line.startswith("ftui: ")), None)
    return {"problem": said.removeprefix("ftui: ") if said else f"the process ended with code {done.returncode}"}


def _on_device(prediction: Mapping[str, Any], answer: Mapping[str, Any], device: Device) -> dict[str, Any]:
    """A prediction beside the device: whether it fits with the margin, and how long an update takes if it does."""
    peak = max(prediction["peak"], prediction["evaluation_peak"])
    needed = peak + MARGIN_BYTES + round(peak * MARGIN_SHARE)
    shape = answer["shape"]
    flops = prediction["flops"] * shape["micro_batches"] * shape["mean_tokens"] / shape["tokens"]
    seconds = update_seconds(device, answer["precision"], flops, prediction["bytes_moved"])
    return {
        "activation_checkpointing": prediction["activation_checkpointing"],
        "planned": prediction["planned"],
        "peak": peak,
        "needed": needed,
        "fits": needed <= device.memory,
        "left": device.memory - needed,
        "operations_per_update": prediction["operations"] * shape["micro_batches"],
        "seconds_per_update": None if seconds is None else list(seconds),
        "hours_of_a_run": None if seconds is None else [s and s * answer["updates"] / 3600 for s in seconds],
    }


_COLUMNS = (
    ("weights", ("weights", "buffers")),
    ("gradients", ("gradients", "buckets")),
    ("optimizer", ("optimizer",)),
    ("activations", ("activations", "cast_weights")),
    ("logits", ("logits",)),
    ("temporaries", ("temporaries",)),
)
"""Columns of the table and the parts that each adds up."""


def forecast_text(told: Mapping[str, Any]) -> str:
    """The forecast (see `forecast`) as lines for a terminal."""
    device = told["device"]
    lines = ["", f"On {device['name']}, predicted without one ({_gib(device['memory'])} GiB)"]
    for method in told["methods"]:
        lines += ["", *_method_lines(method)]
    share = f"{told['margin']['share_of_peak']:.0%}"
    lines += [
        "",
        f"  All in GiB, at the highest moment. `needed` adds a margin of {_gib(told['margin']['bytes'])} GiB and {share}, for what no step",
        "  without a GPU shows:",
        *(f"    {what}" for what in told["margin"]["stands_for"]),
    ]
    if device["bandwidth"] is None:
        lines.append("  Of a size, only memory is known: name a device for its time.")
    else:
        low, high = told["utilisation"]["high"], told["utilisation"]["low"]
        lines += [
            f"  Time is a range, measured by the pilot: {high:.0%} to {low:.0%} of the data sheet's peak are assumed, and never less than",
            "  it takes to move weights and optimizer state. Steps of small models take longer: they wait for",
            "  operations to start, some microseconds each.",
        ]
    return "\n".join(lines)


def _method_lines(method: Mapping[str, Any]) -> Iterator[str]:
    names = ", ".join(method["variants"])
    if method["problem"]:
        yield f"  {names}: {method['kind']}"
        yield f"    not predicted: {method['problem']}"
        return
    shape = method["shape"]
    yield (
        f"  {names}: {method['kind']}, {method['precision']}, {method['trainable']:,} of {method['parameters']:,} parameters train"
    )
    yield (
        f"  longest micro-batch {shape['examples']} examples, {shape['tokens']:,} positions, {shape['most_targets']:,} targets at most; "
        f"evaluation {shape['evaluation_examples']} examples, {shape['evaluation_tokens']:,} positions"
    )
    head = "".join(f"{name:>12}" for name, _ in _COLUMNS)
    yield f"    {'checkpointing':<15}{head}{'training':>10}{'evaluation':>12}{'needed':>9}"
    for row, prediction in zip(method["rows"], method["predictions"], strict=True):
        name = ("on" if row["activation_checkpointing"] else "off") + (", planned" if row["planned"] else "")
        cells = "".join(f"{_gib(sum(prediction['parts'][p] for p in parts)):>12}" for _, parts in _COLUMNS)
        peaks = f"{_gib(prediction['peak']):>10}{_gib(prediction['evaluation_peak']):>12}{_gib(row['needed']):>9}"
        yield f"    {name:<15}{cells}{peaks}"
        yield f"      {_judged(row)}{_time(row)}"
    yield from (f"    {sentence}" for sentence in method["left_out"])
    if method["impossible"]:
        yield f"    with the other setting of training.activation_checkpointing: {method['impossible']}"


def _judged(row: Mapping[str, Any]) -> str:
    if row["fits"]:
        return f"fits, {_gib(row['left'])} GiB are left"
    return f"does not fit: {_gib(-row['left'])} GiB too little"


def _time(row: Mapping[str, Any]) -> str:
    if row["seconds_per_update"] is None:
        return ""
    (low, high), (first, last) = row["seconds_per_update"], row["hours_of_a_run"]
    if high is None:
        said = f"at least {low:.3g} s per update by memory traffic alone, {first:.2g} h for the updates of a run"
    else:
        said = f"{low:.3g} to {high:.3g} s per update, {first:.2g} to {last:.2g} h for the updates of a run"
    return f"; {said}; {row['operations_per_update']:,} operations per update"


def _gib(size: float) -> str:
    return f"{size / GIB:.2f}"
