"""`ftui copy`: one copy of what is new, at once, whether or not anybody supervises the campaign."""

from __future__ import annotations

import sys
from dataclasses import asdict

from ftui.answer import DONE, NO, STATE, Answer, print_json
from ftui.engine.copy import AnotherCopy, copy_campaign
from ftui.record.backup import backup_in_force, safety, safety_words
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.state import fold


def copy_now(files: CampaignFiles, *, json: bool) -> int:
    """Copy, and say what is safe elsewhere then."""
    backup = backup_in_force(files, fold(read_journal(files.journal)))
    if backup is None:
        sentence = "the plan in force names no destination; write [backup] into campaign.toml"
        raise Answer(STATE, f"{sentence}, and `ftui run {files.name}` takes it up")
    try:
        last = copy_campaign(files, backup)
    except AnotherCopy as busy:
        raise Answer(STATE, str(busy)) from None
    found = safety(files, backup)
    if json:
        print_json({**last.model_dump(), "safety": asdict(found)})
    else:
        print(safety_words(found), file=sys.stderr if last.cause else sys.stdout)
    return NO if last.cause else DONE
