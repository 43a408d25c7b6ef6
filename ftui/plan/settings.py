"""`run.toml`: every setting of one run, frozen and complete. The training process reads this and nothing else.

Written once by the engine before the first attempt; a run that resumes keeps it, a run with other settings is another run.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import Field

from ftui.plan.batch import Batches, batches
from ftui.plan.followup import FollowUp, change_of, run_plan
from ftui.plan.schema import Evaluation, Hypothesis, Machine, Method, Model, Plan, Section, Training
from ftui.plan.variants import BASE, CONTROL, PlannedRun, find_variant

SETTINGS_SCHEMA = 1
SETTINGS_FILE = "run.toml"


class DataVersion(Section):
    """The prepared data a run reads, by content (D2)."""

    hash: str
    """Identifies files, cleaning, splits and labels; names the folder `data/<hash>/` of the campaign."""
    train_examples: int
    validation_examples: int
    test_examples: int
    labels: list[str]
    """Categories in class order: the position is the class id. For extraction, the fields in the schema's order."""
    train_targets: int | None = None
    """Targets of one pass over the training examples: tokens that carry loss. None before they are encoded, and where each
    example is one target."""
    instruction: str | None = None
    """What the model is told before each example."""


class RunSettings(Section):
    """Everything that decides how one run behaves."""

    settings_schema: Annotated[int, Field(alias="schema", ge=1, le=SETTINGS_SCHEMA)] = SETTINGS_SCHEMA
    run: str
    purpose: Literal["train", "baseline", "pilot"]
    variant: str
    seed: int
    because: str
    change: dict[str, Any]
    """What differs from the control, field by field."""
    follows: str | None = None
    """The run that this one takes up with other settings; None for one that the plan asked for."""
    plan_hash: str
    hypothesis: Hypothesis
    data: DataVersion
    model: Model
    method: Method
    training: Training
    evaluation: Evaluation
    machine: Machine
    examples_per_update: int
    updates: int
    """Optimizer steps of this run, derived from `training.hold` and the examples; 0 for the baseline."""
    examples: int
    """Training examples seen over the whole run, repeats counted; the last update is cut to reach it exactly."""
    epochs: float


def run_settings(
    plan: Plan,
    plan_hash: str,
    run: PlannedRun,
    data: DataVersion,
    backend: Literal["cpu", "cuda"],
    *,
    pilot: bool = False,
    follow_up: FollowUp | None = None,
) -> RunSettings:
    """Settings of `run` under `plan` on the chosen backend. A pilot has the same settings and stops after a few updates (S8).

    A `follow_up` has the settings that it was given instead of its variant's.
    """
    own = run_plan(plan, run.variant, follow_up)
    arithmetic: Batches = own_batches(own, data)
    updates = 0 if run.variant == BASE else arithmetic.updates
    if follow_up is not None:
        because = follow_up.because
    elif run.variant == BASE:
        because = "the model before any update: what every run starts from"
    elif run.variant == CONTROL:
        because = "the control: the plan as written"
    else:
        because = find_variant(plan, run.variant).because
    return RunSettings(
        run=run.id,
        purpose="pilot" if pilot else "baseline" if run.variant == BASE else "train",
        variant=run.variant,
        seed=run.seed,
        because=because,
        change=change_of(plan, run.variant, follow_up),
        follows=follow_up.follows if follow_up else None,
        plan_hash=plan_hash,
        hypothesis=own.hypothesis,
        data=data,
        model=own.model,
        method=own.method,
        training=own.training,
        evaluation=own.evaluation,
        machine=own.machine.model_copy(update={"backend": backend}),
        examples_per_update=arithmetic.examples_per_update,
        updates=updates,
        examples=arithmetic.examples if updates else 0,
        epochs=updates / arithmetic.updates_per_epoch,
    )


def own_batches(plan: Plan, data: DataVersion) -> Batches:
    """Batch arithmetic of `plan` on the prepared data. Raises ValueError when tokens are held that nobody has counted yet."""
    if (
        plan.training.hold == "tokens"
        and data.train_targets is None
        and plan.hypothesis.task in ("generation", "extraction")
    ):
        raise ValueError(
            'training.hold = "tokens" counts the tokens that carry loss, and they are not encoded yet; '
            "the campaign encodes them when it is launched"
        )
    return batches(plan.training, data.train_examples, plan.machine.processes, data.train_targets)


def dump_settings(settings: RunSettings) -> str:
    """The text of `run.toml`. TOML has no null, so `no_value` lists the fields that are deliberately without one."""
    absent: list[str] = []
    content = _without_nulls(settings.model_dump(mode="json", by_alias=True), "", absent)
    return tomli_w.dumps({"no_value": absent, **content})


def read_settings(directory: Path) -> RunSettings:
    """Settings frozen in `directory`. Raises FileNotFoundError, or ValueError when the file is not of this form."""
    content = tomllib.loads((directory / SETTINGS_FILE).read_text(encoding="utf-8"))
    for name in content.pop("no_value", []):
        table, field = content, name
        while section := next((s for s in table if isinstance(table[s], dict) and field.startswith(f"{s}.")), None):
            table, field = table[section], field.removeprefix(f"{section}.")
        table[field] = None  # of `change` the whole dotted name
    return RunSettings.model_validate(content)


def _without_nulls(table: dict[str, Any], prefix: str, absent: list[str]) -> dict[str, Any]:
    absent += [f"{prefix}{name}" for name, value in table.items() if value is None]
    return {
        name: _without_nulls(value, f"{prefix}{name}.", absent) if isinstance(value, dict) else value
        for name, value in table.items()
        if value is not None
    }
