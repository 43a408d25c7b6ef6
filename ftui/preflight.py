"""`ftui preflight`: the gates alone, the largest micro-batch that fits, and what would need less memory put into the plan."""

from __future__ import annotations

from typing import Any

from ftui.answer import DONE, NO, STATE, USAGE, Answer, print_json
from ftui.engine.client import EngineError, start
from ftui.engine.fit import FitError, fit_text, search_fit
from ftui.engine.placement import places
from ftui.plan.edit import changed_text
from ftui.plan.schema import Plan
from ftui.progress import wait
from ftui.record.files import replace_text
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.preflight import describe_gates, gate_remedies, gates_text
from ftui.record.rows import read_gates
from ftui.record.state import fold


def try_gates(files: CampaignFiles, plan: Plan, *, json: bool) -> int:
    """Have the gates tried, and say what they found. Raises `Answer` when no supervisor could be started."""
    try:
        start(files, only_gates=True)
    except EngineError as error:
        raise Answer(STATE, str(error)) from None
    wait(files)
    state = fold(read_journal(files.journal))
    described: dict[str, Any] = describe_gates(files, state, plan)
    if described["passed"] and state.data is not None:
        from ftui.forecast import beside_measured

        rows, backend = read_gates(files.gates(described["gates"]).rows), places(plan.machine)[0].backend
        described["memory"] = told = beside_measured(plan, state.data, files, rows, backend)
        described["sheet"].append(("step", told["sentence"]))
    print_json(described) if json else print(gates_text(described))
    return DONE if described["passed"] else NO


def fit_micro_batch(files: CampaignFiles, plan: Plan, *, json: bool) -> int:
    """Search the largest micro-batch that fits. Raises `Answer` when the search could not be made."""
    try:
        found = search_fit(files, plan)
    except FitError as error:
        raise Answer(NO, str(error)) from None
    print_json(found) if json else print(fit_text(found))
    return DONE if found["largest"] is not None else NO


def accept_remedy(files: CampaignFiles, plan: Plan, number: int) -> int:
    """Put remedy `number` of the last gates into the plan's file. Raises `Answer` when there is none, or runs have begun."""
    state = fold(read_journal(files.journal))
    offered = gate_remedies(read_gates(files.gates(state.gates[-1].id).rows), plan) if state.gates else []
    if not 1 <= number <= len(offered):
        raise Answer(USAGE, f"there is no remedy {number}; the last gates offer {len(offered)}")
    if state.runs:
        raise Answer(
            STATE, "runs have begun under this plan; a change would mix two plans and belongs into a new campaign"
        )
    replace_text(files.plan, changed_text(files.plan.read_text(encoding="utf-8"), offered[number - 1].change))
    print(f"{files.plan}: {offered[number - 1].title}\n{offered[number - 1].experiment}")
    return DONE
