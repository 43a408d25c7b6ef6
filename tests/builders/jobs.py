"""Jobs of a few lines of Python, started as the engine starts training: real processes that end in a moment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ftui.engine.jobs import Job, start_job
from ftui.engine.launch import Command
from ftui.engine.placement import Place
from tests.builders.processes import until

TWO = (Place("cpu", 0), Place("cpu", 1))


def small_job(folder: Path, code: str, *arguments: str, processes: int = 1) -> Job:
    """A job that runs `code`, its log in `folder`."""
    words = [sys.executable, "-u", "-c", code, *arguments]
    command = Command(words, dict(os.environ), folder / "log.txt")
    return start_job("run:r001-small-s1", command, TWO[:processes], outlives_supervisor=True)


def ended_job(folder: Path, code: str, *arguments: str, processes: int = 1) -> Job:
    """The same, when it has ended."""
    job = small_job(folder, code, *arguments, processes=processes)
    until(job.poll, "the job ends")
    return job


def says(job: Job, word: str) -> None:
    """Wait until the job has printed `word`."""
    until(lambda: word in job.log.read_text(encoding="utf-8"), f"the job prints {word!r}")
