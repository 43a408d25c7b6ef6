"""How runs come into the queue: those of the plan, those taken up again, those that follow another; and the settings they get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ftui.plan.followup import FollowUp
from ftui.plan.settings import RunSettings, run_settings
from ftui.plan.variants import PlannedRun, planned_runs
from ftui.record.state import Run

if TYPE_CHECKING:
    from ftui.engine.supervisor import Supervisor


def queue(supervisor: Supervisor, run: Run) -> None:
    """Write down that a run waits: a new one, or one that is taken up again."""
    names = ("number", "variant", "seed", "kind", "priority", "change", "because", "follows")
    wish = {} if run.request is None or run.attempts else {"request": run.request}
    supervisor.say("queued", run=run.id, **{name: getattr(run, name) for name in names}, **wish)


def queue_planned(supervisor: Supervisor) -> None:
    """Queue every run of the plan that is not there yet."""
    known = {(run.variant, run.seed) for run in supervisor.state.runs.values()}
    for planned in planned_runs(supervisor.plan):
        if (planned.variant, planned.seed) not in known:
            numbered = PlannedRun(_next_number(supervisor), planned.variant, planned.seed, planned.priority)
            settings = _settings(supervisor, numbered)
            kind: Literal["baseline", "train"] = "baseline" if settings.purpose == "baseline" else "train"
            about = (numbered.number, numbered.variant, numbered.seed, kind, numbered.priority)
            queue(supervisor, Run(numbered.id, *about, settings.change, settings.because))


def queue_follow_up(supervisor: Supervisor, run: Run, follow_up: FollowUp, wish: str) -> str:
    """Queue the run that follows `run`, and return its id. Its row carries the id of the wish, so that it is queued once."""
    planned = PlannedRun(_next_number(supervisor), run.variant, run.seed, run.priority)
    about = (planned.number, run.variant, run.seed, run.kind, run.priority)
    change = dict(follow_up.change)
    queue(supervisor, Run(planned.id, *about, change, follow_up.because, follows=run.id, request=wish))
    supervisor.estimate.measure(supervisor.state)
    return planned.id


def settings_of(supervisor: Supervisor, run: Run) -> RunSettings:
    """What is frozen before the run's first attempt."""
    return _settings(supervisor, PlannedRun(run.number, run.variant, run.seed, run.priority), run.follow_up)


def _settings(supervisor: Supervisor, planned: PlannedRun, follow_up: FollowUp | None = None) -> RunSettings:
    data, backend = supervisor.state.data, supervisor.places[0].backend
    assert data is not None  # runs are queued after the data is ready
    return run_settings(supervisor.plan, supervisor.plan_hash, planned, data, backend, follow_up=follow_up)


def _next_number(supervisor: Supervisor) -> int:
    """Numbers never repeat within a campaign."""
    return max((run.number for run in supervisor.state.runs.values()), default=0) + 1
