"""Base models that are on this machine already: in folders near a campaign, and in the hub's cache. Nothing is asked for or fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_COMMIT = re.compile(r"^[0-9a-f]{40}$")

MOST = 50
"""Models that are listed; a cache may hold hundreds."""


def bases_here(campaign: Path) -> list[dict[str, Any]]:
    """Models with weights, as `base` and `revision` of a plan (None for a folder), folders first."""
    found = [*_folders(campaign), *_cached()]
    return found[:MOST]


def _folders(campaign: Path) -> Iterator[dict[str, Any]]:
    patterns = ("model", "models/*", "../*/model", "../../models/*")
    seen: set[Path] = set()
    for pattern in patterns:
        for config in sorted(campaign.glob(f"{pattern}/config.json")):
            folder = config.parent
            if folder.resolve() in seen or not any(folder.glob("*.safetensors")):
                continue
            seen.add(folder.resolve())
            name = folder.relative_to(campaign) if folder.is_relative_to(campaign) else None
            yield {
                "base": f"./{name}" if name and ".." not in name.parts else _upwards(folder, campaign),
                "revision": None,
            }


def _upwards(folder: Path, campaign: Path) -> str:
    """A folder beside the campaign, from there: the plan can then be copied together with it."""
    for ups, parent in enumerate((campaign.resolve(), *campaign.resolve().parents)):
        if folder.resolve().is_relative_to(parent):
            return "/".join([*[".."] * ups, *folder.resolve().relative_to(parent).parts])
    return str(folder)


def _cached() -> Iterator[dict[str, Any]]:
    from huggingface_hub.constants import HF_HUB_CACHE

    for snapshot in sorted(Path(HF_HUB_CACHE).glob("models--*--*/snapshots/*")):
        whole = (snapshot / "config.json").is_file() and any(snapshot.glob("*.safetensors"))
        if whole and _COMMIT.match(snapshot.name):
            _, owner, name = snapshot.parents[1].name.split("--", 2)
            yield {"base": f"{owner}/{name}", "revision": snapshot.name}
