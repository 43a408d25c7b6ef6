"""Did an update change exactly the parameters that were meant to change, and no others (P3, K13)? Told by fingerprints, not copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

Fingerprint = tuple[int, int]

_INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_CHUNK = 1 << 22
_SECOND_TO_MOVE = ("lora_A", "lora_embedding_B")
"""LoRA begins with B = 0, so that A has no gradient before B has moved (Hu et al. 2021, arXiv:2106.09685, section 4.1); on
embeddings peft begins with A = 0."""


class NotAsMeant(Exception):
    """Other parameters changed than the plan's method trains."""


def fingerprints(model: nn.Module) -> dict[str, Fingerprint]:
    """Of every parameter: two sums over its bits, one weighted by position. Takes no memory worth mentioning."""
    return {name: _fingerprint(parameter.detach()) for name, parameter in model.named_parameters()}


def check_moved(before: Mapping[str, Fingerprint], model: nn.Module, steps: int) -> dict[str, Any]:
    """Compare with `before`, `steps` optimizer steps with a learning rate above 0 ago; returns the counts.

    Raises `NotAsMeant` that names what moved and should not have, and what stayed and should have moved.
    """
    after = fingerprints(model)
    moved = {name for name in after if after[name] != before[name]}
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    expected = trained if steps > 1 else {n for n in trained if not any(part in n for part in _SECOND_TO_MOVE)}
    problems = []
    if strangers := sorted(moved - trained):
        problems.append(f"{len(strangers)} frozen parameters changed, the first is {strangers[0]}")
    if steps and (still := sorted(expected - moved)):
        problems.append(
            f"{len(still)} trained parameters did not move in {steps} updates, the first is {still[0]}; "
            "no gradient reaches them"
        )
    if problems:
        raise NotAsMeant("; ".join(problems))
    return {"trained": len(trained), "moved": len(moved), "frozen": len(after) - len(trained), "updates": steps}


def _fingerprint(tensor: Tensor) -> Fingerprint:
    bits = tensor.contiguous().reshape(-1).view(_INTEGER[tensor.element_size()])
    plain, weighted = 0, 0
    for start in range(0, len(bits), _CHUNK):
        values = bits[start : start + _CHUNK].to(torch.int64)
        places = torch.arange(start, start + len(values), device=tensor.device)
        plain += int(values.sum())
        weighted += int((values * places).sum())
    return plain, weighted
