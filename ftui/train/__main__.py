"""`python -m ftui.train VERB DIRECTORY`: one job of a campaign, decided by the directory's `run.toml`.

    train RUN       train or resume; the baseline is a run of no updates     test RUN     evaluate the last checkpoint on test
    pilot GATES     the gates, up to the checkpoint                          resume GATES those of a second process
    reload GATES    the last gate, in a third                                fit GATES    the largest micro-batch that fits
    export RUN TO   write the artefact                                       verify TO    load it again and compare
    predict SETTINGS CAMPAIGN OUT   memory and arithmetic of a step, without weights or a GPU; SETTINGS holds a `run.toml`

With several processes each runs the same verb.

Exit codes: 0 done · 1 the answer is no (diverged, a gate failed, outputs differ) · 70 an exception · 75 stopped, can go on. The
last line printed on a failure starts with `ftui: ` and is its cause in words. One of several processes that has left an outcome
ends with 0 whatever the outcome: the launcher above it would take anything else for a crash.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from ftui.plan.settings import RunSettings, read_settings
from ftui.record.files import replace_json
from ftui.record.layout import CampaignFiles, GateFiles, RunFiles
from ftui.record.lines import with_words
from ftui.record.rows import Status, write_outcome
from ftui.record.secrets import redact
from ftui.record.series import read_series

DONE, NO, FAULT, STOPPED = 0, 1, 70, 75

ATTEMPT = "FTUI_ATTEMPT"
"""Number of this attempt, for the record only; set by the engine."""


def main(arguments: list[str]) -> int:
    verb, directory = arguments[0], Path(arguments[1]).resolve()
    settings = read_settings(directory)
    campaign = CampaignFiles(directory.parent.parent)
    print(f"ftui.train {verb} {settings.run} pid {os.getpid()}", flush=True)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from ftui.train.process import die_with_launcher

        die_with_launcher()
    if verb == "train":
        return _train(settings, campaign, RunFiles(directory))
    try:
        match verb:
            case "pilot":
                from ftui.train.pilot import run_gates

                _note_environment(directory)
                run_gates(settings, campaign, GateFiles(directory))
            case "resume":
                from ftui.train.pilot import resume_gates

                resume_gates(settings, campaign, GateFiles(directory))
            case "reload":
                from ftui.train.pilot import reload_gate

                reload_gate(settings, campaign, GateFiles(directory))
            case "fit":
                from ftui.train.fit import fit

                fit(settings, campaign, GateFiles(directory))
            case "test":
                _test(settings, campaign, RunFiles(directory))
            case "export":
                from ftui.train.export import export

                export(settings, campaign, RunFiles(directory), Path(arguments[2]).resolve())
            case "predict":
                from ftui.train.predict import predict

                replace_json(Path(arguments[3]), predict(settings, CampaignFiles(Path(arguments[2]).resolve())))
            case "verify":
                from ftui.train.export import verify

                verify(settings, campaign, directory)
            case _:
                print(f"ftui: {verb!r} is no verb of ftui.train")
                return 2
    except Exception as error:
        _say(traceback.format_exc())
        _say(f"ftui: {_sentence(error)}")
        return NO
    return DONE


def _train(settings: RunSettings, campaign: CampaignFiles, files: RunFiles) -> int:
    """Train, and leave `outcome.json` whatever happens short of a kill.

    Of several processes the first writes it, or the one whose own fault it was: to the others only the connection is lost, and a
    process that was killed leaves no outcome, so that the run counts as lost and is resumed (K19).
    """
    from ftui.train.process import StopSignal, announced, is_lost_peer

    attempt = int(os.environ.get(ATTEMPT, "1"))
    rank, world = announced()
    stop = StopSignal()
    if rank == 0:
        files.outcome.unlink(missing_ok=True)
    try:
        from ftui.train.loop import set_up, train

        if rank == 0:
            _note_environment(files.root)
        shop = set_up(settings, campaign)
        facts = shop.prepared.facts()
        if rank == 0:
            replace_json(files.model, {"schema": 1, **facts, "inputs": shop.task.facts()})
            print(
                f"{facts['trainable']:,} of {facts['parameters']:,} parameters train on {shop.accelerator.device}: "
                f"{settings.updates:,} updates of {settings.examples_per_update} examples",
                flush=True,
            )
        ending, progress = train(shop, files, stop)
    except Exception as error:
        if world > 1 and is_lost_peer(error):
            _say(f"{traceback.format_exc()}ftui: process {rank + 1} of {world} lost the connection to another one")
            return FAULT
        cause = _sentence(error) if world == 1 else f"process {rank + 1} of {world}: {_sentence(error)}"
        reached = max((row["update"] for row in read_series(files.series) if row["k"] == "update"), default=0)
        _say(traceback.format_exc())
        _leave_outcome(files, "failed", updates=reached, attempt=attempt, cause=cause)
        return FAULT
    if rank == 0:
        for note in progress.notes:
            print(f"note: {note}")
        metrics = progress.last.metrics if progress.last else {}
        said = ending.cause or None
        _leave_outcome(files, ending.status, updates=progress.update, attempt=attempt, cause=said, metrics=metrics)
    return {"completed": DONE, "diverged": NO, "stopped": STOPPED}[ending.status] if world == 1 else DONE


def _leave_outcome(files: RunFiles, status: Status, *, cause: str | None, **fields: Any) -> None:
    """Say the cause and write the outcome: where one of the two finds no room, the other may."""
    if cause:
        _say(f"ftui: {cause}")
    write_outcome(files.outcome, status, cause=cause, **fields)


def _say(text: str) -> None:
    with suppress(OSError):
        print(redact(text), flush=True)


def _test(settings: RunSettings, campaign: CampaignFiles, files: RunFiles) -> None:
    """Evaluate a finished run's last checkpoint on the sealed test split."""
    from ftui.train.checkpoint import load_weights
    from ftui.train.loop import last_checkpoint, set_up

    shop = set_up(settings, campaign)
    load_weights(last_checkpoint(files), shop.model)
    result = shop.evaluate("test", files.test_predictions)
    if shop.accelerator.is_main_process:
        replace_json(files.test_metrics, with_words(result.metrics))


def _note_environment(directory: Path) -> None:
    """Versions and devices this process really runs with (B1)."""
    import torch

    from ftui.machine.versions import versions

    content: dict[str, object] = {"schema": 1, "versions": versions(), "torch_build": torch.__version__}
    if torch.cuda.is_available():
        content["devices"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        content["runtime"] = torch.version.cuda or torch.version.hip
    replace_json(RunFiles(directory).environment, content)


def _sentence(error: Exception) -> str:
    """The exception as one line. Our own are sentences already; others say more with their name."""
    text = redact(" ".join(str(error).split()))
    return text if type(error).__module__.startswith("ftui.") else f"{type(error).__name__}: {text}"


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Deprecations between the libraries are for their authors; a run's log is for the person who rents the machine.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"transformers|peft|torch|accelerate")
    sys.exit(main(sys.argv[1:]))
