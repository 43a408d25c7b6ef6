"""QLoRA: the frozen base in 4 bits, an adapter in full precision on top (Dettmers et al. 2023, arXiv:2305.14314).

nf4 with double quantisation, as the paper has it. Weights are unpacked for each product into the precision of the plan; what is
trained, the head, the embeddings and the norms are never quantised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ftui.machine.versions import NO_BITSANDBYTES
from ftui.plan.schema import Method

COMPUTE = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
"""Type of a product with unpacked weights, by `training.precision`."""


class NotHere(Exception):
    """QLoRA cannot run on this machine; the message says what is missing and the way out."""


@dataclass(frozen=True)
class FourBit:
    """How a base is loaded in 4 bits."""

    precision: str
    """`training.precision`."""
    keep: tuple[str, ...]
    """Names of modules that stay whole, because they are trained whole (`method.save_modules`)."""
    device: torch.device

    def loading(self, auto: Any, directory: str) -> dict[str, Any]:
        """Arguments of transformers' `from_pretrained`. Raises `NotHere`."""
        require_bitsandbytes(self.device)
        from transformers import AutoConfig, BitsAndBytesConfig
        from transformers.quantizers.base import get_keys_to_not_convert

        with torch.device("meta"):
            empty = auto.from_config(AutoConfig.from_pretrained(directory, local_files_only=True))
        whole = [rf"(?:.*\.)?{re.escape(name)}" for name in self.keep]
        config = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=COMPUTE[self.precision],
            llm_int8_skip_modules=[*get_keys_to_not_convert(empty), *whole],
        )
        return {"quantization_config": config, "device_map": {"": self.device}}


def four_bit(method: Method, precision: str, device: torch.device) -> FourBit | None:
    """How the base of `method` is packed, None when it is not."""
    return FourBit(precision, tuple(method.save_modules), device) if method.kind == "qlora" else None


def require_bitsandbytes(device: torch.device) -> None:
    """Raises `NotHere` when bitsandbytes is not installed, cannot be loaded, or does not work on this kind of device."""
    try:
        import bitsandbytes
    except ImportError:
        raise NotHere(NO_BITSANDBYTES) from None
    except Exception as problem:  # its native part may not fit this machine's drivers
        raise NotHere(
            f'method.kind = "qlora" needs bitsandbytes, which does not load here ({problem}); '
            'install a build for this machine, or choose kind = "lora"'
        ) from None
    if device.type not in bitsandbytes.supported_torch_devices:
        raise NotHere(
            f"bitsandbytes {bitsandbytes.__version__} has no 4-bit weights for {device.type}; "
            'choose another machine.backend, or kind = "lora"'
        )


def one_arithmetic(model: nn.Module) -> None:
    """Make packed weights compute in evaluation as they do in training.

    On processors with AVX512-BF16 bitsandbytes repacks them for good at the first forward pass in evaluation mode, with scales
    rounded to bf16: a run would then depend on when it was first validated, and a resumed one would not equal it.
    """
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            setattr(module, "support_avx512bf16_for_cpu", False)  # noqa: B010  # a plain attribute that nn.Module does not type


def weights(parameter: nn.Parameter) -> int:
    """How many weights a parameter stands for; a quantised one holds two of them in each byte."""
    state = getattr(parameter, "quant_state", None)
    return parameter.numel() if state is None else int(state.shape.numel())


def without_packing(model: nn.Module, state: dict[str, Any]) -> dict[str, Any]:
    """A state dict without the entries that say how frozen weights were packed: they follow from the base, like the weights."""
    packed = tuple(
        name.removeprefix("module.") + "." for name, p in model.named_parameters() if hasattr(p, "quant_state")
    )
    return {name: value for name, value in state.items() if not name.startswith(packed)}
