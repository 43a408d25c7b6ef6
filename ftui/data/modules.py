"""The modules of a model by kind and size, and the short names under which a plan can mean them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ftui.data.families import Built
from ftui.plan.names import matches
from ftui.plan.schema import ALL_LINEAR, PATTERN

Kind = Literal["linear", "convolution", "embedding", "norm"]

ADAPTABLE = ("linear", "convolution", "embedding")
"""Kinds that can get an adapter."""

_EMBEDDING = re.compile(r"(embeddings?|embed_tokens|embed_positions|wte|wpe|shared|relative_attention_bias)$")
"""Endings of modules whose weight has a row for each token or position, like a linear module's for each output."""

_PAIRS: tuple[tuple[str, ...], ...] = (
    ("query", "value"),
    ("q_proj", "v_proj"),
    ("query_proj", "value_proj"),
    ("q_lin", "v_lin"),
    ("q", "v"),
    ("c_attn",),
    ("query_key_value",),
    ("qkv_proj",),
    ("Wqkv",),
    ("qkv",),
)
"""What an attention calls its query and value (Hu et al. 2021, arXiv:2106.09685, section 7.1, adapts those two)."""

_SAVED = ("pooler", "head", "pre_classifier", "classifier", "score", "lm_head", "embed_out", "cls")
"""Modules at a model's end, or near it, that a plan may save whole."""


@dataclass(frozen=True)
class Module:
    """A module with a weight of its own."""

    name: str
    kind: Kind
    inputs: int
    """Of an embedding, how many it holds; of a convolution, channels of one group."""
    outputs: int
    weights: int
    """Weights of one output's filter for one input channel: 1 but for convolutions."""
    bias: bool


def modules_of(built: Built) -> list[Module]:
    """The modules of a model in the order of its parameters; those that share another's weights last."""
    owned = dict(built.parameters)
    owned |= {f"{layer}.weight": built.parameters[f"{owner}.weight"] for layer, owner in built.shared.items()}
    found = []
    for parameter, shape in owned.items():
        name, _, last = parameter.rpartition(".")
        if last != "weight" or not name or not shape:
            continue
        bias = f"{name}.bias" in owned
        kind: Kind = "norm"
        inputs = outputs = shape[0]
        weights = 1
        if len(shape) == 2:
            kind = "embedding" if _EMBEDDING.search(name) and not bias else "linear"
            outputs, inputs = shape
            # An embedding's rows are what goes in; GPT-2 keeps the weights of linear modules so, its head apart.
            if kind == "embedding" or (built.transposed and name != built.output):
                inputs, outputs = shape
        elif len(shape) > 2:
            kind, outputs, inputs = "convolution", shape[0], shape[1]
            for side in shape[2:]:
                weights *= side
        found.append(Module(name, kind, inputs, outputs, weights, bias))
    return found


def module_rows(modules: list[Module]) -> list[dict[str, Any]]:
    """Modules that repeat in every layer together, each group under the shortest name that means it alone."""
    groups: dict[str, list[Module]] = {}
    for module in modules:
        groups.setdefault(re.sub(r"(?<=\.)\d+(?=\.|$)", "*", module.name), []).append(module)
    rows = []
    for pattern, members in groups.items():
        inputs, outputs = {m.inputs for m in members}, {m.outputs for m in members}
        rows.append(
            {
                "name": _short(pattern, members, modules),
                "kind": members[0].kind,
                "count": len(members),
                "inputs": min(inputs) if len(inputs) == 1 else None,
                "outputs": min(outputs) if len(outputs) == 1 else None,
            }
        )
    return rows


def suggested_targets(modules: list[Module]) -> list[str]:
    """Query and value of the attention, else every linear module; [] where there is none."""
    linear = [module.name for module in modules if module.kind == "linear"]
    for names in _PAIRS:
        if all(any(matches(module, name) for module in linear) for name in names):
            return list(names)
    return [ALL_LINEAR] if linear else []


def saved_rows(built: Built) -> list[dict[str, Any]]:
    """Modules that a plan may train and save whole, with their size; those without weights of their own are left out."""
    rows = []
    for module in built.modules:
        if (last := module.rsplit(".", 1)[-1]) in _SAVED and module.count(".") <= 1 and module not in built.shared:
            size = sum(size_of(shape) for name, shape in built.parameters.items() if name.startswith(f"{module}."))
            rows.append({"name": last, "parameters": size})
    return rows


def new_modules(built: Built) -> list[str]:
    """The modules that are new in the task's model, by the names under which a plan saves them whole."""
    found: dict[str, None] = {}
    for parameter in built.new:
        steps = parameter.split(".")[:-1]
        found.setdefault(next((step for step in steps if step in _SAVED), steps[-1]))
    return list(found)


def size_of(shape: Iterable[int]) -> int:
    size = 1
    for side in shape:
        size *= side
    return size


def _short(pattern: str, members: list[Module], modules: list[Module]) -> str:
    """The shortest ending that means these modules and no others; a pattern over whole names where none does."""
    own = {module.name for module in members}
    for ending in _endings(pattern):
        if {module.name for module in modules if matches(module.name, ending)} == own:
            return ending
    steps = pattern.split(".")
    for count in range(2, len(steps) + 1):
        last = steps[-count:]
        before = r".*\." if count < len(steps) else ""
        expression = PATTERN + before + r"\.".join(r"\d+" if step == "*" else re.escape(step) for step in last)
        if {module.name for module in modules if matches(module.name, expression)} == own:
            return expression
    return members[0].name


def _endings(pattern: str) -> Iterator[str]:
    """The name from its last step to its last number, ever longer."""
    steps = pattern.split(".")
    for count in range(1, len(steps) + 1):
        if steps[-count] == "*":
            return
        yield ".".join(steps[-count:])
