"""Every run of the journal, in queue order, with its attempts, its causes and its curve (V5, M6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ftui.record.journal import stamp
from ftui.record.layout import CampaignFiles
from ftui.record.rows import read_outcome
from ftui.record.series import Curve, read_series
from ftui.record.state import Attempt, Campaign, Run
from ftui.report.model import AttemptRow, CurveSummary, Point, RunRow
from ftui.report.systems import finite_metrics

CURVE_POINTS = 200
"""Points of a curve kept in the report."""


def run_rows(files: CampaignFiles, state: Campaign) -> list[RunRow]:
    return [_run_row(files, run) for run in state.runs.values()]


def _run_row(files: CampaignFiles, run: Run) -> RunRow:
    curve = Curve()
    curve.add(read_series(files.run(run.id).series))
    last = {
        name: values[-1] for name, values in curve.validation.items() if len(values) == len(curve.validation_updates)
    }
    try:
        outcome = read_outcome(files.run(run.id).outcome)
    except ValueError:  # the journal has the run's end; a damaged outcome file adds nothing to it
        outcome = None
    return RunRow(
        run=run.id,
        variant=run.variant,
        seed=run.seed,
        kind=run.kind,
        status=run.status,
        cause=run.cause,
        updates=max(run.updates, curve.updates[-1] if curve.updates else 0),
        follows=run.follows,
        because=run.because,
        change=run.change,
        attempts=[_attempt_row(attempt) for attempt in run.attempts],
        validation=finite_metrics(last or (outcome.metrics if outcome else None)),
        test=finite_metrics(run.test_metrics),
        test_cause=run.test_cause,
        curve=_summary(curve) if curve.updates or curve.validation_updates else None,
    )


def _attempt_row(attempt: Attempt) -> AttemptRow:
    return AttemptRow(
        number=attempt.number,
        started_at=stamp(attempt.started_at),
        ended_at=stamp(attempt.ended_at) if attempt.ended_at else None,
        resumed_from=attempt.resumed_from,
        status=attempt.status,
        cause=attempt.cause,
        exit_code=attempt.exit_code,
        placement=attempt.placement,
    )


def _summary(curve: Curve) -> CurveSummary:
    finite = [value for value in curve.loss if math.isfinite(value)]
    return CurveSummary(
        updates=len(curve.updates),
        first_loss=finite[0] if finite else None,
        last_loss=finite[-1] if finite else None,
        min_loss=min(finite, default=None),
        nonfinite=len(curve.loss) - len(finite),
        seconds_per_update=median(curve.seconds) if curve.seconds else None,
        loss=thinned(curve.updates, curve.loss),
        validation={
            name: thinned(curve.validation_updates[: len(values)], values) for name, values in curve.validation.items()
        },
    )


def thinned(updates: Sequence[int], values: Sequence[float], limit: int = CURVE_POINTS) -> list[Point]:
    """At most `limit` points: the lowest and the highest of each stretch, in order, so that no spike disappears."""
    if len(updates) <= limit:
        kept = list(range(len(updates)))
    else:
        stretches = limit // 2
        bounds = [round(i * len(updates) / stretches) for i in range(stretches + 1)]
        kept = []
        for start, end in pairwise(bounds):
            finite = [i for i in range(start, end) if math.isfinite(values[i])] or [start]
            kept += sorted({min(finite, key=lambda i: values[i]), max(finite, key=lambda i: values[i])})
    return [Point(update=updates[i], value=values[i] if math.isfinite(values[i]) else None) for i in kept]
