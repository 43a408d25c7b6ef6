"""What people want of a supervisor: each request is answered once, in the journal, with the reason where it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftui.record.requests import Request, pending_requests

if TYPE_CHECKING:
    from ftui.engine.supervisor import Supervisor


def answer_requests(supervisor: Supervisor) -> None:
    """Grant or refuse every request that waits, oldest first."""
    for path, request in pending_requests(supervisor.files.requests):
        if isinstance(request, str):
            supervisor.say(
                "request", request=path.stem, kind=None, run=None, asked_by=None, answer="refused", reason=request
            )
        else:
            refusal = _grant(supervisor, request)
            supervisor.say(
                "request",
                request=request.id,
                kind=request.kind,
                run=request.run,
                asked_by=request.by,
                answer="refused" if refusal else "done",
                reason=refusal,
            )
        path.unlink(missing_ok=True)


def _grant(supervisor: Supervisor, request: Request) -> str | None:
    """Do what is asked; returns the reason when it cannot be done."""
    if request.kind == "stop-campaign":
        supervisor.stop_everything(f"stopped by the {request.by}")
        return None
    job = supervisor.jobs.get(f"run:{request.run}")
    if job is None:
        return f"{request.run} is not running"
    supervisor.stop_job(job, f"stopped by the {request.by}")
    return None
