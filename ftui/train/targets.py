"""Which modules get an adapter: the plan's names, endings and patterns against what the model has. Nothing is dropped unseen (K26)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torch import nn
from transformers.pytorch_utils import Conv1D

from ftui.plan.names import matches
from ftui.plan.schema import ALL_LINEAR, Method

LINEAR = (nn.Linear, Conv1D)
ADAPTABLE = (*LINEAR, nn.Embedding, nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""Kinds of modules that peft's LoRA can adapt."""


class ModelError(Exception):
    """The model and the plan's method do not fit; the message says what exists."""


def find_targets(model: nn.Module, method: Method) -> list[str]:
    """Full names of the modules that get an adapter, in the model's order.

    What lies in a module that is saved whole is trained there and gets none. Raises `ModelError` with every problem, and with
    what exists, when a name means nothing, something no adapter fits, or only what is saved whole.
    """
    modules = dict(model.named_modules())
    whole = [name for name in modules if any(matches(name, saved) for saved in method.save_modules)]
    problems = [
        f"method.save_modules: {saved!r} matches no module; modules here: {_listed(_shallow(modules))}"
        for saved in method.save_modules
        if not any(matches(name, saved) for name in modules)
    ]
    problems += _shared(model, whole, method)
    chosen: set[str] = set()
    for target in method.targets:
        if target == ALL_LINEAR:
            head = _head(model, modules)
            chosen |= {n for n, m in modules.items() if isinstance(m, LINEAR) and n != head and not _inside(n, whole)}
            continue
        meant = [name for name in modules if name and matches(name, target)]
        fitting = [name for name in meant if isinstance(modules[name], ADAPTABLE)]
        free = {name for name in fitting if not _inside(name, whole)}
        if free:
            chosen |= free
        elif fitting:
            problems.append(
                f"method.targets: {target!r} means {_listed(fitting)}, which method.save_modules trains whole; "
                "name it in one of the two"
            )
        elif meant:
            kinds = sorted({type(modules[name]).__name__ for name in meant})
            problems.append(
                f"method.targets: {target!r} means {_listed(meant)} ({', '.join(kinds)}), which no adapter fits; "
                f"{_what_exists(modules)}"
            )
        else:
            problems.append(f"method.targets: {target!r} matches no module; {_what_exists(modules)}")
    if not chosen and not problems:
        problems.append(f"method.targets: no module is left for an adapter; {_what_exists(modules)}")
    if problems:
        raise ModelError("; ".join(problems))
    return [name for name in modules if name in chosen]


def find_frozen(model: nn.Module, method: Method) -> list[nn.Module]:
    """The modules that `method.frozen` names. Raises `ModelError` for a name that means nothing."""
    modules = {name: module for name, module in model.named_modules() if name}
    unknown = [frozen for frozen in method.frozen if not any(matches(name, frozen) for name in modules)]
    if unknown:
        listed = _listed(_shallow(modules))
        raise ModelError(f"method.frozen: {', '.join(map(repr, unknown))} matches no module; modules here: {listed}")
    return [module for name, module in modules.items() if any(matches(name, frozen) for frozen in method.frozen)]


def _shared(model: nn.Module, whole: list[str], method: Method) -> Iterator[str]:
    """A sentence for each module to be saved whole whose weights are also another's: the copy that trains would part them."""
    owners: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners.setdefault(id(parameter), []).append(name.rsplit(".", 1)[0])
    for saved in method.save_modules:
        own = [name for name in whole if matches(name, saved)]
        others = {
            o for names in owners.values() if any(_inside(n, own) for n in names) for o in names if not _inside(o, own)
        }
        if others:
            yield (
                f"method.save_modules: {saved!r} shares its weights with {_listed(sorted(others))}, and saving it whole would part "
                'them; name it in method.targets, or choose kind = "full"'
            )


def _inside(module: str, whole: Iterable[str]) -> bool:
    return any(module == name or module.startswith(name + ".") for name in whole)


def _head(model: nn.Module, modules: dict[str, nn.Module]) -> str | None:
    """Name of the output layer, which `all-linear` leaves as it is."""
    output = getattr(model, "get_output_embeddings", lambda: None)()
    if output is not None:
        return next(name for name, module in modules.items() if module is output)
    linear = [name for name, module in modules.items() if isinstance(module, nn.Linear)]
    # Some models list their head before the base (XLM-RoBERTa): what lies in the base is no head.
    base = getattr(model, "base_model_prefix", "")
    linear = [name for name in linear if not base or not name.startswith(f"{base}.")] or linear
    return linear[-1] if linear else None


def _shallow(modules: Iterable[str]) -> list[str]:
    return sorted(name for name in modules if name and name.count(".") <= 1)


def _what_exists(modules: dict[str, nn.Module]) -> str:
    kinds = {"linear modules": LINEAR, "convolutions": (nn.Conv1d, nn.Conv2d, nn.Conv3d), "embeddings": (nn.Embedding,)}
    found = []
    for kind, types in kinds.items():
        names = sorted({n.rsplit(".", 1)[-1] for n, m in modules.items() if isinstance(m, types)})
        if names:
            found.append(f"{kind} here: {', '.join(names)}")
    return "; ".join(found)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
