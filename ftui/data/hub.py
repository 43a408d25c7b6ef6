"""The files of a data set on the hub at a pinned revision: from the hub's cache, else from the hub (D1).

Only the files that the plan names are fetched, and never code: a data set's own loading script is not run here or anywhere.
"""

from __future__ import annotations

import glob
import logging
from dataclasses import dataclass
from pathlib import Path

from ftui.data.records import READERS
from ftui.data.sources import SPLITS
from ftui.plan.schema import Data

NEVER = ["*.py", "*.pyc", "*.ipynb", "*.sh"]
"""Code, whatever the plan's globs match."""


class HubError(Exception):
    """The data set cannot be had; the message says what was tried and the way out."""


@dataclass(frozen=True)
class HubFiles:
    """The files of a data set at one revision."""

    directory: Path
    """Holds them as links into the hub's cache."""
    proven: bool
    """False where globs were matched in a cache that does not say which files the revision has."""


def find_dataset(data: Data, *, fetch: bool = True) -> HubFiles:
    """The files that the plan names of `data.hub` at `data.revision`. Raises `HubError`.

    The cache is asked first. What it cannot prove complete is asked of the hub, unless HF_HUB_OFFLINE is set or
    `fetch` is off; then nothing is written.
    """
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    from huggingface_hub.utils import logging as hub_logging

    assert data.hub is not None
    hub, patterns = data.hub, _patterns(data)
    # Standard error carries sentences for people; the library's retries are summed up in one of ours.
    hub_logging.set_verbosity(logging.ERROR)

    def snapshot(*, cached: bool) -> Path:
        found = snapshot_download(
            hub,
            repo_type="dataset",
            revision=data.revision,
            allow_patterns=_for_the_library(patterns),
            ignore_patterns=NEVER,
            local_files_only=cached,
        )
        return Path(found)

    tried: list[str] = []
    partly: Path | None = None
    try:
        partly = snapshot(cached=True)
        if _is_proven(partly, data, patterns):
            return HubFiles(partly, proven=True)
        if absent := [pattern for pattern in patterns if not _there(pattern, partly)]:
            tried.append(f"the hub's cache holds no {', '.join(absent)} of it")
            partly = None
    except (LocalEntryNotFoundError, OSError, ValueError):
        tried.append("the hub's cache has no such revision, or part of it only")
    if constants.HF_HUB_OFFLINE or not fetch:
        if partly is not None:
            return HubFiles(partly, proven=False)
        reason = (
            "the hub was not asked, for HF_HUB_OFFLINE is set" if fetch else "the hub is asked when the data is checked"
        )
        tried.append(reason)
        raise HubError(_not_found(data, tried))
    try:
        return HubFiles(snapshot(cached=False), proven=True)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as problem:
        if partly is not None and not isinstance(problem, HfHubHTTPError):
            return HubFiles(partly, proven=False)
        said = str(problem).splitlines()
        tried.append(f"the hub did not give it ({said[0] if said else type(problem).__name__})")
    raise HubError(_not_found(data, tried))


def _patterns(data: Data) -> list[str]:
    return list(dict.fromkeys(pattern for split in SPLITS for pattern in getattr(data, split) or []))


def _for_the_library(patterns: list[str]) -> list[str]:
    """Patterns in which `*` also matches "/", as the library has it: `**/` may stand for no folder there, too."""
    return list(dict.fromkeys(own for pattern in patterns for own in (pattern, pattern.replace("**/", ""))))


def _there(pattern: str, folder: Path) -> bool:
    if (folder / pattern).is_file():
        return True
    return any(Path(found).suffix.lower() in READERS for found in glob.glob(pattern, root_dir=folder, recursive=True))  # noqa: PTH207


def _is_proven(folder: Path, data: Data, patterns: list[str]) -> bool:
    """Whether nothing can be missing: each file is named itself, or the library has its list of the revision's files."""
    if all((folder / pattern).is_file() for pattern in patterns):
        return True
    return (folder.parents[1] / "trees" / f"{data.revision}.json").is_file()


def _not_found(data: Data, tried: list[str]) -> str:
    return (
        f"the data set {data.hub} at {data.revision} was not found: {'; '.join(tried)}. Ways out: connect to the network once, "
        "copy the hub's cache with this revision here, or copy the files into the campaign and leave data.hub out."
    )
