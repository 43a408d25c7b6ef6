"""What a new plan begins with, and what one answer changes besides itself.

A field follows another only as long as a person has not decided it: hours follow the days while they are the default for them, a
metric follows the task when it does not exist there.
"""

from __future__ import annotations

from typing import Any

from ftui.plan.draft import MISSING, Draft
from ftui.plan.fields import all_fields
from ftui.plan.rental import default_hours
from ftui.plan.schema import LOWER_IS_BETTER, SLICE_METRICS, WHOLE, WHOLE_METRICS, RentalHours

DAYS = 3

STARTING = """\
# A campaign: what you want to find out, with what, and within which rental. Written by ftui's wizard and yours to edit:
# comments and order are kept. `ftui check` says what is missing, `ftui plan` does the arithmetic, `ftui run` starts.

schema = 1

[hypothesis]
task = "text-classification"
metric = "macro_f1"
direction = "higher"
reference = "control"
alpha = 0.05

[data]
cleaning = ["nfc@1", "strip@1", "collapse-spaces@1"]

[model]

[method]
kind = "lora"
rank = 8
alpha = 16

[training]
micro_batch = 8
accumulation = 2
hold = "epochs"
amount = 3
learning_rate = 2e-4
schedule = "linear"
warmup = 10
max_length = 256
truncation = "error"
validate_every = 50
checkpoint_every = 50

[training.stop]
nonfinite = "stop"
divergence = 3.0

[evaluation]
seeds = [17, 18, 19]
"""
"""The text of a new plan, without its rental: settings that are defensible before anything is known, nothing that only its owner
can say."""


def new_draft() -> Draft:
    """A plan to be filled in."""
    draft = Draft(STARTING).set(("rental", "days"), DAYS)
    return draft.set(("rental", "hours"), _written(default_hours(DAYS)))


def settled(draft: Draft, name: str, before: Draft) -> tuple[Draft, list[str]]:
    """`draft` with what follows from the answer to field `name`, and a sentence for each thing that followed.

    `before` is the draft as it was before the answer.
    """
    told: list[str] = []

    def value(field: str) -> Any:
        given = draft.given(tuple(field.split(".")))
        return all_fields()[field].default if given is MISSING else given

    def change(field: str, new: Any, sentence: str) -> None:
        nonlocal draft
        steps = tuple(field.split("."))
        changed = draft.remove(steps) if new is MISSING else draft.set(steps, new)
        if changed is not draft:
            draft = changed
            told.append(sentence)

    task = value("hypothesis.task")
    if name == "hypothesis.task" and task in WHOLE_METRICS:
        if value("hypothesis.metric") not in WHOLE_METRICS[task]:
            metric = "field_f1" if task == "extraction" else WHOLE_METRICS[task][0]
            change("hypothesis.metric", metric, f"the metric is now {metric}: the one before is none of {task}")
        for index, guardrail in enumerate(draft.items("guardrails")):
            allowed = WHOLE_METRICS[task] if guardrail.get("slice", WHOLE) == WHOLE else SLICE_METRICS[task]
            if guardrail.get("metric") not in allowed:
                draft = draft.set(("guardrails", index, "metric"), allowed[0])
                told.append(f"guardrail {index + 1} is now measured by {allowed[0]}")
        if task in ("generation", "extraction"):
            if draft.given(("evaluation", "generation")) is MISSING:
                change("evaluation.generation.max_new_tokens", 64, "an answer may have 64 tokens")
        else:
            for unused in ("evaluation.format", "evaluation.generation", "data.instruction"):
                if draft.given(tuple(unused.split("."))) is not MISSING:
                    draft = draft.remove(tuple(unused.split(".")))
                    told.append(f"{unused} is gone: {task} has no use for it")
            if value("training.batching") == "packed":
                change(
                    "training.batching",
                    "length-grouped",
                    "packed rows are for tasks that write: grouped by length instead",
                )
            if value("training.truncation") == "keep-target":
                change(
                    "training.truncation",
                    "error",
                    "a longer example is an error now: its target is not among the tokens",
                )
    if name in ("hypothesis.task", "hypothesis.metric"):
        less = value("hypothesis.metric") in LOWER_IS_BETTER
        change(
            "hypothesis.direction",
            "lower" if less else "higher",
            "less of it is better" if less else "more of it is better",
        )
    if name == "method.kind":
        fields = ["method.frozen"] if value("method.kind") != "full" else ["method.targets", "method.save_modules"]
        for field in fields:
            change(field, MISSING, f"{field} is gone: {value('method.kind')} has no use for it")
    if name == "machine.processes":
        strategy = "single" if value("machine.processes") == 1 else "ddp"
        change("machine.strategy", strategy, f"strategy is now {strategy}")
    ways = ("backup.destination", "backup.command")
    if name in ways and all(draft.given(tuple(way.split("."))) is MISSING for way in ways):
        change("backup", MISSING, "nothing is copied: what is on the machine ends with the rental")
    if name == "rental.days":
        draft, sentence = _with_hours(draft, before)
        told += [sentence] * bool(sentence)
    return draft, told


def _with_hours(draft: Draft, before: Draft) -> tuple[Draft, str]:
    """Hours for other days, unless a person has set them."""
    days, hours, old = (
        draft.given(("rental", "days")),
        before.given(("rental", "hours")),
        before.given(("rental", "days")),
    )
    if not isinstance(days, int | float) or isinstance(days, bool) or days <= 0:
        return draft, ""
    if hours is not MISSING and not (
        isinstance(old, int | float) and old > 0 and hours == _written(default_hours(old))
    ):
        return draft, ""
    return draft.set(
        ("rental", "hours"), _written(default_hours(days))
    ), f"hours by phase are those usual for {days:g} days"


def _written(hours: RentalHours) -> dict[str, float | int]:
    """Hours as the file has them: whole ones without a point."""
    return {name: int(value) if value == int(value) else value for name, value in hours.model_dump().items()}
