"""A model whose tensors have shapes and no numbers, and the arithmetic of a GPU where that decides about memory.

Everything is computed on a pretended CPU (torch refuses a pretended GPU where it was built without one), through the operations of
the CPU. `gpu_arithmetic` undoes the differences that cost memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ftui.train.task import Batch

CPU = torch.device("cpu")


def fill_with_fakes(model: nn.Module) -> None:
    """Give every parameter, buffer and other tensor of a model on the meta device a pretended place on the CPU, shared ones the same.

    Called inside a `FakeTensorMode`.
    """
    made: dict[int, torch.Tensor] = {}

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in made:
            own = torch.empty(tensor.shape, dtype=tensor.dtype, device=CPU)
            is_parameter = isinstance(tensor, nn.Parameter)
            made[id(tensor)] = nn.Parameter(own, requires_grad=tensor.requires_grad) if is_parameter else own
        return made[id(tensor)]

    for module in list(model.modules()):
        tables: tuple[dict[str, Any], ...] = (module._parameters, module._buffers, module.__dict__)
        for table in tables:
            for name, tensor in list(table.items()):
                if isinstance(tensor, torch.Tensor) and tensor.device.type == "meta":
                    table[name] = fake(tensor)


def fake_batch(batch: Batch) -> Batch:
    """The batch with tensors of the same shapes. Called inside a `FakeTensorMode`."""

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=CPU)

    inputs = {name: fake(tensor) for name, tensor in batch.inputs.items()}
    where = None if batch.where is None else (fake(batch.where[0]), fake(batch.where[1]))
    return Batch(batch.examples, inputs, fake(batch.labels), where)


_IN_FP32 = (
    (functional, "layer_norm"), (functional, "group_norm"), (functional, "softmax"), (functional, "log_softmax"),
    (torch, "softmax"), (torch, "log_softmax"),
)  # fmt: skip
"""What autocast computes in fp32 on a GPU and in the given type on a CPU ("CUDA ops that autocast to float32" of torch's
documentation of `torch.amp`, as far as transformers' layers use them without an own cast)."""


@contextmanager
def gpu_arithmetic() -> Iterator[None]:
    """Within, a step on a pretended CPU holds what it would hold on a GPU.

    Norms and softmax take and give fp32 under autocast. Attention with dropout is fused: on a GPU its kernel draws the mask anew
    in the backward pass and keeps no matrix of [positions, positions], while the CPU falls back to one that keeps several.
    Replaces functions of torch for the whole process: a mode of torch's would be off where checkpointing computes again.
    """
    replaced: list[tuple[Any, str, Any]] = [(functional, "scaled_dot_product_attention", _fused)]
    replaced += [(module, name, _in_fp32) for module, name in _IN_FP32]
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for (module, name, original), (_, _, wrapped) in zip(before, replaced, strict=True):
        setattr(module, name, wrapped(original))
    try:
        yield
    finally:
        for module, name, original in before:
            setattr(module, name, original)


_DROPOUT = 4
"""Position of `dropout_p` among the arguments of `scaled_dot_product_attention`."""


def _fused(attention: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def without_dropout(*args: Any, **kwargs: Any) -> torch.Tensor:
        if len(args) > _DROPOUT:
            args = (*args[:_DROPOUT], 0.0, *args[_DROPOUT + 1 :])
        kwargs.pop("dropout_p", None)
        return attention(*args, **kwargs)

    return without_dropout


def _in_fp32(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def computed(*args: Any, **kwargs: Any) -> torch.Tensor:
        if not torch.is_autocast_enabled("cpu"):
            return function(*args, **kwargs)
        with torch.autocast("cpu", enabled=False):
            return function(*map(_whole, args), **{name: _whole(value) for name, value in kwargs.items()})

    return computed


def _whole(value: Any) -> Any:
    """A tensor of half precision in fp32; anything else as it is."""
    return (
        value.float() if isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16) else value
    )
