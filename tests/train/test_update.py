"""One update's gradient does not depend on how its examples are cut (K07), and its loss is the mean over its targets."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from accelerate import Accelerator

from ftui.data.encode import Example
from ftui.data.tokenizer import load_tokenizer
from ftui.train.classification import TextClassification
from ftui.train.order import micro_batches
from ftui.train.update import take_update
from tests.builders.tiny import CATEGORIES, tiny_model, tiny_rows


@pytest.fixture(scope="module")
def calm_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without dropout, so that gradients can be compared."""
    return tiny_model(tmp_path_factory.mktemp("calm"), dropout=0.0)


def task_and_examples(folder: Path, count: int) -> tuple[TextClassification, list[Example]]:
    tokenizer = load_tokenizer(folder)
    task = TextClassification(CATEGORIES, tokenizer, 32)
    rows = tiny_rows(count, seed=5)
    ids = tokenizer.encode([row["text"] for row in rows])
    examples = [Example(str(i), r["label"], CATEGORIES.index(r["label"]), ids[i]) for i, r in enumerate(rows)]
    assert len({len(e.input_ids) for e in examples}) > 3, "lengths must differ for padding to matter"
    return task, examples


def gradients(folder: Path, count: int, micro: int) -> tuple[dict[str, torch.Tensor], float]:
    task, examples = task_and_examples(folder, count)
    torch.manual_seed(3)
    model, _ = task.load_base(str(folder))
    model.train()
    kept: dict[str, torch.Tensor] = {}

    class Keeper(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            kept.update({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})

    optimizer = Keeper(model.parameters(), lr=0.0)
    batches = [task.collate([examples[i] for i in part]) for part in micro_batches(list(range(count)), micro)]
    update = take_update(Accelerator(cpu=True), model, optimizer, task, batches, None)
    assert update.targets == count
    return kept, update.loss


@pytest.mark.parametrize("count", [16, 13])
@pytest.mark.parametrize("micro", [1, 4, 5])
def test_the_batch_shape_does_not_change_the_gradient(calm_model: Path, count: int, micro: int) -> None:
    whole, loss = gradients(calm_model, count, count)
    cut, loss_cut = gradients(calm_model, count, micro)
    assert whole.keys() == cut.keys()
    assert max(float((whole[n] - cut[n]).abs().max()) for n in whole) < 1e-6
    assert loss_cut == pytest.approx(loss, abs=1e-6)


def test_loss_and_gradient_are_those_of_transformers_own_loss(calm_model: Path) -> None:
    """The library computes the mean over one whole batch; ours is the sum over its targets divided by their number."""
    task, examples = task_and_examples(calm_model, 16)
    torch.manual_seed(3)
    model, _ = task.load_base(str(calm_model))
    model.train()
    batch = task.collate(examples)
    reference = model(**batch.inputs, labels=batch.labels).loss
    reference.backward()
    ours, loss = gradients(calm_model, 16, 3)
    assert loss == pytest.approx(float(reference), abs=1e-6)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, ours[name], atol=1e-6), name


def test_clipping_limits_the_step_and_reports_the_norm_before(calm_model: Path) -> None:
    task, examples = task_and_examples(calm_model, 8)
    torch.manual_seed(3)
    model, _ = task.load_base(str(calm_model))
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    update = take_update(Accelerator(cpu=True), model, optimizer, task, [task.collate(examples)], 0.01)
    moved = torch.sqrt(sum(((p.detach() - before[n]) ** 2).sum() for n, p in model.named_parameters()))
    assert update.grad_norm > 0.1
    assert float(moved) == pytest.approx(0.01, rel=1e-3)


def test_a_non_finite_loss_changes_no_parameter(calm_model: Path) -> None:
    task, examples = task_and_examples(calm_model, 4)
    model, _ = task.load_base(str(calm_model))
    with torch.no_grad():
        model.classifier.bias[0] = float("nan")  # type: ignore[union-attr, index]
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    update = take_update(Accelerator(cpu=True), model, optimizer, task, [task.collate(examples)], 1.0)
    assert update.loss != update.loss and not update.stepped
    assert all(torch.equal(p, before[n]) or n == "classifier.bias" for n, p in model.named_parameters())
