"""`ftui stop`, `pause`, `resume`, `priority`, `relaunch`: exit codes, sentences, one JSON document, and what they leave behind."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ftui.engine.client import start, supervisor_alive
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.state import Campaign, fold
from tests.builders.campaign import build_campaign
from tests.builders.processes import module, until

WHY = ("--because", "Eight are too few; 더 크게.")


@pytest.fixture
def recorded(tmp_path: Path) -> CampaignFiles:
    """Recorded without its data and without a supervisor; one that is started answers what waits, and ends."""
    return build_campaign(tmp_path, "running").files


def ftui(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return module("ftui.cli", *words)


def answered(files: CampaignFiles) -> Campaign:
    start(files)
    until(lambda: not supervisor_alive(files), "the supervisor ends")
    return fold(read_journal(files.journal))


def test_without_a_supervisor_wishes_wait_and_the_next_one_grants_them(recorded: CampaignFiles) -> None:
    asked = ftui("relaunch", recorded.root, "r003", "--set", "rank=16", "--set", "learning_rate = 5e-5", *WHY)
    assert asked.returncode == 0 and "waits until somebody supervises" in asked.stdout, asked.stderr
    document = json.loads(ftui("priority", recorded.root, "r008", "-3", "--json").stdout)
    assert (document["answer"], document["run"], document["priority"]) == ("waiting", "r008-double-rate-s18", -3)
    assert ftui("pause", recorded.root).returncode == 0
    assert "3 requests wait for an answer" in ftui("status", recorded.root).stdout
    state = answered(recorded)
    new = state.runs["r009-control-s17"]
    assert (new.follows, new.because) == ("r003-control-s17", WHY[1])
    assert new.change == {"method.rank": 16, "training.learning_rate": 5e-5}
    assert state.paused and state.runs["r008-double-rate-s18"].priority == -3
    status = ftui("status", recorded.root).stdout
    assert ", paused" in status and "follows r003-control-s17: Eight are too few; 더 크게." in status
    assert status.index("r009") < status.index("r008"), "in the order in which they will start"
    assert ftui("resume", recorded.root).returncode == 0 and not answered(recorded).paused


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("stop",), 3, "is not running; there is nothing to stop"),
        (("stop", "r005", "--kill"), 3, "is not running; there is nothing to stop"),
        (("resume",), 3, "the queue is not paused"),
        (("pause", "r099"), 3, "there is no run 'r099'; there are r001-base-s17"),
        (("pause", "r001"), 3, "r001-base-s17 is completed"),
        (("priority", "r001", "3"), 3, "only a run that waits has a place in the queue"),
        (("priority", "r008", "high"), 2, "invalid int value: 'high'"),
        (("priority", "r008", "99999999"), 2, "less than or equal to 1000000"),
        (("relaunch", "r003", "--set", "rank=8", *WHY), 3, "'method.rank' is already 8 in r003-control-s17"),
        (("relaunch", "r001", "--set", "rank=16", *WHY), 3, "is the base model, which is not trained"),
        (("relaunch", "r003", "--set", "rnak=16", *WHY), 2, "rank"),
        (("relaunch", "r003", "--set", "rank=16"), 2, "--because"),
        (("relaunch", "r003", "--set", "rank=16", "--because", " "), 2, "--because needs words"),
    ],
)
def test_what_cannot_be_has_its_code_and_its_reason_and_leaves_nothing(
    recorded: CampaignFiles, words: tuple[str, ...], code: int, said: str
) -> None:
    answer = ftui(words[0], recorded.root, *words[1:])
    assert answer.returncode == code, answer.stderr
    assert said in answer.stderr and answer.stdout == "" and "Traceback" not in answer.stderr
    assert not recorded.requests.exists()


def test_a_campaign_that_was_never_launched_has_no_queue(tmp_path: Path) -> None:
    files = build_campaign(tmp_path, "planned").files
    answer = ftui("pause", files.root)
    assert answer.returncode == 3 and "was never launched; there is no queue yet" in answer.stderr
