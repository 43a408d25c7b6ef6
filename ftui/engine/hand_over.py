"""Copies made by a person's own program: what is new is laid out in a folder of its own, and the program's exit code is believed.

The folder holds links to files that never change, and copies of those that grow, up to their last complete line; so the program reads
one state of each, however long it takes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from ftui.engine.destination import DestinationError
from ftui.engine.jobs import start_job
from ftui.engine.launch import Command
from ftui.engine.reading import Source, SourceChanged
from ftui.record.backup import SafeFile, fingerprint, grows
from ftui.record.layout import CampaignFiles
from ftui.record.text import safe


def hand_over(files: CampaignFiles, words: Sequence[str], paths: Iterable[str]) -> tuple[dict[str, SafeFile], int]:
    """Let the program copy `paths`; returns what it said is safe, and how many files changed meanwhile.

    Raises `DestinationError` with the program's last words when it did not end well: then nothing new is safe.
    """
    tree, names = files.backup_stage / "campaign", files.backup_stage / "files.txt"
    shutil.rmtree(files.backup_stage, ignore_errors=True)
    try:
        laid, left = _lay_out(files.root, tree, paths)
        if laid:
            names.write_text("".join(f"{path}\n" for path in laid), encoding="utf-8")
            _run(files, [word.replace("{source}", str(tree)).replace("{files}", str(names)) for word in words])
        touched = [path for path in laid if fingerprint((tree / path).stat()) != laid[path][0]]
        return {path: kept for path, (_, kept) in laid.items() if path not in touched}, left + len(touched)
    finally:
        shutil.rmtree(files.backup_stage, ignore_errors=True)


def _lay_out(root: Path, tree: Path, paths: Iterable[str]) -> tuple[dict[str, tuple[object, SafeFile]], int]:
    """The files as one state of each, with what they are and will be called, and how many changed while that was done."""
    laid: dict[str, tuple[object, SafeFile]] = {}
    left = 0
    for path in paths:
        target, digest = tree / path, hashlib.sha256()
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with Source(root, path) as source:
                copied = grows(path) or not _linked(root / path, target)
                with (target if copied else Path(os.devnull)).open("wb") as out:
                    for block in source.blocks():
                        digest.update(block)
                        out.write(block)
                laid[path] = fingerprint(target.stat()), source.kept(digest.hexdigest(), None)
        except SourceChanged:
            target.unlink(missing_ok=True)
            left += 1
    return laid, left


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise SourceChanged(str(source)) from None
    except OSError:  # this file system has no links
        return False
    return True


def _run(files: CampaignFiles, words: list[str]) -> None:
    begun = files.backup_log.stat().st_size if files.backup_log.exists() else 0
    try:
        job = start_job("command", Command(words, dict(os.environ), files.backup_log), (), outlives_supervisor=False)
    except OSError as error:
        raise DestinationError(f"{words[0]}: {error.strerror}") from None
    assert job.process is not None
    if (code := job.process.wait()) == 0:
        return
    with files.backup_log.open("rb") as log:
        log.seek(begun)
        said = log.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
    ending = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
    raise DestinationError(f"{words[0]} {ending}" + (f": {safe(said[-1], 300)}" if said else ""))
