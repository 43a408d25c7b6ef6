"""Memory and arithmetic of the plan's step, predicted without weights and without a GPU (S7, N3).

The step is the real one: the same structure, method, loss, precision and optimizer, on the longest micro-batch of the plan's first
epoch. Only its tensors hold no numbers (torch's `FakeTensorMode`), so that a model of any size is followed in seconds on a laptop.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from torch.utils.flop_counter import FlopCounterMode

from ftui.data.base import find_base
from ftui.data.encode import EncodedSplit, encode_splits
from ftui.data.encoders import make_encoder
from ftui.data.facts import first_epoch_batches
from ftui.plan.settings import RunSettings
from ftui.record.layout import CampaignFiles
from ftui.train.evaluate import by_length
from ftui.train.fake import fake_batch, fill_with_fakes, gpu_arithmetic
from ftui.train.ledger import ACTIVATIONS, LOGITS, OPTIMIZER, TEMPORARIES, Ledger, follow
from ftui.train.model import apply_method
from ftui.train.process import bare
from ftui.train.task import Batch, Task
from ftui.train.tasks import make_task
from ftui.train.update import accumulate

PREDICTION_SCHEMA = 1

WRITING = ("generation", "extraction")
"""Tasks whose evaluation writes answers."""

IN_A_ROW = 2
"""Micro-batches of an update that are followed: from the second on, they find gradients there, and nothing more changes."""

OPTIMIZER_PASSES = 7
"""AdamW reads parameter, gradient and two moments and writes parameter and moments (torch's `AdamW`, without `amsgrad`)."""


class PredictionError(Exception):
    """The step cannot be predicted; the message says why."""


@dataclass(frozen=True)
class Shape:
    """The batches that are predicted, of one process."""

    examples: int
    """Of the longest micro-batch."""
    tokens: int
    """Of the longest micro-batch, padding included; one per picture."""
    mean_tokens: float
    """Of a micro-batch of the first epoch on average, likewise."""
    most_targets: int
    """Of the micro-batch that has most."""
    micro_batches: int
    """Per update and process."""
    evaluation_examples: int
    evaluation_tokens: int


@dataclass(frozen=True)
class Prediction:
    """Of one step, in bytes and operations."""

    activation_checkpointing: bool
    planned: bool
    """Whether this is what the plan says."""
    parts: dict[str, int]
    """At the highest moment of training, by part (see `ledger.PARTS`; `buckets`: gradients once more, for several processes)."""
    peak: int
    evaluation_parts: dict[str, int]
    evaluation_peak: int
    """The longest batch of an evaluation in the middle of training. Where answers are written, with their keys and values."""
    flops: int
    """Operations of the longest micro-batch, forward, backward and what is computed again: two for each multiplication and addition."""
    operations: int
    """How many operations a micro-batch is made of, each at least one kernel to start: what small models wait for."""
    bytes_moved: int
    """Least traffic between memory and processor in one update: weights for each pass, and the optimizer's own."""


def predict(settings: RunSettings, campaign: CampaignFiles) -> dict[str, Any]:
    """What a step of the run needs, with activation checkpointing as planned and otherwise, as plain JSON values.

    `machine.backend` says whose arithmetic it is. Raises `PredictionError`, and what `set_up` raises but for missing weights.
    """
    began = time.perf_counter()
    if settings.method.kind == "qlora":
        raise PredictionError(
            'method.kind = "qlora": what a base in 4 bits needs depends on kernels that cannot be followed without a device; '
            "the pilot measures it"
        )
    base = find_base(settings.model, campaign.root, weights=False)
    task = make_task(settings, campaign, base.directory)
    encoder = make_encoder(
        settings.hypothesis.task, settings.data.labels, settings.training, settings.evaluation, base.directory
    )
    splits = encode_splits(campaign.data_version(settings.data.hash), encoder).splits
    shape, work = _longest(settings, splits["train"], task)
    examples = by_length(splits["validation"], settings.evaluation.batch_size)[0]
    evaluated = task.collate([splits["validation"].row(i) for i in examples])
    shape = shape | {"evaluation_examples": len(examples), "evaluation_tokens": _positions(evaluated)}
    planned = settings.training.activation_checkpointing
    model = _structure(settings, task, str(base.directory), planned)
    counts = _counts(model)
    predictions, impossible = [predict_step(settings, task, model, work, evaluated, planned)], None
    try:
        other = _structure(settings, task, str(base.directory), not planned)
    except ValueError as problem:
        impossible = str(problem)  # transformers says so of an architecture that has no activation checkpointing
    else:
        predictions.append(predict_step(settings, task, other, work, evaluated, not planned))
    return {
        "schema": PREDICTION_SCHEMA,
        "run": settings.run,
        "method": settings.method.kind,
        "precision": settings.training.precision,
        "arithmetic": "gpu" if settings.machine.backend == "cuda" else "cpu",
        "updates": settings.updates,
        **counts,
        "shape": asdict(Shape(**shape)),
        "predictions": [asdict(prediction) for prediction in predictions],
        "impossible": impossible,
        "left_out": _left_out(settings, model),
        "seconds": round(time.perf_counter() - began, 2),
    }


def _structure(settings: RunSettings, task: Task, directory: str, checkpointing: bool) -> nn.Module:
    """The model under the method on the meta device. Whether its head is new only weights would tell, so that none counts as new."""
    with torch.device("meta"):
        empty = task.empty_base(directory)
        return apply_method(empty, [], task.adapter_type, settings.method, activation_checkpointing=checkpointing)


def _counts(model: nn.Module) -> dict[str, int]:
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "trainable": sum(p.numel() for p in model.parameters() if p.requires_grad),
    }


