"""What the plan calls a target gets an adapter, or is refused with what exists; variants of LoRA do what their papers say."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from ftui.data.base import BaseFiles
from ftui.plan.schema import Method
from ftui.train.model import Prepared, prepare_model
from ftui.train.quantised import FourBit
from ftui.train.targets import ModelError, find_targets

LAYER = "bert.encoder.layer"


def method(*targets: str, save: tuple[str, ...] = (), **fields: object) -> Method:
    return Method.model_validate({"rank": 4, "targets": list(targets), "save_modules": list(save), **fields})


def bert() -> nn.Module:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=16, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return BertForSequenceClassification(config)


def llama(*, tied: bool) -> nn.Module:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=16, tie_word_embeddings=tied,
    )  # fmt: skip
    return LlamaForCausalLM(config)


class Loaded:
    """The part of a task that `prepare_model` asks for, over a model made in memory."""

    def __init__(self, model: nn.Module, adapter_type: str | None, new: tuple[str, ...] = ()) -> None:
        self.model, self.adapter_type, self.new = model, adapter_type, list(new)

    def load_base(self, directory: str, four_bit: FourBit | None = None) -> tuple[nn.Module, list[str]]:
        return self.model, self.new


def prepared(model: nn.Module, chosen: Method, adapter_type: str | None = "CAUSAL_LM") -> Prepared:
    torch.manual_seed(1)
    task = Loaded(model, adapter_type)
    return prepare_model(task, BaseFiles(Path(), "directory", "", {}), chosen, activation_checkpointing=False)  # type: ignore[arg-type]


# Names, endings, patterns


@pytest.mark.parametrize(
    ("targets", "found"),
    [
        (["query"], [f"{LAYER}.{i}.attention.self.query" for i in (0, 1)]),
        ([f"{LAYER}.1.attention.self.query"], [f"{LAYER}.1.attention.self.query"]),
        (["attention.output.dense"], [f"{LAYER}.{i}.attention.output.dense" for i in (0, 1)]),
        ([r"re:.*layer\.1\..*(query|value)"], [f"{LAYER}.1.attention.self.{n}" for n in ("query", "value")]),
        (["value", r"re:.*\.0\..*key"], [f"{LAYER}.0.attention.self.key", *(f"{LAYER}.{i}.attention.self.value" for i in (0, 1))]),
    ],
)  # fmt: skip
def test_a_target_is_a_name_its_ending_or_a_pattern_over_all_of_it(targets: list[str], found: list[str]) -> None:
    assert find_targets(bert(), method(*targets, save=("classifier",))) == found


def test_a_pattern_must_match_the_whole_name() -> None:
    with pytest.raises(ModelError, match=r"method\.targets: 're:query' matches no module"):
        find_targets(bert(), method("re:query"))


def test_all_linear_is_every_linear_module_but_the_head_and_what_is_saved_whole() -> None:
    in_layers = [
        f"{LAYER}.{i}.{name}"
        for i in (0, 1)
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
                     "intermediate.dense", "output.dense")
    ]  # fmt: skip
    assert find_targets(bert(), method("all-linear", save=("classifier", "pooler"))) == in_layers
    assert find_targets(bert(), method("all-linear")) == [*in_layers, "bert.pooler.dense"]
    names = find_targets(llama(tied=False), method("all-linear"))
    assert len(names) == 2 * 7 and not any("lm_head" in name or "embed" in name for name in names)


def test_gpt2s_transposed_linear_modules_are_linear_modules() -> None:
    model = GPT2LMHeadModel(GPT2Config(vocab_size=30, n_positions=16, n_embd=16, n_layer=1, n_head=2))
    names = find_targets(model, method("all-linear"))
    assert [name.removeprefix("transformer.h.0.") for name in names] == [
        "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("targets", "saved", "sentence"),
    [
        (["valeu"], [], r"'valeu' matches no module; linear modules here: classifier, dense, key, query, value; embeddings here"),
        (["LayerNorm"], [], r"'LayerNorm' means .* \(LayerNorm\), which no adapter fits"),
        (["encoder"], [], r"'encoder' means bert\.encoder \(BertEncoder\), which no adapter fits"),
        (["classifier"], ["classifier"], r"'classifier' means classifier, which method\.save_modules trains whole"),
        (["query"], ["poler"], r"method\.save_modules: 'poler' matches no module; modules here: .*bert\.pooler"),
    ],
)  # fmt: skip
def test_a_name_that_gives_no_adapter_is_refused_with_what_exists(
    targets: list[str], saved: list[str], sentence: str
) -> None:
    with pytest.raises(ModelError, match=sentence):
        find_targets(bert(), method(*targets, save=tuple(saved)))


@pytest.mark.parametrize("name", ["re:(", "all-linear"])
def test_a_pattern_that_is_none_is_an_error_of_the_plan(name: str) -> None:
    with pytest.raises(ValueError, match=r"is no regular expression|stands alone"):
        method("query", name)


# Embeddings and heads (K26)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", ["embed_tokens", "lm_head"])
def test_targets_that_name_embeddings_or_the_head_train(name: str, tied: bool) -> None:
    model = prepared(llama(tied=tied), method("q_proj", name))
    trained = [n for n in model.trainable if f".{name}." in n]
    assert len(trained) == 2, "both matrices of its adapter"
    assert_all_move(model, trained)


@pytest.mark.parametrize("name", ["embed_tokens", "lm_head"])
def test_embeddings_or_head_saved_whole_train(name: str) -> None:
    model = prepared(llama(tied=False), method("q_proj", save=(name,)))
    trained = [n for n in model.trainable if f".{name}." in n]
    assert len(trained) == 1
    assert_all_move(model, trained)


def test_tied_embeddings_saved_whole_are_refused_because_the_tie_would_break() -> None:
    with pytest.raises(ModelError, match=r"method\.save_modules: 'embed_tokens' shares its weights with lm_head"):
        prepared(llama(tied=True), method("q_proj", save=("embed_tokens",)))


def assert_all_move(model: Prepared, names: list[str]) -> None:
    """Two steps, for the first matrix of an adapter stays where the second is zero."""
    before = {name: model.trainable[name].detach().clone() for name in names}
    optimizer = torch.optim.SGD(model.trainable.values(), lr=1.0)
    ids = torch.arange(2, 14).reshape(2, 6)
    for _ in range(2):
        model.model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert all(not torch.equal(before[name], model.trainable[name]) for name in names)


# Variants of LoRA


@pytest.mark.parametrize(("rslora", "scale"), [(False, 12 / 4), (True, 12 / math.sqrt(4))])
def test_rslora_scales_by_the_root_of_the_rank(rslora: bool, scale: float) -> None:
    """The output is the base's plus scale · B A x; read off by giving A and B known values."""
    model = prepared(bert(), method("query", save=("classifier",), alpha=12, use_rslora=rslora), "SEQ_CLS")
    layer = model.model.get_submodule(f"base_model.model.{LAYER}.0.attention.self.query")
    with torch.no_grad():
        layer.lora_A["default"].weight.fill_(1.0)  # type: ignore[index, union-attr]
        layer.lora_B["default"].weight.fill_(1.0)  # type: ignore[index, union-attr]
        x = torch.ones(1, 16)
        added = layer(x) - layer.base_layer(x)  # type: ignore[operator]
    assert torch.allclose(added, torch.full_like(added, scale * 4 * 16), rtol=1e-5), "rank 4, 16 inputs"


