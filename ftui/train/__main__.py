"""`python -m ftui.train VERB DIRECTORY`: one job of a campaign, decided by the directory's `run.toml`.

    train RUN       train or resume; the baseline is a run of no updates     test RUN     evaluate the last checkpoint on test
    pilot GATES     the gates, up to the checkpoint                          reload GATES the last gate, in a process of its own
    export RUN TO   write the artefact                                       verify TO    load it again and compare

Exit codes: 0 done · 1 the answer is no (diverged, a gate failed, outputs differ) · 70 an exception · 75 stopped, can go on. The
last line printed on a failure starts with `ftui: ` and is its cause in words.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from pathlib import Path

from ftui.plan.settings import RunSettings, read_settings
from ftui.record.files import replace_json
from ftui.record.layout import CampaignFiles, GateFiles, RunFiles
from ftui.record.rows import write_outcome
from ftui.record.series import read_series

DONE, NO, FAULT, STOPPED = 0, 1, 70, 75

ATTEMPT = "FTUI_ATTEMPT"
"""Number of this attempt, for the record only; set by the engine."""


def main(arguments: list[str]) -> int:
    verb, directory = arguments[0], Path(arguments[1]).resolve()
    settings = read_settings(directory)
    campaign = CampaignFiles(directory.parent.parent)
    print(f"ftui.train {verb} {settings.run} pid {os.getpid()}", flush=True)
    if verb == "train":
        return _train(settings, campaign, RunFiles(directory))
    try:
        match verb:
            case "pilot":
                from ftui.train.pilot import run_gates

                _note_environment(directory)
                run_gates(settings, campaign, GateFiles(directory))
            case "reload":
                from ftui.train.pilot import reload_gate

                reload_gate(settings, campaign, GateFiles(directory))
            case "test":
                _test(settings, campaign, RunFiles(directory))
            case "export":
                from ftui.train.export import export

                export(settings, campaign, RunFiles(directory), Path(arguments[2]).resolve())
            case "verify":
                from ftui.train.export import verify

                verify(settings, campaign, directory)
            case _:
                print(f"ftui: {verb!r} is no verb of ftui.train")
                return 2
    except Exception as error:
        traceback.print_exc()
        print(f"ftui: {_sentence(error)}", flush=True)
        return NO
    return DONE


def _train(settings: RunSettings, campaign: CampaignFiles, files: RunFiles) -> int:
    """Train, and leave `outcome.json` whatever happens short of a kill."""
    attempt = int(os.environ.get(ATTEMPT, "1"))
    files.outcome.unlink(missing_ok=True)
    try:
        from ftui.train.loop import set_up, train
        from ftui.train.process import StopSignal

        stop = StopSignal()
        _note_environment(files.root)
        shop = set_up(settings, campaign)
        facts = shop.prepared.facts()
        print(
            f"{facts['trainable']:,} of {facts['parameters']:,} parameters train on {shop.accelerator.device}: "
            f"{settings.updates:,} updates of {settings.examples_per_update} examples",
            flush=True,
        )
        ending, progress = train(shop, files, stop)
    except Exception as error:
        traceback.print_exc()
        reached = max((row["update"] for row in read_series(files.series) if row["k"] == "update"), default=0)
        write_outcome(files.outcome, "failed", updates=reached, attempt=attempt, cause=_sentence(error))
        print(f"ftui: {_sentence(error)}", flush=True)
        return FAULT
    metrics = progress.last.metrics if progress.last else {}
    write_outcome(
        files.outcome,
        ending.status,
        updates=progress.update,
        attempt=attempt,
        cause=ending.cause or None,
        metrics=metrics,
    )
    for note in progress.notes:
        print(f"note: {note}")
    if ending.cause:
        print(f"ftui: {ending.cause}", flush=True)
    return {"completed": DONE, "diverged": NO, "stopped": STOPPED}[ending.status]


def _test(settings: RunSettings, campaign: CampaignFiles, files: RunFiles) -> None:
    """Evaluate a finished run's last checkpoint on the sealed test split."""
    from ftui.train.checkpoint import load_weights
    from ftui.train.evaluate import write_predictions
    from ftui.train.loop import last_checkpoint, set_up

    shop = set_up(settings, campaign)
    load_weights(last_checkpoint(files), shop.model)
    result = shop.evaluate("test")
    write_predictions(files.test_predictions, result.rows)
    replace_json(files.test_metrics, result.metrics)


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
    text = " ".join(str(error).split())
    return text if type(error).__module__.startswith("ftui.") else f"{type(error).__name__}: {text}"


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Deprecations between the libraries are for their authors; a run's log is for the person who rents the machine.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"transformers|peft|torch|accelerate")
    sys.exit(main(sys.argv[1:]))
