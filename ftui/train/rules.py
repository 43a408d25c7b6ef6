"""The plan's causes to end a run early, written before launch (V4, H5). State is plain numbers, kept in checkpoints."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ftui.plan.schema import Stop
from ftui.train.update import Update

SMOOTHING = 0.9
"""Weight of the past in the smoothed loss; about the last ten updates count."""
OVERFLOWS = 20
"""Updates in a row that a gradient scaler may skip while it looks for its scale: each halves it."""
SETTLED = 10
"""Updates before divergence is judged: the first losses say little."""


@dataclass(frozen=True)
class Ending:
    """Why a run ends before its last update."""

    status: Literal["stopped", "diverged", "completed"]
    cause: str


@dataclass
class StopRules:
    """Judges every update and validation against the plan's `training.stop`."""

    rules: Stop
    better_is_higher: bool
    average: float = 0.0
    weight: float = 0.0
    lowest: float = float("inf")
    seen: int = 0
    overflows: int = 0
    """Updates in a row that the gradient scaler skipped."""
    best: float | None = None
    best_update: int | None = None
    """Where the best validation was; its checkpoint is kept."""
    validations_since_best: int = 0
    hours_before: float = 0.0
    """Hours of earlier attempts."""
    _started: float = field(default_factory=time.monotonic)

    def after_update(self, number: int, update: Update) -> Ending | None:
        self.overflows = self.overflows + 1 if update.overflowed else 0
        if self.overflows >= OVERFLOWS:
            return Ending("diverged", f"the scaled gradient overflowed in {OVERFLOWS} updates in a row, up to {number}")
        if update.overflowed:
            return None
        if not update.finite:
            if self.rules.nonfinite == "continue":
                return None
            what = "loss" if update.loss != update.loss or abs(update.loss) == float("inf") else "gradient norm"
            value = update.loss if what == "loss" else update.grad_norm
            return Ending("diverged", f"the {what} became {value} at update {number}")
        self.average = SMOOTHING * self.average + (1 - SMOOTHING) * update.loss
        self.weight = SMOOTHING * self.weight + (1 - SMOOTHING)
        self.seen += 1
        smoothed = self.average / self.weight
        if self.seen >= SETTLED:
            limit = self.rules.divergence
            if limit is not None and smoothed > limit * self.lowest:
                return Ending(
                    "diverged",
                    f"the smoothed loss reached {smoothed:.4g} at update {number}, "
                    f"more than {limit:g} times its lowest value {self.lowest:.4g}",
                )
            self.lowest = min(self.lowest, smoothed)
        return None

    def hours_are_up(self) -> bool:
        """By this process's clock."""
        return self.rules.max_hours is not None and self.hours() > self.rules.max_hours

    def after_validation(self, number: int, metric: float) -> Ending | None:
        signed = metric if self.better_is_higher else -metric
        if self.best is None or signed > self.best:
            self.best, self.best_update, self.validations_since_best = signed, number, 0
            return None
        self.validations_since_best += 1
        if self.rules.patience is not None and self.validations_since_best >= self.rules.patience:
            return Ending(
                "completed", f"ended at update {number}: {self.rules.patience} validations without a new best"
            )
        return None

    def hours(self) -> float:
        return self.hours_before + (time.monotonic() - self._started) / 3600

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        content = {k: v for k, v in asdict(self).items() if k not in ("rules", "better_is_higher", "_started")}
        content["lowest"] = None if self.lowest == float("inf") else self.lowest
        content["hours_before"] = self.hours()
        return content

    def restore(self, content: dict[str, Any]) -> None:
        for name, value in content.items():
            setattr(self, name, float("inf") if name == "lowest" and value is None else value)
