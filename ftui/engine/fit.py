"""`ftui preflight --fit`: prepare the data, and have a training process search the largest micro-batch that fits."""

from __future__ import annotations

import subprocess
from typing import Any

from ftui.engine.launch import Command, prepare_command, train_command
from ftui.engine.leases import Leases, LeasesRefused, PlaceTaken
from ftui.engine.logs import last_words
from ftui.engine.placement import places
from ftui.plan.load import plan_hash
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion, dump_settings, run_settings
from ftui.plan.variants import CONTROL, planned_runs
from ftui.record.files import read_json, replace_text
from ftui.record.layout import CampaignFiles
from ftui.record.text import aligned

FOLDER = "fit"
"""Stands among the passes through the gates."""


class FitError(Exception):
    """The search could not be made; the message says why."""


def search_fit(files: CampaignFiles, plan: Plan) -> dict[str, Any]:
    """What `ftui.train.fit` measured. Nobody may supervise the campaign meanwhile. Raises `FitError`."""
    _run(prepare_command(files))
    data = DataVersion.model_validate(read_json(files.data_current)["data"])
    own = tuple(places(plan.machine)[: plan.machine.processes])
    control = next(run for run in planned_runs(plan) if run.variant == CONTROL)
    folder = files.gates(FOLDER)
    settings = run_settings(plan, plan_hash(plan), control, data, own[0].backend, pilot=True)
    replace_text(folder.run.settings, dump_settings(settings))
    try:
        leases = Leases(files)
        leases.take(own, "fit")
    except (LeasesRefused, PlaceTaken) as error:
        raise FitError(str(error)) from None
    try:
        _run(train_command("fit", folder.root, settings, own))
    finally:
        leases.keep_only([])
    found: dict[str, Any] = read_json(folder.root / "fit.json")
    return found


def fit_text(found: dict[str, Any]) -> str:
    """The search as lines for a terminal."""
    table = [["micro-batch", "accumulation", "seconds per update", "peak", ""]]
    for tried in found["tried"]:
        seconds = "–" if tried["seconds"] is None else f"{tried['seconds']:.3f}"
        peak = "–" if tried["peak"] is None else f"{tried['peak'] / 2**30:.2f} GiB"
        said = tried["cause"] or ("as planned" if tried["micro_batch"] == found["planned"] else "")
        table.append([str(tried["micro_batch"]), str(tried["accumulation"]), seconds, peak, said])
    lines = aligned(table, right=(0, 1, 2, 3))
    size = found["examples_per_process"]
    if found["largest"] is None:
        lines.append("not even one example at a time fits; `ftui preflight` says what would need less memory")
    else:
        lines.append(
            f"the largest that fits is {found['largest']}, the fastest {found['fastest']}: training.micro_batch = {found['fastest']}, "
            f"training.accumulation = {size // found['fastest']} keep {size} examples per update and process"
        )
    return "\n".join(lines)


def _run(command: Command) -> None:
    command.log.parent.mkdir(parents=True, exist_ok=True)
    with command.log.open("ab") as log:
        done = subprocess.run(
            command.words,
            env=command.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
            umask=0o077,
        )
    if done.returncode != 0:
        raise FitError(last_words(command.log) or f"it ended with code {done.returncode}; see {command.log}")
