"""Real training processes: identical when repeated, when killed, when stopped; honest when they diverge or cannot start."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ftui.record.layout import RunFiles
from ftui.record.lines import Row, number
from ftui.record.rows import read_outcome, read_predictions
from ftui.record.series import CLOCK_FIELDS, read_series
from tests.builders.processes import start_module, until
from tests.builders.tiny import frozen_run, tiny_campaign
from tests.builders.warm import Warm

LONG = {"training__amount": 150, "training__checkpoint_every": 20, "training__validate_every": 50}
"""Long enough to be interrupted in the middle; more than six epochs of 96 examples in updates of 4."""


def curve(run: RunFiles) -> list[Row]:
    """The series without what two identical runs may differ in."""
    return [{k: v for k, v in row.items() if k not in (*CLOCK_FIELDS, "bytes")} for row in read_series(run.series)]


@dataclass(frozen=True)
class Answer:
    """How a training process ended, and what it printed."""

    returncode: int
    stdout: str


Train = Callable[[RunFiles], Answer]


@pytest.fixture(scope="session")
def train(warm: Warm) -> Train:
    """Run the training process of a run to its end."""

    def to_its_end(run: RunFiles) -> Answer:
        before = run.log.stat().st_size if run.log.exists() else 0
        (code,) = warm.train(run.root)
        return Answer(code, run.log.read_text()[before:])

    return to_its_end


@pytest.fixture(scope="module")
def reference(model: Path, train: Train, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """A run that was never interrupted."""
    files = tiny_campaign(tmp_path_factory.mktemp("reference") / "c", model, **LONG)
    run, _ = frozen_run(files)
    answer = train(run)
    assert answer.returncode == 0, answer.stdout
    return run


@pytest.fixture
def again(reference: RunFiles, tmp_path: Path) -> RunFiles:
    """The same run, not started yet, in a copy of the campaign."""
    campaign = tmp_path / "copy"
    shutil.copytree(
        reference.root.parent.parent,
        campaign,
        symlinks=True,
        ignore=shutil.ignore_patterns("checkpoints", "predictions", "series.jsonl", "outcome.json"),
    )
    return RunFiles(campaign / "runs" / reference.root.name)


def updates_in(run: RunFiles) -> int:
    return max((row["update"] for row in read_series(run.series) if row["k"] == "update"), default=0)


def test_a_repeated_run_is_identical(reference: RunFiles, again: RunFiles, train: Train) -> None:
    assert train(again).returncode == 0
    assert curve(again) == curve(reference)
    for name in ("validation-00000050.jsonl", "validation-00000150.jsonl"):
        assert read_predictions(again.predictions / name) == read_predictions(reference.predictions / name)


def test_a_killed_run_continues_as_if_nothing_had_happened(reference: RunFiles, again: RunFiles, train: Train) -> None:
    process = start_module("ftui.train", "train", again.root)
    until(lambda: updates_in(again) >= 45, "the run passes its second checkpoint")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert read_outcome(again.outcome) is None
    assert 45 <= updates_in(again) < 150
    assert train(again).returncode == 0
    assert curve(again) == curve(reference)
    assert read_predictions(again.predictions / "validation-00000150.jsonl") == read_predictions(
        reference.predictions / "validation-00000150.jsonl"
    )


def test_sigterm_finishes_the_update_writes_a_checkpoint_and_exits_75(
    reference: RunFiles, again: RunFiles, train: Train
) -> None:
    process = start_module("ftui.train", "train", again.root)
    until(lambda: updates_in(again) >= 25, "the run is under way")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 75
    outcome = read_outcome(again.outcome)
    assert outcome is not None and outcome.status == "stopped"
    assert outcome.cause == f"asked to stop after update {outcome.updates}"
    assert (again.checkpoints / f"step-{outcome.updates:08d}" / "manifest.json").is_file()
    assert train(again).returncode == 0
    of_updates = [row for row in curve(again) if row["k"] != "checkpoint"]
    assert of_updates == [row for row in curve(reference) if row["k"] != "checkpoint"]


def test_a_half_written_checkpoint_is_passed_over_and_named(reference: RunFiles, again: RunFiles, train: Train) -> None:
    process = start_module("ftui.train", "train", again.root)
    until(lambda: (again.checkpoints / "step-00000060" / "manifest.json").exists(), "three checkpoints")
    process.send_signal(signal.SIGKILL)
    process.wait()
    newest = max(again.checkpoints.glob("step-*"))
    weights = newest / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    (again.checkpoints / "tmp-00000080").mkdir()
    answer = train(again)
    assert f"{newest.name} is not used: model.safetensors has" in answer.stdout
    assert not (again.checkpoints / "tmp-00000080").exists()
    assert curve(again) == curve(reference)


def test_only_the_planned_checkpoints_are_kept_and_hold_the_trained_parameters_alone(reference: RunFiles) -> None:
    kept = sorted(p.name for p in reference.checkpoints.iterdir())
    state = json.loads((reference.checkpoints / "step-00000150" / "state.json").read_text())
    best = state["rules"]["best_update"]
    assert best in (50, 100, 150)
    assert kept == sorted({f"step-{best:08d}", "step-00000140", "step-00000150"})
    from safetensors import safe_open

    with safe_open(reference.checkpoints / kept[-1] / "model.safetensors", "pt") as file:
        names = list(file.keys())
    assert names and all("lora_" in n or "modules_to_save" in n for n in names)
    assert not list(reference.root.rglob("*.bin")) and not list(reference.root.rglob("*.pt"))


def test_a_diverging_run_ends_with_its_cause_and_keeps_the_non_finite_loss(
    model: Path, tmp_path: Path, train: Train
) -> None:
    files = tiny_campaign(
        tmp_path / "c", model, training__learning_rate=1e30, training__max_grad_norm=1e9, training__warmup=0
    )
    run, _ = frozen_run(files)
    assert train(run).returncode == 1
    outcome = read_outcome(run.outcome)
    assert outcome is not None and outcome.status == "diverged"
    last = read_series(run.series)[-1]
    assert last["update"] == outcome.updates and last["skipped"] == "non-finite loss or gradient"
    assert number(last["loss"]) != number(last["loss"])
    assert f"became nan at update {outcome.updates}" in str(outcome.cause)
    assert not any(p.name > f"step-{outcome.updates - 1:08d}" for p in run.checkpoints.glob("step-*"))


def test_patience_ends_a_run_early_and_says_so(model: Path, tmp_path: Path, train: Train) -> None:
    files = tiny_campaign(
        tmp_path / "c", model, training__learning_rate=1e-12, training__warmup=0, training__validate_every=2,
        training__stop={"patience": 2},
    )  # fmt: skip
    run, _ = frozen_run(files)
    assert train(run).returncode == 0
    outcome = read_outcome(run.outcome)
    assert outcome is not None and (outcome.status, outcome.updates) == ("completed", 6)
    assert outcome.cause == "ended at update 6: 2 validations without a new best"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"method__targets": ["query", "valeu"]},
            "method.targets: 'valeu' matches no module; linear modules here: classifier, dense, key, query, value",
        ),
        (
            {"method__save_modules": ["pooler"]},
            "method.save_modules does not name 'classifier', but the base model has no trained one",
        ),
        ({"method__save_modules": ["classifier", "poler"]}, "method.save_modules: 'poler' matches no module"),
    ],
)
def test_a_method_that_does_not_fit_the_model_is_refused_with_what_exists(
    model: Path, tmp_path: Path, change: dict[str, object], sentence: str, train: Train
) -> None:
    run, _ = frozen_run(tiny_campaign(tmp_path / "c", model, **change))
    answer = train(run)
    assert answer.returncode == 70
    outcome = read_outcome(run.outcome)
    assert outcome is not None and outcome.status == "failed"
    assert sentence in str(outcome.cause)
    assert answer.stdout.splitlines()[-1] == f"ftui: {outcome.cause}"


def test_the_baseline_is_the_state_every_run_starts_from(
    reference: RunFiles, model: Path, tmp_path: Path, train: Train
) -> None:
    files = tiny_campaign(tmp_path / "c", model, **LONG)
    run, settings = frozen_run(files, "base")
    assert train(run).returncode == 0
    assert settings.updates == 0
    assert [row["k"] for row in read_series(run.series)] == ["validation", "checkpoint"]
    losses = {row["id"]: row["loss"] for row in read_predictions(run.validation_predictions(0))}
    assert len(losses) == 30
    assert (run.checkpoints / "step-00000000" / "model.safetensors").is_file()


def test_full_fine_tuning_moves_the_base_and_learns(model: Path, tmp_path: Path, train: Train) -> None:
    files = tiny_campaign(
        tmp_path / "c", model, method={"kind": "full"}, training__amount=240, training__learning_rate=3e-3,
        training__validate_every=60, training__checkpoint_every=60,
    )  # fmt: skip
    run, _ = frozen_run(files)
    assert train(run).returncode == 0
    outcome = read_outcome(run.outcome)
    assert outcome is not None
    assert outcome.metrics["accuracy"] > 0.9, "one word of each text decides its category"


def test_the_environment_of_a_run_is_recorded(reference: RunFiles) -> None:
    content = json.loads(reference.environment.read_text())
    assert content["versions"]["torch"].startswith("2.")
    assert {"transformers", "peft", "accelerate", "python"} <= content["versions"].keys()


def test_hours_that_are_up_end_a_run_with_a_checkpoint(model: Path, tmp_path: Path, train: Train) -> None:
    run, _ = frozen_run(tiny_campaign(tmp_path / "c", model, training__stop={"max_hours": 1e-9}))
    assert train(run).returncode == 75
    outcome = read_outcome(run.outcome)
    assert outcome is not None and (outcome.status, outcome.updates) == ("stopped", 1)
    assert outcome.cause == "training.stop.max_hours = 1e-09 was reached at update 1"
    assert (run.checkpoints / "step-00000001" / "manifest.json").is_file()


def test_fp16_is_refused_on_a_cpu_and_bf16_is_not_fp32(
    reference: RunFiles, model: Path, tmp_path: Path, train: Train
) -> None:
    run, _ = frozen_run(tiny_campaign(tmp_path / "fp16", model, training__precision="fp16"))
    assert train(run).returncode == 70
    outcome = read_outcome(run.outcome)
    assert outcome is not None
    assert outcome.cause == 'training.precision = "fp16" needs a GPU; on a CPU choose "bf16" or "fp32"'
    half, _ = frozen_run(tiny_campaign(tmp_path / "bf16", model, training__precision="bf16", **LONG))
    assert train(half).returncode == 0
    first, full = read_series(half.series)[0], read_series(reference.series)[0]
    assert first["loss"] != full["loss"]
    assert first["loss"] == pytest.approx(full["loss"], rel=0.01)


def test_updates_record_their_speed_and_validations_the_memory(reference: RunFiles) -> None:
    rows = read_series(reference.series)
    for row in rows:
        if row["k"] == "update":
            assert row["tokens_per_second"] == pytest.approx(row["tokens"] / row["seconds"], rel=0.05)
        elif row["k"] == "validation":
            assert 100 << 20 < row["memory"]["host"] < 4 << 30


def test_parameters_that_are_no_numbers_end_a_run_and_enter_no_checkpoint(model: Path, tmp_path: Path) -> None:
    """A word that no example has: the loss is finite all the same."""
    import torch

    from ftui.train.loop import set_up
    from ftui.train.loop import train as train_here
    from ftui.train.process import StopSignal

    files = tiny_campaign(tmp_path / "c", model, method={"kind": "full"})
    run, settings = frozen_run(files)
    shop = set_up(settings, files)
    with torch.no_grad():
        dict(shop.model.named_parameters())["bert.embeddings.word_embeddings.weight"][1] = float("inf")
    ending, _ = train_here(shop, run, StopSignal())
    assert (ending.status, ending.cause) == ("diverged", "parameters are no longer finite after update 4")
    assert all(number(row["loss"]) < 9 for row in read_series(run.series))
    assert not list(run.checkpoints.glob("step-*"))


def test_a_metric_that_is_no_number_stands_in_the_outcome(model: Path, tmp_path: Path, train: Train) -> None:
    files = tiny_campaign(
        tmp_path / "c", model, training__learning_rate=1e20, training__warmup=0, training__validate_every=1,
        training__weight_decay=1e18, training__stop={"nonfinite": "continue"}, training__amount=2,
        training__checkpoint_every=1,
    )  # fmt: skip
    run, _ = frozen_run(files)
    assert train(run).returncode == 0
    outcome = read_outcome(run.outcome)
    assert outcome is not None and outcome.metrics["loss"] == "nan"
    row = read_predictions(run.validation_predictions(2))[0]
    assert row["loss"] == "nan"
