"""Wishes of people: granted or refused once each, whoever is killed and however many ask at the same time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ftui.engine.client import Asked, EngineError, ask, start, supervisor_alive, supervisor_pid
from ftui.engine.follow import event_line
from ftui.engine.wishes import refusal
from ftui.plan.settings import read_settings
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.lines import Row
from ftui.record.requests import Kind, make_request, put_request
from ftui.record.series import read_series
from ftui.record.state import Campaign, Run, fold
from ftui.record.summary import summarise, summary_text
from ftui.report.build import build_report
from ftui.report.markdown import to_markdown
from tests.builders.campaign import build_campaign
from tests.builders.processes import ENVIRONMENT, until
from tests.builders.queued import CONTROL, SLOWER, queued_campaign
from tests.builders.story import BASES, CONTROLS, Story
from tests.builders.story import SLOWER as BOTH_SLOWER


def state_of(files: CampaignFiles) -> Campaign:
    return fold(read_journal(files.journal))


def run_of(files: CampaignFiles, run: str) -> Run:
    return state_of(files).runs[run]


def updates(files: CampaignFiles, run: str) -> int:
    return max((row["update"] for row in read_series(files.run(run).series) if row["k"] == "update"), default=0)


def finish(files: CampaignFiles) -> Campaign:
    until(lambda: not supervisor_alive(files), "the supervisor ends")
    return state_of(files)


def done(files: CampaignFiles, kind: Kind, run: str | None = None, **fields: Any) -> Asked:
    asked = ask(files, kind, run=run, by="cli", **fields)
    assert asked.answer == "done", asked.reason
    return asked


def two_rounds(files: CampaignFiles) -> None:
    """Between two answers the supervisor has decided what happens next."""
    for priority in (1, 0):
        done(files, "priority", SLOWER, priority=priority)


def answers(files: CampaignFiles) -> list[Row]:
    return [row for row in read_journal(files.journal) if row["event"] == "request"]


def processes_of(files: CampaignFiles) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if str(files.root) in " ".join(p.info["cmdline"] or [])]


@pytest.fixture
def cleanup() -> Iterator[list[CampaignFiles]]:
    """Campaigns whose processes must not outlive the test."""
    started: list[CampaignFiles] = []
    yield started
    for files in started:
        for process in processes_of(files):
            process.kill()


@pytest.fixture(scope="module")
def prototype(model: Path, tmp_path_factory: pytest.TempPathFactory) -> CampaignFiles:
    return queued_campaign(tmp_path_factory.mktemp("queued") / "c", model)


@pytest.fixture
def campaign(prototype: CampaignFiles, tmp_path: Path, cleanup: list[CampaignFiles]) -> CampaignFiles:
    """The control and one variant wait for the one place there is."""
    files = CampaignFiles(tmp_path / "c")
    shutil.copytree(prototype.root, files.root, symlinks=True)
    cleanup.append(files)
    return files


@pytest.fixture
def recorded(tmp_path: Path, cleanup: list[CampaignFiles]) -> CampaignFiles:
    """Recorded without its data: a supervisor answers what waits, and ends."""
    files = build_campaign(tmp_path, "running").files
    cleanup.append(files)
    return files


def begun(files: CampaignFiles, run: str) -> Run:
    """Wait until `run` has a process."""
    return until(lambda: (found := run_of(files, run)).status == "running" and found, f"{run} is started")


def under_way(files: CampaignFiles, run: str = CONTROL) -> int:
    """Wait until `run` trains; returns the pid of its process."""
    until(lambda: run_of(files, run).status == "running" and updates(files, run) >= 5, f"{run} trains")
    return pid_of(files, run)


def pid_of(files: CampaignFiles, run: str) -> int:
    return run_of(files, run).attempts[-1].pid or 0


STORY = Story().ready().ended(*BASES, CONTROLS[0]).started(CONTROLS[1]).ended(BOTH_SLOWER[0], status="stopped")


@pytest.mark.parametrize(
    ("kind", "run", "fields", "reason"),
    [
        ("pause-queue", None, {}, None),
        ("resume-queue", None, {}, "the queue is not paused"),
        ("stop-run", CONTROLS[1], {}, None),
        ("kill-run", CONTROLS[0], {}, f"{CONTROLS[0]} is not running"),
        ("pause-run", CONTROLS[1], {}, None),
        ("pause-run", BOTH_SLOWER[1], {}, None),
        ("pause-run", CONTROLS[0], {}, f"{CONTROLS[0]} is completed; only a run that runs or waits can be paused"),
        ("resume-run", BOTH_SLOWER[1], {}, f"{BOTH_SLOWER[1]} is queued, not paused"),
        ("resume-run", BOTH_SLOWER[0], {}, None),
        ("priority", BOTH_SLOWER[1], {"priority": 3}, None),
        ("priority", CONTROLS[1], {"priority": 3}, f"{CONTROLS[1]} is running; only a run that waits has a place in the queue"),
        ("priority", "r099-nobody-s1", {"priority": 3}, "there is no run 'r099-nobody-s1'; there are r001-base-s1, "),
        ("relaunch", BOTH_SLOWER[0], {"change": {"method.rank": 8}, "because": "b"}, None),
        ("relaunch", BOTH_SLOWER[0], {"change": {"method.rank": 8}}, "a run with other settings needs a reason"),
        ("relaunch", BASES[0], {"change": {"method.rank": 8}, "because": "b"}, f"{BASES[0]} is the base model"),
    ],
)  # fmt: skip
def test_what_can_be_granted_follows_from_the_record(
    kind: Kind, run: str | None, fields: dict[str, Any], reason: str | None
) -> None:
    found = refusal(STORY.state, make_request(kind, run=run, by="cli", **fields))
    assert found is None if reason is None else str(found).startswith(reason), found


def test_a_run_that_still_writes_its_checkpoint_is_not_resumed_yet() -> None:
    story = Story().ready().ended(*BASES).started(CONTROLS[0]).wish("pause-run", CONTROLS[0])
    resume = make_request("resume-run", run=CONTROLS[0], by="app")
    assert "still writes its checkpoint" in str(refusal(story.state, resume))
    assert "paused by the cli already" in str(
        refusal(story.state, make_request("pause-run", run=CONTROLS[0], by="app"))
    )
    story.tell("run-ended", run=CONTROLS[0], attempt=1, status="stopped", cause="c", exit_code=75, updates=4)
    assert refusal(story.state, resume) is None


def test_wishes_wait_for_a_supervisor_and_are_judged_one_after_the_other(recorded: CampaignFiles) -> None:
    """Nobody supervises: a second wish is measured against what the first will have done."""
    assert ask(recorded, "pause-queue", by="cli").answer == "waiting"
    assert ask(recorded, "pause-queue", by="app").reason == "the queue is paused already"
    assert ask(recorded, "resume-queue", by="app").answer == "waiting"
    assert ask(recorded, "pause-queue", by="cli").answer == "waiting"
    with pytest.raises(EngineError, match="there is nothing to stop"):
        ask(recorded, "stop-campaign", by="cli")
    assert not answers(recorded)
    summary = summarise(recorded, alive=False)
    assert summary["waiting_requests"] == 3 and not summary["paused"]
    assert "3 requests wait for an answer; `ftui run" in summary_text(summary)
    start(recorded)
    assert finish(recorded).paused
    assert [row["answer"] for row in answers(recorded)] == ["done"] * 3
    assert "nothing new starts; `ftui resume" in summary_text(summarise(recorded, alive=False))


def test_a_supervisor_killed_between_answer_and_file_grants_nothing_twice(
    recorded: CampaignFiles, tmp_path: Path
) -> None:
    """What it leaves behind, made by hand: the files are there although the journal has their answers; and, killed a moment
    earlier, the run is queued although the answer is missing."""
    wish = {"change": {"method.rank": 16}, "because": "Eight are too few."}
    first = ask(recorded, "relaunch", run="r003-control-s17", by="app", **wish).request
    second = ask(recorded, "pause-queue", by="cli").request
    put_request(recorded.requests, make_request("kill-run", run="r003-control-s17", by="cli"))
    kept = shutil.copytree(recorded.requests, tmp_path / "kept")
    start(recorded)
    before = [(row["request"], row["answer"]) for row in answers(finish(recorded) and recorded)]
    assert [answer for _, answer in before] == ["done", "done", "refused"]
    assert not list(recorded.requests.iterdir())

    def left_behind() -> Campaign:
        shutil.copytree(kept, recorded.requests, dirs_exist_ok=True)
        start(recorded)
        state = finish(recorded)
        assert not list(recorded.requests.iterdir())
        return state

    state = left_behind()
    assert [(row["request"], row["answer"]) for row in answers(recorded)] == before
    assert [run.id for run in state.runs.values() if run.follows] == ["r009-control-s17"]
    lines = recorded.journal.read_text(encoding="utf-8").splitlines(keepends=True)
    queued = next(i for i, line in enumerate(lines) if '"queued"' in line and first.id in line)
    recorded.journal.write_text("".join(lines[: queued + 1]), encoding="utf-8")
    state = left_behind()
    assert [run.id for run in state.runs.values() if run.follows] == ["r009-control-s17"]
    assert state.answers[first.id]["new_run"] == "r009-control-s17"
    assert state.paused and state.answers[second.id]["answer"] == "done"
    assert sorted((row["request"], row["answer"]) for row in answers(recorded)) == sorted(before)


def test_a_stop_that_an_earlier_supervisor_did_not_answer_stops_no_later_one(recorded: CampaignFiles) -> None:
    put_request(recorded.requests, make_request("stop-campaign", by="cli"))
    start(recorded)
    state = finish(recorded)
    assert answers(recorded)[0]["reason"] == "the supervisor that was asked had ended before it could answer"
    assert state.events[-1]["reason"] != "stopped by the cli"


WISHES_OF_ONE_CLIENT = """
import sys
from pathlib import Path
from ftui.record.requests import make_request, put_request
folder, who = Path(sys.argv[1]), sys.argv[2]
for n in range(12):
    put_request(folder, make_request("priority", run="r003-slower-s7", by=who, priority=n))
    put_request(folder, make_request(("pause-run", "resume-run")[n % 2], run="r003-slower-s7", by=who))
    put_request(folder, make_request("relaunch", run="r002-control-s7", by=who, change={"method.rank": 8 + n}, because=who))
    put_request(folder, make_request(("pause-queue", "resume-queue")[n % 2], by=who))
