"""The command and the environment of each job.

One process gets the environment accelerate's launcher would give it, without the launcher: it would neither forward SIGTERM nor
add anything, and costs two seconds. Several are started by it, each run at a port of its own (K17).
"""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from ftui.engine.placement import Places
from ftui.plan.settings import RunSettings
from ftui.record.layout import CampaignFiles

PYTHON = (sys.executable, "-P", "-m")
"""Safe path: what lies in the working directory is never imported."""

_INHERITED = (
    "WORLD_SIZE",
    "RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "CUDA_VISIBLE_DEVICES",
)
"""Variables of an outer launcher, which a run must not take for its own."""


@dataclass(frozen=True)
class Command:
    """What to start: words, environment, and the file its output goes to."""

    words: list[str]
    environment: dict[str, str]
    log: Path


def train_command(
    verb: str, directory: Path, settings: RunSettings, places: Places, *extra: str, attempt: int = 1
) -> Command:
    """`python -m ftui.train VERB DIRECTORY …`, one process on each place. Output goes to the directory's `log.txt`."""
    threads = str(settings.machine.threads)
    on_cpu = places[0].backend == "cpu"
    precision = "no" if settings.training.precision == "fp32" else settings.training.precision
    environment = _clean_environment() | {
        "ACCELERATE_USE_CPU": "true" if on_cpu else "false",
        "ACCELERATE_MIXED_PRECISION": precision,
        "CUDA_VISIBLE_DEVICES": "" if on_cpu else ",".join(str(place.index) for place in places),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # places are numbered as NVML numbers them; CUDA would put the fastest first
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "FTUI_ATTEMPT": str(attempt),
    }
    words = ["ftui.train", verb, str(directory), *extra]
    if len(places) > 1:
        # `--cpu` would start one process only, silently; with the variable above, `--multi_gpu` starts them all on the CPU, too.
        words = [
            "accelerate.commands.launch", "--multi_gpu", "--num_processes", str(len(places)), "--num_machines", "1",
            "--mixed_precision", precision, "--dynamo_backend", "no", "--main_process_port", str(rendezvous_port(places)), "-m", *words,
        ]  # fmt: skip
    log = (Path(extra[0]) if extra else directory) / "log.txt"
    return Command([*PYTHON, *words], environment, log)


_PORTS, _PORTS_PER_PLACE = {"cpu": 21000, "cuda": 25000}, 8
"""First rendezvous port of each kind of place; below those that a system gives to whoever asks for any."""


def rendezvous_port(places: Places) -> int:
    """A port at which the processes of one run find each other, 0 where the launcher has to look for one.

    It belongs to the run's first place, which nobody else has while the run has it, so that two runs that start at once never get the
    same (K17). Of a place's few, one that a program of somebody else uses is passed over.
    """
    first = _PORTS[places[0].backend] + places[0].index * _PORTS_PER_PLACE
    for port in range(first, first + _PORTS_PER_PLACE):
        with socket.socket() as tried:
            try:
                tried.bind(("", port))
            except OSError:
                continue
            return port
    return 0


def predict_command(directory: Path, files: CampaignFiles, out: Path) -> Command:
    """Follow a step of the run whose settings lie in `directory`, on this machine's CPU and without numbers, into the file `out`."""
    environment = _clean_environment() | {
        "ACCELERATE_USE_CPU": "true",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    words = [*PYTHON, "ftui.train", "predict", str(directory), str(files.root), str(out)]
    return Command(words, environment, directory / "log.txt")


def prepare_command(files: CampaignFiles) -> Command:
    """Read, clean, split and encode the data."""
    return Command([*PYTHON, "ftui.data", str(files.root)], _clean_environment(), files.data / "log.txt")


def report_command(files: CampaignFiles) -> Command:
    """Write the report from the record."""
    return Command([*PYTHON, "ftui.report", str(files.root)], _clean_environment(), files.report / "log.txt")


def copy_command(files: CampaignFiles) -> Command:
    """Copy what is new to the plan's destination."""
    return Command([*PYTHON, "ftui.engine.copy", str(files.root)], _clean_environment(), files.backup_log)


def newest_checkpoint(files: CampaignFiles, run: str) -> int | None:
    """Update of the newest sealed checkpoint, for the record; the trainer decides by its content."""
    folder = files.run(run).checkpoints
    sealed = [p for p in folder.glob("step-*") if (p / "manifest.json").is_file()] if folder.is_dir() else []
    return max((int(p.name.removeprefix("step-")) for p in sealed), default=None)


def _clean_environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _INHERITED and not name.startswith("ACCELERATE_")
    }
    return kept | {
        "PYTHONSAFEPATH": "1",  # for the processes a launcher starts
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
