"""Copies under a supervisor: made without being asked for, told once, and after everything else has ended once more (R7)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ftui.engine.client import request_stop, start, supervisor_alive
from ftui.record.backup import backup_in_force, safety
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.lines import Row
from ftui.record.state import fold
from tests.builders.copies import contents
from tests.builders.processes import module, until
from tests.builders.tiny import tiny_campaign


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there"


@pytest.fixture
def campaign(model: Path, tmp_path: Path, there: Path) -> Iterator[CampaignFiles]:
    """A campaign that is copied; what it started must not outlive the test."""
    files = tiny_campaign(tmp_path / "c", model, backup={"destination": str(there)}, training__amount=8, variants=[])
    yield files
    for process in psutil.process_iter(["cmdline"]):
        if str(files.root) in " ".join(process.info["cmdline"] or []):
            process.kill()


def copies_told(files: CampaignFiles) -> list[Row]:
    return [row for row in read_journal(files.journal) if row["event"] == "copy-ended"]


def ended(files: CampaignFiles) -> bool:
    return not supervisor_alive(files)


@pytest.mark.timeout(900)
def test_a_campaign_that_has_ended_is_safe_to_its_last_line(campaign: CampaignFiles, there: Path) -> None:
    start(campaign)
    until(lambda: ended(campaign), "the campaign is closed", 800)
    assert fold(read_journal(campaign.journal)).closed
    assert [row["cause"] for row in copies_told(campaign)] == [None]
    assert (there / "journal.jsonl").read_bytes() == campaign.journal.read_bytes()
    assert (there / "report" / "report.json").read_bytes() == campaign.report_json.read_bytes()
    copied = contents(there)
    assert copied.items() <= contents(campaign.root).items()
    assert any(path.startswith("exports/") for path in copied) and any("/checkpoints/step-" in path for path in copied)
    status = json.loads(module("ftui.cli", "status", campaign.root, "--json").stdout)["copies"]
    assert (status["files"], status["bytes"], status["cause"]) == (0, 0, None) and status["since"]
    assert module("ftui.cli", "report", there).returncode == 0


def test_what_goes_wrong_early_is_copied_too(campaign: CampaignFiles, there: Path) -> None:
    (campaign.data / "train.jsonl").write_text("{ no row\n")
    start(campaign)
    until(lambda: ended(campaign), "the campaign ends")
    assert fold(read_journal(campaign.journal)).faults
    assert (there / "journal.jsonl").read_bytes() == campaign.journal.read_bytes()
    assert safety(campaign, backup_in_force(campaign, fold(read_journal(campaign.journal)))).files == 0


def test_a_destination_that_fails_is_told_once_shown_and_does_not_keep_a_stop_waiting(
    campaign: CampaignFiles, there: Path
) -> None:
    there.write_text("a file where the folder should be")
    start(campaign)
    until(lambda: copies_told(campaign), "the failure is told")
    until(lambda: fold(read_journal(campaign.journal)).gates, "the campaign goes on all the same")
    said = module("ftui.cli", "status", campaign.root).stdout
    assert "not safe elsewhere yet" in said and f"the last copy failed: {there}: Not a directory" in said
    request_stop(campaign, None, "cli")
    until(lambda: ended(campaign), "the campaign stops")
    assert [row["cause"] for row in copies_told(campaign)] == [f"{there}: Not a directory"]
