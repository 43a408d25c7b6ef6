"""`ftui stop`, `pause`, `resume`, `priority`, `relaunch`: wishes to the supervisor of a campaign, and its answers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ftui.answer import DONE, STATE, USAGE, Answer, print_json

if TYPE_CHECKING:
    from ftui.engine.client import Asked
    from ftui.record.layout import CampaignFiles
    from ftui.record.requests import Kind

Command = Callable[["CampaignFiles", argparse.Namespace], int]


def add_queue_commands(add: Callable[[str, Command, str], argparse.ArgumentParser]) -> None:
    """The parsers of these commands; `add` makes one of a name, a function and a summary."""
    one = "one run instead of the whole campaign: its id, or its beginning (r003)"
    stop = add("stop", _stop, "stop with a checkpoint; `ftui run` continues")
    stop.add_argument("run", metavar="RUN", nargs="?", help=one)
    stop.add_argument("--kill", action="store_true", help="end the processes at once, without a checkpoint")
    pause = add(
        "pause", _pause, "let nothing new start; what runs goes on. With RUN: stop that one, or keep it waiting"
    )
    pause.add_argument("run", metavar="RUN", nargs="?", help=one)
    resume = add("resume", _resume, "let the queue, or one run, go on")
    resume.add_argument("run", metavar="RUN", nargs="?", help=one)
    priority = add(
        "priority", _priority, "move a run that waits: the highest priority starts first, then the lowest number"
    )
    priority.add_argument("run", metavar="RUN", help="its id, or its beginning (r003)")
    priority.add_argument(
        "priority", metavar="N", type=int, help="a whole number; `ftui status --json` shows those there are"
    )
    relaunch = add("relaunch", _relaunch, "a new run with other settings than one there is, which stays in the record")
    relaunch.add_argument("run", metavar="RUN", help="the run it follows: its id, or its beginning (r003)")
    changed = "a field of method or training and its value: method.rank=16; once for each field"
    relaunch.add_argument("--set", metavar="FIELD=VALUE", action="append", required=True, dest="change", help=changed)
    relaunch.add_argument("--because", metavar="WHY", required=True, help="why; the report shows it")


def _stop(files: CampaignFiles, options: argparse.Namespace) -> int:
    run, verb = options.run, "kill" if options.kill else "stop"
    ends = "ends at once" if options.kill else "finishes its update and writes a checkpoint first"
    kinds: dict[tuple[str, bool], Kind] = {
        ("stop", True): "stop-run",
        ("stop", False): "stop-campaign",
        ("kill", True): "kill-run",
        ("kill", False): "kill-campaign",
    }
    return _ask(files, options, kinds[verb, bool(run)], f"asked to {verb} {{run}}; it {ends}")


def _pause(files: CampaignFiles, options: argparse.Namespace) -> int:
    if options.run is None:
        return _ask(files, options, "pause-queue", "{run} is paused: what runs goes on, nothing new starts")
    return _ask(
        files, options, "pause-run", "{run} is paused: it goes on from its checkpoint when `ftui resume` says so"
    )


def _resume(files: CampaignFiles, options: argparse.Namespace) -> int:
    return _ask(
        files, options, "resume-run" if options.run else "resume-queue", "{run} goes on when there is a place for it"
    )


def _priority(files: CampaignFiles, options: argparse.Namespace) -> int:
    return _ask(files, options, "priority", f"{{run}} has priority {options.priority}", priority=options.priority)


def _relaunch(files: CampaignFiles, options: argparse.Namespace) -> int:
    from ftui.plan.followup import ChangeRefused, parse_change
    from ftui.record.notebook import cleaned

    because = " ".join(cleaned(options.because).split())
    if not because:
        raise Answer(USAGE, "--because needs words: the report will show them")
    try:
        change = parse_change(options.change)
    except ChangeRefused as problem:
        raise Answer(USAGE, str(problem)) from None
    return _ask(
        files, options, "relaunch", "{new_run} follows {run} and waits in the queue", change=change, because=because
    )


def _ask(files: CampaignFiles, options: argparse.Namespace, kind: Kind, done: str, **fields: Any) -> int:
    """Leave the wish, and say what became of it in `done`, a sentence about `{run}`. Raises `Answer`."""
    from ftui.engine.client import EngineError, ask

    run = _whole_id(files, options.run)
    try:
        asked = ask(files, kind, run=run, by="cli", **fields)
    except EngineError as error:
        raise Answer(STATE, str(error)) from None
    except ValueError as error:
        raise Answer(USAGE, str(error)) from None
    if options.json:
        print_json(_plain(asked))
    if asked.answer == "refused":
        raise Answer(STATE, str(asked.reason))
    if not options.json:
        name = run or files.name
        waits = f"it waits until somebody supervises {files.name}: `ftui run {options.campaign}` answers it"
        print(waits if asked.answer == "waiting" else done.format(run=name, new_run=asked.new_run))
    return DONE


def _whole_id(files: CampaignFiles, beginning: str | None) -> str | None:
    """The id of the one run that is called so or begins so; what names none, or several, stays as it is."""
    from ftui.record.journal import read_journal
    from ftui.record.state import fold

    if beginning is None:
        return None
    runs = fold(read_journal(files.journal)).runs
    found = [run for run in runs if run.startswith(f"{beginning}-")]
    return found[0] if beginning not in runs and len(found) == 1 else beginning


def _plain(asked: Asked) -> dict[str, Any]:
    request = asked.request
    said = {"request": request.id, "kind": request.kind, "run": request.run, **request.fields}
    return said | {"answer": asked.answer, "reason": asked.reason, "new_run": asked.new_run}
