"""Paths and globs of the plan to files, each with the hash of its content (D2)."""

from __future__ import annotations

import difflib
import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ftui.data.findings import Finding, error
from ftui.data.records import READERS
from ftui.plan.load import PLAN_FILE
from ftui.plan.schema import Data
from ftui.record.files import sha256_file, sha256_json
from ftui.record.layout import CampaignFiles

SPLITS = ("train", "validation", "test")

_OURS = re.compile(r"^(\..*|(unusable-)?[0-9a-f]{16})$")
"""Folders of prepared data versions, and those being written."""


@dataclass(frozen=True)
class Source:
    """One input file of one split."""

    split: str
    path: Path
    name: str
    """How findings and ids call it: relative to the campaign where it lies inside, else its last part."""
    sha256: str
    bytes: int


def find_sources(data: Data, campaign: Path, *, folders: bool = False) -> Iterator[Source | Finding]:
    """The files the plan names, in the plan's order and sorted within a glob; what names no readable file is a finding.

    With `folders`, one of pictures may stand for a file; its hash is over the names in it, their content counts row by row.
    """
    taken: dict[Path, str] = {}
    for split in SPLITS:
        for index, pattern in enumerate(getattr(data, split) or []):
            field = f"data.{split}[{index}]"
            paths = _matches(pattern, campaign)
            if not paths:
                yield error(PLAN_FILE, field, _nothing(pattern, campaign), "no file")
            for path in paths:
                name = _name(path, campaign)
                before = taken.setdefault(path.resolve(), field)
                if before != field:
                    message = f"{name} is already named by {before}; each file belongs to one split, once"
                    yield error(PLAN_FILE, field, message, "file named twice")
                else:
                    yield _folder(split, path, name) if folders and path.is_dir() else _source(split, path, name, field)


def _matches(pattern: str, campaign: Path) -> list[Path]:
    literal = campaign / Path(pattern).expanduser()
    if literal.exists():
        return [literal]
    if not glob.has_magic(pattern):
        return []
    expanded = str(Path(pattern).expanduser())
    matches = glob.glob(expanded, root_dir=campaign, recursive=True)  # noqa: PTH207  # Path.glob refuses absolute patterns
    found = [campaign / match for match in sorted(matches)]
    return [path for path in found if path.is_file() and not _is_ours(path, CampaignFiles(campaign))]


def _is_ours(path: Path, files: CampaignFiles) -> bool:
    """Whether a glob ran into what a preparation wrote."""
    if not path.is_relative_to(files.data):
        return False
    return path == files.data_current or bool(_OURS.match(path.relative_to(files.data).parts[0]))


def _nothing(pattern: str, campaign: Path) -> str:
    if glob.has_magic(pattern):
        return f"{pattern!r} matches no file in {campaign}"
    path = campaign / pattern
    if not path.parent.is_dir():
        return f"no such file: {path}; its folder does not exist"
    near = difflib.get_close_matches(path.name, [p.name for p in path.parent.iterdir()], n=1)
    return f"no such file: {path}" + (f"; did you mean {near[0]!r}?" if near else "")


def _source(split: str, path: Path, name: str, field: str) -> Source | Finding:
    if path.is_dir():
        return error(PLAN_FILE, field, f'{name} is a folder; name its files, e.g. "{name}/*.jsonl"', "folder")
    if path.suffix.lower() not in READERS:
        message = (
            f"{name} is of no kind that is read here ({', '.join(READERS)}); convert it, or give it its proper ending"
        )
        return error(PLAN_FILE, field, message, "unknown kind of file")
    try:
        return Source(split, path, name, sha256_file(path), path.stat().st_size)
    except OSError as problem:
        return error(name, "", f"cannot be read: {problem.strerror}", "unreadable file")


def _folder(split: str, path: Path, name: str) -> Source:
    names = sorted(p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file())
    return Source(split, path, name, sha256_json(names), 0)


def _name(path: Path, campaign: Path) -> str:
    resolved, root = path.resolve(), campaign.resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else path.name
