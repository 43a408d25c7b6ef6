"""A run that is killed anywhere and taken up by new processes is the run that was never interrupted, to the bit (C1, K08, K09).

Dropout is on, the data is seen more than twice, and checkpoints lie inside epochs. Kill points are drawn; a failure names its own.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ftui.record.files import sha256_file
from ftui.record.layout import RunFiles
from ftui.record.lines import Row
from ftui.record.rows import read_outcome
from ftui.record.series import CLOCK_FIELDS, read_series
from tests.builders.processes import until
from tests.builders.tiny import frozen_run, tiny_campaign
from tests.builders.warm import Warm

pytestmark = pytest.mark.slow  # minutes of real processes

UPDATES = 60
LONG = {"training__amount": UPDATES, "training__checkpoint_every": 7, "training__validate_every": 20}
"""96 examples in updates of 8 (16 with two processes): five epochs (ten)."""


def machine(processes: int) -> dict[str, object]:
    return {"backend": "cpu", "slots": 2, "processes": processes, "strategy": "single" if processes == 1 else "ddp"}


@pytest.fixture(scope="module")
def references(model: Path, warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> dict[int, RunFiles]:
    """Runs that were never interrupted, by their number of processes."""
    runs = {}
    for processes in (1, 2):
        folder = tmp_path_factory.mktemp("reference")
        files = tiny_campaign(folder / "c", model, machine=machine(processes), **LONG)
        run, _ = frozen_run(files)
        assert warm.train(run.root, processes) == [0] * processes, run.log.read_text()
        runs[processes] = run
    return runs


def fresh_copy(run: RunFiles, folder: Path) -> RunFiles:
    """The same run, not started yet, in a copy of its campaign."""
    ignored = shutil.ignore_patterns("checkpoints", "predictions", "series.jsonl", "outcome.json")
    shutil.copytree(run.root.parent.parent, folder, symlinks=True, ignore=ignored)
    return RunFiles(folder / "runs" / run.root.name)


def updates_in(run: RunFiles) -> int:
    return max((row["update"] for row in read_series(run.series) if row["k"] == "update"), default=0)


def state(run: RunFiles) -> dict[str, object]:
    """Everything of a finished run that must not depend on how often it was interrupted."""

    def timeless(row: Row) -> Row:
        return {k: v for k, v in row.items() if k not in (*CLOCK_FIELDS, "bytes")}

    newest = max(run.checkpoints.glob("step-*"))
    kept = json.loads((newest / "state.json").read_text())
    kept["rules"].pop("hours_before")
    return {
        "series": [timeless(row) for row in read_series(run.series)],
        "tensors": {p.name: sha256_file(p) for p in newest.glob("*.safetensors")},
        "state": kept,
        "checkpoints": sorted(p.name for p in run.checkpoints.iterdir()),
        "predictions": {p.name: p.read_bytes() for p in run.predictions.iterdir()},
    }


def kill_points(count: int, seed: int) -> list[tuple[str, int]]:
    """Where to kill: after an update, or while the checkpoint of one is being written."""
    draw = random.Random(seed)
    points = [("after", draw.randrange(1, UPDATES)) for _ in range(count)]
    return points + [("writing", draw.randrange(2, UPDATES // 7) * 7) for _ in range(max(1, count // 3))]


def reached(run: RunFiles, point: tuple[str, int]) -> Callable[[], bool]:
    where, update = point
    if where == "after":
        return lambda: updates_in(run) >= update
    return lambda: (
        any(p.name.startswith("tmp-") and int(p.name[4:]) >= update for p in run.checkpoints.glob("tmp-*"))
        or updates_in(run) > update + 3
    )


def interrupted(run: RunFiles, warm: Warm, processes: int, points: list[tuple[str, int]]) -> None:
    """Kill the run at each point in turn, then let it end."""
    for point in sorted(points, key=lambda p: p[1]):
        group = warm.start_training(run.root, processes)
        until(reached(run, point), f"{point} is reached")
        group.kill()
        warm.wait(group)
    assert warm.train(run.root, processes) == [0] * processes, run.log.read_text()
    outcome = read_outcome(run.outcome)
    assert outcome is not None and (outcome.status, outcome.updates) == ("completed", UPDATES)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_killed_at_drawn_points_is_the_uninterrupted_run(
    references: dict[int, RunFiles], warm: Warm, tmp_path: Path, processes: int
) -> None:
    for number, point in enumerate(kill_points(2, seed=processes)):
        run = fresh_copy(references[processes], tmp_path / f"c{number}")
        interrupted(run, warm, processes, [point])
        assert state(run) == state(references[processes]), f"killed {point}"


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_killed_again_and_again_is_the_uninterrupted_run(
    references: dict[int, RunFiles], warm: Warm, tmp_path: Path, processes: int
) -> None:
    for seed in range(12):
        run = fresh_copy(references[processes], tmp_path / f"c{seed}")
        points = kill_points(1 + seed % 3, seed=100 + seed)
        interrupted(run, warm, processes, points)
        assert state(run) == state(references[processes]), f"killed {points}"


def test_a_resume_in_the_second_epoch_sees_the_examples_that_were_left(
    references: dict[int, RunFiles], warm: Warm, tmp_path: Path
) -> None:
    """Checkpoints after 14 updates of 8: epoch 2 begins at update 13."""
    run = fresh_copy(references[1], tmp_path / "c")
    interrupted(run, warm, 1, [("after", 15)])
    assert state(run) == state(references[1])
