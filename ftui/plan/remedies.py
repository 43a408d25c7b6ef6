"""What can be changed when memory runs out, with what each change does to memory and to the experiment (S3).

Pure arithmetic on the plan: nothing here is measured. Changes that keep the update as it is come first, changes of the task last.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ftui.plan.schema import Plan

PART_WORDS = {
    "weights": "the model's weights",
    "activations": "activations",
    "logits": "the logits of one micro-batch",
    "gradients": "activations and gradients",
    "optimizer": "the optimizer's state",
    "evaluation": "evaluation",
    "unknown": "an unknown part",
}


@dataclass(frozen=True)
class Remedy:
    """One change of the plan."""

    change: dict[str, Any]
    """Dotted fields and their new values."""
    memory: str
    """What it does to memory."""
    experiment: str
    """What it does to the experiment."""
    keeps_task: bool = True
    """Whether the same question is still asked of the same examples."""

    @property
    def title(self) -> str:
        return ", ".join(f"{name} = {_toml(value)}" for name, value in self.change.items())

    def content(self) -> dict[str, Any]:
        return asdict(self)


def remedies(plan: Plan, part: str, longest: int | None = None) -> list[Remedy]:
    """Changes that need less memory for `part` (see `PART_WORDS`), the gentlest first.

    `longest` is the length in tokens of the longest example that was tried. A change that cannot help the part is left out.
    """
    if part == "evaluation":
        return _smaller_evaluation(plan)
    found: list[Remedy] = []
    if part in ("activations", "logits", "gradients", "optimizer", "unknown"):
        found += _smaller_micro_batch(plan)
        found += _checkpointing(plan, part)
        found += _lower_precision(plan)
    found += _adapter(plan, part)
    if part in ("activations", "logits", "gradients", "unknown"):
        found += _shorter(plan, longest)
    return found


def _smaller_micro_batch(plan: Plan) -> list[Remedy]:
    training = plan.training
    size = training.micro_batch * training.accumulation
    smaller = max((n for n in range(1, training.micro_batch) if size % n == 0), default=None)
    if smaller is None:
        return []
    change = {"training.micro_batch": smaller, "training.accumulation": size // smaller}
    replicas = plan.machine.processes
    return [
        Remedy(
            change,
            f"activations and logits need about {smaller}/{training.micro_batch} of what they do now; weights, gradients and the "
            "optimizer's state stay",
            f"none: still {smaller} × {size // smaller} × {replicas} = {size * replicas} examples per update, normalised over all their "
            "targets; some more time",
        )
    ]


def _checkpointing(plan: Plan, part: str) -> list[Remedy]:
    if plan.training.activation_checkpointing or part == "optimizer":
        return []
    return [
        Remedy(
            {"training.activation_checkpointing": True},
            "of the activations only those between layers are kept; the others are computed twice",
            "none but rounding; the forward pass is computed twice, about a third more time for each update",
        )
    ]


def _lower_precision(plan: Plan) -> list[Remedy]:
    if plan.training.precision != "fp32" or plan.machine.backend == "cpu":
        return []
    return [
        Remedy(
            {"training.precision": "bf16"},
            "activations need about half; weights and the optimizer's state stay in fp32",
            "all runs compute with 8 bits of precision: they remain comparable with each other, not with runs in fp32",
        )
    ]


def _adapter(plan: Plan, part: str) -> list[Remedy]:
    if plan.method.kind == "full" and part in ("optimizer", "gradients", "unknown"):
        return [
            Remedy(
                {"method.kind": "lora", "method.targets": ["all-linear"]},
                "gradients and the optimizer's state exist for the adapters alone, a hundredth of the parameters or so",
                "another method: what is asked of full fine-tuning is then asked of adapters",
                keeps_task=False,
            )
        ]
    if plan.method.kind == "lora" and part in ("weights", "unknown"):
        return [
            Remedy(
                {"method.kind": "qlora"},
                "the frozen weights need about a seventh of what they do in fp32",
                "another method: the base is rounded to 4 bits in every run, the reference included",
                keeps_task=False,
            )
        ]
    return []


def _shorter(plan: Plan, longest: int | None) -> list[Remedy]:
    now = min(plan.training.max_length, longest or plan.training.max_length)
    if now < 16:
        return []
    change: dict[str, Any] = {"training.max_length": now // 2}
    if plan.training.truncation == "error":
        change["training.truncation"] = "cut"
    return [
        Remedy(
            change,
            f"activations and logits of the longest example ({now} tokens) need about half, those of attention less",
            "another task: longer examples are cut, and what was behind the cut is neither read nor learnt",
            keeps_task=False,
        )
    ]


def _smaller_evaluation(plan: Plan) -> list[Remedy]:
    size = plan.evaluation.batch_size
    if size == 1:
        return []
    return [
        Remedy(
            {"evaluation.batch_size": size // 2},
            "an evaluation needs about half of what it does beyond the weights",
            "none: metrics do not depend on the batch size; some more time",
        )
    ]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value).replace("'", '"')
