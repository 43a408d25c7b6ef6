"""The gradient of one update, computed by this process or by several, and kept in a file to be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file

from ftui.data.chat import ChatEncoder
from ftui.data.encode import Example
from ftui.data.order import longest_first, micro_batches, share
from ftui.data.tokenizer import load_tokenizer
from ftui.plan.schema import Training
from ftui.train.classification import TextClassification
from ftui.train.generation import Generation
from ftui.train.process import bare
from ftui.train.task import Batch, Task
from ftui.train.update import Update, take_update
from tests.builders.tiny import CATEGORIES, tiny_rows
from tests.builders.writing import chats


class Keeper(torch.optim.SGD):
    """Keeps the gradient instead of stepping."""

    kept: list[torch.Tensor | None]

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        self.kept = [None if p.grad is None else p.grad.clone() for p in self.param_groups[0]["params"]]


def classification(folder: Path, count: int) -> tuple[TextClassification, list[Example]]:
    """The tiny model's task and examples of different lengths."""
    tokenizer = load_tokenizer(folder)
    task = TextClassification(CATEGORIES, tokenizer, 32)
    rows = tiny_rows(count, seed=5)
    ids = tokenizer.encode([row["text"] for row in rows])
    return task, [Example(str(i), r["label"], CATEGORIES.index(r["label"]), ids[i]) for i, r in enumerate(rows)]


def writing(folder: Path, count: int) -> tuple[Generation, list[Example]]:
    """The tiny writer's task and chats of different lengths, with different numbers of targets."""
    training = Training.model_validate({"micro_batch": 1, "amount": 1, "learning_rate": 1, "max_length": 160})
    task = Generation(ChatEncoder(load_tokenizer(folder, writes=True), training), 160, None, None)
    encoded = [task.encoder.whole(row["messages"]) for row in chats(count)]
    return task, [Example(str(i), "all", -1, whole.ids, whole.spans) for i, whole in enumerate(encoded)]


def gradient_of_update(
    task: Task, folder: Path, examples: list[Example], micro: int, batching: str = "shuffled"
) -> tuple[dict[str, torch.Tensor], Update]:
    """This process's view of one update over `examples`, cut into micro-batches of `micro`; all trained."""
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(3)
    model, _ = task.load_base(str(folder))
    model.train()
    optimizer = Keeper(model.parameters(), lr=0.0)
    wrapped: Any = accelerator.prepare(model)
    order = list(range(len(examples)))
    if batching == "length-grouped":
        order = longest_first(order, np.array([len(e.input_ids) for e in examples], dtype=np.int32))

    def collate(part: list[int]) -> Batch:
        chosen = [examples[i] for i in part]
        return task.pack(chosen) if batching == "packed" else task.collate(chosen)

    parts = share(micro_batches(order, micro), accelerator.process_index, accelerator.num_processes)
    batches = [collate(part) for part in parts]
    update = take_update(accelerator, wrapped, optimizer, task, batches, None, None if batches else collate(order[:1]))
    names = [name for name, _ in bare(wrapped).named_parameters()]
    return {n: g for n, g in zip(names, optimizer.kept, strict=True) if g is not None}, update


def main(arguments: list[str]) -> int:
    """`TASK FOLDER COUNT MICRO BATCHING OUT`, in every process; each leaves what it saw in `OUT.RANK`."""
    which, folder, count, micro, batching, out = arguments
    make: Any = {"classification": classification, "writing": writing}[which]
    task, examples = make(Path(folder), int(count))
    gradients, update = gradient_of_update(task, Path(folder), examples, int(micro), batching)
    rank = Accelerator(cpu=True).process_index
    facts = torch.tensor([update.loss, float(update.targets), float(update.examples)], dtype=torch.float64)
    save_file(gradients | {"update": facts}, f"{out}.{rank}")
    return 0


def relative_difference(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """Norm of the difference of two gradients over the norm of the first."""
    assert one.keys() == other.keys()
    flat_one, flat_other = (torch.cat([g[n].double().flatten() for n in sorted(one)]) for g in (one, other))
    return float((flat_one - flat_other).norm() / flat_one.norm())


def read_gradients(out: str, rank: int) -> tuple[dict[str, torch.Tensor], list[float]]:
    tensors = load_file(f"{out}.{rank}")
    facts = tensors.pop("update")
    return tensors, [float(x) for x in facts]
