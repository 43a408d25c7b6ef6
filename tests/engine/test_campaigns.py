"""Whole campaigns on a tiny model, with real supervisors and real training processes, killed in all the ways a rental kills them."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from ftui.engine.client import EngineError, request_stop, start, supervisor_alive, supervisor_pid
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.lines import Row
from ftui.record.series import CLOCK_FIELDS, read_series
from ftui.record.state import Campaign, fold
from tests.builders.processes import ENVIRONMENT, module, until
from tests.builders.tiny import tiny_campaign

LONG = {
    "training__amount": 400,
    "training__checkpoint_every": 20,
    "training__validate_every": 200,
    "training__warmup": 2,
}


def state_of(files: CampaignFiles) -> Campaign:
    return fold(read_journal(files.journal))


def ended(files: CampaignFiles) -> bool:
    return not supervisor_alive(files)


def finish(files: CampaignFiles) -> Campaign:
    until(lambda: ended(files), "the supervisor ends", 240)
    return state_of(files)


def updates(files: CampaignFiles, run: str) -> int:
    return max((row["update"] for row in read_series(files.run(run).series) if row["k"] == "update"), default=0)


def running_run(files: CampaignFiles, at_least: int = 30) -> str | None:
    """A training run that is well on its way."""
    runs = [r.id for r in state_of(files).runs_of("running") if r.kind == "train"]
    return next((run for run in runs if updates(files, run) >= at_least), None)


def curve(files: CampaignFiles, run: str) -> list[Row]:
    rows = read_series(files.run(run).series)
    return [
        {k: v for k, v in row.items() if k not in (*CLOCK_FIELDS, "bytes")} for row in rows if row["k"] != "checkpoint"
    ]


@pytest.fixture
def cleanup() -> Iterator[list[CampaignFiles]]:
    """Campaigns whose processes must not outlive the test."""
    started: list[CampaignFiles] = []
    yield started
    for files in started:
        for process in psutil.process_iter(["cmdline"]):
            if str(files.root) in " ".join(process.info["cmdline"] or []):
                process.kill()


@pytest.fixture(scope="module")
def closed(model: Path, tmp_path_factory: pytest.TempPathFactory) -> CampaignFiles:
    """A campaign that ran undisturbed, with long runs."""
    files = tiny_campaign(tmp_path_factory.mktemp("closed") / "c", model, **LONG)
    start(files)
    finish(files)
    return files


def test_a_campaign_goes_from_plan_to_verified_artefact_and_report(closed: CampaignFiles) -> None:
    state = state_of(closed)
    assert state.closed and not state.faults, [row for row in state.events if row["event"] == "fault"]
    assert [run.status for run in state.runs.values()] == ["completed"] * 3
    assert all(run.test_metrics for run in state.runs.values())
    assert len(state.test_openings) == 1
    events = [row["event"] for row in state.events]
    last_run = max(i for i, event in enumerate(events) if event == "run-ended")
    assert events.index("test-opened") > last_run
    assert events.index("gates-ended") < events.index("run-started")
    assert [export.verified for export in state.exports] == [True]
    report = json.loads(closed.report_json.read_text())
    assert report["verdict"]["word"] == state.verdict
    assert state.verdict is not None and state.verdict in closed.report_markdown.read_text().lower()


def test_everything_a_run_needs_is_frozen_before_it_starts(closed: CampaignFiles) -> None:
    for run in state_of(closed).runs.values():
        assert closed.run(run.id).settings.stat().st_mtime <= (run.attempts[0].started_at.timestamp() + 1)


def test_a_closed_campaign_has_nothing_left_to_do(closed: CampaignFiles) -> None:
    before = len(state_of(closed).runs), closed.report_json.read_text()
    start(closed)
    state = finish(closed)
    assert state.closed
    assert (len(state.runs), closed.report_json.read_text()) == before


def test_a_killed_training_process_is_resumed_and_its_curve_is_the_undisturbed_one(
    closed: CampaignFiles, model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    files = tiny_campaign(tmp_path / "c", model, **LONG)
    cleanup.append(files)
    start(files)
    run = until(lambda: running_run(files), "a run is under way")
    os.kill(state_of(files).runs[run].attempts[-1].pid or 0, signal.SIGKILL)
    state = finish(files)
    attempts = state.runs[run].attempts
    assert [a.status for a in attempts] == ["lost", "completed"]
    assert attempts[0].cause == "killed by SIGKILL, by hand or because memory ran out"
    assert attempts[1].resumed_from and attempts[1].resumed_from >= 20
    assert curve(files, run) == curve(closed, run)
    assert state.closed
    assert "killed by SIGKILL" in files.report_markdown.read_text()


def test_a_killed_supervisor_loses_nothing_and_the_next_one_adopts_what_still_trains(
    closed: CampaignFiles, model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    files = tiny_campaign(tmp_path / "c", model, **LONG)
    cleanup.append(files)
    start(files)
    run = until(lambda: running_run(files), "a run is under way")
    os.kill(supervisor_pid(files) or 0, signal.SIGKILL)
    until(lambda: ended(files), "the supervisor is gone")
    seen = updates(files, run)
    until(lambda: updates(files, run) > seen, "training goes on without a supervisor")
    start(files)
    state = finish(files)
    assert state.closed
    assert [a.status for a in state.runs[run].attempts] == ["completed"]
    assert curve(files, run) == curve(closed, run)
    assert len([row for row in state.events if row["event"] == "supervisor-started"]) == 2


def test_supervisor_and_training_killed_together_as_by_a_reboot(
    closed: CampaignFiles, model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    files = tiny_campaign(tmp_path / "c", model, **LONG)
    cleanup.append(files)
    start(files)
    run = until(lambda: running_run(files), "a run is under way")
    victims = [supervisor_pid(files) or 0] + [r.attempts[-1].pid or 0 for r in state_of(files).runs_of("running")]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    until(lambda: ended(files), "the supervisor is gone")
    start(files)
    state = finish(files)
    assert state.closed
    assert [a.status for a in state.runs[run].attempts] == ["lost", "completed"]
    assert state.runs[run].attempts[0].cause == "its process ended while no supervisor was there to see why"
    assert curve(files, run) == curve(closed, run)


def test_a_stopped_campaign_leaves_no_process_and_continues(
    closed: CampaignFiles, model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    files = tiny_campaign(tmp_path / "c", model, **LONG)
    cleanup.append(files)
    start(files)
    run = until(lambda: running_run(files), "a run is under way")
    request_stop(files, None, "cli")
    state = finish(files)
    assert not state.closed
    stopped = state.runs[run]
    assert stopped.status == "stopped" and str(stopped.cause).startswith(
        "stopped by the cli; asked to stop after update"
    )
    answers = [row for row in state.events if row["event"] == "request"]
    assert [(row["kind"], row["answer"]) for row in answers] == [("stop-campaign", "done")]
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(files.root) in " ".join(p.info["cmdline"] or [])]
    start(files)
    state = finish(files)
    assert state.closed
    assert curve(files, run) == curve(closed, run)


def test_one_run_can_be_stopped_and_a_wrong_wish_is_refused_with_a_reason(
    model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    files = tiny_campaign(tmp_path / "c", model, **LONG, machine__slots=1)
    cleanup.append(files)
    start(files)
    run = until(lambda: running_run(files), "a run is under way")
    request_stop(files, "r099-nobody-s1", "app")
    request_stop(files, run, "app")
    state = finish(files)
    answers = [(row["run"], row["answer"], row["reason"]) for row in state.events if row["event"] == "request"]
    assert answers == [("r099-nobody-s1", "refused", "r099-nobody-s1 is not running"), (run, "done", None)]
    assert state.runs[run].status == "stopped"
    assert state.closed, "the other runs go on"
    assert [r.status for r in state.runs.values()].count("completed") == 2


def test_a_second_supervisor_is_refused(model: Path, tmp_path: Path, cleanup: list[CampaignFiles]) -> None:
    files = tiny_campaign(tmp_path / "c", model)
    cleanup.append(files)
    pid = start(files)
    with pytest.raises(EngineError, match=f"already supervised by process {pid}"):
        start(files)
    request_stop(files, None, "cli")
    finish(files)


def test_a_diverged_variant_stays_in_the_report_and_the_rest_is_concluded(
    model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    wild = {"id": "wild", "because": "To see it fail.", "change": {"training.learning_rate": 1e30}}
    files = tiny_campaign(tmp_path / "c", model, variants=[wild], training__max_grad_norm=1e9)
    cleanup.append(files)
    start(files)
    state = finish(files)
    assert state.closed
    run = next(r for r in state.runs.values() if r.variant == "wild")
    assert run.status == "diverged" and "became nan" in str(run.cause)
    report = files.report_markdown.read_text()
    assert "wild" in report and "became nan" in report


def test_failed_gates_end_the_campaign_with_a_report_before_anything_trains(
    model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    files = tiny_campaign(tmp_path / "c", model, method__targets=["nothing"])
    cleanup.append(files)
    start(files)
    state = finish(files)
    assert [g.passed for g in state.gates] == [False]
    assert "'nothing' matches no module" in str(state.gates[0].cause)
    assert not state.runs
    assert "matches no module" in files.report_markdown.read_text()


def test_at_the_end_of_the_rental_there_is_a_report_and_an_artefact(
    model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    """Training may go on for a few seconds only; runs on their way are stopped, and what is finished is concluded (K36)."""
    hours = {"preflight": 0, "experiment": 0.001, "evaluation": 2, "resume": 0, "export": 1, "margin": 2}
    ends_at = datetime.now(UTC) + timedelta(hours=5, seconds=45)
    files = tiny_campaign(
        tmp_path / "c", model, **LONG | {"training__amount": 60, "training__validate_every": 60}, machine__slots=1,
        rental={"days": 1, "ends_at": ends_at.isoformat(), "hours": hours},
        evaluation__seeds=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    )  # fmt: skip
    cleanup.append(files)
    start(files)
    state = finish(files)
    statuses = [run.status for run in state.runs.values()]
    assert "left out" in statuses and len(set(statuses)) > 1
    assert "kept for evaluation and export" in str(next(r.cause for r in state.runs.values() if r.status == "left out"))
    assert state.closed
    assert files.report_markdown.is_file()


def test_data_or_plan_changed_after_the_launch_is_refused(closed: CampaignFiles, tmp_path: Path) -> None:
    copy = tmp_path / "c"
    shutil.copytree(closed.root, copy, symlinks=True)
    files = CampaignFiles(copy)
    train = copy / "data" / "train.jsonl"
    train.write_text(train.read_text() + '{"text": "the new saldo", "label": "bank"}\n')
    start(files)
    assert "the data is not what the campaign was launched with" in finish(files).faults[-1]["cause"]
    plan = copy / "campaign.toml"
    plan.write_text(plan.read_text().replace("amount = 400", "amount = 401"))
    with pytest.raises(EngineError, match=r"changed after the launch in training\.amount"):
        start(files)


def test_a_variant_may_be_added_to_a_closed_campaign(
    closed: CampaignFiles, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    copy = tmp_path / "c"
    shutil.copytree(closed.root, copy, symlinks=True)
    files = CampaignFiles(copy)
    cleanup.append(files)
    plan = copy / "campaign.toml"
    plan.write_text(
        plan.read_text()
        + '\n[[variants]]\nid = "slowest"\nbecause = "b"\nchange = { "training.learning_rate" = 1e-4 }\n'
    )
    start(files)
    state = finish(files)
    assert state.closed and len(state.runs) == 4
    assert state.runs["r004-slowest-s7"].status == "completed"
    assert [row["changed"] for row in state.events if row["event"] == "amended"] == [["variants"]]
    assert len(state.test_openings) == 2


def test_closing_the_terminal_does_not_stop_training(model: Path, tmp_path: Path, cleanup: list[CampaignFiles]) -> None:
    """`ftui run --wait` in a terminal of its own, which is then closed: the kernel hangs up on everything attached to it."""
    files = tiny_campaign(tmp_path / "c", model, **LONG)
    cleanup.append(files)
    leader, terminal = pty.openpty()
    waiting = subprocess.Popen(
        [sys.executable, "-m", "ftui.cli", "run", str(files.root), "--wait"],
        stdin=terminal, stdout=terminal, stderr=terminal, env=ENVIRONMENT, start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(terminal)
    run = until(lambda: running_run(files), "a run is under way")
    os.close(leader)
    waiting.wait(timeout=30)
    seen = updates(files, run)
    assert supervisor_alive(files)
    until(lambda: updates(files, run) > seen, "training goes on")
    assert finish(files).closed


def test_the_supervisor_is_small_and_has_no_torch(model: Path, tmp_path: Path, cleanup: list[CampaignFiles]) -> None:
    files = tiny_campaign(tmp_path / "c", model, **LONG)
    cleanup.append(files)
    start(files)
    until(lambda: running_run(files), "a run is under way")
    process = psutil.Process(supervisor_pid(files) or 0)
    loaded = [m.path for m in process.memory_maps()]
    assert not [path for path in loaded if "torch" in path or "tokenizers" in path]
    request_stop(files, None, "cli")
    finish(files)


def test_run_wait_prints_what_happens_line_by_line(closed: CampaignFiles) -> None:
    answer = module("ftui.cli", "run", closed.root, "--wait")
    assert answer.returncode == 0, answer.stderr
    assert "report.md" in answer.stdout and "verdict: " in answer.stdout
    lines = answer.stderr.splitlines()
    assert any("gates g001: passed" in line for line in lines)
    assert any("update 400/400" in line for line in lines)


def test_a_killed_app_leaves_training_and_record_alone(
    model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    files = tiny_campaign(tmp_path / "c", model, **LONG)
    cleanup.append(files)
    start(files)
    run = until(lambda: running_run(files), "a run is under way")
    leader, terminal = pty.openpty()
    app = subprocess.Popen(
        [sys.executable, "-m", "ftui.cli", "open", str(files.root)],
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        env=ENVIRONMENT | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
    )  # fmt: skip
    os.close(terminal)
    drawn = b""

    def shows_the_run() -> bool:
        nonlocal drawn
        drawn += os.read(leader, 65536)
        return run.encode() in drawn

    until(shows_the_run, "the app shows the run")
    app.send_signal(signal.SIGKILL)
    app.wait()
    seen = updates(files, run)
    until(lambda: updates(files, run) > seen, "training goes on")
    os.close(leader)
    state = finish(files)
    assert state.closed
    assert [a.status for a in state.runs[run].attempts] == ["completed"]


def test_runs_of_two_processes_side_by_side_lose_one_are_stopped_and_end_complete(
    model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    """Two runs of two processes at once (K17); one worker killed (K19); the campaign stopped (K18), and continued."""
    changes = LONG | {"training__amount": 250}
    machine = {"backend": "cpu", "slots": 4, "processes": 2, "strategy": "ddp"}
    files = tiny_campaign(tmp_path / "c", model, machine=machine, **changes)
    cleanup.append(files)
    start(files)
    run = until(lambda: running_run(files), "a run is under way")
    until(lambda: len([r for r in state_of(files).runs_of("running") if updates(files, r.id)]) == 2, "both train")
    launcher = psutil.Process(state_of(files).runs[run].attempts[-1].pid or 0)
    second = next(p for p in launcher.children() if p.environ().get("RANK") == "1")
    second.kill()
    until(lambda: len(state_of(files).runs[run].attempts) == 2, "the run is started again")
    lost = state_of(files).runs[run].attempts[0]
    assert (lost.status, lost.cause) == (
        "lost",
        "process 2 of 2 was killed by SIGKILL, by hand or because memory ran out",
    )
    assert lost.placement["device"].count("cpu place") == 2
    resumed_from = state_of(files).runs[run].attempts[1].resumed_from or 0
    until(lambda: updates(files, run) > resumed_from + 20, "it trains again")
    request_stop(files, None, "cli")
    state = finish(files)
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(files.root) in " ".join(p.info["cmdline"] or [])]
    assert state.runs[run].status == "stopped"
    assert "asked to stop after update" in str(state.runs[run].cause)
    start(files)
    state = finish(files)
    assert state.closed and not state.faults, [row for row in state.events if row["event"] == "fault"]
    assert {r.status for r in state.runs.values()} == {"completed"}
    assert all(r.test_metrics for r in state.runs.values())
    assert [row["update"] for row in curve(files, run) if row["k"] == "update"] == list(range(1, 251))
    assert [export.verified for export in state.exports] == [True]


def test_the_number_of_processes_is_no_amendment(model: Path, tmp_path: Path) -> None:
    from ftui.engine.amend import PlanChanged, check_amendment
    from ftui.plan.load import load_plan

    plan = load_plan(tiny_campaign(tmp_path / "c", model).root)
    two = plan.model_copy(update={"machine": plan.machine.model_copy(update={"processes": 2, "strategy": "ddp"})})
    more = plan.model_copy(update={"machine": plan.machine.model_copy(update={"slots": 3})})
    assert check_amendment(plan, more) == ["machine.slots"]
    with pytest.raises(PlanChanged, match=r"changed after the launch in machine.processes, machine.strategy"):
        check_amendment(plan, two)
