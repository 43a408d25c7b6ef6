"""The base model from its folder into memory: safetensors only, no code of strangers, and what is new in it told apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig

from ftui.train.quantised import FourBit, one_arithmetic


class HeadError(Exception):
    """The base model's weights do not fit its own configuration."""


def load_pretrained(auto: Any, directory: str, four_bit: FourBit | None = None) -> tuple[nn.Module, list[str]]:
    """The model in `directory` as the class `auto` of transformers, and the names of parameters the base has none of.

    In fp32 on the CPU; with `four_bit`, its frozen linear modules in 4 bits on that device.
    """
    model, info = _load(auto, directory, four_bit)
    return model, sorted(info["missing_keys"])


def load_classifier(
    auto: Any, directory: str, labels: Sequence[str], four_bit: FourBit | None = None
) -> tuple[nn.Module, list[str]]:
    """The same with one output per label. A head for another number of categories is new: nothing of the old one fits.

    Raises `HeadError` when anything else than the head has another shape than the configuration says.
    """
    model, info = _load(auto, directory, four_bit, **_named(labels), ignore_mismatched_sizes=True)
    replaced = {name: (tuple(stored), tuple(own)) for name, stored, own in info["mismatched_keys"]}
    wrong = [name for name, (stored, own) in replaced.items() if own != (len(labels), *stored[1:])]
    if wrong:
        stored, own = replaced[wrong[0]]
        raise HeadError(
            f"{directory}: {wrong[0]} has the shape {stored}, its config.json says {own}; "
            "weights and configuration are not of one model, fetch both again"
        )
    return model, sorted({*info["missing_keys"], *replaced})


def empty_pretrained(auto: Any, directory: str) -> nn.Module:
    """The structure that `load_pretrained` gives, in fp32 on the meta device: shapes without weights, from `config.json` alone."""
    return _empty(auto, directory)


def empty_classifier(auto: Any, directory: str, labels: Sequence[str]) -> nn.Module:
    """The structure that `load_classifier` gives, likewise."""
    return _empty(auto, directory, **_named(labels))


def _named(labels: Sequence[str]) -> dict[str, Any]:
    return {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}


def _empty(auto: Any, directory: str, **own: Any) -> nn.Module:
    config = AutoConfig.from_pretrained(directory, local_files_only=True, trust_remote_code=False, **own)
    with torch.device("meta"):
        model: nn.Module = auto.from_config(config, dtype=torch.float32)
    return model


def _load(auto: Any, directory: str, four_bit: FourBit | None, **own: Any) -> tuple[nn.Module, dict[str, Any]]:
    how = {"dtype": torch.float32, "use_safetensors": True, "local_files_only": True, "trust_remote_code": False}
    quantised = {} if four_bit is None else four_bit.loading(auto, directory)
    model, info = auto.from_pretrained(directory, **how, **quantised, **own, output_loading_info=True)
    if four_bit is not None:
        one_arithmetic(model)
    return model, info
