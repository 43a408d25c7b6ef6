"""A disk that is full, a real one of a megabyte: what has to be written down waits for room (K20)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ftui.engine.room import has_room, when_there_is_room, without_room
from ftui.record.journal import Journal, read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.state import Attempt, Campaign, Run


@pytest.fixture
def full(tmp_path: Path) -> Iterator[CampaignFiles]:
    """A campaign's directory on a file system that its file `filler` fills, with one event in its journal."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]).returncode:
        pytest.skip("this user may mount nothing")
    try:
        files = CampaignFiles(folder)
        Journal(files.journal, "supervisor").append("phase", phase="preflight")
        with (folder / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(b"0" * 512)
        yield files
    finally:
        subprocess.run(["umount", str(folder)], check=True)


WRITES = """
import sys
from pathlib import Path
from ftui.engine.room import when_there_is_room
from ftui.record.journal import Journal

def write():
    print("tries", flush=True)
    return Journal(Path(sys.argv[1]), "supervisor").append("note", text="x" * 9000)

_, waited = when_there_is_room(write, check_every=0.05)
print(waited > 0)
"""


def test_an_event_waits_for_room_and_is_then_written_once(full: CampaignFiles) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITES, str(full.journal)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(3)] == ["tries\n"] * 3
    assert [row["event"] for row in read_journal(full.journal)] == ["phase"]
    (full.root / "filler").unlink()
    rest, _ = process.communicate(timeout=60)
    assert rest.splitlines()[-1] == "True"
    assert [row["event"] for row in read_journal(full.journal)] == ["phase", "note"]


def test_another_fault_is_raised_at_once_and_patience_ends(full: CampaignFiles, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        when_there_is_room(lambda: (tmp_path / "no" / "file").write_text("x"))
    journal = Journal(full.journal, "supervisor")
    with pytest.raises(OSError, match="No space left"):
        when_there_is_room(
            lambda: journal.append("note", text="x" * 9000), check_every=0.01, patience=timedelta(seconds=0.1)
        )


def test_room_is_what_two_more_checkpoints_take(tmp_path: Path) -> None:
    files = CampaignFiles(tmp_path).run("r002-control-s7")
    assert has_room(files), "nothing was written yet"
    newest = files.checkpoints / "step-00000020"
    newest.mkdir(parents=True)
    with (newest / "model.safetensors").open("wb") as file:
        file.truncate(shutil.disk_usage(tmp_path).free // 2)  # sparse: its size counts, not what it takes
    assert not has_room(files)
    moment = datetime(2026, 12, 1, tzinfo=UTC)
    attempt = Attempt(1, moment, 1, ended_at=moment, status="lost", kind="machine", fault="disk full", reached=20)
    run = Run("r002-control-s7", 2, "control", 7, "train", 0, {}, "b", status="lost", attempts=[attempt])
    state = Campaign(runs={run.id: run})
    assert without_room(state, CampaignFiles(tmp_path)) == {"r002-control-s7"}
    attempt.fault = "killed"
    assert without_room(state, CampaignFiles(tmp_path)) == frozenset()