"""


def test_several_clients_at_once_corrupt_nothing_and_each_wish_has_one_answer(campaign: CampaignFiles) -> None:
    start(campaign)
    command = [sys.executable, "-c", WISHES_OF_ONE_CLIENT, str(campaign.requests)]
    clients = [subprocess.Popen([*command, f"client {n}"], env=ENVIRONMENT) for n in range(4)]
    assert [client.wait(60) for client in clients] == [0] * 4
    until(lambda: not list(campaign.requests.glob("*.json")), "every wish is answered")
    done(campaign, "kill-campaign")
    state = finish(campaign)
    rows = answers(campaign)[:-1]
    assert len(rows) == 4 * 48 and set(Counter(row["request"] for row in rows).values()) == {1}
    assert Counter(row["asked_by"] for row in rows) == {f"client {n}": 48 for n in range(4)}
    followed = [run for run in state.runs.values() if run.follows]
    assert len(followed) == 48 and len({run.number for run in state.runs.values()}) == len(state.runs) == 51
    assert sorted(run.request for run in followed if run.request) == sorted(
        row["request"] for row in rows if row["kind"] == "relaunch"
    )
    assert all(row["answer"] == "done" for row in rows if row["kind"] in ("relaunch", "priority"))
    assert not processes_of(campaign)


def test_a_paused_queue_lets_what_runs_go_on_and_survives_its_supervisor(campaign: CampaignFiles) -> None:
    start(campaign)
    pid = under_way(campaign)
    done(campaign, "pause-queue")
    seen = updates(campaign, CONTROL)
    until(lambda: updates(campaign, CONTROL) > seen, "what runs goes on")
    done(campaign, "kill-run", CONTROL)
    assert not psutil.pid_exists(pid)
    control = until(lambda: (run := run_of(campaign, CONTROL)).status == "stopped" and run, "it is recorded")
    assert control.cause == "killed by the cli"
    two_rounds(campaign)
    assert not state_of(campaign).runs_of("running"), "the place is free, and nothing takes it"
    os.kill(supervisor_pid(campaign) or 0, signal.SIGKILL)
    until(lambda: not supervisor_alive(campaign), "the supervisor is gone")
    start(campaign)
    two_rounds(campaign)
    assert state_of(campaign).paused and not state_of(campaign).runs_of("running")
    done(campaign, "resume-queue")
    begun(campaign, CONTROL)
    assert len(run_of(campaign, CONTROL).attempts) == 2 and not run_of(campaign, SLOWER).attempts
    done(campaign, "kill-campaign")
    assert finish(campaign).runs[CONTROL].cause == "killed by the cli"
    assert not processes_of(campaign)


def test_a_paused_run_leaves_its_place_and_goes_on_from_its_checkpoint(campaign: CampaignFiles) -> None:
    start(campaign)
    under_way(campaign)
    done(campaign, "pause-run", CONTROL)
    begun(campaign, SLOWER)
    control = run_of(campaign, CONTROL)
    assert control.shown == "paused" and str(control.cause).startswith("paused by the cli; asked to stop after update")
    assert "paused" in summary_text(summarise(campaign, alive=True))
    done(campaign, "resume-run", CONTROL)
    assert run_of(campaign, CONTROL).shown == "queued"
    done(campaign, "kill-run", SLOWER)
    assert begun(campaign, CONTROL).attempts[1].resumed_from == control.updates > 0
    done(campaign, "stop-run", CONTROL)
    until(lambda: run_of(campaign, CONTROL).status != "running", "it is stopped before its first update")
    stopped = finish(campaign).runs[CONTROL]
    assert stopped.status == "stopped" and len(stopped.attempts) == 2
    assert str(stopped.cause).startswith("stopped by the cli; ")


def test_a_relaunch_is_another_run_and_leaves_the_first_alone(campaign: CampaignFiles) -> None:
    """Also while the first is live (K29)."""
    start(campaign)
    pid = begun(campaign, CONTROL).attempts[-1].pid or 0
    change = {"method.rank": 8, "training.learning_rate": 2e-3}
    new = done(campaign, "relaunch", CONTROL, change=change, because="Wyższa ranga? 더 크게").new_run or ""
    assert new == "r004-control-s7"
    done(campaign, "priority", new, priority=99)
    assert psutil.pid_exists(pid) and run_of(campaign, CONTROL).status == "running"
    done(campaign, "kill-run", CONTROL)
    begun(campaign, new)
    settings = read_settings(campaign.run(new).root)
    assert (settings.follows, settings.method.rank, settings.training.learning_rate) == (CONTROL, 8, 2e-3)
    assert settings.change == change and read_settings(campaign.run(CONTROL).root).method.rank == 4
    done(campaign, "kill-campaign")
    state = finish(campaign)
    assert state.runs[CONTROL].status == "stopped" and state.runs[new].follows == CONTROL
    assert f"{new}  stopped" in (said := summary_text(summarise(campaign, alive=False)))
    assert f"follows {CONTROL}: Wyższa ranga? 더 크게" in said
    lines = [event_line(row, state) for row in state.events]
    assert f"{new}: queued with other settings than {CONTROL}, because: Wyższa ranga? 더 크게" in lines
    report = build_report(campaign)
    assert f"{new} follows {CONTROL} with other settings" in to_markdown(report)
    assert json.loads(campaign.run(new).outcome.read_text())["cause"] == "killed by the cli"
