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
from ftui.record.text import safe

SPLITS = ("train", "validation", "test")

PACKED = {".gz": "gunzip", ".bz2": "bunzip2", ".xz": "unxz", ".zst": "unzstd", ".zip": "unzip"}
"""Endings of compressed files and what unpacks them; reading them here would make a line's place that of no file."""

_OURS = re.compile(r"^(\..*|(unusable-)?[0-9a-f]{16})$")
"""Folders of prepared data versions, and those being written."""


@dataclass(frozen=True)
class Source:
    """One input file of one split."""

    split: str
    path: Path
    name: str
    """How findings and ids call it: relative to the campaign (or the hub's data set) where it lies inside, else its last part."""
    sha256: str
    bytes: int


def find_sources(data: Data, root: Path, *, folders: bool = False) -> Iterator[Source | Finding]:
    """The files the plan names, in the plan's order and sorted within a glob; what names no readable file is a finding.

    Their paths are relative to `root`: the campaign, or the hub's data set in its cache, whose files are links into a store.
    With `folders`, one of pictures may stand for a file; its hash is over the names in it, their content counts row by row.
    """
    real = Path.absolute if data.hub is not None else Path.resolve
    taken: dict[Path, str] = {}
    for split in SPLITS:
        for index, pattern in enumerate(getattr(data, split) or []):
            field = f"data.{split}[{index}]"
            try:
                paths = _matches(pattern, root, None if data.hub is not None else CampaignFiles(root))
                nothing = "" if paths else _nothing(pattern, root)
            except (OSError, ValueError, RuntimeError) as problem:  # no permission, a loop of links, a NUL, ~nobody
                reason = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
                message = f"{safe(pattern, 200)!r} cannot be looked up: {reason}; correct the path, or who may read it"
                yield error(PLAN_FILE, field, message, "unreadable path")
                continue
            if nothing:
                yield error(PLAN_FILE, field, nothing, "no file")
            for path in paths:
                name = _name(real(path), real(root))
                before = taken.setdefault(real(path), field)
                if not is_text(name):
                    message = f"{name!r} is no name in UTF-8; rename the file"
                    yield error(PLAN_FILE, field, message, "unreadable path")
                elif before != field:
                    message = f"{name} is already named by {before}; each file belongs to one split, once"
                    yield error(PLAN_FILE, field, message, "file named twice")
                else:
                    yield _folder(split, path, name) if folders and path.is_dir() else _source(split, path, name, field)


def _matches(pattern: str, root: Path, campaign: CampaignFiles | None) -> list[Path]:
    """The files of a path or glob, without what a preparation wrote into `campaign` (None: `root` is none).

    Raises OSError, ValueError or RuntimeError where the path cannot even be looked up.
    """
    literal = root / Path(pattern).expanduser()
    try:
        literal.stat()
        return [literal]
    except (FileNotFoundError, NotADirectoryError):
        if literal.is_symlink():
            return [literal]
    if not glob.has_magic(pattern):
        return []
    expanded = str(Path(pattern).expanduser())
    matches = glob.glob(expanded, root_dir=root, recursive=True)  # noqa: PTH207  # Path.glob refuses absolute patterns
    found = [root / match for match in sorted(matches)]
    return [path for path in found if not path.is_dir() and not (campaign is not None and is_ours(path, campaign))]


def is_ours(path: Path, files: CampaignFiles) -> bool:
    """Whether `path` is what a preparation wrote, or below it."""
    if not path.is_relative_to(files.data) or path == files.data:
        return False
    return path == files.data_current or bool(_OURS.match(path.relative_to(files.data).parts[0]))


def _nothing(pattern: str, root: Path) -> str:
    if glob.has_magic(pattern):
        return f"{pattern!r} matches no file in {root}"
    path = root / pattern
    if not path.parent.is_dir():
        return f"no such file: {path}; its folder does not exist"
    near = difflib.get_close_matches(path.name, [p.name for p in path.parent.iterdir()], n=1)
    return f"no such file: {path}" + (f"; did you mean {near[0]!r}?" if near else "")


def _source(split: str, path: Path, name: str, field: str) -> Source | Finding:
    if path.is_dir():
        return error(PLAN_FILE, field, f'{name} is a folder; name its files, e.g. "{name}/*.jsonl"', "folder")
    if not path.exists():
        return error(PLAN_FILE, field, f"{path.name} is a link to {name}, which is not there; put it back", "no file")
    if not path.is_file():
        message = f"{name} is a pipe or a device, which may never end; write its content to a file and name that"
        return error(PLAN_FILE, field, message, "no regular file")
    if path.suffix.lower() in PACKED:
        unpacked = safe(name[: -len(path.suffix)])
        message = f"{name} is compressed; unpack it (`{PACKED[path.suffix.lower()]} {name}`) and name {unpacked}"
        return error(PLAN_FILE, field, message, "compressed file")
    if path.suffix.lower() not in READERS:
        message = (
            f"{name} is of no kind that is read here ({', '.join(READERS)}); convert it, or give it its proper ending"
        )
        return error(PLAN_FILE, field, message, "unknown kind of file")
    try:
        return Source(split, path, name, sha256_file(path), path.stat().st_size)
    except OSError as problem:
        message = f"cannot be read: {problem.strerror}; see who may read it, and that it is still there"
        return error(name, "", message, "unreadable file")


def _folder(split: str, path: Path, name: str) -> Source:
    names = sorted(p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file())
    return Source(split, path, name, sha256_json(names), 0)


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
