"""Batch arithmetic a person can check by hand (S4, S5, K21)."""

from __future__ import annotations

import pytest

from ftui.plan.batch import batches
from ftui.plan.schema import Training


def training(**fields: object) -> Training:
    return Training.model_validate(
        {"micro_batch": 2, "accumulation": 8, "amount": 200, "learning_rate": 1e-4, **fields}
    )


def test_two_times_eight_times_one_is_sixteen_and_3200_examples_are_200_updates() -> None:
    arithmetic = batches(training(hold="epochs", amount=1), 3200)
    assert arithmetic.examples_per_update == 16
    assert arithmetic.updates == 200
    assert arithmetic.examples == 3200
    assert arithmetic.partial_examples == 0


def test_replicas_multiply_the_update() -> None:
    assert batches(training(), 3200, replicas=4).examples_per_update == 64


def test_a_partial_last_update_is_counted() -> None:
    arithmetic = batches(training(hold="epochs", amount=2), 3201)
    assert arithmetic.updates_per_epoch == 201
    assert arithmetic.partial_examples == 1
    assert arithmetic.updates == 402
    assert arithmetic.examples == 6402


@pytest.mark.parametrize(
    ("hold", "amount", "updates", "examples"),
    [
        ("updates", 10, 10, 160),
        ("examples", 100, 7, 100),
        ("examples", 3200, 200, 3200),
        ("examples", 3210, 201, 3210),
        ("epochs", 3, 600, 9600),
    ],
)
def test_what_is_held_decides_the_rest(hold: str, amount: int, updates: int, examples: int) -> None:
    arithmetic = batches(training(hold=hold, amount=amount), 3200)
    assert (arithmetic.updates, arithmetic.examples) == (updates, examples)


@pytest.mark.parametrize(("amount", "updates"), [(64_000, 200), (32_000, 100), (3_300, 10), (1, 1), (128_000, 400)])
def test_held_tokens_are_reached_to_the_nearest_update(amount: int, updates: int) -> None:
    """20 targets per example: 64,000 in an epoch, 320 in an update of 16."""
    arithmetic = batches(training(hold="tokens", amount=amount), 3200, train_targets=64_000)
    assert (arithmetic.updates, arithmetic.tokens) == (updates, amount)


def test_a_classification_has_one_target_per_example() -> None:
    assert batches(training(hold="tokens", amount=3200), 3200).updates == 200


def test_no_examples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no training examples"):
        batches(training(), 0)
