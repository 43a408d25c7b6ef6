"""What app and command line may ask of a campaign's supervisor."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from typing import Any, Literal

from ftui.engine.launch import PYTHON
from ftui.engine.lock import is_locked, supervisor_identity
from ftui.engine.wishes import granted, refusal
from ftui.record.journal import journal_reader, now, read_journal, stamp
from ftui.record.layout import CampaignFiles
from ftui.record.notebook import cleaned
from ftui.record.requests import Kind, Request, make_request, pending_requests, put_request
from ftui.record.state import Campaign, fold

START_TIMEOUT_SECONDS = 30
ANSWER_SECONDS = 10
"""How long a client waits for the answer to a wish; a supervisor looks twice a second."""
REASON_MISSING = 3
"""Exit code of `python -m ftui.engine`: a person has to say why the plan was changed."""


class EngineError(Exception):
    """The supervisor could not be started; the message says why."""


class ReasonNeeded(EngineError):
    """The plan was changed after runs had begun: start again with `because`. `changed` are its fields, dotted."""

    def __init__(self, sentence: str, changed: list[str]) -> None:
        super().__init__(sentence)
        self.changed = changed


def supervisor_alive(files: CampaignFiles) -> bool:
    """Whether a supervisor works on the campaign now. Cheap: one lock attempt."""
    return is_locked(files.supervisor_lock)


def supervisor_pid(files: CampaignFiles) -> int | None:
    """The living supervisor's process id, None when there is none."""
    return supervisor_identity(files).get("pid") if supervisor_alive(files) else None


def start(files: CampaignFiles, *, only_gates: bool = False, because: str | None = None) -> int:
    """Launch or continue the campaign in a process that survives this one, its terminal and its session; returns its pid.

    With `only_gates`, it ends when the gates have been tried. `because` says why the plan was changed since the launch; the
    record keeps it. Blocks until the supervisor has taken over (well under a second). Raises `EngineError` with its reason when
    it did not, `ReasonNeeded` when runs have begun and `because` is missing.
    """
    options = ["--detach", *["--only-gates"] * only_gates]
    if because := " ".join(cleaned(because or "").split()):
        options.append(f"--because={because}")
    command = [*PYTHON, "ftui.engine", *options, str(files.root)]
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=START_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise EngineError(
            f"the supervisor did not answer within {START_TIMEOUT_SECONDS} s; see {files.supervisor_log}"
        ) from None
    if answer.returncode == REASON_MISSING:
        raise ReasonNeeded(answer.stderr.strip(), json.loads(answer.stdout))
    if answer.returncode != 0:
        raise EngineError(answer.stderr.strip() or f"the supervisor ended at once; see {files.supervisor_log}")
    return int(answer.stdout)


def request_stop(files: CampaignFiles, run: str | None, by: str) -> None:
    """Ask for a graceful stop (checkpoint, exit 75) of one run, or of the whole campaign when `run` is None; waits for no answer."""
    put_request(files.requests, make_request("stop-campaign" if run is None else "stop-run", run=run, by=by))


@dataclass(frozen=True)
class Asked:
    """What became of a wish."""

    request: Request
    answer: Literal["done", "refused", "waiting"]
    """`waiting`: it lies there until a supervisor looks, this one or the next."""
    reason: str | None = None
    new_run: str | None = None


def ask(
    files: CampaignFiles,
    kind: Kind,
    *,
    run: str | None = None,
    by: str,
    patience: float = ANSWER_SECONDS,
    **fields: Any,
) -> Asked:
    """Leave a wish and wait for its answer, at most so many seconds.

    While nobody supervises the campaign the wish is kept for the next supervisor, unless the record says already that it will be
    refused. Raises `EngineError` for one that means nothing then, ValueError for one that says too little.
    """
    request = make_request(kind, run=run, by=by, **fields)
    if not supervisor_alive(files):
        if kind in ("stop-campaign", "kill-campaign", "stop-run", "kill-run"):
            raise EngineError(f"{files.name} is not running; there is nothing to stop")
        state = expected_state(files)
        if state.launched_at is None:
            raise EngineError(f"{files.name} was never launched; there is no queue yet")
        if (reason := refusal(state, request)) is not None:
            return Asked(request, "refused", reason)
        put_request(files.requests, request)
        return Asked(request, "waiting")
    reader = journal_reader(files.journal)
    reader.read()
    put_request(files.requests, request)
    give_up = time.monotonic() + patience
    while True:
        alive = supervisor_alive(files)
        for row in reader.read():
            if row["event"] == "request" and row["request"] == request.id:
                return Asked(request, row["answer"], row["reason"], row.get("new_run"))
        if not alive or time.monotonic() > give_up:
            return Asked(request, "waiting")
        time.sleep(0.05)


def expected_state(files: CampaignFiles) -> Campaign:
    """The record's state as if every wish that waits were answered already."""
    state = fold(read_journal(files.journal))
    for _, request in pending_requests(files.requests):
        if isinstance(request, Request) and request.id not in state.answers and refusal(state, request) is None:
            row = {"at": stamp(now()), "event": "request", "by": request.by, "request": request.id}
            fold([row | granted(request)], state)
    return state
