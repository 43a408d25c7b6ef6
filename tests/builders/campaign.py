"""A recorded campaign on disk, as if `three-learning-rates` had run: written by the real writers, with invented numbers.

`build_campaign(folder, until="running")` gives a directory that every reader accepts. What is invented is a function of the
run, so that two builds differ in nothing but times.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ftui.machine.sample import HostSample, ProcessSample, Sample
from ftui.plan.budget import rental_clock
from ftui.plan.load import load_plan, plan_hash
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion, dump_settings, run_settings
from ftui.plan.variants import BASE, PlannedRun, planned_runs
from ftui.record.files import locked, replace_text
from ftui.record.journal import Journal, now, stamp
from ftui.record.layout import CampaignFiles
from ftui.record.lines import Row
from ftui.record.rows import GATE_NAMES, GateRow, gate_writer, machine_writer, prediction_writer, write_outcome
from ftui.record.series import series_writer

SEEDS = "seeds = [17, 18, 19]"
"""What the plan says; two seeds keep the recorded campaign small enough for 80 × 24."""
PLAN = Path(__file__).parents[2] / "campaigns" / "three-learning-rates" / "campaign.toml"

Until = Literal["planned", "launched", "gates", "running", "closed"]
STAGES: tuple[Until, ...] = ("planned", "launched", "gates", "running", "closed")

LABELS = [
    "auto",
    "banking",
    "credit_cards",
    "dining",
    "home",
    "kitchen",
    "out_of_scope",
    "small_talk",
    "travel",
    "utility",
    "work",
]
DATA = DataVersion(hash="d1" * 8, train_examples=3200, validation_examples=880, test_examples=1100, labels=LABELS)
UPDATES = 200
FLOOR = {"control": 1.42, "half-rate": 1.71, "double-rate": 1.21}
"""Loss that each variant tends to."""


@dataclass
class Built:
    """What was written."""

    files: CampaignFiles
    plan: Plan
    runs: list[PlannedRun]
    running: list[str]
    """Ids of the runs that are said to be running."""


def loss_at(run: PlannedRun, update: int) -> float:
    """The invented training loss: falls from ln 11 towards the variant's floor, with noise."""
    noise = random.Random(f"{run.id} {update}").gauss(0, 0.11)
    floor = FLOOR.get(run.variant, 1.5)
    return floor + (2.4 - floor) * float(np.exp(-update / 70)) + noise * (0.5 + 0.5 * np.exp(-update / 100))


def metrics_at(run: PlannedRun, update: int) -> dict[str, float]:
    """The invented validation metrics at an update."""
    clean = FLOOR.get(run.variant, 2.4) if run.variant != BASE else 2.4
    loss = clean + (2.4 - clean) * float(np.exp(-update / 70)) + 0.04 + run.seed % 3 * 0.01
    accuracy = max(0.09, 1.02 - loss * 0.37)
    return {"loss": round(loss, 4), "accuracy": round(accuracy, 4), "macro_f1": round(accuracy - 0.02, 4)}


def series_rows(run: PlannedRun, first: int, last: int, begun: datetime, every: int = 50) -> list[Row]:
    """Update rows `first` … `last`, with validations and checkpoints where the plan has them."""
    rows: list[Row] = []
    for update in range(first, last + 1):
        at = stamp(begun + timedelta(seconds=0.3 * update))
        lr = 1e-4 * min(1.0, update / 20)
        rows.append(
            {"k": "update", "update": update, "loss": loss_at(run, update), "lr": lr, "grad_norm": 1.0, "examples": 16}
            | {"targets": 16, "tokens": 180 + update % 7, "seconds": 0.3, "at": at}
        )
        if update % every == 0 or update == UPDATES:
            rows.append(
                {"k": "validation", "update": update, "metrics": metrics_at(run, update), "seconds": 2.1, "at": at}
            )
            rows.append({"k": "checkpoint", "update": update, "bytes": 1_900_000, "seconds": 0.1, "at": at})
    return rows


def append_series(files: CampaignFiles, run: PlannedRun, rows: list[Row]) -> None:
    with series_writer(files.run(run.id).series) as writer:
        for row in rows:
            writer.write(row)


