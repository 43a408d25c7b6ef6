"""How many parameters a method trains, from the shapes alone: what `ftui.train` would count after loading the model (P2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ftui.data.families import Built
from ftui.data.modules import ADAPTABLE, Module, modules_of, new_modules, size_of
from ftui.plan.names import matches
from ftui.plan.schema import ALL_LINEAR, Method

_HEADS = ("classifier", "score")
"""Modules that peft trains whole by itself where it knows that the task sorts texts."""


@dataclass
class _Counted:
    """What was counted, what cannot be known, and what is wrong with the method."""

    trained: int = 0
    added: int = 0
    """Parameters that the method puts beside the model's own: adapters, and copies of what is saved whole."""
    unsure: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def trainable(built: Built, method: Method, task: str, channels: int = 3) -> dict[str, Any]:
    """Trained parameters, all parameters and their share, as a run's record says them; `exact` where nothing is guessed.

    `{"problem": sentence}` where a name of the method means nothing, or a new head would stay random. `channels` is what a
    picture has: a convolution over as many has one group.
    """
    counted = _Counted(unsure=list(built.unsure))
    own = sum(size_of(shape) for shape in built.parameters.values())
    if method.has_adapter:
        _count_adapter(built, method, task, channels, counted)
    else:
        frozen = _frozen(built, method, counted)
        counted.trained = sum(size_of(shape) for name, shape in built.parameters.items() if name not in frozen)
    if counted.problems:
        return {"problem": "; ".join(counted.problems)}
    of = own + counted.added
    return {
        "parameters": counted.trained,
        "of": of,
        "share": counted.trained / of if of else 0.0,
        "exact": not counted.unsure,
        "note": "; ".join(dict.fromkeys(counted.unsure)),
    }


def must_save(built: Built, task: str) -> list[str]:
    """The names that `method.save_modules` has to hold beside an adapter: what is new, and what peft trains in any case."""
    also = [name.rsplit(".", 1)[-1] for name in built.modules if name.endswith(_HEADS)]
    return list(dict.fromkeys([*new_modules(built), *(also if task == "text-classification" else ())]))


def _count_adapter(built: Built, method: Method, task: str, channels: int, counted: _Counted) -> None:
    modules = modules_of(built)
    whole = _saved_whole(built, method, task, counted)
    for module in _targets(built, modules, method, counted):
        counted.trained += _adapter_size(module, method)
        if module.kind == "convolution" and module.inputs != channels:
            counted.unsure.append("the files do not say in how many groups a convolution works; one is taken")
        if method.use_dora and module.kind != "linear":
            counted.unsure.append(f"the magnitudes of DoRA in a module of the kind {module.kind} are not counted")
    saved = sum(size_of(shape) for name, shape in built.parameters.items() if _inside(name, whole))
    counted.trained += saved
    counted.added = counted.trained


def _adapter_size(module: Module, method: Method) -> int:
    """Two matrices of LoRA (Hu et al. 2021, arXiv:2106.09685): inputs to rank, rank to outputs; DoRA has a magnitude per output."""
    size = method.rank * (module.inputs * module.weights + module.outputs)
    return size + (module.outputs if method.use_dora and module.kind == "linear" else 0)


def _targets(built: Built, modules: list[Module], method: Method, counted: _Counted) -> list[Module]:
    whole = [name for name in built.modules if any(matches(name, saved) for saved in method.save_modules)]
    free = [module for module in modules if module.kind in ADAPTABLE and not _inside(module.name, whole)]
    chosen: dict[str, Module] = {}
    for target in method.targets:
        if target == ALL_LINEAR:
            chosen |= {m.name: m for m in free if m.kind == "linear" and m.name != built.output}
            if built.output is None:
                counted.unsure.append("which linear module is the head, which all-linear leaves out, is not known")
            continue
        found = {module.name: module for module in free if matches(module.name, target)}
        chosen |= found
        if not found and not any(matches(layer, target) for layer in built.unsized):
            meant = [name for name in built.modules if matches(name, target)]
            kinds = {module.name: module.kind for module in modules}
            if any(kinds.get(name) in ADAPTABLE for name in meant):
                reason = f"means {_listed(meant)}, which method.save_modules trains whole; name it in one of the two"
            elif meant:
                reason = f"means {_listed(meant)}, which no adapter fits; {_what_exists(modules)}"
            else:
                reason = f"matches no module; {_what_exists(modules)}"
            counted.problems.append(f"method.targets: {target!r} {reason}")
    if not chosen and not counted.problems:
        counted.problems.append(f"method.targets: no module is left for an adapter; {_what_exists(modules)}")
    return [module for module in modules if module.name in chosen]


def _matches_nothing(field: str, name: str, modules: Iterable[str]) -> str:
    shallow = sorted(module for module in modules if module.count(".") <= 1)
    return f"method.{field}: {name!r} matches no module with weights; modules here: {_listed(shallow)}"


def _saved_whole(built: Built, method: Method, task: str, counted: _Counted) -> list[str]:
    """Modules that are trained whole beside the adapter, as peft finds them: by the end of the name, dot or not."""
    names = built.modules
    for saved in method.save_modules:
        meant = [name for name in names if matches(name, saved)]
        if not meant:
            counted.problems.append(_matches_nothing("save_modules", saved, names))
        parted = [layer for layer in built.shared if _inside(layer, meant) != _inside(built.shared[layer], meant)]
        if parted:
            counted.problems.append(
                f"method.save_modules: {saved!r} shares its weights ({parted[0]} with {built.shared[parted[0]]}), and saving it "
                'whole would part them; name it in method.targets, or choose kind = "full"'
            )
    also = _HEADS if task == "text-classification" else ()
    whole = [name for name in names if name.endswith((*method.save_modules, *also))]
    unnamed = {name.rsplit(".", 1)[-1] for name in whole if not _named(name, method)}
    holders = {name.rpartition(".")[0] for name in built.new}
    unnamed |= {name for name in holders if not _named_around(name, method)}
    if unnamed:
        listed = ", ".join(repr(name) for name in sorted(unnamed))
        why = "the base model has no trained one" if built.new else "this task trains it"
        counted.problems.append(
            f"method.save_modules does not name {listed}, but {why}; add {listed} to method.save_modules"
        )
    return whole


def _frozen(built: Built, method: Method, counted: _Counted) -> set[str]:
    frozen: set[str] = set()
    names = built.modules
    for name in method.frozen:
        meant = [module for module in names if matches(module, name)]
        if not meant:
            counted.problems.append(_matches_nothing("frozen", name, names))
        meant += [owner for layer, owner in built.shared.items() if _inside(layer, meant)]
        frozen |= {parameter for parameter in built.parameters if _inside(parameter, meant)}
    return frozen


def _named(module: str, method: Method) -> bool:
    return any(matches(module, name) for name in method.save_modules)


def _named_around(module: str, method: Method) -> bool:
    """Whether the plan saves the module, or one around it."""
    steps = module.split(".")
    return any(_named(".".join(steps[:end]), method) for end in range(1, len(steps) + 1))


def _inside(name: str, modules: Iterable[str]) -> bool:
    return any(name == module or name.startswith(module + ".") for module in modules)


def _what_exists(modules: list[Module]) -> str:
    found = []
    for kind, many in (("linear", "linear modules"), ("convolution", "convolutions"), ("embedding", "embeddings")):
        if names := sorted({module.name.rsplit(".", 1)[-1] for module in modules if module.kind == kind}):
            found.append(f"{many} here: {', '.join(names)}")
    return "; ".join(found)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