def _longest(settings: RunSettings, train: EncodedSplit, task: Task) -> tuple[dict[str, Any], list[Batch]]:
    """Facts for `Shape`, and the micro-batches to follow: the one of most positions, and the one of most targets if that is another."""
    training = settings.training
    batches = first_epoch_batches(train.lengths, training, settings.machine, settings.seed)
    packed = training.batching == "packed"
    tokens = [int(train.lengths[b].sum() if packed else train.lengths[b].max() * len(b)) for b in batches]
    targets = [int(train.targets[b].sum()) for b in batches]
    longest = max(range(len(batches)), key=lambda i: (tokens[i], targets[i]))
    richest = max(range(len(batches)), key=lambda i: (targets[i], tokens[i]))
    work = []
    for index in dict.fromkeys((longest, richest)):
        rows = [train.row(i) for i in batches[index]]
        work.append(task.pack(rows) if packed else task.collate(rows))
    facts = {
        "examples": len(batches[longest]),
        "tokens": tokens[longest],
        "mean_tokens": sum(tokens) / len(tokens),
        "most_targets": targets[richest],
        "micro_batches": training.accumulation,
    }
    return facts, work


def _positions(batch: Batch) -> int:
    ids = batch.inputs.get("input_ids")
    return len(batch.examples) if ids is None else ids.numel()


class _Marked(Accelerator):  # type: ignore[misc]  # accelerate has no types
    """An accelerator that tells the ledger when the backward pass begins and ends."""

    ledger: Ledger

    def backward(self, loss: torch.Tensor, **kwargs: Any) -> None:
        with self.ledger.making(TEMPORARIES):
            super().backward(loss, **kwargs)
        self.ledger.part_from_here(ACTIVATIONS)


def predict_step(
    settings: RunSettings, task: Task, model: nn.Module, work: list[Batch], evaluated: Batch, checkpointing: bool
) -> Prediction:
    """Follow updates on `work` and an evaluation of `evaluated`, with a model on the meta device."""
    training, on_gpu = settings.training, settings.machine.backend == "cuda"
    # fp16 has the bytes of bf16, which a pretended CPU can compute with.
    accelerator = _Marked(cpu=True, mixed_precision="no" if training.precision == "fp32" else "bf16")
    ledger = accelerator.ledger = Ledger()
    try:
        with ExitStack() as stack:
            stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
            fill_with_fakes(model)
            model.train()
            # On a GPU, torch steps all parameters at once and holds the roots of all second moments while it does.
            own = [p for p in model.parameters() if p.requires_grad]
            optimizer: Any = torch.optim.AdamW(own, weight_decay=training.weight_decay, foreach=on_gpu)
            model, optimizer = accelerator.prepare(model, optimizer, device_placement=[False, False])
            follow(ledger, model)
            batches = [fake_batch(batch) for batch in work]
            if on_gpu:
                stack.enter_context(gpu_arithmetic())
            stack.enter_context(_head_marked(model, ledger))
            rows = min(training.accumulation, IN_A_ROW)

            def update(batch: Batch, times: int = rows) -> int:
                with ledger:
                    return _update(accelerator, model, optimizer, task, [batch] * times, training.max_grad_norm)

            operations = update(batches[0], 1)  # the optimizer's state comes to be
            ledger.forget_peak()
            for batch in batches:
                update(batch)
            peak, parts = ledger.peak, dict(ledger.at_peak)
            # Apart from the rest: the counter follows modules, and holds on to graphs that are done with.
            with FlopCounterMode(display=False, custom_mapping=_CPU_ATTENTION) as counter:
                accumulate(accelerator, model, task, [batches[0]], 1.0, 1)
            optimizer.zero_grad(set_to_none=True)
            _evaluate(accelerator, bare(model), task, fake_batch(evaluated))
    except (DataDependentOutputException, DynamicOutputShapeException, UnsupportedFakeTensorException) as problem:
        raise PredictionError(
            f"this model decides by the numbers it computes ({problem}), so that its step cannot be followed without them; "
            "the pilot measures it"
        ) from problem
    except RuntimeError as problem:
        said = " ".join(str(problem).split())
        raise PredictionError(
            f"this model's step cannot be followed on tensors without numbers ({said[:200]}); the pilot measures it"
        ) from problem
    written = _written(settings, model, evaluated)
    trained = 4 * sum(p.numel() for p in own)
    # Gradients are exchanged as copies, unless DDP is given `gradient_as_bucket_view` (torch's `DistributedDataParallel`).
    buckets = trained if settings.machine.processes > 1 else 0
    evaluation = {**ledger.at_peak, "keys_and_values": written, "buckets": buckets}
    passes = 3 if checkpointing else 2
    weights = 4 * sum(p.numel() for p in model.parameters())
    return Prediction(
        activation_checkpointing=checkpointing,
        planned=checkpointing == training.activation_checkpointing,
        parts={**parts, "buckets": buckets},
        peak=peak + buckets,
        evaluation_parts=evaluation,
        evaluation_peak=ledger.peak + written + buckets,
        flops=counter.get_total_flops(),
        operations=operations,
        bytes_moved=passes * weights * training.accumulation + OPTIMIZER_PASSES * trained,
    )


