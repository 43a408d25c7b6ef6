"""What of a launched campaign still fits between now and the end of training, by what its runs have cost so far (R4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ftui.engine.deadlines import deadlines
from ftui.engine.estimate import Estimate
from ftui.plan.budget import fit_runs, passed
from ftui.plan.schema import Plan
from ftui.plan.variants import PlannedRun
from ftui.record.state import Campaign, Run


def what_is_left(
    state: Campaign, plan: Plan, estimate: Estimate, side_by_side: int, moment: datetime
) -> dict[str, Any] | None:
    """Runs still to come or to end, and whether they will, as plain values; None before the launch or the pilot.

    A run that goes on takes a place before any that waits, and only what remains of it.
    """
    if state.clock is None or not state.runs or not estimate.durations:
        return None
    statuses = ("running", "queued", "lost") if state.supervising else ("running", "queued", "lost", "stopped")
    left = sorted(state.runs_of(*statuses), key=lambda run: (run.status != "running", -run.priority, run.number))
    untested = [run for run in state.runs_of("completed") if run.test_metrics is None and run.test_cause is None]
    until = deadlines(
        plan.rental,
        state.clock,
        estimate.closing,
        tests=len(untested) + len(left),
        side_by_side=side_by_side,
        grace_seconds=estimate.grace_seconds,
    ).stop_runs_at
    hours = max(0.0, passed(moment, until) / timedelta(hours=1))
    runs = [_as_planned(run) for run in left]
    own = {run.id: estimate.remaining[run.id] for run in left if run.id in estimate.remaining}
    named_apart = [replace(run, variant=run.id) if run.id in own else run for run in runs]
    fit = fit_runs(named_apart, {**estimate.durations, **own}, hours, side_by_side)
    names = {run.number: run.id for run in left}

    def named(placed: list[PlannedRun]) -> list[str]:
        return [names[run.number] for run in placed]

    return {
        "at": moment.isoformat(timespec="seconds"),
        "until": until.isoformat(timespec="seconds"),
        "hours": hours,
        "needed": [fit.hours, fit.hours_low, fit.hours_high],
        "surely": named(fit.surely),
        "probably": named(fit.probably),
        "left_out": named(fit.left_out),
        "causes": {names[placed.run.number]: placed.cause for placed in fit.placed if placed.cause},
        "seconds": {run: [spread.seconds, spread.low, spread.high] for run, spread in own.items()},
    }


def _as_planned(run: Run) -> PlannedRun:
    return PlannedRun(run.number, run.variant, run.seed, run.priority)
