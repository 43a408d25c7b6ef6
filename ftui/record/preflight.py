"""What the pilot found, as plain values and as lines for a terminal: `ftui preflight`."""

from __future__ import annotations

from typing import Any

from ftui.plan.remedies import remedies
from ftui.plan.schema import Plan
from ftui.record.layout import CampaignFiles
from ftui.record.rows import GateRow, read_gates
from ftui.record.state import Campaign
from ftui.record.text import aligned, safe


def describe_gates(files: CampaignFiles, state: Campaign, plan: Plan) -> dict[str, Any]:
    """The latest pass through the gates, and remedies where memory ran out. `rows` is [] while none was tried."""
    latest = state.gates[-1] if state.gates else None
    rows = read_gates(files.gates(latest.id).rows) if latest else []
    return {
        "gates": None if latest is None else latest.id,
        "passed": None if latest is None else latest.passed,
        "cause": None if latest is None else latest.cause,
        "key": None if latest is None else latest.key,
        "rows": [row.model_dump() for row in rows],
        "remedies": [remedy.content() | {"title": remedy.title} for remedy in gate_remedies(rows, plan)],
    }


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
        found = row["cause"] or ", ".join(
            f"{k.replace('_', ' ')} {_short(v)}" for k, v in row["facts"].items() if _plain(v)
        )
        size = "–" if peak is None else f"{peak / 2**30:.2f} GiB"
        table.append([name, row["verdict"], size, f"{row['seconds']:.2f}", safe(found, 400)])
    lines = aligned(table, right=(2, 3))
    if described["remedies"]:
        lines += ["", "What would need less memory"]
        for number, remedy in enumerate(described["remedies"], 1):
            lines += [
                f"  {number}. {remedy['title']}",
                f"     memory: {remedy['memory']}",
                f"     experiment: {remedy['experiment']}",
            ]
    return "\n".join(lines)


def _plain(value: object) -> bool:
    return isinstance(value, int | float | str)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)[:16]
