"""Whole campaigns on a tiny model, with real supervisors and real training processes, killed in all the ways a rental kills them."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from ftui.engine.client import EngineError, ReasonNeeded, request_stop, start, supervisor_alive, supervisor_pid
from ftui.engine.follow import event_line
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.lines import Row
from ftui.record.notebook import write_note
from ftui.record.series import CLOCK_FIELDS, read_series
from ftui.record.state import Campaign, fold
from ftui.record.summary import IDLE, campaign_word
from ftui.report.build import build_report
from ftui.report.markdown import to_markdown
from tests.builders.campaign import build_campaign
from tests.builders.processes import ENVIRONMENT, module, until
from tests.builders.tiny import tiny_campaign

LONG = {
    "training__amount": 500,
    "training__checkpoint_every": 20,
    "training__validate_every": 250,
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


@pytest.fixture(scope="module")
def halfway(model: Path, tmp_path_factory: pytest.TempPathFactory) -> CampaignFiles:
    """The same campaign, stopped when its gates had passed, its baseline was known and its control was under way."""
    files = tiny_campaign(tmp_path_factory.mktemp("halfway") / "c", model, **LONG, machine__slots=1)
    start(files)
    until(lambda: running_run(files), "the control is under way")
    request_stop(files, None, "cli")
    finish(files)
    return files


@pytest.fixture
def campaign(halfway: CampaignFiles, tmp_path: Path, cleanup: list[CampaignFiles]) -> CampaignFiles:
    """A copy of the halfway campaign, to be continued and disturbed."""
    files = CampaignFiles(tmp_path / "c")
    shutil.copytree(halfway.root, files.root, symlinks=True)
    cleanup.append(files)
    return files


CONTROL, SLOWER = "r002-control-s7", "r003-slower-s7"


def under_way(files: CampaignFiles) -> int:
    """Start, and wait until the control has left its last checkpoint behind; returns the update it has reached."""
    start(files)
    taken_up = state_of(files).runs[CONTROL].updates
    until(lambda: running_run(files, taken_up + 25), "the control goes on")
    return updates(files, CONTROL)


def control_finished(files: CampaignFiles) -> Campaign:
    """Wait for the control's end, stop what would follow, and return the state."""
    until(lambda: state_of(files).runs[CONTROL].status == "completed", "the control is completed")
    request_stop(files, None, "cli")
    return finish(files)


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
    closed: CampaignFiles, campaign: CampaignFiles
) -> None:
    under_way(campaign)
    os.kill(state_of(campaign).runs[CONTROL].attempts[-1].pid or 0, signal.SIGKILL)
    attempts = control_finished(campaign).runs[CONTROL].attempts
    assert [a.status for a in attempts] == ["stopped", "lost", "completed"]
    assert attempts[1].cause == "killed by SIGKILL, by hand or because memory ran out"
    assert attempts[2].resumed_from and attempts[2].resumed_from % 20 == 0
    assert curve(campaign, CONTROL) == curve(closed, CONTROL)
    report = build_report(campaign)
    assert "killed by SIGKILL" in to_markdown(report)


def test_a_killed_supervisor_loses_nothing_and_the_next_one_adopts_what_still_trains(
    closed: CampaignFiles, campaign: CampaignFiles
) -> None:
    seen = under_way(campaign)
    os.kill(supervisor_pid(campaign) or 0, signal.SIGKILL)
    until(lambda: ended(campaign), "the supervisor is gone")
    until(lambda: updates(campaign, CONTROL) > seen, "training goes on without a supervisor")
    start(campaign)
    state = control_finished(campaign)
    assert [a.status for a in state.runs[CONTROL].attempts] == ["stopped", "completed"]
    assert curve(campaign, CONTROL) == curve(closed, CONTROL)
    assert len([row for row in state.events if row["event"] == "supervisor-started"]) == 3


def test_supervisor_and_training_killed_together_as_by_a_reboot(closed: CampaignFiles, campaign: CampaignFiles) -> None:
    under_way(campaign)
    for pid in (supervisor_pid(campaign), state_of(campaign).runs[CONTROL].attempts[-1].pid):
        os.kill(pid or 0, signal.SIGKILL)
    until(lambda: ended(campaign), "the supervisor is gone")
    start(campaign)
    attempts = control_finished(campaign).runs[CONTROL].attempts
    assert [a.status for a in attempts] == ["stopped", "lost", "completed"]
    assert attempts[1].cause == "its process ended while no supervisor was there to see why"
    assert curve(campaign, CONTROL) == curve(closed, CONTROL)


