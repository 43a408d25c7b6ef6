"""How transformers builds a task's model from a base's parameters, for the families of models whose structure is known here.

Each entry is held against transformers itself in the tests. What is not listed is described as its files have it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from ftui.data.headers import Tensor

LABELS = ""
"""As the outputs of a head's layer: one for each label."""

Job = Literal["reads", "writes", "sees"]


@dataclass(frozen=True)
class Layer:
    """A layer of a head. Sizes are names of settings in `config.json`, or `LABELS`."""

    name: str
    inputs: str = "hidden_size"
    outputs: str = LABELS
    bias: bool | str = True
    """Whether it has a bias, or the setting that says so, without which it has none."""
    norm: bool = False


@dataclass(frozen=True)
class Family:
    """How the models of one `model_type` are built."""

    job: Job
    prefix: str
    """What transformers puts before the names of a base's parameters in a model with a head."""
    head: tuple[Layer, ...]
    """The head that sorts into categories, in the model's order; the last layer is the output."""
    drops: tuple[str, ...] = ()
    """Modules of the base that a model which sorts does not have."""
    writes: str = "lm_head"
    """The layer that gives the next token."""
    embeddings: str = ""
    """The layer that the next token's may share its weights with."""
    tied: bool = False
    """Whether they do where `config.json` does not say."""
    spare_positions: int = 0
    """Positions of `max_position_embeddings` that no token takes."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Parts of names in files, as patterns, and what they are called in the model; one after the other."""


def _reads(prefix: str, *head: Layer, drops: tuple[str, ...] = (), spare: int = 0) -> Family:
    return Family("reads", prefix, head, drops, spare_positions=spare)


def _writes(
    prefix: str = "model", embeddings: str = "embed_tokens", *, out: str = "lm_head", tied: bool = False
) -> Family:
    size = "n_embd" if prefix == "transformer" else "hidden_size"
    return Family(
        "writes",
        prefix,
        (Layer("score", size, bias=False),),
        writes=out,
        embeddings=f"{prefix}.{embeddings}",
        tied=tied,
    )


_VIT_NAMES = (
    (r"encoder\.layer\.", "layers."),
    (r"attention\.query", "q_proj"),
    (r"attention\.key", "k_proj"),
    (r"attention\.value", "v_proj"),
    (r"attention\.output\.dense", "attention.o_proj"),
    (r"intermediate\.dense", "mlp.fc1"),
    (r"output\.dense", "mlp.fc2"),
)
"""As in `transformers/conversion_mapping.py`, "ViTModel"."""


def _sees(prefix: str, *head: Layer, drops: tuple[str, ...] = (), renamed: tuple[tuple[str, str], ...] = ()) -> Family:
    return Family("sees", prefix, head, drops, renamed=renamed)


_HIDDEN = "hidden_size"
_TWO_LAYERS = (Layer("classifier.dense", outputs=_HIDDEN), Layer("classifier.out_proj"))
_ROBERTA = _reads("roberta", *_TWO_LAYERS, drops=("roberta.pooler",), spare=2)
_DEBERTA = _reads("deberta", Layer("pooler.dense", "pooler_hidden_size", "pooler_hidden_size"), Layer("classifier"))
_LLAMA = _writes()
_GEMMA = _writes(tied=True)

FAMILIES: dict[str, Family] = {
    "bert": _reads("bert", Layer("bert.pooler.dense", outputs=_HIDDEN), Layer("classifier")),
    "albert": _reads("albert", Layer("albert.pooler", outputs=_HIDDEN), Layer("classifier")),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "distilbert": _reads("distilbert", Layer("pre_classifier", "dim", "dim"), Layer("classifier", "dim")),
    "electra": _reads("electra", *_TWO_LAYERS),
    "deberta": _DEBERTA,
    "deberta-v2": _DEBERTA,
    "mpnet": _reads("mpnet", *_TWO_LAYERS, drops=("mpnet.pooler",), spare=2),
    "modernbert": _reads(
        "model",
        Layer("head.dense", outputs=_HIDDEN, bias="classifier_bias"),
        Layer("head.norm", norm=True, bias="norm_bias"),
        Layer("classifier"),
    ),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "phi3": _LLAMA,
    "olmo2": _LLAMA,
    "smollm3": _writes(tied=True),
    "gemma": _GEMMA,
    "gemma2": _GEMMA,
    "gpt2": _writes("transformer", "wte", tied=True),
    "vit": _sees("vit", Layer("classifier"), drops=("vit.pooler",), renamed=_VIT_NAMES),
    "deit": _sees("deit", Layer("classifier"), drops=("deit.pooler",), renamed=_VIT_NAMES),
    "efficientnet": _sees("efficientnet", Layer("classifier", "hidden_dim")),
}

