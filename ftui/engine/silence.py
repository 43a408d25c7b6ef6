"""A training process that neither ends nor makes progress: noticed by what it writes, measured in the supervisor's own time.

A process that is stopped, or waits for a device that will never answer, looks alive to the system. What it writes tells: a row of the
series, a line of the log, a prediction, a piece of a checkpoint. How long it may write nothing follows from what the pilot measured,
many times over: evaluations are silent by nature (K33), and a run that is ended in vain costs more than a wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ftui.plan.durations import RunCosts
from ftui.record.layout import RunFiles

LOOK_SECONDS = 5.0
"""Between two looks at a run's files."""
FLOOR_SECONDS = 120.0
MULTIPLE = 5
UNMEASURED_SECONDS = 3600.0
"""Patience with a run of which the pilot has measured nothing."""


@dataclass(frozen=True)
class Expected:
    """The longest time in which a run writes nothing, and what that is."""

    seconds: float
    what: str


def longest_silence(costs: RunCosts | None) -> Expected | None:
    """What a run of these measured costs may do at most without a word, None where nothing was measured.

    The start counts in wherever the run stands: a process that was taken up late may still be loading, and one number is easier to
    foresee than several.
    """
    if costs is None:
        return None
    named = [
        ("update", costs.update.high),
        ("validation", costs.validation.high),
        ("checkpoint", costs.checkpoint.high),
    ]
    what, seconds = max(named, key=lambda pair: pair[1])
    return Expected(costs.start.high + seconds, f"a start and the longest step, {what}")


@dataclass
class _Watched:
    seen: frozenset[tuple[str, int, int]]
    silent: float = 0.0
    """Seconds without a change, of the time in which the supervisor looked."""


class SilenceWatch:
    """Watches the running runs of one supervisor. Never sleeps, never signals: it says who has been silent for too long."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        floor: float = FLOOR_SECONDS,
        multiple: float = MULTIPLE,
        look_every: float = LOOK_SECONDS,
    ) -> None:
        self._clock, self._floor, self._multiple, self._every = clock, floor, multiple, look_every
        self._looked_at = clock()
        self._watched: dict[str, _Watched] = {}

    def look(self, runs: Mapping[str, tuple[RunFiles, RunCosts | None]]) -> dict[str, str]:
        """Runs that have written nothing for too long, each with the sentence that says so; {} until the next look is due.

        Between two looks counts at most twice the time planned between them: while the host slept, or the supervisor was stopped,
        nobody could have written anything.
        """
        elapsed = self._clock() - self._looked_at
        if elapsed < self._every:
            return {}
        self._looked_at += elapsed
        late: dict[str, str] = {}
        self._watched = {run: watched for run, watched in self._watched.items() if run in runs}
        for run, (files, costs) in runs.items():
            now_there = written(files)
            known = self._watched.get(run)
            if known is None:
                self._watched[run] = _Watched(now_there)
                continue
            if now_there != known.seen:
                known.seen, known.silent = now_there, 0.0
                continue
            known.silent += min(elapsed, 2 * self._every)
            limit, why = self._patience(costs)
            if known.silent > limit:
                late[run] = f"no progress for {known.silent:.0f} s ({why})"
        return late

    def _patience(self, costs: RunCosts | None) -> tuple[float, str]:
        expected = longest_silence(costs)
        if expected is None:
            return UNMEASURED_SECONDS, f"more than {UNMEASURED_SECONDS:.0f} s; nothing was measured"
        measured = f"the {expected.seconds:.1f} s measured for {expected.what}"
        if self._multiple * expected.seconds < self._floor:
            return self._floor, f"more than {self._floor:.0f} s, and {self._multiple:g} × {measured}"
        return self._multiple * expected.seconds, f"more than {self._multiple:g} × {measured}"


def written(files: RunFiles) -> frozenset[tuple[str, int, int]]:
    """Names, sizes and times of what a run writes while it works."""
    found = set()
    for path in (files.series, files.log, *_within(files.predictions), *_within(files.checkpoints)):
        try:
            status = path.stat()
        except OSError:
            continue
        found.add((str(path), status.st_size, status.st_mtime_ns))
    return frozenset(found)


def _within(folder: Path) -> list[Path]:
    """Files in a folder and its folders; few, as a run keeps few checkpoints."""
    return [Path(root, name) for root, _, names in os.walk(folder) for name in names]
