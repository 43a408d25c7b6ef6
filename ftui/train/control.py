"""Control inputs: what the model answered before it was written, and whether a reloaded one answers the same (C3)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import nn

from ftui.plan.settings import RunSettings
from ftui.record.files import read_json, replace_json
from ftui.train.task import Task

CONTROL_FILE = "control.json"
CONTROL_SCHEMA = 1

TOLERANCE = {"fp32": 1e-4, "bf16": 5e-2, "fp16": 1e-2}
"""Largest difference of a logit that still counts as the same answer: rounding of another process, not another model."""


@dataclass(frozen=True)
class Agreement:
    """Two sets of control outputs compared."""

    difference: float
    """Largest absolute difference of any number."""
    tolerance: float
    same_answers: bool
    """The largest number stands at the same place for every input."""

    @property
    def holds(self) -> bool:
        return self.difference <= self.tolerance and self.same_answers

    def sentence(self, count: int) -> str:
        verb = "agree" if self.holds else "do not agree"
        return f"{count} control inputs {verb}: largest difference {self.difference:.2g}, allowed {self.tolerance:g}"


def write_control(folder: Path, settings: RunSettings, task: Task, model: nn.Module) -> None:
    """Keep the model's answers to the plan's control inputs. The model answers in evaluation mode."""
    inputs = settings.evaluation.control_inputs
    replace_json(
        folder / CONTROL_FILE,
        {"schema": CONTROL_SCHEMA, "inputs": inputs, "outputs": _answers(task, model, inputs)},
    )


def compare_control(folder: Path, settings: RunSettings, task: Task, model: nn.Module) -> tuple[Agreement, int]:
    """Answer the kept inputs again and compare; returns the agreement and the number of inputs."""
    kept = read_json(folder / CONTROL_FILE)
    before = np.asarray(kept["outputs"], dtype=np.float64)
    now = np.asarray(_answers(task, model, kept["inputs"]), dtype=np.float64)
    agreement = Agreement(
        float(np.abs(before - now).max()),
        TOLERANCE[settings.training.precision],
        bool((before.argmax(-1) == now.argmax(-1)).all()),
    )
    return agreement, len(kept["inputs"])


def _answers(task: Task, model: nn.Module, inputs: list[str]) -> list[list[float]]:
    training = model.training
    model.eval()
    answers = task.control_outputs(model, inputs)
    model.train(training)
    return answers
