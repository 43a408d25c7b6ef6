"""From runs and their series to the curves of the chart: which are drawn, in which colour, over which axis."""

from __future__ import annotations

import numpy as np

from ftui.record.state import Campaign, Run
from ftui.ui.curves import EMPTY, Array, RunCurve
from ftui.ui.theme import series_colour, series_letter
from ftui.ui.widgets.line_chart import Curve


def letters(state: Campaign) -> dict[str, tuple[str, str]]:
    """Letter and colour of every training run. They follow from the queue, so that a run keeps them all its life."""
    trained = [run.id for run in state.runs.values() if run.kind == "train"]
    return {run: (series_letter(i), series_colour(i)) for i, run in enumerate(trained)}


def drawn_runs(state: Campaign, marked: set[str]) -> list[Run]:
    """Training runs to draw: the marked ones, or all where none is."""
    trained = [run for run in state.runs.values() if run.kind == "train"]
    return [run for run in trained if run.id in marked] or trained


def _label(run: Run) -> str:
    """A run's id without its number, which the letter replaces."""
    return run.id.partition("-")[2] or run.id


def along(curve: RunCurve, axis: str) -> Array:
    """x of every update: its number, or tokens or training seconds up to its end."""
    if axis == "updates":
        return curve.updates
    steps = curve.tokens if axis == "tokens" else curve.seconds
    return np.cumsum(np.where(np.isfinite(steps), steps, 0.0))


def _validation_x(curve: RunCurve, x: Array) -> Array:
    return np.interp(curve.validation_updates, curve.updates, x) if len(x) else curve.validation_updates


def loss_curve(run: Run, curve: RunCurve, axis: str, letter: str, colour: str) -> Curve:
    """Training loss per update, with the validation losses as points."""
    x = along(curve, axis)
    points = curve.validation.get("loss", EMPTY)
    return Curve(run.id, _label(run), letter, colour, x, curve.loss, _validation_x(curve, x)[: len(points)], points)


def metric_curve(run: Run, curve: RunCurve, axis: str, letter: str, colour: str, metric: str) -> Curve:
    """Validation points of `metric` alone."""
    points = curve.validation.get(metric, EMPTY)
    x = _validation_x(curve, along(curve, axis))[: len(points)]
    return Curve(run.id, _label(run), letter, colour, point_x=x, point_y=points)
