"""Bytes of all live tensors by what they are for, operation by operation, and the moment at which they were most.

torch has a tracker of its own (`torch.distributed._tools.MemTracker`). It needs its private parts changed for frozen parameters and
for several micro-batches per update, and looks at every module after every operation; the two agree where both work, as a test says.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

WEIGHTS, BUFFERS, GRADIENTS, OPTIMIZER = "weights", "buffers", "gradients", "optimizer"
CAST, ACTIVATIONS, LOGITS, TEMPORARIES = "cast_weights", "activations", "logits", "temporaries"

PARTS = (WEIGHTS, BUFFERS, GRADIENTS, OPTIMIZER, CAST, ACTIVATIONS, LOGITS, TEMPORARIES)
"""What memory is for. `cast_weights`: copies of weights in the precision of the products (autocast keeps them for a micro-batch).
`activations`: what the forward pass makes, inputs included, and what checkpointing computes again. `logits`: what it makes from the
output layer on. `temporaries`: gradients of activations, and what the optimizer's step needs in passing."""


@dataclass
class _Held:
    part: str
    size: int
    alive: weakref.ref[Any]


class Ledger(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows the storages of the tensors that operations give while it is entered, and of those it is told of.

    A storage counts once, however many tensors look into it, from the operation that made it until nothing holds it.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._held: dict[int, _Held] = {}
        self._part = ACTIVATIONS
        self.now = dict.fromkeys(PARTS, 0)
        """Bytes by part."""
        self.total = 0
        self.operations = 0
        """Operations that computed something: views and questions are none."""
        self.forget_peak()

    def forget_peak(self) -> None:
        """Let the present moment be the highest."""
        self.peak, self.at_peak = self.total, dict(self.now)

    def hold(self, tensors: Iterable[torch.Tensor], part: str) -> None:
        """Count tensors as `part`, whatever they were counted as before."""
        for tensor in tensors:
            storage = tensor.untyped_storage()
            held = self._held.get(id(storage))
            if held is None:
                self._add(storage, part)
            elif held.part != part:
                self.now[held.part] -= held.size
                self.now[part] += held.size
                held.part = part

    @contextmanager
    def making(self, part: str) -> Iterator[None]:
        """Within, what operations make counts as `part`."""
        before, self._part = self._part, part
        try:
            yield
        finally:
            self._part = before

    def part_from_here(self, part: str) -> None:
        """From here on, what operations make counts as `part`."""
        self._part = part

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations += func.namespace == "aten" and not func.is_view
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.device.type != "meta":
                storage = tensor.untyped_storage()
                if id(storage) not in self._held:
                    self._add(storage, self._part_of(func, args))
        if self.total > self.peak:
            self.forget_peak()
        return result

    def _part_of(self, func: Any, args: Any) -> str:
        if func is torch.ops.aten._to_copy.default:
            source = self._held.get(id(args[0].untyped_storage()))
            if source is not None and source.part == WEIGHTS:
                return CAST
        # Gradients are computed without a graph; with one, checkpointing computes a part of the forward pass again.
        return ACTIVATIONS if self._part == TEMPORARIES and torch.is_grad_enabled() else self._part

    def _add(self, storage: torch.UntypedStorage, part: str) -> None:
        key, size = id(storage), storage.nbytes()
        self._held[key] = _Held(part, size, weakref.ref(storage, partial(self._gone, key)))
        self.now[part] += size
        self.total += size

    def _gone(self, key: int, _reference: weakref.ref[Any]) -> None:
        held = self._held.pop(key)
        self.now[held.part] -= held.size
        self.total -= held.size


def follow(ledger: Ledger, model: nn.Module) -> None:
    """Count the model's parameters and buffers, and each gradient as one from the moment it is a parameter's own."""
    ledger.hold(model.parameters(), WEIGHTS)
    ledger.hold(model.buffers(), BUFFERS)

    def on_gradient(parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            ledger.hold([parameter.grad], GRADIENTS)

    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(on_gradient)  # type: ignore[no-untyped-call]
