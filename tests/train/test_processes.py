"""Several processes are one run: one record, the same answers, an end together (B3, K10, K19)."""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

import pytest

from ftui.plan.settings import dump_settings
from ftui.record.files import replace_text, sha256_file
from ftui.record.layout import RunFiles
from ftui.record.rows import read_outcome, read_predictions
from ftui.record.series import read_series
from tests.builders.processes import until
from tests.builders.tiny import frozen_run, prepared, tiny_campaign
from tests.builders.warm import Warm

pytestmark = pytest.mark.slow  # minutes of real processes

LONG = {"training__amount": 400, "training__checkpoint_every": 10, "training__validate_every": 100}


def two(strategy: str = "ddp", processes: int = 2) -> dict[str, object]:
    return {"backend": "cpu", "slots": 2, "processes": processes, "strategy": strategy}


@pytest.fixture
def long_run(model: Path, tmp_path: Path) -> RunFiles:
    return frozen_run(tiny_campaign(tmp_path / "c", model, machine=two(), **LONG))[0]


def updates_in(run: RunFiles) -> int:
    return max((row["update"] for row in read_series(run.series) if row["k"] == "update"), default=0)


def test_two_processes_answer_as_one_and_every_row_stands_once_in_the_splits_order(
    model: Path, warm: Warm, tmp_path: Path
) -> None:
    """Validation and test of the model before any update: the same bytes, with batches that do not divide evenly."""
    answers = []
    for processes in (1, 2):
        machine = two() if processes == 2 else two("single", 1)
        files = tiny_campaign(tmp_path / str(processes), model, machine=machine, evaluation__batch_size=7)
        run, _ = frozen_run(files, "base")
        assert warm.train(run.root, processes) == [0] * processes, run.log.read_text()
        assert warm.train(run.root, processes, verb="test") == [0] * processes, run.log.read_text()
        answers.append((run.validation_predictions(0).read_bytes(), run.test_predictions.read_bytes()))
        assert run.test_metrics.is_file()
        assert not list(run.predictions.glob("*part*"))
    assert answers[0] == answers[1]
    rows = read_predictions(run.validation_predictions(0))
    validation = (files.data_version(prepared(files)[1].hash) / "validation.jsonl").read_text().splitlines()[1:]
    assert [row["id"] for row in rows] == [json.loads(line)["id"] for line in validation]


def test_one_process_writes_and_each_has_its_own_random_stream(model: Path, warm: Warm, tmp_path: Path) -> None:
    run, _ = frozen_run(tiny_campaign(tmp_path / "c", model, machine=two()))
    assert warm.train(run.root, 2) == [0, 0], run.log.read_text()
    series = read_series(run.series)
    assert [row["update"] for row in series if row["k"] == "update"] == list(range(1, 13))
    assert [row["examples"] for row in series if row["k"] == "update"] == [16] * 12
    newest = max(run.checkpoints.glob("step-*"))
    streams = [sha256_file(newest / f"rng-{rank}.safetensors") for rank in range(2)]
    assert streams[0] != streams[1]


def test_sigterm_to_any_of_them_ends_all_after_the_same_update_with_a_checkpoint(
    warm: Warm, long_run: RunFiles
) -> None:
    group = warm.start_training(long_run.root, 2)
    until(lambda: updates_in(long_run) >= 5, "the run is under way")
    os.kill(group.pids[1], signal.SIGTERM)
    assert warm.wait(group) == [0, 0], "an outcome was left, so the launcher above must not see a failure"
    outcome = read_outcome(long_run.outcome)
    assert outcome is not None and outcome.status == "stopped"
    assert outcome.updates == updates_in(long_run) < 400
    assert (long_run.checkpoints / f"step-{outcome.updates:08d}" / "manifest.json").is_file()


@pytest.mark.parametrize("victim", [0, 1])
def test_when_one_is_killed_the_other_ends_and_the_run_is_left_to_be_resumed(
    warm: Warm, long_run: RunFiles, victim: int
) -> None:
    group = warm.start_training(long_run.root, 2)
    until(lambda: updates_in(long_run) >= 12, "a checkpoint is there")
    os.kill(group.pids[victim], signal.SIGKILL)
    codes = warm.wait(group)
    assert codes[victim] == -signal.SIGKILL and codes[1 - victim] == 70
    assert read_outcome(long_run.outcome) is None, "a lost run is resumed, a failed one is not"
    assert f"ftui: process {2 - victim} of 2 lost the connection to another one" in long_run.log.read_text()


def test_a_fault_of_one_process_is_the_outcome_not_the_connection_the_others_lost(
    warm: Warm, long_run: RunFiles
) -> None:
    """The second process may write no file beyond its first kilobyte: its random state does not fit."""
    group = warm.start_training(long_run.root, 2)
    resource.prlimit(group.pids[1], resource.RLIMIT_FSIZE, (1024, 1024))
    assert warm.wait(group) == [70, 70]
    outcome = read_outcome(long_run.outcome)
    assert outcome is not None and outcome.status == "failed"
    assert str(outcome.cause).startswith("process 2 of 2: the checkpoint after update 10 could not be"), (
        long_run.log.read_text()
    )


@pytest.mark.parametrize(("planned", "started"), [(1, 2), (2, 1)])
def test_another_number_of_processes_than_planned_is_refused(
    model: Path, warm: Warm, tmp_path: Path, planned: int, started: int
) -> None:
    machine = two() if planned == 2 else two("single", 1)
    run, _ = frozen_run(tiny_campaign(tmp_path / "c", model, machine=machine))
    assert set(warm.train(run.root, started)) == {70}
    outcome = read_outcome(run.outcome)
    assert outcome is not None and f"{planned} processes are planned, the launcher announced {started}" in str(
        outcome.cause
    )


def test_a_run_is_not_resumed_by_another_number_of_processes(model: Path, warm: Warm, tmp_path: Path) -> None:
    """Each has its own random stream and share of every update; a run that is told so is another run (K10)."""
    files = tiny_campaign(tmp_path / "c", model, machine=two())
    run, settings = frozen_run(files)
    assert warm.train(run.root, 2) == [0, 0], run.log.read_text()
    alone = settings.machine.model_copy(update={"processes": 1, "strategy": "single"})
    changed = settings.model_copy(update={"machine": alone, "updates": 20})
    replace_text(run.settings, dump_settings(changed))
    assert warm.train(run.root) == [70]
    outcome = read_outcome(run.outcome)
    assert outcome is not None
    assert "step-00000012 was written by 2 processes and cannot be resumed by 1" in str(outcome.cause)
