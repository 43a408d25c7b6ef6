"""Files below a campaign that could be its data: tables and lists of records, and folders of pictures by category."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ftui.data.pictures import PICTURES
from ftui.data.records import READERS
from ftui.data.sources import is_ours, is_text
from ftui.record.layout import CampaignFiles

MOST = 200
"""Names that are listed; with more, a person writes a path."""

_DEEPEST = 6
_FOLDERS = 2_000
"""Folders that are looked into: a campaign may lie beside anything."""
_LOOKED_AT = 50
"""Entries of a folder after which it holds no pictures, or does."""


def candidates(files: CampaignFiles) -> list[str]:
    """Paths relative to the campaign, sorted, at most `MOST`. What ftui itself wrote is none of them. Raises nothing."""
    found: list[str] = []
    for path in _below(files.root, files, _DEEPEST, set()):
        name = path.relative_to(files.root).as_posix()
        if is_text(name):
            found.append(name)
        if len(found) > 10 * MOST:
            break
    return sorted(found)[:MOST]


def _below(folder: Path, files: CampaignFiles, depth: int, seen: set[Path]) -> Iterator[Path]:
    try:
        real = folder.resolve()
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except (OSError, RuntimeError):  # no permission, or a loop of links
        return
    if real in seen or len(seen) >= _FOLDERS:
        return
    seen.add(real)
    own = {files.runs, files.gates("").root, files.exports, files.report, files.requests}
    lines = {files.journal, files.machine, files.supervisor}
    for entry in entries:
        path = folder / entry.name
        if entry.name.startswith(".") or path in own or path in lines or is_ours(path, files):
            continue
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError:
            continue
        if is_folder and _holds_classes(path):
            yield path
        elif is_folder and depth and not (path / "config.json").is_file():  # a model's folder holds no data
            yield from _below(path, files, depth - 1, seen)
        elif (
            is_file and path.suffix.lower() in READERS and not (path.suffix.lower() == ".json" and not _is_array(path))
        ):
            yield path


def _holds_classes(folder: Path) -> bool:
    """Whether at least two folders in it hold pictures."""
    try:
        inside = [entry for entry in os.scandir(folder) if not entry.name.startswith(".") and entry.is_dir()]
        return sum(_holds_pictures(Path(entry.path)) for entry in inside[:_LOOKED_AT]) >= 2
    except OSError:
        return False


def _holds_pictures(folder: Path) -> bool:
    try:
        for number, entry in enumerate(os.scandir(folder)):
            if Path(entry.name).suffix.lower() in PICTURES:
                return True
            if number >= _LOOKED_AT:
                break
    except OSError:
        pass
    return False


def _is_array(path: Path) -> bool:
    """Whether a JSON file begins as a list of records: settings and schemas are objects."""
    try:
        with path.open("rb") as file:
            return file.read(256).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    except OSError:
        return False
