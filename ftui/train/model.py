"""The base model under the plan's method: which parameters exist, which train, and how adapters are attached (P1, P2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from peft import LoraConfig, TaskType, get_peft_model
from torch import nn

from ftui.data.base import BaseFiles
from ftui.plan.schema import Method
from ftui.train.task import Task


class ModelError(Exception):
    """The model and the plan's method do not fit; the message says what exists."""


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
        total = sum(p.numel() for p in self.model.parameters())
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


def prepare_model(task: Task, base: BaseFiles, method: Method, *, activation_checkpointing: bool) -> Prepared:
    """Load the base and apply the method. The seed must be set before: new parameters and adapters are drawn here (K27)."""
    loaded, new = task.load_base(str(base.directory))
    model: Any = loaded
    if activation_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if method.kind == "lora":
        _require_modules(model, method)
        model = get_peft_model(model, lora_config(method))
        _require_named(model, method, new)
    return Prepared(model, base, new)


def lora_config(method: Method) -> LoraConfig:
    """The plan's method in peft's words."""
    return LoraConfig(
        task_type=TaskType.SEQ_CLS,
        r=method.rank,
        lora_alpha=method.alpha,  # type: ignore[arg-type]  # peft divides by the rank and takes any number
        lora_dropout=method.dropout,
        target_modules=list(method.targets),
        modules_to_save=list(method.save_modules) or None,
        use_rslora=method.use_rslora,
        use_dora=method.use_dora,
    )


_SAVED = ".modules_to_save.default"
"""What peft puts into the names of a module that is trained and saved whole."""


def _require_named(model: nn.Module, method: Method, new: list[str]) -> None:
    """What is trained whole is what the plan names: peft adds the task's head by itself, and a new head must not stay random."""
    whole = {n.split(_SAVED)[0] for n, p in model.named_parameters() if p.requires_grad and _SAVED in n}
    unnamed = sorted(
        {m.rsplit(".", 1)[-1] for m in whole if not any(_matches(m, name) for name in method.save_modules)}
        | {n.rsplit(".", 1)[0] for n in new if not any(_matches(n.rsplit(".", 1)[0], s) for s in method.save_modules)}
    )
    if unnamed:
        names = ", ".join(repr(name) for name in unnamed)
        why = "the base model has no trained one" if new else "this task trains it"
        raise ModelError(f"method.save_modules does not name {names}, but {why}; add {names} to method.save_modules")


def _require_modules(model: nn.Module, method: Method) -> None:
    """Every name of the method must match a module; raises `ModelError` that lists what exists (P2)."""
    linear = sorted({n.rsplit(".", 1)[-1] for n, m in model.named_modules() if isinstance(m, nn.Linear)})
    children = sorted(name for name, _ in model.named_modules() if name and name.count(".") <= 1)
    problems = [
        f"method.targets: {name!r} matches no module; linear modules here: {', '.join(linear)}"
        for name in method.targets
        if not any(_matches(n, name) and isinstance(m, nn.Linear) for n, m in model.named_modules())
    ]
    problems += [
        f"method.save_modules: {name!r} matches no module; modules here: {', '.join(children)}"
        for name in method.save_modules
        if not any(_matches(n, name) for n, _ in model.named_modules())
    ]
    if problems:
        raise ModelError("; ".join(problems))


def _matches(module: str, name: str) -> bool:
    return module == name or module.endswith("." + name)
