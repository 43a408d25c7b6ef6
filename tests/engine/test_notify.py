"""A person's own program hears of what matters, and however it behaves, nobody waits for it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from ftui.engine import notify
from ftui.engine.client import start, supervisor_alive
from ftui.engine.notify import Notifier, notifier_for
from ftui.preferences import BrokenSettings, Preferences, read_preferences
from ftui.record.journal import Journal, read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.lines import Row
from ftui.record.state import Campaign, fold
from tests.builders.processes import until
from tests.builders.tiny import tiny_campaign

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
LISTENER = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    return tmp_path / "heard.jsonl"


@pytest.fixture
def listening(tmp_path: Path, heard: Path) -> Notifier:
    return Notifier(CampaignFiles(tmp_path / "c"), [sys.executable, "-c", LISTENER, str(heard)])


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the person's settings are looked for."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config" / "ftui" / "settings.toml"
    path.parent.mkdir(parents=True)
    return path


def row(event: str, **fields: object) -> Row:
    return {"at": NOON.isoformat(), "event": event, "by": "supervisor", **fields}


def failed(cause: str = "the loss is no number") -> Row:
    return row("run-ended", run="r002", attempt=1, status="diverged", cause=cause, exit_code=1, updates=3)


def told(heard: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in heard.read_text().splitlines()] if heard.exists() else []


def test_each_event_that_matters_is_told_once_in_order(listening: Notifier, heard: Path) -> None:
    state = Campaign(phase="closed", verdict="supported", verdict_sentence="It is better.")
    rows = [
        row("phase", phase="experiment"),
        failed("bad\x1b]0;x\x07 news"),
        row("gates-ended", gates="g001", passed=False, cause="no memory"),
        row("gates-ended", gates="g002", passed=True, cause=None),
        row("copy-ended", copied=1, bytes=1, left=0, cause=None),
        row("copy-ended", copied=0, bytes=0, left=0, cause="/there: No space left on device"),
        row("supervisor-ended", reason="the campaign is complete"),
    ]
    for event in rows:
        listening.hear(event, state)
    assert listening.finish() is None
    kinds = ["run failed", "gates failed", "copy failing", "campaign finished"]
    assert [event["event"] for event in told(heard)] == kinds
    first, last = told(heard)[0], told(heard)[-1]
    assert first["run"] == "r002" and first["campaign"] == "c" and "\x1b" not in str(first["sentence"])
    assert last["sentence"] == "verdict: supported. It is better."
    assert set(first) == {"campaign", "directory", "event", "at", "run", "sentence"}


def test_the_end_of_the_rental_is_announced_once(listening: Notifier, heard: Path) -> None:
    end = NOON + timedelta(hours=3)
    for minutes in (0, 59, 60, 61, 120):
        listening.step(NOON + timedelta(minutes=minutes), end)
    listening.finish()
    assert [(event["event"], event["sentence"]) for event in told(heard)] == [
        ("deadline near", "the rental ends in 120 min")
    ]


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (["/no/such/program"], "/no/such/program: No such file or directory"),
        ([sys.executable, "-c", "raise SystemExit(7)"], f"{sys.executable} ended with 7"),
        ([sys.executable, "-c", "import time; time.sleep(600)"], f"{sys.executable} did not end within 1 s"),
    ],
)
def test_a_program_that_does_not_work_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: list[str], problem: str
) -> None:
    monkeypatch.setattr(notify, "TIMEOUT_SECONDS", 1.0)
    notifier = Notifier(CampaignFiles(tmp_path / "c"), program)
    notifier.hear(failed(), Campaign())
    notifier.hear(failed(), Campaign())
    said = [notifier.step(NOON, None), notifier.finish(), notifier.step(NOON, None)]
    assert list(filter(None, said)) == [problem]


def test_nobody_waits_while_a_program_works(tmp_path: Path) -> None:
    go = tmp_path / "go"
    patient = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)"
    notifier = Notifier(CampaignFiles(tmp_path / "c"), [sys.executable, "-c", patient, str(go)])
    notifier.hear(failed(), Campaign())
    assert notifier.step(NOON, None) is None
    go.touch()
    assert notifier.finish() is None


def test_an_event_longer_than_a_pipe_is_cut_and_a_program_that_does_not_read_is_no_failure(tmp_path: Path) -> None:
    notifier = Notifier(CampaignFiles(tmp_path / "c"), ["true"])
    notifier.hear(failed("길" * 200_000), Campaign())
    assert notifier.finish() is None


def test_without_a_command_nothing_is_started(tmp_path: Path) -> None:
    notifier = Notifier(CampaignFiles(tmp_path / "c"), ())
    notifier.hear(failed(), Campaign())
    assert notifier.finish() is None
    assert not [p for p in psutil.Process(os.getpid()).children() if p.status() != psutil.STATUS_ZOMBIE]


def test_no_settings_are_no_problem(settings: Path) -> None:
    assert read_preferences() == Preferences(notify=())
    settings.write_text('[notify]\ncommand = ["say", "it"]\n')
    assert read_preferences().notify == ("say", "it")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[notify", "is not valid TOML"),
        ('[notify]\ncommand = "say it"\n', "notify.command: must be a list of words"),
        ("[notify]\ncommand = [1]\n", "notify.command: must be a list of words"),
        ('[notify]\ncomand = ["a"]\n', "notify: holds only command"),
        ("[bell]\n", "bell: unknown section"),
        ("notify = 3\n", "notify: holds only command"),
    ],
)
def test_broken_settings_are_a_sentence_with_the_file_and_nothing_else_stops(
    settings: Path, tmp_path: Path, text: str, problem: str
) -> None:
    settings.write_text(text)
    with pytest.raises(BrokenSettings) as broken:
        read_preferences()
    assert str(broken.value).startswith(f"{settings}: ") and problem in str(broken.value)
    notifier = notifier_for(CampaignFiles(tmp_path / "c"))
    notifier.hear(failed(), Campaign())
    assert notifier.step(NOON, None) == str(broken.value)
    assert notifier.step(NOON, None) is None


@pytest.fixture
def campaign(model: Path, tmp_path: Path) -> Iterator[CampaignFiles]:
    """A campaign whose data cannot be used, so that it ends at once."""
    files = tiny_campaign(tmp_path / "c", model)
    (files.data / "train.jsonl").write_text("{ no row\n")
    yield files
    for process in psutil.process_iter(["cmdline"]):
        if str(files.root) in " ".join(process.info["cmdline"] or []):
            process.kill()


def test_a_supervisor_tells_before_it_ends_and_journals_a_program_that_fails_once(
    campaign: CampaignFiles, settings: Path, heard: Path
) -> None:
    settings.write_text(f"[notify]\ncommand = {[sys.executable, '-c', LISTENER, str(heard)]!r}\n")
    start(campaign)
    until(lambda: not supervisor_alive(campaign), "the campaign ends")
    assert [event["event"] for event in told(heard)] == ["fault"]
    assert "train.jsonl" in str(told(heard)[0]["sentence"])
    settings.write_text('[notify]\ncommand = ["false"]\n')
    Journal(campaign.journal, "cli").append("note", text="again")
    start(campaign)
    until(lambda: not supervisor_alive(campaign), "the campaign ends again")
    rows = read_journal(campaign.journal)
    assert [r["cause"] for r in rows if r["event"] == "notify-failed"] == ["false ended with 1"]
    assert not fold(rows).supervising