def _update(
    accelerator: _Marked, model: nn.Module, optimizer: Any, task: Task, batches: list[Batch], limit: float | None
) -> int:
    """What `take_update` does to memory: it reads numbers in between, which there are none of here. Gives the operations of its
    micro-batches."""
    ledger = accelerator.ledger
    before = ledger.operations
    accumulate(accelerator, model, task, batches, 1.0, 1)
    operations = ledger.operations - before
    with ledger.making(TEMPORARIES), torch.no_grad():
        own = [p for p in model.parameters() if p.requires_grad]
        torch.nn.utils.clip_grad_norm_(own, float("inf") if limit is None else limit)
        optimizer.step()
    states = optimizer.optimizer.state.values()
    ledger.hold((t for state in states for t in state.values() if isinstance(t, torch.Tensor)), OPTIMIZER)
    optimizer.zero_grad(set_to_none=True)
    return operations


@torch.no_grad()
def _evaluate(accelerator: _Marked, model: nn.Module, task: Task, batch: Batch) -> None:
    """The forward pass of an evaluation; what a prediction takes out of it is read on the host."""
    accelerator.ledger.part_from_here(ACTIVATIONS)
    accelerator.ledger.forget_peak()
    model.eval()
    with accelerator.ledger, accelerator.autocast():
        task.loss_sum(model, batch)


@contextmanager
def _head_marked(model: nn.Module, ledger: Ledger) -> Iterator[None]:
    """Within, what the forward pass makes from the output layer on counts as logits, where there is such a layer."""
    inner: Any = bare(model)
    find = getattr(inner, "get_output_embeddings", None)
    head = find() if find is not None else None
    if head is None:
        yield
        return
    hook = head.register_forward_pre_hook(lambda *_: ledger.part_from_here(LOGITS))
    try:
        yield
    finally:
        hook.remove()


def _written(settings: RunSettings, model: nn.Module, batch: Batch) -> int:
    """Bytes of the keys and values of answers being written: two tensors for each layer, [examples, heads, positions, width].

    For as many positions as the longest example and the plan's `max_new_tokens` add up to. 0 where nothing is written, and where
    the configuration does not say what of them there is (see `_left_out`).
    """
    generation, cache = settings.evaluation.generation, _cache(model)
    if generation is None or cache is None or settings.hypothesis.task not in WRITING:
        return 0
    positions = max(len(example.input_ids) for example in batch.examples) + generation.max_new_tokens
    size = 4 if settings.training.precision == "fp32" else 2
    return 2 * cache * len(batch.examples) * positions * size


def _cache(model: nn.Module) -> int | None:
    """Keys of one position in all layers: layers × heads × width; None where the configuration does not say them."""
    inner: Any = bare(model)
    try:
        config = inner.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return int(config.num_hidden_layers * heads * width)
    except AttributeError:
        return None


def _left_out(settings: RunSettings, model: nn.Module) -> list[str]:
    """Sentences about what this prediction stands in for or leaves out; what none can show is the reader's to say."""
    sentences = []
    if settings.training.precision == "fp16":
        sentences.append("fp16 is followed as bf16, which has its size; the few numbers of its scaler are left out")
    if settings.evaluation.generation is not None and settings.hypothesis.task in WRITING:
        sentences.append(
            "config.json does not say how many keys and values answers need while they are written; they are left out"
            if _cache(model) is None
            else "keys and values of answers being written are added by their formula; copies made as they grow are left out"
        )
    return sentences


def _attention(query: Any, key: Any, value: Any, *_args: Any, out_shape: Any = None, **_kwargs: Any) -> int:
    """Operations of one attention: query × key and weights × value; shapes are [examples, heads, positions, width]."""
    examples, heads, positions, width = query
    return int(2 * examples * heads * positions * key[2] * (width + value[3]))


def _attention_backward(_grad: Any, query: Any, key: Any, value: Any, *_args: Any, **_kwargs: Any) -> int:
    """Five products for the two forward, as fused kernels compute them (Dao et al. 2022, arXiv:2205.14135)."""
    return _attention(query, key, value) * 5 // 2


_CPU_ATTENTION = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
}
"""Formulas that torch's counter lacks."""
