"""A pilot ready to be tried, and trying its gates process by process as the supervisor does."""

from __future__ import annotations

from ftui.plan.load import plan_hash
from ftui.plan.settings import dump_settings, run_settings
from ftui.plan.variants import planned_runs
from ftui.record.files import replace_text
from ftui.record.layout import CampaignFiles, GateFiles
from ftui.record.rows import GateRow, next_gate_process, read_gates
from tests.builders.tiny import prepared
from tests.builders.warm import Warm


def frozen_gates(files: CampaignFiles) -> GateFiles:
    """The first pass through the gates of a prepared campaign, with its `run.toml`."""
    plan, data = prepared(files)
    control = next(run for run in planned_runs(plan) if run.variant == "control")
    gates = files.gates("g001")
    replace_text(
        gates.run.settings, dump_settings(run_settings(plan, plan_hash(plan), control, data, "cpu", pilot=True))
    )
    return gates


def try_gates(warm: Warm, gates: GateFiles, *, until: str | None = None, processes: int = 1) -> list[GateRow]:
    """Start one process after the other while there are gates to try, the one called `until` excluded; all rows."""
    tried: list[str] = []
    while (verb := next_gate_process(read_gates(gates.rows))) not in (None, until, *tried):
        assert verb is not None
        tried.append(verb)
        warm.train(gates.root, 1 if verb == "reload" else processes, verb=verb)
    return read_gates(gates.rows)


def verdicts(rows: list[GateRow]) -> dict[str, str]:
    return {row.gate: row.verdict for row in rows}
