"""What people want of a supervisor: each request is answered once, in the journal, with the reason where it is refused.

The answer comes before the request's file goes, and a file whose answer is in the journal asks for nothing: a supervisor that is
killed in between grants nothing twice. Whether a wish can be granted follows from the record (`refusal`), so that clients can say so
while nobody supervises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ftui.engine.queue import queue_follow_up
from ftui.plan.followup import ChangeRefused, FollowUp, follow, run_plan
from ftui.plan.settings import own_batches
from ftui.record.requests import OF_THE_CAMPAIGN, Request, pending_requests
from ftui.record.state import CONTINUABLE, Campaign, Run

if TYPE_CHECKING:
    from ftui.engine.supervisor import Supervisor


def answer_requests(supervisor: Supervisor) -> None:
    """Grant or refuse every request that waits, oldest first."""
    for path, request in pending_requests(supervisor.files.requests):
        if path.stem not in supervisor.state.answers:
            if isinstance(request, str):
                answer = {"kind": None, "run": None, "asked_by": None, "answer": "refused", "reason": request}
            else:
                answer = _answered(supervisor, request)
            supervisor.say("request", request=path.stem, **answer)
        path.unlink(missing_ok=True)


def _answered(supervisor: Supervisor, request: Request) -> dict[str, Any]:
    """Do what is asked, or not; returns what the journal says about it."""
    queued = next((run.id for run in supervisor.state.runs.values() if run.request == request.id), None)
    if queued is None:
        if (reason := _not_now(supervisor, request) or refusal(supervisor.state, request)) is not None:
            return granted(request) | {"answer": "refused", "reason": reason}
        queued = _grant(supervisor, request)
    return granted(request) | ({"new_run": queued} if queued else {})


def granted(request: Request) -> dict[str, Any]:
    """What the journal says of a wish that is granted."""
    about = {"kind": request.kind, "run": request.run, "asked_by": request.by}
    return about | {"answer": "done", "reason": None} | request.fields


def _not_now(supervisor: Supervisor, request: Request) -> str | None:
    """What the record does not say: a process that is gone; and a stop was meant for the supervisor of its time, as whoever
    started another wants the campaign to go on."""
    if request.kind in ("stop-run", "kill-run") and f"run:{request.run}" not in supervisor.jobs:
        return f"{request.run} is not running"
    if request.kind in ("stop-campaign", "kill-campaign") and request.at < supervisor.began_at:
        return "the supervisor that was asked had ended before it could answer"
    return None


def refusal(state: Campaign, request: Request) -> str | None:
    """Why a wish cannot be granted as the record stands, None when it can."""
    if request.kind in OF_THE_CAMPAIGN:
        if request.kind == "pause-queue" and state.paused:
            return "the queue is paused already"
        if request.kind == "resume-queue" and not state.paused:
            return "the queue is not paused"
        return None
    run = state.runs.get(request.run or "")
    if run is None:
        if request.kind in ("stop-run", "kill-run"):
            return f"{request.run} is not running"
        return f"there is no run {request.run!r}; {_known(state)}"
    match request.kind:
        case "stop-run" | "kill-run":
            return None if run.status == "running" else f"{run.id} is not running"
        case "pause-run":
            if run.held is not None:
                return f"{run.id} is {run.held} already"
            if run.status not in ("queued", "running", *CONTINUABLE):
                return f"{run.id} is {run.status}; only a run that runs or waits can be paused"
        case "resume-run":
            if run.held is not None and run.status == "running":
                return f"{run.id} still writes its checkpoint; it can be resumed when it has stopped"
            if run.held is None and run.status not in CONTINUABLE:
                return f"{run.id} is {run.status}, not paused"
            if run.held is not None and not run.kept:
                return f"{run.id} is {run.status}"
        case "priority":
            if run.status != "queued" and not run.kept:
                return f"{run.id} is {run.status}; only a run that waits has a place in the queue"
        case "relaunch":
            try:
                _follow_up(state, run, request)
            except ChangeRefused as refused:
                return str(refused)
    return None


def _known(state: Campaign) -> str:
    return f"there are {', '.join(state.runs)}" if state.runs else "nothing is queued yet"


def _follow_up(state: Campaign, run: Run, request: Request) -> FollowUp:
    """What a relaunch makes of `run`. Raises `ChangeRefused`."""
    if state.plan is None or state.data is None:
        raise ChangeRefused("the campaign has no data yet")
    follow_up = follow(state.plan, run.id, run.variant, run.follow_up, request.change, request.because or "")
    try:
        own_batches(run_plan(state.plan, run.variant, follow_up), state.data)
    except ValueError as problem:
        raise ChangeRefused(str(problem)) from None
    return follow_up


def _grant(supervisor: Supervisor, request: Request) -> str | None:
    """What a wish asks besides its answer in the journal; returns the run that was queued for it."""
    match request.kind:
        case "stop-campaign":
            supervisor.stop_everything(f"stopped by the {request.by}")
        case "kill-campaign":
            supervisor.ending = supervisor.ending or f"killed by the {request.by}"
            supervisor.copies.interrupted()
            for key in list(supervisor.jobs):
                supervisor.kill_job(key, f"killed by the {request.by}")
        case "stop-run":
            supervisor.stop_job(supervisor.jobs[f"run:{request.run}"], f"stopped by the {request.by}")
        case "kill-run":
            supervisor.kill_job(f"run:{request.run}", f"killed by the {request.by}")
        case "relaunch":
            run = supervisor.state.runs[request.run or ""]
            return queue_follow_up(supervisor, run, _follow_up(supervisor.state, run, request), request.id)
    return None