PARTS = frozenset(
    {
        "embeddings",
        "embeddings_project",
        "embed_tokens",
        "wte",
        "wpe",
        "encoder",
        "transformer",
        "layers",
        "h",
        "pooler",
    }
    | {"norm", "final_norm", "layernorm", "ln_f"}
)
"""What the bases listed above consist of. A file with other parts at the top is not what its configuration says."""


@dataclass(frozen=True)
class Built:
    """The model of a task on a base, by its parameters."""

    parameters: dict[str, tuple[int, ...]]
    """Shapes by name. What is shared stands once, under the name of the layer that owns it."""
    new: list[str] = field(default_factory=list)
    """Parameters that the base has none of, or of another shape."""
    shared: dict[str, str] = field(default_factory=dict)
    """Layers without parameters of their own, and the layers whose weights they use."""
    output: str | None = None
    """The layer whose outputs are the answer."""
    kept_head: bool = False
    """Whether the base has a trained head for as many labels."""
    transposed: bool = False
    """GPT-2 keeps the weights of its layers as [inputs, outputs]."""
    unsized: list[str] = field(default_factory=list)
    """Layers whose size is not known yet, and which `parameters` does not hold."""
    unsure: list[str] = field(default_factory=list)
    """Why names or sizes may be others in the model that is trained; empty where they are known."""

    @property
    def modules(self) -> list[str]:
        """Every module with parameters in it, shared ones included, in the order of the parameters."""
        found: dict[str, None] = {}
        for name in (*self.parameters, *(f"{layer}.weight" for layer in (*self.shared, *self.unsized))):
            steps = name.split(".")[:-1]
            for end in range(1, len(steps) + 1):
                found.setdefault(".".join(steps[:end]))
        return list(found)


def misfit(task: str, config: dict[str, Any]) -> str | None:
    """Why a base of this family cannot do `task`, None where it can or nobody knows."""
    kind = str(config.get("model_type"))
    writes = task in ("generation", "extraction")
    if writes and config.get("is_encoder_decoder") is True:
        return f"{kind} models read with one half and write with the other, which is not trained here; take one like llama or qwen2"
    if (family := FAMILIES.get(kind)) is None:
        return None
    if task == "image-classification" and family.job != "sees":
        return f"{kind} models read text and see no pictures; take one made for pictures (vit, efficientnet, …)"
    if task != "image-classification" and family.job == "sees":
        return f"{kind} models see pictures and read no text; take one made for text (bert, llama, …)"
    if writes and family.job != "writes":
        return f"{kind} models read text and write none; take one that writes (llama, qwen2, …)"
    return None


