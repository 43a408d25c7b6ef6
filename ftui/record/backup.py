"""What is safe elsewhere: which files of a campaign are copied, what `backup.json` says of each, and what is missing (R7).

`backup.json` is written by the process that copies and by nobody else. A file is in it once its copy was verified; a file that was
lost, cut or damaged there is taken out again. What cannot be read counts as nothing: better copied twice than believed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ftui.plan.load import PlanError, load_plan
from ftui.plan.schema import Backup
from ftui.record.files import read_json, replace_json
from ftui.record.journal import parse_time
from ftui.record.layout import CampaignFiles
from ftui.record.state import Campaign
from ftui.record.text import safe, size_words

BACKUP_SCHEMA = 1

NOWHERE = "copied nowhere: the plan names no destination, and what is here ends with the rental"

_GROWING = (".jsonl", ".log", "log.txt")
"""Endings of files that are only ever appended to; their last line may not be complete."""

_OF_THE_PLAN = (".toml", ".json", ".jsonl", ".md", ".log")
"""Endings of the files beside the plan that belong to the record: the plan, what it names, the journal, notes."""

_OWN = ("backup.json", "backup.log", "supervisor.json")
"""Files beside the plan that say something of this machine only."""

_STEP = re.compile(r"runs/(?P<run>[^/]+)/checkpoints/step-(?P<step>\d+)/")


class Fingerprint(BaseModel):
    """What tells without reading that a file is still the same one."""

    model_config = ConfigDict(frozen=True)

    size: int
    mtime_ns: int
    inode: int


class SafeFile(BaseModel):
    """One file whose copy was verified."""

    model_config = ConfigDict(frozen=True)

    size: int
    """Bytes of the copy; of a growing file, up to its last complete line then."""
    sha256: str
    at: str
    source: Fingerprint
    """The file here when it was read."""
    there: str | None
    """What the destination says of its copy without reading it (time, tag); another answer later means reading it again. None: the
    destination cannot be asked."""


class LastCopy(BaseModel):
    """How the latest copy went."""

    model_config = ConfigDict(frozen=True)

    at: str
    copied: int
    """Files written or found there to be right."""
    bytes: int
    left: int
    """Files that changed while they were read; the next copy takes them."""
    cause: str | None
    """Why it ended before its end, None when it did not."""


class BackupState(BaseModel):
    """The content of `backup.json`."""

    backup_schema: int = BACKUP_SCHEMA
    target: str
    """Where the copies are; those at another target count for nothing."""
    files: dict[str, SafeFile] = {}
    """By path relative to the campaign's directory."""
    whole_at: str | None = None
    """Start of the last copy after which nothing was left."""
    last: LastCopy | None = None


def read_backup(files: CampaignFiles, backup: Backup) -> BackupState:
    """What is known to be safe at the target of `backup`; nothing where the file is missing, broken or newer."""
    try:
        state = BackupState.model_validate(read_json(files.backup))
    except (OSError, ValueError):
        return BackupState(target=backup.target)
    if state.backup_schema > BACKUP_SCHEMA or state.target != backup.target:
        return BackupState(target=backup.target)
    return state


def write_backup(files: CampaignFiles, state: BackupState) -> None:
    replace_json(files.backup, state.model_dump())


def backup_in_force(files: CampaignFiles, state: Campaign) -> Backup | None:
    """What the campaign's plan says about copies: as launched or amended, before the launch as the file has it."""
    if state.plan is not None:
        return state.plan.backup
    try:
        return load_plan(files.root).backup
    except PlanError:
        return None


def grows(path: str) -> bool:
    """Whether the file is only ever appended to."""
    return path.endswith(_GROWING)


def fingerprint(status: os.stat_result) -> Fingerprint:
    return Fingerprint(size=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino)


def files_to_keep(files: CampaignFiles, what: Iterable[str]) -> dict[str, Fingerprint]:
    """Every file that belongs elsewhere now, what matters most first; links are not followed, what is half written is left out."""
    found: dict[str, Fingerprint] = {}
    for part in ("record", "exports", "checkpoints"):
        if part not in what:
            continue
        for path in _PARTS[part](files):
            try:
                status = path.lstat()
            except OSError:
                continue
            if path.is_file() and not path.is_symlink():
                found[path.relative_to(files.root).as_posix()] = fingerprint(status)
    return found


def _record(files: CampaignFiles) -> Iterable[Path]:
    beside = [p for p in _listed(files.root) if p.name.endswith(_OF_THE_PLAN) and p.name not in _OWN]
    yield from sorted(beside, key=lambda path: path != files.journal)  # without the journal the rest is hard to read
    for folder in (files.report, files.root / "gates", files.runs):
        yield from _below(folder, without=("checkpoints", "artefact"))
    yield from (p for p in (files.data_current, files.data / "log.txt") if p.exists())
    for folder in _listed(files.data):
        if (folder / "manifest.json").is_file():
            yield from _below(folder, without=("encoded",))