def test_a_stopped_campaign_leaves_no_process_and_continues(closed: CampaignFiles, campaign: CampaignFiles) -> None:
    state = state_of(campaign)
    stopped = state.runs[CONTROL]
    assert stopped.status == "stopped" and str(stopped.cause).startswith(
        "stopped by the cli; asked to stop after update"
    )
    answers = [row for row in state.events if row["event"] == "request"]
    assert [(row["kind"], row["answer"]) for row in answers] == [("stop-campaign", "done")]
    under_way(campaign)
    request_stop(campaign, None, "cli")
    finish(campaign)
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(campaign.root) in " ".join(p.info["cmdline"] or [])]
    start(campaign)
    attempts = control_finished(campaign).runs[CONTROL].attempts
    assert [a.status for a in attempts] == ["stopped", "stopped", "completed"]
    assert curve(campaign, CONTROL) == curve(closed, CONTROL)


def test_one_run_can_be_stopped_and_a_wrong_wish_is_refused_with_a_reason(campaign: CampaignFiles) -> None:
    before = len([row for row in state_of(campaign).events if row["event"] == "request"])
    under_way(campaign)
    request_stop(campaign, "r099-nobody-s1", "app")
    request_stop(campaign, CONTROL, "app")
    until(lambda: updates(campaign, SLOWER) >= 1, "the next run trains")
    request_stop(campaign, None, "app")
    state = finish(campaign)
    answers = [(row["run"], row["answer"], row["reason"]) for row in state.events if row["event"] == "request"]
    assert answers[before:] == [
        ("r099-nobody-s1", "refused", "r099-nobody-s1 is not running"),
        (CONTROL, "done", None),
        (None, "done", None),
    ]
    assert state.runs[CONTROL].status == "stopped"
    assert state.runs[SLOWER].updates > 0, "the other runs go on"


def test_a_second_supervisor_is_refused(campaign: CampaignFiles) -> None:
    pid = start(campaign)
    with pytest.raises(EngineError, match=f"already supervised by process {pid}"):
        start(campaign)
    request_stop(campaign, None, "cli")
    finish(campaign)


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


def test_at_the_end_of_the_rental_what_runs_is_stopped_the_rest_left_out_and_a_report_written(
    campaign: CampaignFiles,
) -> None:
    """The rental is cut short while the control is on its way: an amendment that the next supervisor reads (K36)."""
    under_way(campaign)
    os.kill(supervisor_pid(campaign) or 0, signal.SIGKILL)
    until(lambda: ended(campaign), "the supervisor is gone")
    reserve = timedelta(hours=2 + 1 + 2)
    ends_at = datetime.now(UTC).replace(microsecond=0) + reserve + timedelta(seconds=3)
    campaign.plan.write_text(
        campaign.plan.read_text().replace("[rental]", f'[rental]\nends_at = "{ends_at.isoformat()}"')
    )
    start(campaign, because="The host is needed elsewhere.")
    state = finish(campaign)
    assert state.clock is not None and state.clock.ends_at == ends_at
    cause = "the rental's remaining hours are kept for evaluation and export"
    assert state.runs[CONTROL].status == "stopped" and str(state.runs[CONTROL].cause).startswith(
        f"{cause}; asked to stop"
    )
    assert state.runs[SLOWER].status == "left out" and cause in str(state.runs[SLOWER].cause)
    assert state.closed
    assert cause in campaign.report_markdown.read_text()


