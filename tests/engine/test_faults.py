"""A campaign on a machine that fails: a process that hangs, one that is killed, a disk that is full. And what it keeps to itself."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ftui.engine.client import request_stop, supervisor_alive, supervisor_pid
from ftui.engine.follow import event_line
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.rows import read_outcome
from ftui.record.series import read_series
from ftui.record.state import Attempt, Campaign, fold
from tests.builders.processes import ENVIRONMENT, module, until
from tests.builders.tiny import frozen_run, tiny_campaign

CONTROL = "r002-control-s7"
SECRET = "hf_secretsecretsecret"

IMPATIENT = """
import os, signal, sys, time
from pathlib import Path
from ftui.engine import estimate, supervisor
from ftui.engine.silence import SilenceWatch
from ftui.record.layout import CampaignFiles

os.umask(0o077)
estimate.GRACE_SECONDS = 1.0
works = supervisor.Supervisor(CampaignFiles(Path(sys.argv[1])))

def watch(number, frame):
    impatient = number == signal.SIGUSR1
    works.silence = SilenceWatch(time.monotonic, floor=1.0, multiple=0, look_every=0.2) if impatient else SilenceWatch(time.monotonic)

signal.signal(signal.SIGUSR1, watch)
signal.signal(signal.SIGUSR2, watch)
works.take_over()
works.run()
"""
"""A supervisor that loses its patience with silent runs at SIGUSR1, and finds it again at SIGUSR2."""


def state_of(files: CampaignFiles) -> Campaign:
    return fold(read_journal(files.journal))


def attempts(files: CampaignFiles) -> list[Attempt]:
    run = state_of(files).runs.get(CONTROL)
    return run.attempts if run else []


def updates(files: CampaignFiles) -> int:
    return max((row["update"] for row in read_series(files.run(CONTROL).series) if row["k"] == "update"), default=0)


@pytest.fixture
def supervised(model: Path, tmp_path: Path) -> Iterator[CampaignFiles]:
    """A campaign whose control is under way, with a secret in its environment."""
    long = {"training__amount": 100_000, "training__checkpoint_every": 20, "training__validate_every": 50_000}
    files = tiny_campaign(tmp_path / "c", model, machine__slots=1, **long)
    environment = ENVIRONMENT | {"HF_TOKEN": SECRET, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", IMPATIENT, str(files.root)], env=environment)
    try:
        until(lambda: process.poll() is None and updates(files) > 25, "the control is under way", 280)
        yield files
    finally:
        process.kill()
        process.wait()
        for left in psutil.process_iter(["cmdline"]):
            if str(files.root) in " ".join(left.info["cmdline"] or []):
                left.kill()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hanging_and_a_killed_process_are_told_apart_resumed_and_nothing_private_is_left_open(
    supervised: CampaignFiles,
) -> None:
    supervisor = supervisor_pid(supervised) or 0
    os.kill(attempts(supervised)[-1].pid or 0, signal.SIGSTOP)
    os.kill(supervisor, signal.SIGUSR1)
    until(lambda: attempts(supervised)[0].ended_at, "the silent run is ended")
    os.kill(supervisor, signal.SIGUSR2)
    silent = attempts(supervised)[0]
    assert (silent.status, silent.kind, silent.fault) == ("lost", "machine", "no progress")
    assert str(silent.cause).startswith("no progress for ") and "after it was asked to, and was killed" in str(
        silent.cause
    )
    row = next(row for row in read_journal(supervised.journal) if row["event"] == "run-ended" and row["run"] == CONTROL)
    assert row["terminated_at"] < row["killed_at"] and row["left_behind"] == [] and row["lost"] == 1
    assert "goes on from its last checkpoint (lost 1 times of 10)" in str(event_line(row, state_of(supervised)))

    def works() -> bool:
        now = attempts(supervised)[-1]
        return now.ended_at is None and updates(supervised) > (now.resumed_from or 0) + 5

    until(lambda: len(attempts(supervised)) > 1 and works(), "it trains again")
    assert attempts(supervised)[-1].resumed_from
    os.kill(attempts(supervised)[-1].pid or 0, signal.SIGKILL)
    known = len(attempts(supervised))
    until(lambda: len(attempts(supervised)) > known and works(), "it trains once more")
    killed = attempts(supervised)[known - 1]
    assert (killed.status, killed.kind, killed.fault) == ("lost", "machine", "killed")
    request_stop(supervised, None, "cli")
    until(lambda: not supervisor_alive(supervised), "the supervisor ends")
    last = attempts(supervised)[-1]
    assert last.kind == "asked" and str(last.cause).startswith("stopped by the cli")
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if str(supervised.root) in " ".join(p.info["cmdline"] or [])
    ]

    made = [supervised.journal, supervised.machine, supervised.supervisor, supervised.supervisor_lock]
    made += [path for folder in (supervised.runs, supervised.root / "gates") for path in (folder, *folder.rglob("*"))]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in made}
    assert [path for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)] == []
    assert stat.S_IMODE(supervised.requests.stat().st_mode) == 0o700
    files = [path for path in supervised.root.rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == [], "no environment is written anywhere"


def test_a_secret_in_an_error_enters_neither_log_nor_outcome(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token in an address, as libraries like to quote it: here the campaign's own path."""
    files = tiny_campaign(tmp_path / SECRET, model)
    run, _ = frozen_run(files)
    (files.root / "model").unlink()
    shutil.copytree(model, files.root / "model")
    (files.root / "model" / "config.json").write_text("{", encoding="utf-8")
    monkeypatch.setitem(ENVIRONMENT, "HF_TOKEN", SECRET)
    answer = module("ftui.train", "train", run.root)
    outcome = read_outcome(run.outcome)
    assert answer.returncode == 70 and outcome is not None and outcome.status == "failed"
    assert "/[secret]/" in str(outcome.cause)
    assert SECRET not in answer.stdout.replace(str(run.root), "") + answer.stderr + run.outcome.read_text()
