"""Whether a record holds enough for a verdict, and which: the entry to this room."""

from __future__ import annotations

from collections import Counter

from ftui.plan.schema import Plan
from ftui.record.layout import CampaignFiles
from ftui.record.state import Campaign
from ftui.verdict.conclude import no_verdict
from ftui.verdict.decide import decide
from ftui.verdict.evidence import gather
from ftui.verdict.model import Verdict


def reach_verdict(files: CampaignFiles, state: Campaign, plan: Plan) -> Verdict:
    """The verdict on what `files` hold. `plan` is the one in force: the journal's, or the file's before a launch."""
    if why := why_not(state):
        return no_verdict(plan, why)
    return decide(plan, state.plan_hash or "", gather(files, state), len(state.test_openings))


def why_not(state: Campaign) -> str | None:
    """Why there is no verdict yet, as the rest of a sentence; None when there can be one."""
    if state.launched_at is None:
        return "the campaign was not launched"
    if state.test_openings and state.data is not None:
        candidates = state.test_openings[-1].get("candidates", [])
        runs = [state.runs[name] for name in candidates if name in state.runs]
        pending = [run.id for run in runs if run.test_metrics is None and run.test_cause is None]
        if pending and not state.closed:
            return f"the evaluation on the test set is not finished ({len(pending)} of {len(runs)} runs are open)"
        return None
    sealed = "the test set is still sealed"
    if state.gates and state.gates[-1].passed is False:
        return f"the gates failed, so no run was started: {_bare(state.gates[-1].cause)}"
    if state.runs:
        counts = Counter(run.status for run in state.runs.values())
        shown = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        return f"{sealed} (runs: {shown})"
    if state.faults:
        return f"{_bare(state.faults[-1].get('cause'))}"
    if state.gates and state.gates[-1].passed is None:
        return f"the gates are not finished, and {sealed}"
    return f"the campaign is in its phase {state.phase or 'preparation'!r}, and {sealed}"


def _bare(cause: object) -> str:
    return str(cause or "no cause was recorded").rstrip(".")
