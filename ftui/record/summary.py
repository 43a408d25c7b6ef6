"""What is going on in a campaign, as plain values and as a few lines."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from ftui.plan.budget import phase_use
from ftui.record.backup import Safety, backup_in_force, safety, safety_words
from ftui.record.journal import now, read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.lines import number
from ftui.record.notebook import note_lines, notes_among
from ftui.record.requests import pending_requests
from ftui.record.series import read_series
from ftui.record.state import Campaign, Run, fold
from ftui.record.text import safe

LAST_NOTES = 3
"""Notes shown among the lines; `ftui note --list` shows all."""

IDLE, RUNNING, INTERRUPTED, CLOSED = "not launched", "running", "interrupted", "closed"


def campaign_word(state: Campaign, alive: bool) -> str:
    """The campaign's state in one word; `alive` is whether a supervisor works on it now."""
    if state.launched_at is None:
        return IDLE
    if alive:
        return RUNNING
    return CLOSED if state.closed else INTERRUPTED


def summarise(files: CampaignFiles, alive: bool, moment: datetime | None = None) -> dict[str, Any]:
    """The state of a campaign from its files alone; times in UTC, durations in seconds."""
    moment = moment or now()
    state = fold(read_journal(files.journal))
    return {
        "campaign": files.name,
        "directory": str(files.root),
        "state": campaign_word(state, alive),
        "phase": state.phase,
        "paused": state.paused,
        "waiting_requests": sum(path.stem not in state.answers for path, _ in pending_requests(files.requests)),
        "launched_at": state.launched_at.isoformat() if state.launched_at else None,
        "ends_at": state.clock.ends_at.isoformat() if state.clock else None,
        "seconds_left": (state.clock.ends_at - moment).total_seconds() if state.clock else None,
        "copies": asdict(safety(files, backup_in_force(files, state))),
        "phases": _phases(state, moment),
        "gates": [{"id": g.id, "passed": g.passed, "cause": g.cause} for g in state.gates],
        "runs": [_run(files, run) for run in state.in_order()],
        "faults": [{"where": row["where"], "cause": row["cause"], "at": row["at"]} for row in state.faults],
        "notes": notes_among(state.events),
        "waiting_for": state.waiting_for if alive else None,
        "verdict": state.verdict,
        "verdict_sentence": state.verdict_sentence,
    }


def _phases(state: Campaign, moment: datetime) -> list[dict[str, Any]]:
    if state.plan is None:
        return []
    rental = state.plan.rental
    return [
        {
            "phase": use.phase,
            "planned_hours": use.planned_hours,
            "spent_hours": use.spent_hours,
            "cost": None if (cost := use.cost(rental.price_per_hour)) is None else cost[1],
        }
        for use in phase_use(rental, state.spent_now(moment))
    ]


def _run(files: CampaignFiles, run: Run) -> dict[str, Any]:
    updates, metrics = run.updates, {}
    for row in read_series(files.run(run.id).series):
        if row["k"] == "update":
            updates = max(updates, row["update"])
        elif row["k"] == "validation":
            metrics = row["metrics"]
    return {
        "run": run.id,
        "variant": run.variant,
        "seed": run.seed,
        "status": run.status,
        "shown": run.shown,
        "held": run.held if run.kept else None,
        "priority": run.priority,
        "follows": run.follows,
        "change": run.change,
        "because": run.because,
        "cause": run.cause,
        "updates": updates,
        "attempts": len(run.attempts),
        "validation": metrics,
    }


def summary_text(summary: dict[str, Any], metric: str | None = None) -> str:
    """The summary as lines for a terminal; `metric` is the validation metric shown beside each run."""
    head = f"{summary['campaign']}: {summary['state']}"
    if summary["phase"] and summary["state"] != CLOSED:
        head += f", {summary['phase']}"
    lines = [head + (", paused" if summary["paused"] else "")]
    if summary["paused"]:
        lines.append(f"  nothing new starts; `ftui resume {summary['campaign']}` lets the queue go on")
    if (count := summary["waiting_requests"]) and summary["state"] != RUNNING:
        wait = "requests wait" if count > 1 else "request waits"
        lines.append(f"  {count} {wait} for an answer; `ftui run {summary['campaign']}` gives it")
    if summary["state"] == INTERRUPTED:
        lines.append(f"  nobody supervises it; `ftui run {summary['campaign']}` continues it")
    if summary["waiting_for"]:
        lines.append(f"  {summary['waiting_for']}")
    if summary["seconds_left"] is not None:
        left = summary["seconds_left"] / 3600
        lines.append(f"  rental: {left:.1f} h left" if left > 0 else f"  rental: over for {-left:.1f} h")
    lines.append(f"  {safety_words(Safety(**summary['copies']))}")
    lines += [f"  gates {g['id']} failed: {g['cause']}" for g in summary["gates"][-1:] if g["passed"] is False]
    width = max((len(run["run"]) for run in summary["runs"]), default=0)
    for run in summary["runs"]:
        value = run["validation"].get(metric) if metric else None
        shown = "" if value is None else f"  {metric} {number(value):.3f}"
        why = [run["held"], run["cause"], f"follows {run['follows']}: {run['because']}" if run["follows"] else None]
        said = "; ".join(safe(reason) for reason in why if reason)
        status = run["shown"]
        lines.append(
            f"  {run['run']:<{width}}  {status:<9}  update {run['updates']:>6,}{shown}{'  ' if said else ''}{said}"
        )
    lines += [f"  fault in {fault['where']}: {fault['cause']}" for fault in summary["faults"][-3:]]
    lines += ["  notebook:"] if summary["notes"] else []
    lines += [f"    {line}" for row in summary["notes"][-LAST_NOTES:] for line in note_lines(row)]
    if summary["verdict"]:
        lines.append(f"  verdict: {summary['verdict']}. {summary['verdict_sentence']}")
    return "\n".join(lines)
