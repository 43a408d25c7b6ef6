"""What the screens say about a campaign, worked out from its record: words, progress, estimates. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from ftui.engine.follow import wish_line
from ftui.plan.schema import LOWER_IS_BETTER
from ftui.record.state import Campaign, Run
from ftui.ui.curves import RunCurve

RECENT_UPDATES = 50
"""Updates whose median duration an estimate rests on."""

ROLE_OF_STATUS = {
    "queued": "muted",
    "running": "busy",
    "completed": "good",
    "stopped": "warn",
    "diverged": "bad",
    "failed": "bad",
    "lost": "warn",
    "left out": "muted",
    "paused": "warn",
    "held": "warn",
}
"""Style role (see `theme.STYLES`) of each status of a run as it is shown."""

ROLE_OF_VERDICT = {"supported": "good", "not supported": "warn", "inconclusive": "warn"}


@dataclass(frozen=True)
class Standing:
    """Where a campaign stands, as a word and a style role."""

    word: str
    role: str
    hint: str = ""
    """What a person can do about it."""


def standing(state: Campaign, alive: bool) -> Standing:
    """Where the campaign stands. The journal's last word counts only as far as a supervisor lives to keep it."""
    if state.closed:
        return Standing("closed", "good")
    if alive:
        return Standing("running" if state.phase else "starting", "busy")
    if state.launched_at is None:
        return Standing("never launched", "muted", "`ftui run` launches it")
    if state.supervising:
        return Standing("interrupted", "bad", "`ftui run` continues it")
    return Standing("stopped", "warn", "`ftui run` continues it")


def runs_ended(state: Campaign) -> tuple[int, int]:
    """Runs with a result, and all runs."""
    waiting = [run for run in state.runs.values() if run.status in ("queued", "running") or run.kept]
    return len(state.runs) - len(waiting), len(state.runs)


@dataclass(frozen=True)
class RunSummary:
    """One row of the runs table."""

    run: Run
    status: str
    role: str
    update: int
    total: int
    loss: float | None
    best: float | None
    """Best validation value so far."""
    last: float | None
    """Latest validation value."""
    eta_seconds: float | None
    heartbeat_at: float | None

    @property
    def share(self) -> float:
        return self.update / self.total if self.total else 1.0 if self.status == "completed" else 0.0


def summarise_run(
    state: Campaign, alive: bool, run: Run, curve: RunCurve | None, total: int, metric: str
) -> RunSummary:
    """What is known about `run`, its quality by `metric`. A run that should run while no supervisor lives is said to be
    interrupted."""
    curve = curve or RunCurve()
    interrupted = run.status == "running" and not alive
    running = run.status == "running" and alive
    values = curve.validation.get(metric, np.empty(0))
    if run.kind == "baseline" and run.test_metrics:
        values = np.array([_scalar(run.test_metrics.get(metric))])
    finite = values[np.isfinite(values)]
    best = None if not len(finite) else float(finite.max() if higher_is_better(state, metric) else finite.min())
    update = curve.last_update or run.updates
    eta = None
    if running and total and len(curve.seconds):
        eta = max(0, total - update) * float(np.median(curve.seconds[-RECENT_UPDATES:]))
    return RunSummary(
        run,
        "interrupted" if interrupted else run.shown,
        "bad" if interrupted else ROLE_OF_STATUS.get(run.shown, "text"),
        update,
        total,
        float(curve.loss[-1]) if len(curve.loss) else None,
        best,
        float(values[-1]) if len(values) else None,
        eta,
        curve.last_at if running else None,
    )


def _scalar(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def validation_metrics(state: Campaign, curves: Iterable[RunCurve]) -> list[str]:
    """What can be looked at besides the training loss: the hypothesis's metric, then the others that the series have.

    The validation loss is drawn beside the training loss, so it comes only where the hypothesis asks for it or where a
    validation measures nothing else. Before any validation it is the hypothesis's metric alone; [] without a plan.
    """
    asked: list[str] = [state.plan.hypothesis.metric] if state.plan else []
    there = list(dict.fromkeys(name for curve in curves for name in curve.validation))
    if not there:
        return asked
    names = [name for name in asked if name in there]
    return names + [name for name in there if name not in (*names, "loss")] or ["loss"]


def higher_is_better(state: Campaign, metric: str) -> bool:
    if state.plan and state.plan.hypothesis.metric == metric:
        return state.plan.hypothesis.direction == "higher"
    return metric not in LOWER_IS_BETTER


def price(state: Campaign) -> tuple[float, str] | None:
    """Price per hour and its currency, None where the plan names none."""
    if state.plan is None or state.plan.rental.price_per_hour is None:
        return None
    return state.plan.rental.price_per_hour, state.plan.rental.currency


def spent_hours(state: Campaign, moment: datetime) -> float:
    """Hours worked so far, over all phases."""
    return sum(state.spent_now(moment).values()) / 3600


def first_trouble(state: Campaign) -> str | None:
    """The first cause of a failure, None while there is none (M4)."""
    for row in state.events:
        if row["event"] == "fault":
            return f"{row.get('where', 'fault')}: {row.get('cause')}"
        if row["event"] == "run-ended" and row.get("status") in ("failed", "diverged", "lost"):
            return f"{row.get('run')} {row['status']}: {row.get('cause')}"
        if row["event"] == "gates-ended" and not row.get("passed"):
            return f"gates failed: {row.get('cause')}"
    return None


def event_lines(row: dict[str, object]) -> list[str]:
    """A journal event with its time of day; the lines of a note stay lines, set in."""
    first, *rest = describe_event(row).split("\n")
    return [f"{str(row['at'])[11:19]}  {first}", *(f"{'':10}{line}" for line in rest)]


def describe_event(row: dict[str, object]) -> str:
    """A journal event as a line: its name and the fields that say something short."""
    if row["event"] == "note":
        return f"note by the {row['by']}: {row['text']}"
    if row["event"] == "request":
        return wish_line(row)
    if row["event"] == "waiting":
        return str(row["cause"] or "no longer waiting for a place")
    hidden = ("at", "event", "by", "plan", "plan_hash", "data", "placement", "metrics", "findings")
    parts = [f"{name} {value}" for name, value in row.items() if name not in hidden and value not in (None, "", [], {})]
    return f"{row['event']}: {', '.join(parts)}" if parts else str(row["event"])
