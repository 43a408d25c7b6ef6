"""`python -m ftui.engine.copy CAMPAIGN_DIRECTORY`: copy what is new to the plan's destination, and say what is safe there (R7).

Exit code 0: what could be copied is safe; 1: not, with the cause as the last line of standard error; 3: the plan names no destination;
75: another copy is going on. It may be killed at any moment: only what was verified is in `backup.json`, the next copy does the rest.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from ftui.engine.destination import Destination, DestinationError, Found, open_destination
from ftui.engine.hand_over import hand_over
from ftui.engine.reading import Source, SourceChanged
from ftui.plan.schema import Backup
from ftui.record.backup import (
    BackupState,
    Fingerprint,
    LastCopy,
    SafeFile,
    backup_in_force,
    files_to_keep,
    read_backup,
    superseded,
    write_backup,
)
from ftui.record.journal import read_journal, stamp
from ftui.record.layout import CampaignFiles
from ftui.record.state import fold

FAILED, NO_DESTINATION, BUSY = 1, 3, 75
SAVE_SECONDS = 5.0
"""At most so much verified copying has to be verified again after a kill."""


class AnotherCopy(Exception):
    """A copy of this campaign is going on."""


@dataclass
class _Ledger:
    """What one copy has made safe so far."""

    files: CampaignFiles
    state: BackupState
    copied: int = 0
    bytes: int = 0
    left: int = 0
    _saved_at: float = field(default_factory=time.monotonic)

    def note(self, path: str, kept: SafeFile) -> None:
        """Take note of a verified file, and write that down from time to time."""
        self.state.files[path] = kept
        self.copied, self.bytes = self.copied + 1, self.bytes + kept.size
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        write_backup(self.files, self.state)
        self._saved_at = time.monotonic()

    def new(self, wanted: dict[str, Fingerprint]) -> list[str]:
        """Files that are not safe as they are now."""
        known = self.state.files
        return [path for path, now in wanted.items() if path not in known or known[path].source != now]


def copy_campaign(files: CampaignFiles, backup: Backup) -> LastCopy:
    """Copy what is new, and return how that went; a failure is in it, not raised. Raises `AnotherCopy`."""
    with _alone(files):
        begun, cause = stamp(), None
        ledger = _Ledger(files, read_backup(files, backup))
        wanted = files_to_keep(files, backup.what)
        try:
            if backup.command is not None:
                given, ledger.left = hand_over(files, backup.command, ledger.new(wanted))
                for path, kept in given.items():
                    ledger.note(path, kept)
            elif backup.destination is not None:
                _to_destination(files, open_destination(backup.destination), wanted, ledger)
        except DestinationError as error:
            cause = str(error)
        except OSError as error:  # of this machine: a full disk, a file that cannot be read
            cause = f"{error.filename or files.root}: {error.strerror or error}"
        if cause is None and ledger.left == 0:
            ledger.state.whole_at = begun
        last = LastCopy(at=stamp(), copied=ledger.copied, bytes=ledger.bytes, left=ledger.left, cause=cause)
        ledger.state.last = last
        ledger.save()
        return last


@contextmanager
def _alone(files: CampaignFiles) -> Iterator[None]:
    """Hold the campaign's copying; released by death, too."""
    descriptor = os.open(files.backup_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise AnotherCopy(f"another copy of {files.name} is going on") from None
    finally:
        os.close(descriptor)


def _to_destination(
    files: CampaignFiles, destination: Destination, wanted: dict[str, Fingerprint], ledger: _Ledger
) -> None:
    known = ledger.state.files
    there = destination.listing()
    if not known:
        _refuse_another_campaigns(files, destination, there)
    _forget_what_is_lost(destination, there, known)
    todo = ledger.new(wanted)
    if not destination.renames:
        for path in todo:
            known.pop(path, None)  # for a moment, the destination will have neither the old nor the new
    ledger.save()
    destination.begin()
    for path in todo:
        try:
            ledger.note(path, _copy(files.root, path, destination, there.get(path)))
        except SourceChanged:
            ledger.left += 1
    for path in superseded(ledger.state, files_to_keep(files, ("checkpoints",))):
        del known[path]
        ledger.save()
        destination.remove(path)
    destination.end()


def _refuse_another_campaigns(files: CampaignFiles, destination: Destination, there: Iterable[str]) -> None:
    """Two campaigns at one place would overwrite each other; a journal says whose it is from its first lines on."""
    if "journal.jsonl" not in there:
        return
    theirs = destination.head("journal.jsonl", 4096)
    with files.journal.open("rb") as file:
        if theirs != file.read(len(theirs)):
            raise DestinationError("the destination holds another campaign; give each campaign a place of its own")


def _forget_what_is_lost(destination: Destination, there: dict[str, Found], known: dict[str, SafeFile]) -> None:
    """Take what was removed, cut or changed at the destination out of `known`; it is copied again where it still exists here."""
    for path, kept in list(known.items()):
        found = there.get(path)
        if found is None or found.size != kept.size:
            del known[path]
        elif found.token != kept.there:
            del known[path]  # even while it is read again, nobody knows whether it is still right
            if destination.digest(path) == kept.sha256:
                known[path] = kept.model_copy(update={"there": found.token})


def _copy(root: Path, path: str, destination: Destination, found: Found | None) -> SafeFile:
    """Copy one file and verify it, or find that a copy of it is there. Raises `SourceChanged`, `DestinationError`."""
    with Source(root, path) as source:
        if found is not None and found.size == source.size:
            digest = hashlib.sha256()
            for block in source.blocks():
                digest.update(block)
            if destination.digest(path) == digest.hexdigest():
                return source.kept(digest.hexdigest(), found.token)
        written = hashlib.sha256()

        def read() -> Iterator[bytes]:
            for block in source.blocks():
                written.update(block)
                yield block

        destination.aside(read())
        if destination.digest_aside() != written.hexdigest():
            raise DestinationError(f"{path}: what is read back is not what was written")
        there = destination.publish(path)
        if there.size != source.size:
            raise DestinationError(f"{path}: has {there.size:,} bytes there instead of {source.size:,}")
        return source.kept(written.hexdigest(), there.token)


def _step_back() -> None:
    """Let everything else go first: training must not notice. On a busy disk a copy still gets its turn, or nothing would be safe."""
    os.nice(19)
    with suppress(AttributeError, OSError, psutil.Error):
        psutil.Process().ionice(psutil.IOPRIO_CLASS_BE, 7)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m ftui.engine.copy")
    parser.add_argument("campaign", type=Path)
    files = CampaignFiles(parser.parse_args(arguments).campaign.resolve())
    _step_back()
    backup = backup_in_force(files, fold(read_journal(files.journal)))
    if backup is None:
        print("ftui: the plan names no destination", file=sys.stderr)
        return NO_DESTINATION
    try:
        last = copy_campaign(files, backup)
    except AnotherCopy as busy:
        print(f"ftui: {busy}", file=sys.stderr)
        return BUSY
    except OSError as error:  # backup.json itself could not be written
        print(f"ftui: {error.filename or files.root}: {error.strerror or error}", file=sys.stderr)
        return FAILED
    if last.cause is not None:
        print(f"ftui: {last.cause}", file=sys.stderr)
    return FAILED if last.cause is not None else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
