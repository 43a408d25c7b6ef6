"""One update's gradient depends neither on how its examples are cut nor on who computes them (K02, K07)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from accelerate import Accelerator

from ftui.data.encode import Example
from ftui.train.process import PeerFault, is_lost_peer
from ftui.train.rules import OVERFLOWS, StopRules
from ftui.train.update import OVERFLOW, take_update
from tests.builders.gradients import (
    classification,
    gradient_of_update,
    read_gradients,
    relative_difference,
    writing,
)
from tests.builders.tiny import tiny_model
from tests.builders.warm import Warm
from tests.builders.writing import tiny_writer


@pytest.fixture(scope="module")
def calm_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without dropout, so that gradients can be compared."""
    return tiny_model(tmp_path_factory.mktemp("calm"), dropout=0.0)


def examples_of(folder: Path, count: int) -> list[Example]:
    examples = classification(folder, count)[1]
    assert count < 4 or len({len(e.input_ids) for e in examples}) > 3, "lengths must differ for padding to matter"
    return examples


def of_whole_batch(folder: Path, count: int) -> dict[str, torch.Tensor]:
    """By the library: the mean over one whole batch."""
    task, examples = classification(folder, count)
    torch.manual_seed(3)
    model, _ = task.load_base(str(folder))
    model.train()
    batch = task.collate(examples)
    model(**batch.inputs, labels=batch.labels).loss.backward()
    return {n: p.grad for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("count", [16, 13])
@pytest.mark.parametrize("micro", [16, 4, 2, 1, 5])
@pytest.mark.parametrize("batching", ["shuffled", "length-grouped"])
def test_the_batch_shape_does_not_change_the_gradient(calm_model: Path, count: int, micro: int, batching: str) -> None:
    task, _ = classification(calm_model, 1)
    gradient, update = gradient_of_update(task, calm_model, examples_of(calm_model, count), micro, batching)
    assert (update.targets, update.examples) == (count, count)
    assert relative_difference(of_whole_batch(calm_model, count), gradient) < 1e-6


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_writer(tmp_path_factory.mktemp("writer"))


def of_whole_chats(folder: Path, count: int) -> dict[str, torch.Tensor]:
    """By the library: its own loss over one padded batch, the mean over all targets."""
    task, examples = writing(folder, count)
    model, _ = task.load_base(str(folder))
    model.train()
    batch = task.collate(examples)
    model(**batch.inputs, labels=batch.labels).loss.backward()
    return {n: p.grad for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("count", [16, 13])
@pytest.mark.parametrize("micro", [16, 4, 2, 1])
@pytest.mark.parametrize("batching", ["shuffled", "length-grouped", "packed"])
def test_tokens_count_alike_whatever_micro_batch_they_are_in(
    writer: Path, count: int, micro: int, batching: str
) -> None:
    """Chats have one to three answers: a mean of means would weigh a target by its neighbours (K02, K07)."""
    task, examples = writing(writer, count)
    gradient, update = gradient_of_update(task, writer, examples, micro, batching)
    assert update.targets == sum(example.targets for example in examples)
    assert relative_difference(of_whole_chats(writer, count), gradient) < 1e-6


def test_packed_rows_hold_no_padding_and_every_target_once(writer: Path) -> None:
    task, examples = writing(writer, 8)
    packed, padded = task.pack(examples), task.collate(examples)
    assert packed.inputs["input_ids"].shape == (1, packed.tokens)
    assert padded.inputs["input_ids"].numel() > packed.tokens
    kept = packed.labels[packed.labels != -100].tolist()
    assert kept == padded.labels[padded.labels != -100].tolist()
    assert "attention_mask" not in packed.inputs, "with one, transformers lets examples see each other"


@pytest.mark.parametrize(
    ("kind", "count", "micro", "batching"),
    [
        ("classification", 16, 4, "shuffled"),
        ("classification", 13, 4, "shuffled"),
        ("classification", 13, 2, "length-grouped"),
        ("classification", 3, 4, "shuffled"),
        ("writing", 16, 4, "length-grouped"),
        ("writing", 13, 4, "packed"),
        ("writing", 9, 4, "shuffled"),
    ],
)
def test_two_processes_compute_the_gradient_of_one(
    calm_model: Path, writer: Path, tmp_path: Path, warm: Warm, kind: str, count: int, micro: int, batching: str
) -> None:
    """Also where one has fewer micro-batches than the other, or none."""
    folder, reference = (
        (calm_model, of_whole_batch(calm_model, count))
        if kind == "classification"
        else (writer, of_whole_chats(writer, count))
    )
    words = (kind, folder, str(count), str(micro), batching, tmp_path / "gradient")
    group = warm.start("tests.builders.gradients:main", *words, log=tmp_path / "log", processes=2)
    assert warm.wait(group) == [0, 0], (tmp_path / "log").read_text()
    for rank in range(2):
        gradient, facts = read_gradients(str(tmp_path / "gradient"), rank)
        assert relative_difference(reference, gradient) < 1e-6
        assert facts[2] == count


def test_the_loss_is_that_of_transformers_own_loss(calm_model: Path) -> None:
    task, examples = classification(calm_model, 16)
    torch.manual_seed(3)
    model, _ = task.load_base(str(calm_model))
    batch = task.collate(examples)
    with torch.no_grad():
        reference = float(model(**batch.inputs, labels=batch.labels).loss)
    _, update = gradient_of_update(task, calm_model, examples, 3)
    assert update.loss == pytest.approx(reference, abs=1e-6)


def test_clipping_limits_the_step_and_reports_the_norm_before(calm_model: Path) -> None:
    task, examples = classification(calm_model, 8)
    torch.manual_seed(3)
    model, _ = task.load_base(str(calm_model))
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    update = take_update(Accelerator(cpu=True), model, optimizer, task, [task.collate(examples)], 0.01)
    moved = torch.sqrt(sum(((p.detach() - before[n]) ** 2).sum() for n, p in model.named_parameters()))
    assert update.grad_norm > 0.1
    assert float(moved) == pytest.approx(0.01, rel=1e-3)


def test_a_non_finite_loss_changes_no_parameter(calm_model: Path) -> None:
    task, examples = classification(calm_model, 4)
    model, _ = task.load_base(str(calm_model))
    with torch.no_grad():
        model.classifier.bias[0] = float("nan")  # type: ignore[union-attr, index]
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    update = take_update(Accelerator(cpu=True), model, optimizer, task, [task.collate(examples)], 1.0)
    assert update.loss != update.loss and update.skipped and not update.overflowed
    assert all(torch.equal(p, before[n]) or n == "classifier.bias" for n, p in model.named_parameters())


def test_an_overflow_of_the_scaled_gradient_skips_the_step_lowers_the_scale_and_does_not_end_the_run(
    calm_model: Path,
) -> None:
    """The scaler itself, on a CPU: scales beyond fp32 overflow as fp16 does beyond 65504."""
    task, examples = classification(calm_model, 4)
    model, _ = task.load_base(str(calm_model))
    accelerator = Accelerator(cpu=True)
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, backoff_factor=2.0**-120)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    # A gradient of at least 4 overflows at 2**127.
    batch = task.collate(examples)
    with torch.no_grad():
        model.classifier.weight.mul_(1000)  # type: ignore[union-attr, operator]
        before["classifier.weight"].mul_(1000)
    first = take_update(accelerator, model, optimizer, task, [batch], None)
    assert first.skipped == OVERFLOW and first.overflowed
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())
    assert accelerator.scaler.get_scale() == 2.0**7
    second = take_update(accelerator, model, optimizer, task, [batch], None)
    assert second.skipped is None
    assert not torch.equal(model.classifier.bias, before["classifier.bias"])  # type: ignore[union-attr, arg-type]
    from ftui.plan.schema import Stop

    rules = StopRules(Stop(), better_is_higher=True)
    endings = [rules.after_update(number, first) for number in range(1, OVERFLOWS + 1)]
    assert endings[:-1] == [None] * (OVERFLOWS - 1)
    assert endings[-1] is not None and endings[-1].status == "diverged" and "overflowed" in endings[-1].cause


def test_a_lost_connection_is_told_from_a_fault_of_ones_own() -> None:
    lost = RuntimeError(
        "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1"
    )
    assert (
        is_lost_peer(lost)
        and is_lost_peer(PeerFault("another"))
        and is_lost_peer(torch.distributed.DistBackendError("NCCL error"))
    )
    assert not is_lost_peer(RuntimeError("CUDA out of memory")) and not is_lost_peer(ValueError("no"))
