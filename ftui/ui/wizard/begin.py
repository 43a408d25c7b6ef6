"""A new campaign's folder with a plan to be filled in."""

from __future__ import annotations

from pathlib import Path

from ftui.plan.load import PLAN_FILE
from ftui.plan.starting import new_draft
from ftui.record.files import replace_text
from ftui.record.layout import find_campaign, new_campaign_folder

LONGEST_NAME = 60


class BadName(Exception):
    """No campaign can have this name; the message says why."""


def begin_plan(name: str) -> Path:
    """The folder of the campaign `name`, made with a plan to begin with where there is none yet. Raises `BadName`, OSError."""
    name = name.strip()
    last = name.rstrip("/").rpartition("/")[2]
    if not last or last.startswith(".") or len(last) > LONGEST_NAME or not last.isprintable() or "\\" in last:
        raise BadName(
            f"{name!r} is no name for a campaign: up to {LONGEST_NAME} printable characters, not beginning with a dot"
        )
    try:
        return find_campaign(name).root
    except FileNotFoundError:
        pass
    folder = new_campaign_folder(name)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    if not (folder / PLAN_FILE).exists():
        replace_text(folder / PLAN_FILE, new_draft().text)
    return folder.resolve()
