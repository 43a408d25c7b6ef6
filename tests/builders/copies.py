"""A recorded campaign with artefact and checkpoints, whose plan says where it is copied; and looks at such copies."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ftui.plan.load import load_plan, plan_hash
from ftui.plan.schema import Backup
from ftui.record.backup import read_backup
from ftui.record.files import replace_json
from ftui.record.journal import Journal, now, stamp
from ftui.record.layout import CampaignFiles
from tests.builders.campaign import Until, build_campaign

RUN = "r003-control-s17"


def backed_up(folder: Path, section: str, until: Until = "closed") -> tuple[CampaignFiles, Backup]:
    """A campaign below `folder` with `[backup]` in force, a verified artefact, and two sealed checkpoints and an unsealed one."""
    files = build_campaign(folder, until).files
    with files.plan.open("a", encoding="utf-8") as plan_file:
        plan_file.write(f"\n[backup]\n{section}\n")
    plan = load_plan(files.root)
    assert plan.backup is not None
    times = {"starts_at": stamp(now()), "ends_at": stamp(now())}
    Journal(files.journal, "supervisor").append(
        "amended",
        plan_hash=plan_hash(plan),
        plan=plan.content(),
        changed=["backup"],
        because="it must be safe",
        **times,
    )
    artefact = files.exports / "best"
    replace_json(artefact / "manifest.json", {"schema": 1})
    replace_json(artefact / "verification.json", {"schema": 1})
    (artefact / "adapter.safetensors").write_bytes(bytes(range(256)) * 40)
    checkpoint(files, 50)
    checkpoint(files, 100)
    checkpoint(files, 150, sealed=False)
    return files, plan.backup


def checkpoint(files: CampaignFiles, update: int, *, sealed: bool = True, size: int = 10_000) -> Path:
    """What a run leaves at an update, as far as copying is concerned."""
    folder = files.run(RUN).checkpoints / f"step-{update:08d}"
    folder.mkdir(parents=True)
    with (folder / "model.safetensors").open("wb") as weights:
        weights.write(update.to_bytes(2, "big") * 100)
        weights.truncate(size)
    if sealed:
        replace_json(folder / "manifest.json", {"schema": 1, "update": update})
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def called_safe_is_there(files: CampaignFiles, backup: Backup, there: Path) -> int:
    """How many files are called safe; each of them is at the destination as it is said to be."""
    safe = read_backup(files, backup).files
    for path, kept in safe.items():
        content = (there / path).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (kept.size, kept.sha256), path
    return len(safe)
