"""One campaign at a time has a place of the host, as long as anything of it works there (B4, K17)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ftui.engine.client import request_stop, start, supervisor_alive, supervisor_pid
from ftui.engine.launch import rendezvous_port
from ftui.engine.leases import Leases, LeasesRefused, PlaceTaken, default_folder
from ftui.engine.placement import Place
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.state import Campaign, fold
from ftui.record.summary import summarise, summary_text
from tests.builders.processes import until
from tests.builders.tiny import tiny_campaign

FIRST, SECOND = Place("cuda", 0), Place("cuda", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "leases"
    made.mkdir(mode=0o700)
    return made


def leases(folder: Path, name: str) -> Leases:
    return Leases(CampaignFiles(folder / name), folder)


def holder(inherits: tuple[int, ...]) -> subprocess.Popen[bytes]:
    """A process that does nothing but live, with these descriptors, until its input closes."""
    return subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=inherits
    )


def test_a_place_has_one_campaign_at_a_time_and_says_which(folder: Path) -> None:
    ours, theirs = leases(folder, "słowa"), leases(folder, "other")
    ours.take((FIRST,), "run:r001")
    assert ours.has(FIRST) and not theirs.has(FIRST)
    assert ours.is_free(FIRST) and not theirs.is_free(FIRST) and theirs.is_free(SECOND)
    assert theirs.used_by(FIRST) == "campaign słowa"
    with pytest.raises(PlaceTaken, match="gpu 0 is used by campaign słowa"):
        theirs.take((SECOND, FIRST), "run:r001")
    assert ours.is_free(SECOND), "who does not get all takes none"
    ours.keep_only([])
    theirs.take((FIRST, SECOND), "run:r001")
    assert not ours.is_free(FIRST) and ours.used_by(SECOND) == "campaign other"


def test_a_place_is_kept_by_what_trains_on_it_when_its_supervisor_is_gone(folder: Path) -> None:
    ours, theirs = leases(folder, "ours"), leases(folder, "theirs")
    ours.take((FIRST,), "run:r001")
    process = holder(ours.descriptors((FIRST,)))
    ours.keep_only([])
    assert not theirs.is_free(FIRST)
    process.kill()
    process.wait()
    assert theirs.is_free(FIRST)


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    for made in ("open", "link", "file"):
        path = tmp_path / made
        if made == "open":
            path.mkdir()
            path.chmod(0o777)
        elif made == "link":
            (tmp_path / "elsewhere").mkdir(mode=0o700)
            path.symlink_to(tmp_path / "elsewhere")
        else:
            path.write_text("")
        with pytest.raises(LeasesRefused, match="nobody else can enter"):
            leases(path, "c")


def test_leases_lie_where_every_session_of_the_user_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FTUI_LEASES")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    assert default_folder() == Path(f"/tmp/ftui-{os.getuid()}")


def test_two_runs_started_at_once_never_meet_at_one_port() -> None:
    """K17: even before either listens; and what somebody else listens at is passed over."""
    kinds: tuple[Place, ...] = tuple(Place("cuda", i) for i in range(16)) + tuple(Place("cpu", i) for i in range(64))
    ports = [rendezvous_port((place,)) for place in kinds]
    assert len({*ports}) == len(ports) and 0 not in ports
    with socket.socket() as taken:
        taken.bind(("", ports[0]))
        taken.listen()
        other = rendezvous_port((FIRST, SECOND))
    assert other not in ports


@pytest.fixture
def cleanup() -> Iterator[list[CampaignFiles]]:
    """Campaigns whose processes must not outlive the test."""
    started: list[CampaignFiles] = []
    yield started
    for files in started:
        for process in psutil.process_iter(["cmdline"]):
            if str(files.root) in " ".join(process.info["cmdline"] or []):
                process.kill()


def training(*campaigns: CampaignFiles) -> list[int]:
    """Training processes of these campaigns that live now."""
    roots = [str(files.root) for files in campaigns]
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        words = process.info["cmdline"] or []
        if "ftui.train" in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            found += [process.info["pid"]] if any(word.startswith(root) for word in words for root in roots) else []
    return found


def state_of(files: CampaignFiles) -> Campaign:
    return fold(read_journal(files.journal))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_campaigns_share_one_slot_and_a_killed_supervisor_frees_it_when_its_run_ends(
    model: Path, tmp_path: Path, cleanup: list[CampaignFiles]
) -> None:
    changes = {"training__amount": 20_000, "training__validate_every": 5_000, "machine__slots": 1}
    first = tiny_campaign(tmp_path / "first", model, **changes)
    second = tiny_campaign(tmp_path / "second", model, **changes)
    cleanup += [first, second]
    start(first)
    start(second)
    most = 0

    def look() -> bool:
        nonlocal most
        most = max(most, len(training(first, second)))
        return any(run.kind == "train" for run in state_of(first).runs_of("running"))

    until(look, "the first trains", 400)
    os.kill(supervisor_pid(first) or 0, signal.SIGKILL)
    until(lambda: not supervisor_alive(first), "its supervisor is gone")
    run = next(run for run in state_of(first).runs_of("running"))
    assert psutil.pid_exists(run.attempts[-1].pid or 0)
    sentence = "waiting for a place: cpu place 0 is used by campaign first"
    until(lambda: state_of(second).waiting_for == sentence, "the second says what it waits for")
    assert sentence in summary_text(summarise(second, alive=True))
    seen = len(state_of(second).events)
    os.kill(run.attempts[-1].pid or 0, signal.SIGKILL)

    def goes_on() -> bool:
        nonlocal most
        most = max(most, len(training(first, second)))
        later = [row["event"] for row in state_of(second).events[seen:]]
        return "gates-started" in later or "run-started" in later

    until(goes_on, "the second goes on", 400)
    assert most == 1
    request_stop(second, None, "cli")
    until(lambda: not supervisor_alive(second), "it stops")
