"""The base model under the plan's method: which parameters exist, which train, and how adapters are attached (P1, P2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch import nn

from ftui.data.base import BaseFiles
from ftui.plan.names import matches
from ftui.plan.schema import Method
from ftui.train.quantised import four_bit, weights
from ftui.train.targets import ModelError, find_frozen, find_targets
from ftui.train.task import Task


@dataclass(frozen=True)
class Prepared:
    """A model ready to train, with its account of parameters."""

    model: nn.Module
    base: BaseFiles
    new_parameters: list[str]
    """Parameters the base does not have, drawn from the seed: a new classifier."""

    @property
    def trainable(self) -> dict[str, nn.Parameter]:
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def facts(self) -> dict[str, object]:
        """What the record keeps: counts, share, names, identity of the base."""
        total = sum(weights(p) for p in self.model.parameters())
        trained = sum(p.numel() for p in self.trainable.values())
        return {
            "parameters": total,
            "trainable": trained,
            "trainable_share": trained / total,
            "trainable_names": sorted(self.trainable),
            "new_parameters": self.new_parameters,
            "base_sha256": self.base.sha256,
            "base_found": self.base.how,
        }


def prepare_model(
    task: Task,
    base: BaseFiles,
    method: Method,
    *,
    activation_checkpointing: bool,
    precision: str = "fp32",
    device: torch.device | None = None,
) -> Prepared:
    """Load the base and apply the method. The seed must be set before: new parameters and adapters are drawn here (K27).

    `precision` and `device` decide how a quantised base computes and where it lies. Raises `ModelError`, `NotHere`.
    """
    how = four_bit(method, precision, device or torch.device("cpu"))
    loaded, new = task.load_base(str(base.directory), how)
    model = apply_method(loaded, new, task.adapter_type, method, activation_checkpointing=activation_checkpointing)
    return Prepared(model, base, new)


def apply_method(
    loaded: nn.Module, new: list[str], adapter_type: str | None, method: Method, *, activation_checkpointing: bool
) -> nn.Module:
    """The base under the method: adapters attached, what is not trained frozen. `new` are the parameters the base has none of.

    Reads no weight, so that a structure without any goes the same way. Raises `ModelError`.
    """
    model: Any = loaded
    if activation_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if method.has_adapter:
        targets = find_targets(model, method)
        model = get_peft_model(model, lora_config(method, targets, adapter_type))
        if left := sorted(set(targets) - set(model.base_model.targeted_module_names)):
            raise ModelError(f"method.targets: {', '.join(left)} got no adapter; leave them out")
        _require_named(model, method, new)
    for module in find_frozen(model, method):
        module.requires_grad_(False)
    _freeze_statistics(model)
    trained: nn.Module = model
    return trained


def lora_config(method: Method, targets: list[str], adapter_type: str | None) -> LoraConfig:
    """The plan's method in peft's words; `targets` are full names of modules."""
    return LoraConfig(
        task_type=None if adapter_type is None else TaskType(adapter_type),
        r=method.rank,
        lora_alpha=method.alpha,  # type: ignore[arg-type]  # peft divides by the rank and takes any number
        lora_dropout=method.dropout,
        target_modules=targets,
        modules_to_save=list(method.save_modules) or None,
        use_rslora=method.use_rslora,
        use_dora=method.use_dora,
    )


def _freeze_statistics(model: nn.Module) -> None:
    """Batch normalisation that is not trained keeps the base's running statistics, too: they are part of what was frozen, and an
    adapter does not carry them, so that the model that is delivered would not be the one that was trained."""
    for module in model.modules():
        is_norm = isinstance(module, nn.modules.batchnorm._BatchNorm)
        if is_norm and not any(p.requires_grad for p in module.parameters()):
            module.register_forward_pre_hook(_evaluate)


def _evaluate(module: nn.Module, _inputs: Any) -> None:
    module.eval()


_SAVED = ".modules_to_save.default"
"""What peft puts into the names of a module that is trained and saved whole."""


def _require_named(model: nn.Module, method: Method, new: list[str]) -> None:
    """What is trained whole is what the plan names: peft adds the task's head by itself, and a new head must not stay random."""
    whole = {n.split(_SAVED)[0] for n, p in model.named_parameters() if p.requires_grad and _SAVED in n}
    unnamed = sorted(
        {m.rsplit(".", 1)[-1] for m in whole if not any(matches(m, name) for name in method.save_modules)}
        | {n.rsplit(".", 1)[0] for n in new if not any(_holds(name, n) for name in method.save_modules)}
    )
    if unnamed:
        names = ", ".join(repr(name) for name in unnamed)
        why = "the base model has no trained one" if new else "this task trains it"
        raise ModelError(f"method.save_modules does not name {names}, but {why}; add {names} to method.save_modules")


def _holds(saved: str, parameter: str) -> bool:
    """Whether the module that the plan calls `saved` holds a parameter: itself, or in a module below it."""
    steps = parameter.split(".")
    return any(matches(".".join(steps[:end]), saved) for end in range(1, len(steps)))
