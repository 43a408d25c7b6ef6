"""What app and command line may ask of a campaign's supervisor."""

from __future__ import annotations

import json
import subprocess

from ftui.engine.launch import PYTHON
from ftui.engine.lock import is_locked, supervisor_identity
from ftui.record.layout import CampaignFiles
from ftui.record.notebook import cleaned
from ftui.record.requests import put_request

START_TIMEOUT_SECONDS = 30
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
    """Ask for a graceful stop (checkpoint, exit 75) of one run, or of the whole campaign when `run` is None."""
    put_request(files.requests, "stop-campaign" if run is None else "stop-run", run=run, by=by)
