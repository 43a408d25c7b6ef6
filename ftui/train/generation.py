"""Writing text: loss on the tokens the assistant writes, answers written greedily.

Logits are computed only where loss is: prompts are long, answers short, and the vocabulary is the widest thing in the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForCausalLM, GenerationConfig

from ftui.data.chat import ChatEncoder
from ftui.data.encode import Example
from ftui.plan.schema import Generation as Settings
from ftui.record.lines import Row
from ftui.train.pretrained import empty_pretrained, load_pretrained
from ftui.train.process import bare
from ftui.train.quantised import FourBit
from ftui.train.task import Batch

NO_LOSS = -100
"""In `Batch.labels`, a position without a target."""

CONTROL_LOGITS = 64
"""Numbers kept per control input: logits of the next token, of as many ids spread evenly over the vocabulary."""


class GenerationError(Exception):
    """The base model cannot write as the plan wants; the message says what to change."""


class Generation:
    """The task of writing an answer. Without `settings`, nothing is written and only the loss is measured."""

    adapter_type: str | None = "CAUSAL_LM"

    def __init__(
        self, encoder: ChatEncoder, max_length: int, settings: Settings | None, instruction: str | None
    ) -> None:
        self.encoder, self.tokenizer, self.max_length = encoder, encoder.tokenizer, max_length
        self.settings, self.instruction = settings, instruction

    def load_base(self, directory: str, four_bit: FourBit | None = None) -> tuple[nn.Module, list[str]]:
        """Raises `GenerationError` for settings of the base that would fail later: when it writes, or when it is saved (K37)."""
        model, new = load_pretrained(AutoModelForCausalLM, directory, four_bit)
        self._check(model, directory)
        return model, new

    def empty_base(self, directory: str) -> nn.Module:
        return empty_pretrained(AutoModelForCausalLM, directory)

    def _check(self, model: Any, directory: str) -> None:
        try:
            model.generation_config.validate(strict=True)
        except ValueError as problem:
            said = " ".join(str(problem).split())
            raise GenerationError(
                f"{directory}: generation_config.json contradicts itself, so the model could not be saved: {said}; correct the file"
            ) from None
        room = getattr(model.config, "max_position_embeddings", None)
        longest = self.max_length + (self.settings.max_new_tokens if self.settings else 0)
        if room is not None and longest > room:
            raise GenerationError(
                f"training.max_length and evaluation.generation.max_new_tokens add up to {longest} positions, "
                f"the base model has {room}; lower one of them"
            )

    def facts(self) -> dict[str, Any]:
        return {}

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Padded on the right. Padding is told by its position: an end token that is also the padding token keeps its loss (K06)."""
        ids, mask = self._padded([example.input_ids for example in examples], left=False)
        labels = torch.full_like(ids, NO_LOSS)
        for row, example in enumerate(examples):
            for start, end in example.spans:
                labels[row, start:end] = ids[row, start:end]
        return Batch(examples, {"input_ids": ids, "attention_mask": mask}, labels, _targets(labels))

    def pack(self, examples: Sequence[Example]) -> Batch:
        """Positions begin anew with every example, and there is no attention mask: by that alone transformers keeps them apart."""
        ids = torch.tensor([[token for example in examples for token in example.input_ids]])
        positions = torch.cat([torch.arange(len(example.input_ids)) for example in examples])[None]
        labels, begin = torch.full_like(ids, NO_LOSS), 0
        for example in examples:
            for start, end in example.spans:
                labels[0, begin + start : begin + end] = ids[0, begin + start : begin + end]
            begin += len(example.input_ids)
        return Batch(examples, {"input_ids": ids, "position_ids": positions}, labels, _targets(labels))

    def targets(self, batch: Batch) -> int:
        return sum(example.targets for example in batch.examples)

    def loss_sum(self, model: nn.Module, batch: Batch) -> Tensor:
        return self._losses(model, batch)[1].sum()

    def _losses(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """The row of every target, and its loss in fp32; targets in order."""
        rows, positions = batch.where or _targets(batch.labels)
        with logits_only_at(model, rows, positions - 1):
            logits = model(**batch.inputs, use_cache=False).logits
        return rows, functional.cross_entropy(logits.float(), batch.labels[rows, positions], reduction="none")

    def predict(self, model: nn.Module, batch: Batch) -> list[Row]:
        rows, losses = self._losses(model, batch)
        sums = torch.zeros(len(batch.examples), device=losses.device).index_add_(0, rows, losses).tolist()
        prompts = [example.input_ids[: example.spans[-1][0]] for example in batch.examples]
        outputs: Sequence[str | None] = self.write(model, prompts) if self.settings else [None] * len(prompts)
        return [
            self.row(example, output, total / example.targets)
            for example, output, total in zip(batch.examples, outputs, sums, strict=True)
        ]

    def row(self, example: Example, output: str | None, loss: float) -> Row:
        """A prediction. `output` is None where nothing is written; then `correct` is, too."""
        return {
            "id": example.id,
            "category": example.category,
            "target": example.answer,
            "output": output or "",
            "correct": None if output is None else output.strip() == example.answer.strip(),
            "loss": round(loss, 6),
            "targets": example.targets,
        }

    @torch.no_grad()
    def write(self, model: nn.Module, prompts: Sequence[list[int]]) -> list[str]:
        """The model's answers, each token the likeliest, up to an end token or the plan's limit."""
        assert self.settings is not None
        ids, mask = self._padded(prompts, left=True)
        inner: Any = bare(model)
        device = next(inner.parameters()).device
        how = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=self.settings.max_new_tokens,
            do_sample=False,
            num_beams=1,
            eos_token_id=self.encoder.ends,
            pad_token_id=self.tokenizer.pad_id,
        )
        # By keyword: peft's wrapper takes no positional arguments.
        whole = inner.generate(input_ids=ids.to(device), attention_mask=mask.to(device), generation_config=how)
        return [self.tokenizer.decode(self._up_to_end(row)) for row in whole[:, ids.shape[1] :].tolist()]

    def _up_to_end(self, ids: list[int]) -> list[int]:
        return ids[: next((i for i, token in enumerate(ids) if token in self.encoder.ends), len(ids))]

    def score(self, rows: Sequence[Row]) -> dict[str, Any]:
        parts: dict[str, _Sums] = {}
        for row in rows:
            parts.setdefault(row["category"], _Sums()).add(row)
        whole = _Sums()
        for part in parts.values():
            whole.join(part)
        slices = {name: {**part.metrics(), "examples": part.examples} for name, part in sorted(parts.items())}
        return {**whole.metrics(), "categories": slices if len(slices) > 1 else {}}

    def control_outputs(self, model: nn.Module, inputs: Sequence[str]) -> list[list[float]]:
        device = next(model.parameters()).device
        system = [{"role": "system", "content": self.instruction}] if self.instruction else []
        outputs = []
        for text in inputs:
            ids = self.encoder.prompt([*system, {"role": "user", "content": text}])[-self.max_length :]
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([ids], device=device), use_cache=False).logits[0, -1].float()
            chosen = torch.linspace(0, len(logits) - 1, CONTROL_LOGITS, device=device).round().long()
            outputs.append([float(x) for x in logits[chosen]])
        return outputs

    def _padded(self, sequences: Sequence[Sequence[int]], *, left: bool) -> tuple[Tensor, Tensor]:
        """Ids and attention mask, [sequences, longest]."""
        longest = max(map(len, sequences))
        ids = torch.full((len(sequences), longest), self.tokenizer.pad_id, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, sequence in enumerate(sequences):
            where = slice(longest - len(sequence), None) if left else slice(None, len(sequence))
            ids[row, where] = torch.as_tensor(sequence, dtype=torch.long)
            mask[row, where] = 1
        return ids, mask


def _targets(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Row and position of every target, in order."""
    rows, positions = (labels != NO_LOSS).nonzero(as_tuple=True)
    return rows, positions


@contextmanager
def logits_only_at(model: nn.Module, rows: Tensor, positions: Tensor) -> Iterator[None]:
    """Within, a forward pass gives logits of shape [targets, vocabulary]: of the hidden states at `(rows, positions)` only.

    The hook sits in front of the head, so that wrappers of the model (DDP, peft) and activation checkpointing see a normal pass.
    """
    inner: Any = bare(model)
    head: nn.Module = inner.get_output_embeddings()

    def choose(_head: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (arguments[0][rows, positions], *arguments[1:])

    hook = head.register_forward_pre_hook(choose)
    try:
        yield
    finally:
        hook.remove()


class _Sums:
    """What the metrics of some rows follow from."""

    def __init__(self) -> None:
        self.examples = self.targets = self.judged = self.correct = 0
        self.loss = 0.0

    def add(self, row: Row) -> None:
        self.examples += 1
        self.targets += row["targets"]
        self.loss += row["loss"] * row["targets"]
        self.judged += row["correct"] is not None
        self.correct += bool(row["correct"])

    def join(self, other: _Sums) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def metrics(self) -> dict[str, float]:
        judged = {"exact_match": self.correct / self.judged} if self.judged else {}
        return {"loss": self.loss / self.targets, **judged}
