"""What is called safe elsewhere is there, whatever happened to the copying; and the next copy does what is left (R7)."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from ftui.engine.copies import LAST_TRIES, Copies, last_seconds
from ftui.engine.copy import BUSY, FAILED, copy_campaign
from ftui.engine.destination import open_destination
from ftui.engine.reading import Source, SourceChanged
from ftui.plan.schema import Backup
from ftui.record.backup import read_backup, safety, safety_words
from ftui.record.files import locked
from ftui.record.journal import Journal
from ftui.record.layout import CampaignFiles
from tests.builders.campaign import build_campaign
from tests.builders.copies import RUN, backed_up, called_safe_is_there, checkpoint, contents
from tests.builders.processes import ENVIRONMENT, module, start_module, until


def text_of(there: Path) -> str:
    return f'destination = "{there}"'


def copy_process(files: CampaignFiles) -> subprocess.CompletedProcess[str]:
    return module("ftui.engine.copy", files.root)


def test_record_exports_and_sealed_checkpoints_arrive_byte_for_byte(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, text_of(there))
    (files.root / "model").symlink_to(tmp_path)
    (files.runs / RUN / "elsewhere.json").symlink_to(files.plan)
    last = copy_campaign(files, backup)
    assert (last.cause, last.left) == (None, 0)
    copied, here = contents(there), contents(files.root)
    assert copied.items() <= here.items()
    missing = {path for path in here.keys() - copied.keys() if not path.startswith("model/")}
    unsealed = f"runs/{RUN}/checkpoints/step-00000150/model.safetensors"
    assert (
        missing
        == {"backup.json", "backup.lock", "supervisor.json", unsealed, f"runs/{RUN}/elsewhere.json"} & here.keys()
    )
    assert called_safe_is_there(files, backup, there) == len(copied) == last.copied
    assert safety(files, backup).files == 0


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_a_url_gets_the_same_as_a_folder(tmp_path: Path, scheme: str) -> None:
    files, by_folder = backed_up(tmp_path, text_of(tmp_path / "there"))
    copy_campaign(files, by_folder)
    url = f"{scheme}://{tmp_path}/by-url"
    backup = Backup(destination=url)
    assert copy_campaign(files, backup).cause is None
    place, folder = open_destination(url), contents(tmp_path / "there")
    assert {path: place.head(path, 1 << 20) for path in place.listing()} == folder
    assert copy_campaign(files, backup).copied == 0
    assert safety(files, backup).files == 0


def test_only_what_is_new_is_copied(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, text_of(there))
    copy_campaign(files, backup)
    before = {path: (there / path).stat().st_mtime_ns for path in contents(there)}
    Journal(files.journal, "cli").append("note", text="one more")
    checkpoint(files, 200)
    found = safety(files, backup)
    assert found.files == 3 and "not safe elsewhere yet: 3 files" in safety_words(found)
    assert copy_campaign(files, backup).copied == 3
    assert {path for path in before if (there / path).stat().st_mtime_ns != before[path]} == {"journal.jsonl"}
    assert called_safe_is_there(files, backup, there) == len(before) + 2


def test_a_growing_file_is_copied_up_to_its_last_complete_line(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, text_of(there))
    series = files.run(RUN).series
    whole = series.read_bytes()
    with series.open("ab") as file:
        file.write(b'{"k":"update","upda')
    copy_campaign(files, backup)
    copied = there / series.relative_to(files.root)
    assert copied.read_bytes() == whole
    with series.open("ab") as file:
        file.write(b'te":201}\n')
    assert safety(files, backup).files == 1
    copy_campaign(files, backup)
    assert copied.read_bytes() == series.read_bytes()


def test_a_killed_copy_calls_nothing_safe_that_is_not_and_the_next_completes_it(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, text_of(there))
    large = checkpoint(files, 250, size=300 << 20) / "model.safetensors"
    aside = there / ".ftui-incoming" / "file"
    copying = start_module("ftui.engine.copy", files.root)
    until(lambda: aside.exists() and aside.stat().st_size > 1 << 20, "the large file is under way")
    copying.kill()
    copying.wait()
    assert not (there / large.relative_to(files.root)).exists()
    called_safe_is_there(files, backup, there)
    assert large.relative_to(files.root).as_posix() not in read_backup(files, backup).files
    done = copy_process(files)
    assert done.returncode == 0, done.stderr
    assert safety(files, backup).files == 0
    assert not aside.parent.exists()
    called_safe_is_there(files, backup, there)


def test_copies_verified_before_a_kill_are_found_again_without_being_written(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, text_of(there))
    copy_campaign(files, backup)
    before = {path: (there / path).stat().st_mtime_ns for path in contents(there)}
    files.backup.unlink()
    assert safety(files, backup).files == len(before)
    assert copy_campaign(files, backup).cause is None
    assert {path: (there / path).stat().st_mtime_ns for path in contents(there)} == before
    assert safety(files, backup).files == 0


FULL = """
mount -t tmpfs -o size=600k tmpfs "$THERE" || exit 99
"$PYTHON" -m ftui.engine.copy "$CAMPAIGN"; first=$?
cp -r "$THERE" "$KEPT"
mount -o remount,size=60m "$THERE" || exit 99
cp "$CAMPAIGN/backup.json" "$KEPT.json"
"$PYTHON" -m ftui.engine.copy "$CAMPAIGN" && cp -r "$THERE" "$KEPT-then" && exit $first
"""
"""Copies to a destination of 600 kB, keeps what is there, and copies again when it has grown."""


def test_a_full_destination_holds_what_is_called_safe_and_the_next_copy_the_rest(tmp_path: Path) -> None:
    there, kept = tmp_path / "there", tmp_path / "kept"
    there.mkdir()
    files, backup = backed_up(tmp_path, text_of(there))
    checkpoint(files, 200, size=900_000)
    names = {"THERE": str(there), "KEPT": str(kept), "CAMPAIGN": str(files.root), "PYTHON": sys.executable}
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FULL]
    done = subprocess.run(command, env=ENVIRONMENT | names, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode not in (0, FAILED):
        pytest.skip(f"no file system of its own can be mounted here: {done.stderr}")
    assert done.returncode == FAILED and "No space left on device" in done.stderr
    then = read_backup(files, backup)
    Path(f"{kept}.json").replace(files.backup)  # as it was when the destination was full
    full = read_backup(files, backup)
    assert full.last is not None and full.last.cause is not None and full.whole_at is None
    assert 0 < called_safe_is_there(files, backup, kept) < len(then.files)
    assert safety(files, backup).files > 0 and "the last copy failed" in safety_words(safety(files, backup))
    assert contents(tmp_path / "kept-then").keys() == then.files.keys()
    assert then.last is not None and then.last.cause is None


def test_an_unreachable_destination_is_a_sentence_and_nothing_is_safe(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    files, backup = backed_up(tmp_path, text_of(tmp_path / "file" / "there"))
    done = copy_process(files)
    assert done.returncode == FAILED
    assert done.stderr.splitlines()[-1] == f"ftui: {tmp_path}/file/there: Not a directory"
    found = safety(files, backup)
    assert found.files > 40 and found.since is None and found.cause is not None
    (tmp_path / "file").unlink()
    assert copy_process(files).returncode == 0
    assert safety(files, backup).files == 0


@pytest.mark.parametrize("harm", ["other bytes", "shorter", "gone"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_file_damaged_at_the_destination_is_copied_again(tmp_path: Path, harm: str, scheme: str) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, f'destination = "{scheme}{there}"')
    copy_campaign(files, backup)
    victim = there / "exports" / "best" / "adapter.safetensors"
    right = victim.read_bytes()
    if harm == "gone":
        victim.unlink()
    else:
        victim.write_bytes(b"x" + right[1:] if harm == "other bytes" else right[:-1])
    assert copy_campaign(files, backup).copied == 1
    assert victim.read_bytes() == right
    called_safe_is_there(files, backup, there)


def test_damage_that_cannot_be_mended_now_is_not_called_safe(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, text_of(there))
    copy_campaign(files, backup)
    victim = there / "exports" / "best" / "adapter.safetensors"
    victim.write_bytes(b"x" + victim.read_bytes()[1:])
    (there / ".ftui-incoming").write_text("in the way, and cannot be removed as a folder")
    last = copy_campaign(files, backup)
    assert last.cause is not None
    assert safety(files, backup).files == 1


def test_a_file_that_changes_while_it_is_read_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(b"a" * 100)
    (tmp_path / "series.jsonl").write_bytes(b"{}\n" * 100)
    with Source(tmp_path, "report.json") as source:
        blocks = source.blocks()
        next(blocks)
        (tmp_path / "report.json").write_bytes(b"b" * 100)
        with pytest.raises(SourceChanged):
            next(blocks)
    with Source(tmp_path, "series.jsonl") as source:
        with (tmp_path / "series.jsonl").open("ab") as file:
            file.write(b"{}\n")
        assert b"".join(source.blocks()) == b"{}\n" * 100
    with Source(tmp_path, "series.jsonl") as source:
        (tmp_path / "aside").write_bytes(b"{}\n" * 300)  # a resumed run cuts its series by writing it anew
        (tmp_path / "aside").replace(tmp_path / "series.jsonl")
        with pytest.raises(SourceChanged):
            list(source.blocks())


class Faulty(MemoryFileSystem):
    """A file system of fsspec that loses a bit of what is written, or the connection, in the middle of a file of some size."""

    protocol = "faulty"
    store: ClassVar[dict[str, object]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    harm = ""

    def open(self, path: str, mode: str = "rb", *args: object, **options: object) -> object:
        file = super().open(path, mode, *args, **options)
        if mode == "wb":
            write = file.write

            def faulty(block: bytes) -> int:
                if self.harm == "a bit" and len(block) > 5000:
                    block = bytes(block[:-1]) + bytes([block[-1] ^ 1])
                if self.harm == "the connection" and len(block) > 5000:
                    raise TimeoutError("no answer from the host")
                return int(write(block))

            file.write = faulty
        return file


@pytest.mark.parametrize("harm", ["a bit", "the connection"])
def test_what_is_lost_on_the_way_is_not_called_safe(tmp_path: Path, harm: str) -> None:
    fsspec.register_implementation("faulty", Faulty, clobber=True)
    files, backup = backed_up(tmp_path, f'destination = "faulty://{tmp_path.name}/there"')
    place = open_destination(str(backup.destination))
    Faulty.harm = harm
    cause = copy_campaign(files, backup).cause
    assert cause is not None
    assert ("not what was written" if harm == "a bit" else "no answer from the host") in cause
    assert safety(files, backup).files > 0
    Faulty.harm = ""
    for path, kept in read_backup(files, backup).files.items():
        assert place.digest(path) == kept.sha256
    assert copy_campaign(files, backup).cause is None
    assert {path: place.head(path, 1 << 20) for path in place.listing()}.items() <= contents(files.root).items()
    assert safety(files, backup).files == 0


PROGRAM = """
import pathlib, shutil, sys
source, names, there, harm = sys.argv[1:]
for name in pathlib.Path(names).read_text().splitlines():
    target = pathlib.Path(there, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(pathlib.Path(source, name), target)
if harm == "write":
    path = pathlib.Path(source, "report", "extra.json")
    path.write_text(path.read_text().upper())
if harm == "fail":
    sys.exit("quota exceeded\\x1b[2J")
"""


def by_program(tmp_path: Path, harm: str) -> str:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, str(tmp_path / "program.py"), "{source}", "{files}", str(tmp_path / "there"), harm]
    return f"command = {words!r}"


def test_a_program_is_given_what_is_new_and_its_word_is_kept_as_that(tmp_path: Path) -> None:
    files, backup = backed_up(tmp_path, by_program(tmp_path, "none"))
    assert copy_process(files).returncode == 0
    copied = contents(tmp_path / "there")
    assert copied.items() <= contents(files.root).items()
    assert called_safe_is_there(files, backup, tmp_path / "there") == len(copied)
    assert safety(files, backup).files == 0 and "by its program's word" in safety_words(safety(files, backup))
    assert not files.backup_stage.exists()
    last = copy_campaign(files, backup)
    assert (last.copied, last.cause) == (0, None)


def test_a_program_that_fails_has_made_nothing_safe_and_its_last_words_are_the_cause(tmp_path: Path) -> None:
    files, backup = backed_up(tmp_path, by_program(tmp_path, "fail"))
    done = copy_process(files)
    assert done.returncode == FAILED and done.stderr.splitlines()[-1].endswith("ended with 1: quota exceeded")
    assert read_backup(files, backup).files == {}
    assert Backup(command=["no-such-program", "{source}"]).command is not None
    last = copy_campaign(files, Backup(command=["no-such-program", "{source}"]))
    assert last.cause == "no-such-program: No such file or directory"


def test_a_file_that_changes_under_a_program_is_left_for_the_next_copy(tmp_path: Path) -> None:
    files, backup = backed_up(tmp_path, by_program(tmp_path, "write"))
    (files.report / "extra.json").parent.mkdir(exist_ok=True)
    (files.report / "extra.json").write_text("{}x")
    last = copy_campaign(files, backup)
    assert (last.left, last.cause) == (1, None)
    assert "report/extra.json" not in read_backup(files, backup).files
    assert safety(files, backup).files == 1 and safety(files, backup).since is None


def test_one_copy_at_a_time(tmp_path: Path) -> None:
    files, _ = backed_up(tmp_path, text_of(tmp_path / "there"))
    with locked(files.backup_lock):
        assert copy_process(files).returncode == BUSY
    assert not (tmp_path / "there").exists()
    assert copy_process(files).returncode == 0


def test_the_place_of_another_campaign_is_left_alone(tmp_path: Path) -> None:
    there = tmp_path / "there"
    one, backup = backed_up(tmp_path / "one", text_of(there))
    two, _ = backed_up(tmp_path / "two", text_of(there))
    copy_campaign(one, backup)
    before = contents(there)
    cause = copy_campaign(two, backup).cause
    assert cause is not None and "another campaign" in cause
    assert contents(there) == before and read_backup(two, backup).files == {}


def test_copies_of_checkpoints_go_when_a_newer_one_is_safe_and_not_before(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, text_of(there))
    copy_campaign(files, backup)
    folder = files.run(RUN).checkpoints
    copied = there / folder.relative_to(files.root)
    for step in ("step-00000050", "step-00000100"):
        (folder / step).rename(tmp_path / step)
    copy_campaign(files, backup)  # nothing newer: a disk that lost them must not take the copies along
    assert {path.name for path in copied.iterdir()} == {"step-00000050", "step-00000100"}
    checkpoint(files, 200)
    copy_campaign(files, backup)
    assert {path.name for path in copied.iterdir()} == {"step-00000200"}
    called_safe_is_there(files, backup, there)


def test_another_destination_begins_with_nothing_safe(tmp_path: Path) -> None:
    files, backup = backed_up(tmp_path, text_of(tmp_path / "there"))
    copy_campaign(files, backup)
    assert safety(files, Backup(destination=str(tmp_path / "other"))).since is None
    files.backup.write_text("{ torn")
    assert safety(files, backup).files > 40


def test_the_copy_opens_as_a_campaign_of_its_own(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, text_of(there))
    original = module("ftui.cli", "report", files.root, "--format", "json")
    assert copy_campaign(files, backup).cause is None
    files.root.rename(tmp_path / "gone")
    before = contents(there)
    copied = module("ftui.cli", "report", there, "--format", "json")
    assert copied.returncode == original.returncode == 0, copied.stderr
    name = (f'"campaign": "{files.name}"', '"campaign": "there"')
    assert copied.stdout == original.stdout.replace(*name)
    assert module("ftui.cli", "status", there).returncode == 0
    assert contents(there) == before


# When

LAUNCH = datetime(2026, 12, 1, 9, tzinfo=UTC)
END = LAUNCH + timedelta(days=3)


def later(**time: float) -> datetime:
    return LAUNCH + timedelta(**time)


def clocked(tmp_path: Path, there: Path | None = None) -> tuple[Copies, dict[str, int], CampaignFiles]:
    files, backup = backed_up(tmp_path, text_of(there or tmp_path / "there"))
    checkpoints: dict[str, int] = {}
    return Copies(files, backup, None, lambda: dict(checkpoints)), checkpoints, files


def copied(copies: Copies, moment: datetime, phase: str = "experiment") -> dict[str, object] | None:
    """A real copy, said to have begun and ended at `moment`; what the journal is told of it."""
    job = copies.begin(moment, phase)
    assert job.process is not None
    job.process.wait()
    return copies.ended(job, moment)


def test_a_copy_is_due_at_once_then_regularly_at_checkpoints_phase_ends_and_before_the_end(tmp_path: Path) -> None:
    copies, checkpoints, _ = clocked(tmp_path)
    assert copies.due(LAUNCH, "preflight", END)
    copied(copies, LAUNCH, "preflight")
    assert not copies.due(later(minutes=14), "preflight", END)
    assert copies.due(later(minutes=15), "preflight", END)
    assert copies.due(later(seconds=1), "experiment", END)
    copied(copies, later(minutes=20))
    checkpoints[RUN] = 50
    assert not copies.due(later(minutes=20, seconds=10), "experiment", END)
    assert copies.due(later(minutes=20, seconds=20), "experiment", END)
    copied(copies, later(minutes=21))
    assert not copies.due(later(minutes=21, seconds=40), "experiment", END)
    copied(copies, END - timedelta(minutes=29))
    assert not copies.due(END - timedelta(minutes=27), "experiment", END)
    assert copies.due(END - timedelta(minutes=26), "experiment", END)


def test_a_failing_copy_waits_longer_each_time_and_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    copies, _, _ = clocked(tmp_path, tmp_path / "file" / "there")
    told = copied(copies, LAUNCH)
    assert told is not None and str(told["cause"]).endswith("Not a directory")
    assert not copies.due(later(seconds=59), "experiment", END) and copies.due(later(seconds=60), "experiment", END)
    assert copied(copies, later(minutes=1)) is None
    assert not copies.due(later(minutes=2, seconds=59), "experiment", END)
    assert copies.due(later(minutes=3), "experiment", END)
    for _ in range(8):
        assert copied(copies, later(minutes=3)) is None
    assert not copies.due(later(minutes=32), "experiment", END) and copies.due(later(minutes=33), "experiment", END)
    (tmp_path / "file").unlink()
    told = copied(copies, later(minutes=33))
    assert told is not None and told["cause"] is None
    assert copied(copies, later(minutes=50)) is None


def test_the_last_copy_is_tried_until_the_rental_ends_and_once_when_a_person_stops(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    copies, _, _ = clocked(tmp_path, tmp_path / "file" / "there")

    def failed_last(moment: datetime) -> None:
        job = copies.begin_last()
        assert job.process is not None
        job.process.wait()
        copies.ended(job, moment)

    assert copies.due_last(LAUNCH, closed=True, ends_at=END) == "now"
    failed_last(LAUNCH)
    assert copies.due_last(later(seconds=30), closed=False, ends_at=END) == "no"
    assert copies.due_last(END, closed=True, ends_at=END) == "no"
    assert copies.due_last(later(seconds=30), closed=True, ends_at=END) == "later"
    assert copies.due_last(later(seconds=60), closed=True, ends_at=END) == "now"
    for _ in range(LAST_TRIES - 1):
        failed_last(later(hours=1))
    assert copies.due_last(later(hours=9), closed=True, ends_at=END) == "no"


def test_without_a_destination_nothing_is_ever_due(tmp_path: Path) -> None:
    copies = Copies(CampaignFiles(tmp_path), None, None, dict)
    assert not copies.wanted and not copies.due(LAUNCH, "experiment", END)
    assert copies.due_last(LAUNCH, closed=True, ends_at=END) == "no"


def test_the_last_copy_may_take_what_is_left_of_the_rental_and_a_minute_at_least() -> None:
    assert last_seconds(END - timedelta(hours=2), True, END) == 7200
    assert last_seconds(END + timedelta(hours=2), True, END) == 60
    assert last_seconds(END - timedelta(hours=2), False, END) == 60


def test_a_copy_that_cannot_be_started_waits_like_one_that_failed(tmp_path: Path) -> None:
    copies, _, files = clocked(tmp_path)
    files.backup_log.mkdir()  # where its output would go
    with pytest.raises(OSError) as error:
        copies.begin(LAUNCH, "experiment")
    told = copies.not_begun(error.value, LAUNCH)
    assert told is not None and told["cause"] == "the copy could not be started: Is a directory"
    assert copies.not_begun(error.value, LAUNCH) is None
    assert not copies.due(later(seconds=119), "experiment", END) and copies.due(later(seconds=120), "experiment", END)


def test_a_stop_while_the_last_copy_is_waited_for_ends_the_waiting_and_one_before_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    copies, _, _ = clocked(tmp_path, tmp_path / "file" / "there")
    copies.interrupted()
    assert copies.due_last(LAUNCH, closed=True, ends_at=END) == "now"
    job = copies.begin_last()
    assert job.process is not None
    job.process.wait()
    copies.ended(job, LAUNCH)
    assert copies.due_last(LAUNCH, closed=True, ends_at=END) == "later"
    copies.interrupted()
    assert copies.due_last(later(hours=1), closed=True, ends_at=END) == "no"


# By hand


def test_a_copy_can_be_asked_for_and_says_what_is_safe(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, text_of(there))
    answer = module("ftui.cli", "copy", files.root, "--json")
    assert answer.returncode == 0
    said = json.loads(answer.stdout)
    assert said["cause"] is None and said["copied"] == called_safe_is_there(files, backup, there) > 40
    assert said["safety"]["files"] == 0
    again = module("ftui.cli", "copy", files.root)
    assert again.returncode == 0 and "copied and read back, everything up to" in again.stdout
    for path in sorted(there.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    there.rmdir()
    there.write_text("in the way")
    failed = module("ftui.cli", "copy", files.root)
    assert failed.returncode == 1 and f"the last copy failed: {there}: Not a directory" in failed.stderr


def test_a_copy_without_a_destination_names_the_way_out(tmp_path: Path) -> None:
    answer = module("ftui.cli", "copy", build_campaign(tmp_path, "closed").files.root)
    assert answer.returncode == 3 and "write [backup] into campaign.toml" in answer.stderr


def test_a_destination_on_the_campaigns_own_disk_is_not_called_elsewhere(tmp_path: Path) -> None:
    files, backup = backed_up(tmp_path, text_of(tmp_path / "there"))
    copy_campaign(files, backup)
    found = safety(files, backup)
    assert found.same_disk and "own disk, which ends with the rental" in safety_words(found)
    other = Path("/dev/shm")
    if other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other file system here")
    elsewhere = safety(files, Backup(destination=str(other / "ftui" / "not-made-yet")))
    assert not elsewhere.same_disk and "own disk" not in safety_words(elsewhere)
