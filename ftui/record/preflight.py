"""What the pilot found, as plain values and as lines for a terminal: `ftui preflight`."""

from __future__ import annotations

from typing import Any

from ftui.plan.remedies import remedies
from ftui.plan.schema import Plan
from ftui.plan.variants import CONTROL
from ftui.record.estimates import run_durations
from ftui.record.layout import CampaignFiles
from ftui.record.rows import GATE_NAMES, GateRow, read_gates
from ftui.record.state import Campaign
from ftui.record.text import aligned, safe


def describe_gates(files: CampaignFiles, state: Campaign, plan: Plan) -> dict[str, Any]:
    """The latest pass through the gates, and remedies where memory ran out. `rows` is [] while none was tried."""
    latest = state.gates[-1] if state.gates else None
    rows = sorted(read_gates(files.gates(latest.id).rows), key=place_of) if latest else []
    return {
        "gates": None if latest is None else latest.id,
        "passed": None if latest is None else latest.passed,
        "cause": None if latest is None else latest.cause,
        "key": None if latest is None else latest.key,
        "rows": [row.model_dump() for row in rows],
        "sheet": choice_sheet(rows, plan, state),
        "remedies": [remedy.content() | {"title": remedy.title} for remedy in gate_remedies(rows, plan)],
    }


def place_of(row: GateRow) -> tuple[int, int]:
    """Where a row stands among the gates; a failed one is written together with those that need it, before others."""
    return GATE_NAMES.index(row.gate) if row.gate in GATE_NAMES else len(GATE_NAMES), row.rank


def choice_sheet(rows: list[GateRow], plan: Plan, state: Campaign) -> list[tuple[str, str]]:
    """What was chosen and what it costs, as names and values; [] while nothing was measured."""
    passed = {row.gate: row for row in rows if row.verdict == "passed" and row.rank == 0}
    if "load" not in passed or "trainable_share" not in passed["load"].facts:
        return []  # nothing measured, or a record that does not say
    training, machine, load = plan.training, plan.machine, passed["load"].facts
    shape = (training.micro_batch, training.accumulation, machine.processes)
    size = training.micro_batch * training.accumulation * machine.processes
    arithmetic = f"{' × '.join(map(str, shape))} = {size} examples per update, {training.batching}"
    sheet = [
        ("device", f"{passed['load'].device}, {machine.processes} × {machine.strategy}"),
        ("model", f"{plan.model.base}, {load['parameters']:,} parameters"),
        ("method", f"{plan.method.kind}, {load['trainable']:,} parameters train ({load['trainable_share']:.2%})"),
        ("precision", training.precision + (", activation checkpointing" if training.activation_checkpointing else "")),
        ("batch", arithmetic),
    ]
    if (data := passed.get("data")) and "longest" in data.facts:
        sheet.append(
            (
                "length",
                f"longest example {data.facts['longest']:,} tokens, training.max_length = {training.max_length:,}",
            )
        )
    if peaks := [(peak, row.gate) for row in rows if (peak := _peak(row)) is not None]:
        most, gate = max(peaks)
        kind = (
            "reserved on the device" if any(row.reserved_peak is not None for row in rows) else "resident on the host"
        )
        sheet.append(("memory", f"at most {most / 2**30:.2f} GiB {kind}, in {gate!r}"))
    if "steady update" in passed and "seconds_per_update" in passed["steady update"].facts and state.data is not None:
        duration = run_durations(plan, state.data, rows).get(CONTROL)
        seconds = passed["steady update"].facts["seconds_per_update"]
        said = f"{seconds:.3g} s per update"
        if duration is not None:
            said += f"; a run of the control takes {_span(duration.low)} to {_span(duration.high)}"
        sheet.append(("time", said))
    return sheet


def _peak(row: GateRow) -> int | None:
    return row.reserved_peak if row.reserved_peak is not None else row.host_peak


def _span(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def gate_remedies(rows: list[GateRow], plan: Plan) -> list[Any]:
    """What can be changed where memory ran out, by the first row that says so."""
    short = next((row for row in rows if row.facts.get("out_of_memory")), None)
    if short is None:
        return []
    part = "evaluation" if short.gate == "evaluation" else short.facts["out_of_memory"]["part"]
    return remedies(plan, part, short.inputs.get("longest"))


def gates_text(described: dict[str, Any]) -> str:
    """The description as lines for a terminal."""
    if not described["rows"]:
        return "no gate has been tried yet"
    table = [["gate", "verdict", "peak", "seconds", "found"]]
    for row in described["rows"]:
        peak = row["reserved_peak"] if row["reserved_peak"] is not None else row["host_peak"]
        name = row["gate"] if row["rank"] == 0 else f"{row['gate']} (process {row['rank'] + 1})"
        found = found_words(row["cause"], row["facts"])
        size = "–" if peak is None else f"{peak / 2**30:.2f} GiB"
        table.append([name, row["verdict"], size, f"{row['seconds']:.2f}", safe(found, 400)])
    notes = gate_notes(described)
    return "\n".join([*aligned(table, right=(2, 3)), *([""] if notes else []), *notes])


def gate_notes(described: dict[str, Any]) -> list[str]:
    """What stands below the gates: the choice and its cost, and what would need less memory where it ran out."""
    lines = aligned([list(entry) for entry in described["sheet"]]) if described["sheet"] else []
    if described["remedies"]:
        lines += [*([""] if lines else []), "What would need less memory"]
        for number, remedy in enumerate(described["remedies"], 1):
            lines += [
                f"  {number}. {remedy['title']}",
                f"     memory: {remedy['memory']}",
                f"     experiment: {remedy['experiment']}",
            ]
        lines.append("`ftui preflight C --accept N` puts one into the plan")
    return lines


def found_words(cause: str | None, facts: dict[str, Any]) -> str:
    """What a gate found: the cause of its failure, or its facts that are numbers and short texts."""
    plain = {name: value for name, value in facts.items() if isinstance(value, int | float | str)}
    return cause or ", ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in plain.items())


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)[:16]