def build_campaign(
    folder: Path,
    until: Until = "running",
    *,
    name: str = "three-learning-rates",
    updates: int = 120,
    side_by_side: int = 2,
) -> Built:
    """Write a campaign below `folder`. `updates` is how far the running ones are, `side_by_side` how many they are."""
    stage = STAGES.index(until)
    files = CampaignFiles(folder / name)
    files.root.mkdir(parents=True)
    files.plan.write_text(PLAN.read_text(encoding="utf-8").replace(SEEDS, "seeds = [17, 18]"), encoding="utf-8")
    plan = load_plan(files.root)
    runs = planned_runs(plan)
    built = Built(files, plan, runs, [])
    if stage == 0:
        return built
    begun = now() - timedelta(minutes=14)
    journal = _Clocked(Journal(files.journal, "supervisor"), begun)
    clock = rental_clock(plan.rental, begun)
    digest = plan_hash(plan)
    journal.append(
        "launched",
        0,
        plan_hash=digest,
        plan=plan.content(),
        starts_at=stamp(clock.starts_at),
        ends_at=stamp(clock.ends_at),
    )
    journal.append("supervisor-started", 0, pid=4242, host="rented-host")
    journal.append("phase", 1, phase="preflight")
    journal.append(
        "data-ready", 4, data=DATA.model_dump(), findings=["3 texts occur in both train and test; dropped from train"]
    )
    replace_text(files.supervisor_log, f"{stamp(begun)} launched\n{stamp(begun)} data ready: 3,200 training examples\n")
    if stage == 1:
        return built
    journal.append("gates-started", 5, gates="g001")
    _write_gates(files, begun, len(GATE_NAMES) if stage > 2 else 4)
    if stage == 2:
        return built
    journal.append("gates-ended", 40, gates="g001", passed=True, cause=None)
    for run in runs:
        settings = run_settings(plan, digest, run, DATA, backend="cpu")
        replace_text(files.run(run.id).settings, dump_settings(settings))
        kind = "baseline" if run.variant == BASE else "train"
        about = {"number": run.number, "variant": run.variant, "seed": run.seed, "kind": kind, "priority": run.priority}
        journal.append(
            "queued", 41, run=run.id, **about, change=settings.change, because=settings.because, follows=None
        )
    journal.append("phase", 42, phase="experiment")
    _write_runs(built, journal, closed=stage == 4, updates=updates, side_by_side=side_by_side)
    _write_machine(files, built.running or [runs[-1].id])
    return built


@contextmanager
def supervised(files: CampaignFiles) -> Iterator[None]:
    """Hold the campaign as a supervisor does, so that it counts as alive."""
    with locked(files.supervisor_lock):
        yield


class _Clocked:
    """A journal whose events happened at chosen seconds after the launch."""

    def __init__(self, journal: Journal, begun: datetime) -> None:
        self._journal, self.begun = journal, begun

    def append(self, event: str, seconds: float, **fields: Any) -> None:
        self._journal.append(event, **{"at": stamp(self.begun + timedelta(seconds=seconds)), **fields})


def _write_gates(files: CampaignFiles, begun: datetime, count: int) -> None:
    facts: dict[str, dict[str, Any]] = {
        "data": {"train_examples": 3200, "longest": 41},
        "load": {"parameters": 22_943_254, "trainable": 225_803, "trainable_share": 0.0098, "start_seconds": 6.9},
        "first update": {"loss": 2.41, "grad_norm": 1.9},
        "steady update": {"seconds_per_update": 0.31, "seconds_low": 0.29, "seconds_high": 0.34},
        "parameters moved": {"trained": 6, "moved": 6, "frozen": 101, "updates": 5},
        "evaluation": {"examples": 880, "seconds_whole_split": 6.2},
        "checkpoint": {"bytes": 1_900_000},
        "tiny subset": {"examples": 8, "updates": 20, "loss": 0.021, "right": 8},
        "resume": {"updates": 2, "difference": 0.0},
        "export": {"bytes": 1_100_000},
        "disk": {"runs": 12, "needed": 81_000_000},
        "reload": {"difference": 0.0, "tolerance": 1e-6},
    }
    with gate_writer(files.gates("g001").rows) as writer:
        for index, gate in enumerate(GATE_NAMES[:count]):
            row = GateRow(
                gate=gate,
                device="cpu",
                verdict="passed",
                seconds=(0.2, 1.4, 0.9, 3.1, 0.1, 2.2, 0.2, 1.9, 1.1, 0.3, 0.1, 4.8)[index],
                facts=facts[gate],
                host_before=480 << 20,
                host_peak=(480 + 40 * index) << 20,
                at=stamp(begun + timedelta(seconds=6 + 5 * index)),
            )
            writer.write(row.model_dump())