def test_data_or_plan_changed_after_the_launch_is_refused(closed: CampaignFiles, tmp_path: Path) -> None:
    copy = tmp_path / "c"
    shutil.copytree(closed.root, copy, symlinks=True)
    files = CampaignFiles(copy)
    train = copy / "data" / "train.jsonl"
    train.write_text(train.read_text() + '{"text": "the new saldo", "label": "bank"}\n')
    start(files)
    assert "the data is not what the campaign was launched with" in finish(files).faults[-1]["cause"]
    plan = copy / "campaign.toml"
    plan.write_text(plan.read_text().replace("amount = 500", "amount = 501"))
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
    because = "Trzy kroki to za mało: 더 작은 걸음."
    start(files, because=f"  {because}\n")
    state = finish(files)
    assert state.closed and len(state.runs) == 4
    assert state.runs["r004-slowest-s7"].status == "completed"
    amended = [row for row in state.events if row["event"] == "amended"]
    assert [(row["changed"], row["because"]) for row in amended] == [(["variants"], because)]
    assert len(state.test_openings) == 2
    report = build_report(files)
    assert f"variants — because {because}" in to_markdown(report)
    assert any(f"variants; because {because}" in limit for limit in report.limits)


def test_a_plan_changed_after_runs_began_waits_for_a_reason(tmp_path: Path, cleanup: list[CampaignFiles]) -> None:
    """Nothing is written down and nothing starts without it; the sentence names the fields and the way out (S3, H5)."""
    files = build_campaign(tmp_path, "running").files  # recorded, without its data: what is started ends at once
    cleanup.append(files)
    start(files)
    finish(files)
    before = files.journal.read_bytes()
    plan = files.plan.read_text(encoding="utf-8")
    files.plan.write_text(plan.replace("days = 3", "days = 4"), encoding="utf-8")
    with pytest.raises(ReasonNeeded, match=r"changed in rental.days.*`ftui run .* --because") as needed:
        start(files)
    assert needed.value.changed == ["rental.days"]
    assert not supervisor_alive(files) and files.journal.read_bytes() == before
    with pytest.raises(ReasonNeeded):
        start(files, because=" \n")
    start(files, because="The price went up.")
    state = finish(files)
    assert state.plan is not None and state.plan.rental.days == 4
    assert [row["because"] for row in state.events if row["event"] == "amended"] == ["The price went up."]
    lines = [event_line(row, state) for row in state.events]
    assert "plan amended: rental.days — because The price went up." in lines
    start(files)  # what was explained once is not asked again
    finish(files)


def test_a_reason_with_nothing_to_explain_is_kept_as_a_note(tmp_path: Path, cleanup: list[CampaignFiles]) -> None:
    files = build_campaign(tmp_path, "launched").files
    cleanup.append(files)
    start(files, because="Just to see.")
    events = finish(files).events
    assert [row["text"] for row in events if row["event"] == "note"] == ["Just to see."]
    files.plan.write_text(files.plan.read_text(encoding="utf-8").replace("rank = 8", "rank = 4"), encoding="utf-8")
    start(files, because="The pilot said so.")  # no run has begun: nobody asked, and it is kept
    amended = [row for row in finish(files).events if row["event"] == "amended"]
    assert [(row["changed"], row["because"]) for row in amended] == [(["method.rank"], "The pilot said so.")]


def test_notes_before_the_launch_do_not_count_as_one(tmp_path: Path, cleanup: list[CampaignFiles]) -> None:
    files = build_campaign(tmp_path, "planned").files
    cleanup.append(files)
    write_note(files, "Ask for more data first.", "cli")
    state = state_of(files)
    assert state.launched_at is None and state.plan is None and campaign_word(state, False) == IDLE
    start(files)
    state = finish(files)
    assert [row["event"] for row in state.events[:3]] == ["note", "launched", "supervisor-started"]
    assert state.plan is not None and state.launched_at is not None
    assert sum(state.spent_seconds.values()) < 60
    assert [note.text for note in build_report(files).notes] == ["Ask for more data first."]


