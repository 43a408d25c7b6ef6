"""A process that makes no progress is noticed, and one that is only slow, or slept with its host, is not (K19, K33)."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from ftui.engine.postmortem import run_ended
from ftui.engine.silence import SilenceWatch, longest_silence
from ftui.plan.budget import Spread
from ftui.plan.durations import RunCosts
from ftui.record.layout import CampaignFiles, RunFiles
from tests.builders.jobs import says, small_job
from tests.builders.processes import until

RUN = "r002-control-s7"
COSTS = RunCosts(Spread(1, 1, 2), Spread(20, 16, 25), Spread(1, 1, 2), Spread(8, 6, 10))


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    files = CampaignFiles(tmp_path).run(RUN)
    files.root.mkdir(parents=True)
    return files


def looked(
    watch: SilenceWatch, clock: Clock, files: RunFiles, seconds: float, costs: RunCosts | None = COSTS
) -> str | None:
    """Look every five seconds for so long; the first sentence that is said."""
    for _ in range(int(seconds / 5)):
        clock.seconds += 5
        if said := watch.look({RUN: (files, costs)}):
            return said[RUN]
    return None


def test_patience_is_a_multiple_of_what_was_measured_and_never_short(files: RunFiles) -> None:
    expected = longest_silence(COSTS)
    assert expected is not None and (expected.seconds, expected.what) == (
        35,
        "a start and the longest step, validation",
    )
    clock = Clock()
    watch = SilenceWatch(clock)
    assert looked(watch, clock, files, 180) is None
    said = looked(watch, clock, files, 10)
    assert (
        said == "no progress for 180 s (more than 5 × the 35.0 s measured for a start and the longest step, validation)"
    )
    quick = RunCosts(*[Spread(0.1, 0.1, 0.1)] * 4)
    watch = SilenceWatch(clock)
    assert looked(watch, clock, files, 125, quick) is None
    assert str(looked(watch, clock, files, 10, quick)).startswith(
        "no progress for 125 s (more than 120 s, and 5 × the 0.2 s"
    )
    watch = SilenceWatch(clock)
    assert looked(watch, clock, files, 3600, None) is None, "nothing was measured"
    assert looked(watch, clock, files, 10, None) is not None


@pytest.mark.parametrize(
    "name", ["series.jsonl", "log.txt", "predictions/validation-1.part0", "checkpoints/tmp-1/model.safetensors"]
)
def test_whatever_a_run_writes_is_progress(files: RunFiles, name: str) -> None:
    clock = Clock()
    watch = SilenceWatch(clock)
    path = files.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(10):
        assert looked(watch, clock, files, 150) is None
        with path.open("ab") as file:
            file.write(b"x\n")
    assert looked(watch, clock, files, 250) is not None


def test_a_host_that_slept_is_not_a_silent_run(files: RunFiles) -> None:
    clock = Clock()
    watch = SilenceWatch(clock)
    assert looked(watch, clock, files, 150) is None
    clock.seconds += 24 * 3600
    assert watch.look({RUN: (files, COSTS)}) == {}
    assert looked(watch, clock, files, 15) is None
    assert looked(watch, clock, files, 15) is not None, "and a silent run is found after it all the same"


def test_a_stopped_process_is_found_ended_and_counts_as_lost_by_the_machine(tmp_path: Path, files: RunFiles) -> None:
    prints = "import time\nwhile True: print('update', flush=True); time.sleep(0.02)"
    job = small_job(files.root, prints)
    says(job, "update")
    watch = SilenceWatch(time.monotonic, floor=1.0, multiple=0, look_every=0.1)
    found: dict[str, str] = {}

    def silent() -> bool:
        found.update(watch.look({RUN: (files, COSTS)}))
        return RUN in found

    began = time.monotonic()
    until(lambda: silent() or time.monotonic() > began + 2, "the process works")
    assert not found
    os.kill(job.pid, signal.SIGSTOP)
    until(silent, "the stopped process is found")
    job.terminate(found[RUN], "machine", "no progress")
    assert not job.poll(), "a stopped process does not hear"
    job.kill()
    ended = run_ended(job, None)
    assert ended.status == "lost" and ended.fields["kind"] == "machine" and ended.fields["fault"] == "no progress"
    assert ended.cause is not None and ended.cause.sentence.startswith("no progress for 1 s (more than 1 s")
    assert "was killed" in ended.cause.sentence and ended.fields["killed_at"]
