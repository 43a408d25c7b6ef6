"""`ftui plan`: what a plan comes to before money is spent, from its data, from what was measured, and from what can be predicted."""

from __future__ import annotations

import sys
from typing import Any

from ftui.answer import NO, Answer
from ftui.data.prepare import DataReport, check_data
from ftui.data.split import count_fields
from ftui.engine.estimate import Estimate
from ftui.engine.left import what_is_left
from ftui.engine.placement import NoPlace, places
from ftui.machine.devices import Device
from ftui.plan.budget import rental_clock
from ftui.plan.describe import describe_plan
from ftui.plan.power import Power, power_of
from ftui.plan.predicted import predicted_closing, predicted_costs
from ftui.plan.schema import Plan
from ftui.plan.settings import own_batches
from ftui.record.estimates import closing_durations, run_costs
from ftui.record.journal import now, read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.rows import read_gates
from ftui.record.state import Campaign, fold
from ftui.verdict.disagreement import measure_disagreement


def described_campaign(files: CampaignFiles, plan: Plan, device: Device | None) -> dict[str, Any]:
    """The plan as plain JSON values; with `device`, the `forecast` for it, by which costs are told where none were measured.

    Raises `Answer` when the data has errors, or when what is held cannot be counted yet.
    """
    state, report = fold(read_journal(files.journal)), check_data(plan, files.root)
    if report.errors:
        raise Answer(NO, "\n".join(f"error: {finding}" for finding in report.errors))
    # What is launched knows more than the rows do: how many tokens carry loss.
    version = state.data if state.data is not None and state.data.hash == report.hash else report.version
    try:
        own_batches(plan, version)
    except ValueError as error:
        raise Answer(NO, f"error: {error}") from None
    passed = [gates for gates in state.gates if gates.passed]
    rows = read_gates(files.gates(passed[-1].id).rows) if passed else []
    costs, closing = run_costs(plan, version, rows), closing_durations(version, rows)
    slots = _places(plan)
    forecast = predicted_for = None
    if device is not None:
        from ftui.forecast import forecast as forecast_for
        from ftui.forecast import predicted_updates

        forecast = forecast_for(plan, version, report, files, device)
        if not costs:
            costs = predicted_costs(plan, version, predicted_updates(forecast))
            closing = predicted_closing(version, costs)
            slots, predicted_for = 1, device.name  # of the device there is one for each process of a run
    described = describe_plan(
        plan,
        version,
        costs,
        slots,
        closing,
        _power(files, plan, state, report),
        clock=state.clock or rental_clock(plan.rental, now().astimezone()),
        launched=state.clock is not None,
        predicted_for=predicted_for,
    )
    estimate = Estimate(files, plan)
    estimate.measure(state, whole=True)
    described["left"] = what_is_left(state, plan, estimate, slots, now())
    return described if forecast is None else {**described, "forecast": forecast}


def _places(plan: Plan) -> int:
    try:
        return len(places(plan.machine)) // plan.machine.processes
    except NoPlace as error:
        print(f"warning: {error}; what fits is counted for one place", file=sys.stderr)
        return 1


def _power(files: CampaignFiles, plan: Plan, state: Campaign, report: DataReport) -> Power:
    """What the planned evaluation can show: from the data's counts, and from validation answers where there are some."""
    counts = report.counts
    if plan.hypothesis.task == "extraction":
        counts = count_fields(report.splits, report.labels)
    measured = measure_disagreement(files, state, plan)
    return power_of(plan, len(report.splits["test"]), {name: rows["test"] for name, rows in counts.items()}, measured)