def test_dora_trains_a_magnitude_for_each_output_and_starts_as_the_base() -> None:
    base = bert().eval()
    ids = torch.arange(2, 14).reshape(2, 6)
    with torch.no_grad():
        expected = base(input_ids=ids).logits
    weight = base.get_submodule(f"{LAYER}.0.attention.self.query").weight.detach().clone()  # type: ignore[operator, union-attr]
    model = prepared(base, method("query", save=("classifier",), use_dora=True), "SEQ_CLS")
    magnitudes = {n: p for n, p in model.trainable.items() if "lora_magnitude_vector" in n}
    assert len(magnitudes) == 2 and all(p.shape == (16,) for p in magnitudes.values())
    # Liu et al. 2024, equation 5: the magnitude starts as the norm of each row of the base's weight.
    first = next(p for n, p in magnitudes.items() if ".layer.0." in n)
    assert torch.allclose(first, weight.norm(dim=1), atol=1e-6)
    model.model.eval()
    with torch.no_grad():
        assert torch.allclose(model.model(input_ids=ids).logits, expected, atol=1e-5)
    plain = prepared(bert(), method("query", save=("classifier",)), "SEQ_CLS")
    assert set(model.trainable) - set(plain.trainable) == set(magnitudes)


# Full fine-tuning


def test_what_is_frozen_stays_and_all_else_trains() -> None:
    model = prepared(bert(), Method(kind="full", frozen=["embeddings", r"re:.*layer\.0"]), "SEQ_CLS")
    names = set(dict(model.model.named_parameters()))
    frozen = {n for n in names if n.startswith(("bert.embeddings.", "bert.encoder.layer.0."))}
    assert frozen and set(model.trainable) == names - frozen
    with pytest.raises(ModelError, match=r"method\.frozen: 'embedings' matches no module; modules here"):
        prepared(bert(), Method(kind="full", frozen=["embedings"]), "SEQ_CLS")
