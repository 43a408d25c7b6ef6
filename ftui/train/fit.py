"""The largest micro-batch that fits this device, by measurement; the update stays what it is (S3, S4).

Every divisor of the update's examples per process is tried, the smallest first, on the update with the longest micro-batch, until
one does not fit. A CPU would swap rather than refuse, so there the search ends before the memory that is free would be used up.
"""

from __future__ import annotations

import gc
from dataclasses import asdict, dataclass, replace
from typing import Any

import psutil
import torch

from ftui.plan.settings import RunSettings
from ftui.record.files import replace_json
from ftui.record.layout import CampaignFiles, GateFiles
from ftui.train.loop import Workshop, set_up
from ftui.train.memory import Meter
from ftui.train.pilot import longest_update
from ftui.train.shortage import find_shortage

FIT_FILE, FIT_SCHEMA = "fit.json", 1
REPEATS = 2
"""Updates per size; the faster one is kept, for the first of a size also finds its kernels and its memory."""


@dataclass(frozen=True)
class Tried:
    """One micro-batch size."""

    micro_batch: int
    accumulation: int
    fits: bool
    seconds: float | None
    """Of one update."""
    peak: int | None
    """Bytes: reserved on a GPU, resident on a CPU."""
    cause: str | None = None


def fit(settings: RunSettings, campaign: CampaignFiles, files: GateFiles) -> None:
    """Try micro-batches and write `fit.json`: every size tried, and the largest that fits and is fastest."""
    shop = set_up(settings, campaign)
    size = settings.training.micro_batch * settings.training.accumulation
    tried: list[Tried] = []
    for micro in [n for n in range(1, size + 1) if size % n == 0]:
        if (reason := _would_swap(shop, tried, micro)) is not None:
            tried.append(Tried(micro, size // micro, False, None, None, reason))
            break
        tried.append(_try(shop, micro, size))
        if not tried[-1].fits:
            break
    if shop.accelerator.is_main_process:
        fitting = [one for one in tried if one.fits]
        content: dict[str, Any] = {
            "schema": FIT_SCHEMA,
            "examples_per_process": size,
            "planned": settings.training.micro_batch,
            "tried": [asdict(one) for one in tried],
            "largest": fitting[-1].micro_batch if fitting else None,
            "fastest": min(fitting, key=lambda one: one.seconds or 0.0).micro_batch if fitting else None,
        }
        replace_json(files.root / FIT_FILE, content)


def _try(shop: Workshop, micro: int, size: int) -> Tried:
    training = shop.settings.training.model_copy(update={"micro_batch": micro, "accumulation": size // micro})
    own = replace(shop, settings=shop.settings.model_copy(update={"training": training}))
    own.model.train()
    seconds: list[float] = []
    peak = None
    try:
        examples = longest_update(own)
        for _ in range(REPEATS):
            with Meter(own.accelerator.device) as meter:
                own.update(examples)
            seconds.append(meter.seconds)
            peak = meter.reserved_peak if meter.reserved_peak is not None else meter.host_peak
    except Exception as error:
        shortage = find_shortage(error)
        if shortage is None:
            raise
        cause = shortage.sentence()
        del error
        own.optimizer.zero_grad(set_to_none=True)
        _let_go(own.accelerator.device)
        return Tried(micro, size // micro, False, None, None, cause)
    return Tried(micro, size // micro, True, min(seconds), peak)


def _would_swap(shop: Workshop, tried: list[Tried], micro: int) -> str | None:
    """Why a size is not tried on a CPU: what the sizes before it took, in proportion, is more than is free."""
    known = [one for one in tried if one.peak is not None]
    if shop.accelerator.device.type != "cpu" or len(known) < 2:
        return None
    first, last = known[0], known[-1]
    assert first.peak is not None and last.peak is not None
    per_example = max(0.0, (last.peak - first.peak) / (last.micro_batch - first.micro_batch))
    further = per_example * (micro - last.micro_batch)
    free = psutil.virtual_memory().available
    if further <= free:
        return None
    return f"would need about {further / 2**30:.1f} GiB more, {free / 2**30:.1f} GiB are free; not tried, for the machine would swap"


def _let_go(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