def test_closing_the_terminal_does_not_stop_training(campaign: CampaignFiles) -> None:
    """`ftui run --wait` in a terminal of its own, which is then closed: the kernel hangs up on everything attached to it."""
    taken_up = updates(campaign, CONTROL)
    leader, terminal = pty.openpty()
    waiting = subprocess.Popen(
        [sys.executable, "-m", "ftui.cli", "run", str(campaign.root), "--wait"],
        stdin=terminal, stdout=terminal, stderr=terminal, env=ENVIRONMENT, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(terminal)
    until(lambda: running_run(campaign, taken_up + 25), "the control goes on")
    os.close(leader)
    waiting.wait(timeout=30)
    seen = updates(campaign, CONTROL)
    assert supervisor_alive(campaign)
    until(lambda: updates(campaign, CONTROL) > seen, "training goes on")
    control_finished(campaign)


def test_the_supervisor_is_small_and_has_no_torch(campaign: CampaignFiles) -> None:
    under_way(campaign)
    process = psutil.Process(supervisor_pid(campaign) or 0)
    loaded = [m.path for m in process.memory_maps()]
    assert not [path for path in loaded if "torch" in path or "tokenizers" in path]
    request_stop(campaign, None, "cli")
    finish(campaign)


def test_run_wait_prints_what_happens_line_by_line(closed: CampaignFiles) -> None:
    answer = module("ftui.cli", "run", closed.root, "--wait")
    assert answer.returncode == 0, answer.stderr
    assert "report.md" in answer.stdout and "verdict: " in answer.stdout
    lines = answer.stderr.splitlines()
    assert any("gates g001: passed" in line for line in lines)
    assert any("update 500/500" in line for line in lines)


def test_a_killed_app_leaves_training_and_record_alone(campaign: CampaignFiles) -> None:
    under_way(campaign)
    leader, terminal = pty.openpty()
    app = subprocess.Popen(
        [sys.executable, "-m", "ftui.cli", "open", str(campaign.root)],
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        env=ENVIRONMENT | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
    )  # fmt: skip
    os.close(terminal)
    drawn = b""

    def shows_the_run() -> bool:
        nonlocal drawn
        drawn += os.read(leader, 65536)
        return CONTROL.encode() in drawn

    until(shows_the_run, "the app shows the run")
    app.send_signal(signal.SIGKILL)
    app.wait()
    seen = updates(campaign, CONTROL)
    until(lambda: updates(campaign, CONTROL) > seen, "training goes on")
    os.close(leader)
    assert control_finished(campaign).runs[CONTROL].attempts[-1].status == "completed"


@pytest.mark.slow
@pytest.mark.timeout(900)
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


@pytest.mark.slow
def test_a_launched_group_is_stopped_as_one_and_leaves_a_checkpoint(
    model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    """Through accelerate's launcher, at a port of its own (K17, K18)."""
    from ftui.engine.jobs import start_job
    from ftui.engine.launch import train_command
    from ftui.engine.placement import Place
    from ftui.record.rows import read_outcome
    from tests.builders.tiny import frozen_run

    machine = {"backend": "cpu", "slots": 2, "processes": 2, "strategy": "ddp"}
    files = tiny_campaign(tmp_path / "c", model, machine=machine, **LONG)
    cleanup.append(files)
    run, settings = frozen_run(files)
    two = (Place("cpu", 0), Place("cpu", 1))
    job = start_job("run:r", train_command("train", run.root, settings, two), two, outlives_supervisor=False)
    until(lambda: updates(files, run.root.name) >= 5, "the run is under way")
    job.terminate("asked by the test")
    until(job.poll, "the launcher ends after its workers")
    assert job.exit_code == 0, run.log.read_text()
    outcome = read_outcome(run.outcome)
    assert outcome is not None and outcome.status == "stopped"
    assert (run.checkpoints / f"step-{outcome.updates:08d}" / "manifest.json").is_file()
    assert "Traceback" not in run.log.read_text(), "a stop that was asked for is no crash in the log"


def test_the_number_of_processes_is_no_amendment(model: Path, tmp_path: Path) -> None:
    from ftui.engine.amend import PlanChanged, check_amendment
    from ftui.plan.load import load_plan

    plan = load_plan(tiny_campaign(tmp_path / "c", model).root)
    two = plan.model_copy(update={"machine": plan.machine.model_copy(update={"processes": 2, "strategy": "ddp"})})
    more = plan.model_copy(update={"machine": plan.machine.model_copy(update={"slots": 3})})
    assert check_amendment(plan, more, begun=True) == ["machine.slots"]
    with pytest.raises(PlanChanged, match=r"changed after the launch in machine.processes, machine.strategy"):
        check_amendment(plan, two, begun=True)
    assert check_amendment(plan, two, begun=False) == ["machine.processes", "machine.strategy"]