def build(task: str, config: dict[str, Any], base: dict[str, Tensor], labels: int | None) -> Built:
    """The model that transformers builds for `task`; `labels` is the number of categories, None where it is not known yet."""
    kind = str(config.get("model_type"))
    family = FAMILIES.get(kind)
    if family is None:
        why = (
            f"models of the kind {kind} are not known to ftui: names are those of the files, a new head is not counted"
        )
        return Built({name: tensor.shape for name, tensor in base.items()}, unsure=[why])
    called = {_called(family, name): tensor.shape for name, tensor in base.items()}
    inside = {name: shape for name, shape in called.items() if name.startswith(f"{family.prefix}.")}
    around = {name: shape for name, shape in called.items() if name not in inside}
    if not inside:
        inside, around = {f"{family.prefix}.{name}": shape for name, shape in around.items()}, {}
    unsure = _doubts(config, inside)
    if task in ("generation", "extraction"):
        return _writing(family, config, inside, around, unsure)
    parameters = {n: shape for n, shape in inside.items() if not n.startswith(tuple(f"{d}." for d in family.drops))}
    new, unsized = list[str](), list[str]()
    if labels is None:
        unsure.append("how many categories there are is not known yet, so the layer that names them is not counted")
    for layer in family.head:
        shapes = _shapes(layer, config, labels)
        if shapes is None:
            if layer.outputs != LABELS:
                unsure.append(f"config.json does not say how large {layer.name} is; it is not counted")
            unsized.append(layer.name)
            new += [] if f"{layer.name}.weight" in around else [f"{layer.name}.weight"]
            continue
        for name, shape in shapes.items():
            stored = parameters.get(name, around.get(name))
            parameters[name] = shape
            new += [name] if stored != shape else []
    output = family.head[-1].name
    kept = f"{output}.weight" in around and output not in unsized and f"{output}.weight" not in new
    return Built(parameters, new, {}, output, kept, kind == "gpt2", unsized, unsure)


def _called(family: Family, name: str) -> str:
    for pattern, new in family.renamed:
        name = re.sub(pattern, new, name)
    return name


def _writing(
    family: Family,
    config: dict[str, Any],
    inside: dict[str, tuple[int, ...]],
    around: dict[str, tuple[int, ...]],
    unsure: list[str],
) -> Built:
    output, embeddings = f"{family.writes}.weight", f"{family.embeddings}.weight"
    tied = config.get("tie_word_embeddings")
    if tied is None:
        tied = family.tied
    shared, new, parameters = {}, [], dict(inside)
    if family.job != "writes" or embeddings not in inside:
        unsure = [*unsure, "the layer that gives the next token is not known; it is not counted"]
    elif tied:
        shared[family.writes] = family.embeddings
    else:
        parameters[output] = inside[embeddings]
        new += [output] if around.get(output) != inside[embeddings] else []
        if (bias := f"{family.writes}.bias") in around:
            parameters[bias] = around[bias]
    return Built(parameters, new, shared, family.writes, False, family.prefix == "transformer", unsure=unsure)


def _shapes(layer: Layer, config: dict[str, Any], labels: int | None) -> dict[str, tuple[int, ...]] | None:
    """The parameters of a head's layer, None where a size is not known."""

    def size(setting: str) -> int | None:
        found = config.get(setting, config.get("hidden_size") if setting == "pooler_hidden_size" else None)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    inputs = size(layer.inputs)
    outputs = labels if layer.outputs == LABELS else size(layer.outputs)
    if layer.norm:
        outputs = inputs
    if inputs is None or outputs is None:
        return None
    bias = bool(config.get(layer.bias, False)) if isinstance(layer.bias, str) else layer.bias
    shapes: dict[str, tuple[int, ...]] = {f"{layer.name}.weight": (inputs,) if layer.norm else (outputs, inputs)}
    return shapes | ({f"{layer.name}.bias": (outputs,)} if bias else {})


def _doubts(config: dict[str, Any], inside: dict[str, tuple[int, ...]]) -> list[str]:
    """What in the files speaks against a model built as the table says."""
    doubts = []
    if "quantization_config" in config:
        doubts.append("the base is stored in a packed form, whose sizes are not those of the model")
    strange = sorted({name.split(".")[1] for name in inside} - PARTS)
    if strange:
        doubts.append(f"the files hold {', '.join(strange[:5])}, which such models do not have")
    wanted = next((config[name] for name in ("num_hidden_layers", "n_layer", "n_layers") if name in config), None)
    numbers = {
        int(found[1]) for name in inside if (found := re.search(r"\.(?:layers?|h|albert_layer_groups)\.(\d+)\.", name))
    }
    shared = config.get("num_hidden_groups")
    if numbers and isinstance(wanted, int) and len(numbers) != (shared or wanted):
        doubts.append(f"config.json says {shared or wanted} layers, the weights are of {len(numbers)}")
    return doubts
