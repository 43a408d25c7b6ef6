"""What a model's weights are, from the heads of its safetensors files: names, types and shapes, without a single weight.

The form: eight bytes with the length of a JSON object, the object, then the weights (safetensors, "Format",
github.com/huggingface/safetensors).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftui.record.files import read_json

LONGEST = 100_000_000
"""Bytes of the longest head that is read, as in the library."""

_BUFFER = re.compile(
    r"(^|\.)(running_mean|running_var|num_batches_tracked|position_ids|token_type_ids|inv_freq|masked_bias|"
    r"relative_position_index)$"
)
"""Endings of what a file may hold that is no parameter: statistics, positions and masks that the code fills in."""

_OLD = {"gamma": "weight", "beta": "bias"}
"""Endings of old files that transformers renames when it reads them."""

_DTYPES = {"F64": "fp64", "F32": "fp32", "BF16": "bf16", "F16": "fp16"}


class HeaderError(Exception):
    """The file is no safetensors file; the message names it and the way out."""


@dataclass(frozen=True)
class Tensor:
    """One tensor as its file describes it."""

    dtype: str
    """As the plan calls it (`fp32`, `bf16`, `fp16`), else as the file does."""
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def read_parameters(files: Iterable[Path]) -> dict[str, Tensor]:
    """The parameters in a model's files by name, without buffers, under the names that transformers gives them.

    Raises `HeaderError`, OSError.
    """
    found: dict[str, Tensor] = {}
    for path in files:
        for name, about in _header(path).items():
            # GPT-2's causal masks are called like a bias and have four dimensions.
            if (
                name == "__metadata__"
                or _BUFFER.search(name)
                or (name.endswith("attn.bias") and len(about["shape"]) == 4)
            ):
                continue
            around, _, last = name.rpartition(".")
            plain = f"{around}.{_OLD[last]}" if around and last in _OLD else name
            found[plain] = Tensor(_DTYPES.get(about["dtype"], str(about["dtype"])), tuple(about["shape"]))
    return found


def read_config(folder: Path) -> dict[str, Any]:
    """The model's `config.json`; {} where it cannot be read as an object."""
    try:
        content = read_json(folder / "config.json")
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def main_dtype(parameters: Iterable[Tensor]) -> str | None:
    """The type that most parameters have, None where there are none."""
    sizes: dict[str, int] = {}
    for tensor in parameters:
        sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.size
    return max(sizes, key=lambda dtype: sizes[dtype], default=None)


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if length <= LONGEST else b""
    try:
        header = json.loads(text)
        if not all(
            name == "__metadata__"
            or (isinstance(about["dtype"], str) and all(isinstance(n, int) for n in about["shape"]))
            for name, about in header.items()
        ):
            raise ValueError
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        raise HeaderError(f"{path}: is no safetensors file, or is cut off; fetch the model again") from None
    whole: dict[str, Any] = header
    return whole