def _write_runs(built: Built, journal: _Clocked, *, closed: bool, updates: int, side_by_side: int) -> None:
    files, runs = built.files, built.runs
    trained = [run for run in runs if run.variant != BASE]
    done_before = min(2, len(trained) - side_by_side)
    ended = trained if closed else trained[:done_before]
    built.running = [] if closed else [run.id for run in trained[done_before : done_before + side_by_side]]
    seconds = 45.0
    for run in runs:
        begun = journal.begun + timedelta(seconds=seconds)
        started = {
            "run": run.id,
            "attempt": 1,
            "pid": 4300 + run.number,
            "resumed_from": None,
            "placement": {"device": "cpu"},
        }
        if run.id in built.running:
            begun = now() - timedelta(seconds=0.3 * updates)
            journal.append("run-started", seconds, **started)
            append_series(files, run, series_rows(run, 1, updates, begun))
            _write_log(files, run, updates)
        elif run.variant == BASE or run in ended:
            done = 0 if run.variant == BASE else UPDATES
            journal.append("run-started", seconds, **started)
            if done:
                append_series(files, run, series_rows(run, 1, done, begun))
            _write_log(files, run, done)
            seconds += 8 if not done else 68
            journal.append(
                "run-ended", seconds, run=run.id, attempt=1, status="completed", cause=None, exit_code=0, updates=done
            )
            write_outcome(
                files.run(run.id).outcome, "completed", updates=done, attempt=1, metrics=metrics_at(run, done)
            )
        seconds += 1
    if closed:
        _close(built, journal, seconds)


def _close(built: Built, journal: _Clocked, seconds: float) -> None:
    files, runs = built.files, built.runs
    journal.append("phase", seconds, phase="evaluation")
    journal.append("test-opened", seconds, opening=1, candidates=[run.id for run in runs], reason="planned")
    for run in runs:
        _write_predictions(files, run)
        metrics = metrics_at(run, 0 if run.variant == BASE else UPDATES)
        journal.append("test-ended", seconds, run=run.id, metrics=metrics, cause=None)
        seconds += 3
    best = next(run for run in runs if run.variant == "double-rate")
    sentence = (
        "double-rate is better than control by 0.08 macro-F1 (95 % interval 0.05 to 0.11); no guardrail is broken."
    )
    journal.append("report", seconds + 1, verdict="supported", sentence=sentence, deliver=best.id)
    journal.append("phase", seconds + 2, phase="export")
    journal.append("export-started", seconds + 2, export=best.id, run=best.id)
    journal.append("export-ended", seconds + 8, export=best.id, run=best.id, verified=True, cause=None)
    journal.append("phase", seconds + 8, phase="closed")
    journal.append("supervisor-ended", seconds + 8, reason="the campaign is closed")


def _write_log(files: CampaignFiles, run: PlannedRun, updates: int) -> None:
    lines = [f"{run.id}: sentence-transformers/all-MiniLM-L6-v2, 225,803 of 22.9 million parameters trained"]
    for update in range(10, updates + 1, 10):
        lines.append(f"update {update:4d}/{UPDATES}  loss {loss_at(run, update):.4f}  0.31 s")
    replace_text(files.run(run.id).log, "\n".join(lines) + "\n")


def _write_predictions(files: CampaignFiles, run: PlannedRun) -> None:
    chance = random.Random(run.id)
    accuracy = metrics_at(run, 0 if run.variant == BASE else UPDATES)["accuracy"]
    with prediction_writer(files.run(run.id).test_predictions) as writer:
        for index in range(220):
            target = LABELS[index % len(LABELS)]
            correct = chance.random() < accuracy
            output = target if correct else LABELS[(index + 1 + chance.randrange(10)) % len(LABELS)]
            scores = {"correct": output == target, "loss": 0.7 if correct else 2.2, "probability": 0.6}
            writer.write({"id": f"t{index:04d}", "category": target, "target": target, "output": output, **scores})


def _write_machine(files: CampaignFiles, running: list[str]) -> None:
    with machine_writer(files.machine) as writer:
        for index in range(90):
            sample = Sample(
                at=stamp(now() - timedelta(seconds=2 * (90 - index))),
                host=HostSample(
                    60 + 30 * float(np.sin(index / 6)), (3 << 30) + index * (4 << 20), 8 << 30, 21 << 30, 60 << 30
                ),
                gpus=[],
                runs={run: ProcessSample(612 << 20, 99.0) for run in running},
            )
            writer.write(dataclasses.asdict(sample))
