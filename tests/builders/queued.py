"""A tiny campaign that stands where its queue begins: data ready, gates passed and base known, as the journal tells it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from ftui.plan.load import plan_hash
from ftui.plan.settings import run_settings
from ftui.plan.variants import BASE, planned_runs
from ftui.record.journal import Journal, now, stamp
from ftui.record.layout import CampaignFiles
from tests.builders.tiny import prepared, tiny_campaign

CONTROL, SLOWER = "r002-control-s7", "r003-slower-s7"
LONG = {
    "training__amount": 5000,
    "training__checkpoint_every": 1000,
    "training__validate_every": 5000,
    "training__warmup": 2,
}
"""Runs that are still under way whenever a test looks at them."""


def queued_campaign(folder: Path, model: Path, **changes: Any) -> CampaignFiles:
    """With one place, so that one run trains and the others wait. Its gates and its base were never tried."""
    files = tiny_campaign(folder, model, **{"machine__slots": 1, **LONG, **changes})
    plan, data = prepared(files)
    journal, begun = Journal(files.journal, "supervisor"), now()
    journal.append(
        "launched",
        plan_hash=plan_hash(plan),
        plan=plan.content(),
        starts_at=stamp(begun),
        ends_at=stamp(begun + timedelta(days=1)),
    )
    journal.append("supervisor-started", pid=1, host="h")
    journal.append("data-ready", data=data.model_dump(), findings=[])
    journal.append("gates-started", gates="g001")
    journal.append("gates-ended", gates="g001", passed=True, cause=None)
    for run in planned_runs(plan):
        settings = run_settings(plan, plan_hash(plan), run, data, "cpu")
        about = {"number": run.number, "variant": run.variant, "seed": run.seed, "priority": run.priority}
        kind = "baseline" if run.variant == BASE else "train"
        journal.append(
            "queued", run=run.id, **about, kind=kind, change=settings.change, because=settings.because, follows=None
        )
        if run.variant == BASE:
            journal.append("run-started", run=run.id, attempt=1, pid=1, resumed_from=None, placement={})
            ended = {"status": "completed", "cause": None, "exit_code": 0, "updates": 0}
            journal.append("run-ended", run=run.id, attempt=1, **ended)
    journal.append("supervisor-ended", reason="the story begins here")
    return files
