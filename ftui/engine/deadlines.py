"""Until when a campaign may train and evaluate, so that its report and artefact exist when the rental ends (R5).

Pure functions of the plan, the clock and measured durations. The end is an hour on the wall, so these are times, not timeouts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ftui.plan.budget import Clock, Spread, later
from ftui.plan.schema import Rental

REPORT_SECONDS = 120.0
"""Kept for writing one report; nothing measures it before the first."""

REPORTS = 3
"""Reports at the end: before the artefact, with it, and the one that says closed."""

REACTION_SECONDS = 5.0
"""How much later than due a supervisor may notice that something is due."""

_NOTHING = Spread(0, 0, 0)


@dataclass(frozen=True)
class Deadlines:
    """The moments that bind everything before the rental's end."""

    stop_runs_at: datetime
    """When running ones are told to stop: after their grace the hours kept for the end begin. What starts is to end before it."""
    tests_until: datetime
    """When the last evaluation has to have ended: what then remains is just enough for the artefact and the reports."""


def deadlines(
    rental: Rental, clock: Clock, closing: Mapping[str, Spread], *, tests: int, side_by_side: int, grace_seconds: float
) -> Deadlines:
    """The deadlines while `tests` runs are to be evaluated in the end, `side_by_side` at once.

    Where the hours planned for evaluation and export are not enough for them, by what `closing` measured, training ends earlier; the
    margin is kept all the same. Without measurements the planned hours are trusted.
    """
    last = closing.get("export", _NOTHING).high + REPORTS * REPORT_SECONDS
    evaluations = math.ceil(tests / max(1, side_by_side)) * closing.get("evaluation", _NOTHING).high
    planned = (rental.hours.evaluation + rental.hours.export) * 3600
    kept = max(planned, evaluations + last if closing else 0.0) + rental.hours.margin * 3600
    return Deadlines(
        stop_runs_at=later(clock.ends_at, -timedelta(seconds=kept + grace_seconds + REACTION_SECONDS)),
        tests_until=later(clock.ends_at, -timedelta(seconds=last)),
    )