def _exports(files: CampaignFiles) -> Iterable[Path]:
    for folder in _listed(files.exports):
        # Written after everything else, when a new process had loaded the artefact.
        if (folder / "verification.json").is_file():
            yield from _below(folder)


def _checkpoints(files: CampaignFiles) -> Iterable[Path]:
    for run in _listed(files.runs):
        for step in sorted(_listed(files.run(run.name).checkpoints), reverse=True):
            manifest = step / "manifest.json"
            if step.name.startswith("step-") and manifest.is_file():
                yield from (p for p in _below(step) if p != manifest)
                yield manifest  # last: a checkpoint there is as sealed as one here


_PARTS = {"record": _record, "exports": _exports, "checkpoints": _checkpoints}


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if not p.name.startswith("."))
    except OSError:
        return []


def _below(folder: Path, without: tuple[str, ...] = ()) -> Iterable[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in without and not f.startswith("."))
        yield from (Path(here, name) for name in sorted(names) if not name.startswith("."))


def superseded(state: BackupState, there: Mapping[str, Fingerprint]) -> list[str]:
    """Copies of checkpoints that their run no longer keeps, where a newer one of it is safe; `there` is what exists here now."""
    newest: dict[str, int] = {}
    for path in there:
        if (match := _STEP.match(path)) and path.endswith("/manifest.json") and path in state.files:
            newest[match["run"]] = max(newest.get(match["run"], 0), int(match["step"]))
    return [
        path
        for path in state.files
        if path not in there and (match := _STEP.match(path)) and int(match["step"]) < newest.get(match["run"], 0)
    ]


@dataclass(frozen=True)
class Safety:
    """What would be lost if this machine ended now."""

    target: str | None
    """Where copies go, None when the plan names no place."""
    files: int
    """Files that are not safe elsewhere as they are now."""
    bytes: int
    since: str | None
    """Up to when everything was safe; None when it never was."""
    cause: str | None
    """Why the latest copy failed, None when it did not."""
    copied_at: str | None
    """When the latest copy ended, None when there was none."""
    same_disk: bool = False
    """Whether the target lies in the campaign's own file system, which ends with the rental, too."""
    read_back: bool = True
    """Whether copies were compared with what they are copies of, or a program's exit code is believed."""


def safety(files: CampaignFiles, backup: Backup | None) -> Safety:
    """Compare the campaign's directory with what is known to be safe. Reads names, sizes and times, no content."""
    if backup is None:
        return Safety(None, 0, 0, None, None, None)
    state = read_backup(files, backup)
    missing = count = 0
    for path, now in files_to_keep(files, backup.what).items():
        known = state.files.get(path)
        if known is not None and known.source == now:
            continue
        grown = known is not None and grows(path) and known.source.inode == now.inode and now.size >= known.size
        count += 1
        missing += now.size - known.size if known is not None and grown else now.size
    last = state.last
    return Safety(
        state.target,
        count,
        missing,
        state.whole_at,
        last.cause if last else None,
        last.at if last else None,
        _on_the_same_disk(files.root, backup.destination),
        backup.command is None,
    )


def _on_the_same_disk(root: Path, destination: str | None) -> bool:
    if destination is None or ("://" in destination and not destination.startswith("file://")):
        return False
    place = Path(destination.removeprefix("file://")).expanduser()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        return place.stat().st_dev == root.stat().st_dev
    except OSError:
        return False


def safety_words(found: Safety) -> str:
    """What is not safe elsewhere, in one sentence without a stop."""
    if found.target is None:
        return NOWHERE
    target = safe(found.target, 120)
    if not found.files:
        word = "copied and read back" if found.read_back else "copied, by its program's word"
        text = (
            f"{word}, everything up to {_clock(found.since)}, to {target}"
            if found.since
            else f"nothing to copy to {target} yet"
        )
    else:
        many = f"{found.files:,} file{'s' if found.files != 1 else ''}, {size_words(found.bytes)}"
        since = f"since {_clock(found.since)}" if found.since else "never copied whole"
        text = f"not safe elsewhere yet: {many}, {since}"
    if found.same_disk:
        text += "; but that is the campaign's own disk, which ends with the rental"
    return f"{text}; the last copy failed: {safe(found.cause, 200)}" if found.cause else text


def safety_mark(found: Safety | None) -> tuple[str, str]:
    """The same in a few words, and its style role."""
    if found is None:
        return "", "muted"
    if found.target is None:
        return "copied nowhere", "warn"
    if found.cause:
        return f"copy fails, safe to {_clock(found.since)}" if found.since else "copy fails, nothing safe", "bad"
    if found.same_disk:
        return "copied to its own disk", "warn"
    if not found.files:
        return "all copied", "good"
    if found.since is None:
        return "not copied yet", "warn"
    return f"safe to {_clock(found.since)}", "text"


def _clock(at: str | None) -> str:
    return f"{parse_time(at).astimezone():%d %b %H:%M}" if at else "–"
