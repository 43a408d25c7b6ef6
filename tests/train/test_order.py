"""Every epoch sees every example once; what was predicted is what is executed (K09, K21)."""

from __future__ import annotations

import pytest
import tomli_w

from ftui.data.order import epoch_order, micro_batches, update_examples
from ftui.plan.load import parse_plan
from ftui.plan.settings import DataVersion, RunSettings, run_settings
from ftui.plan.variants import planned_runs
from tests.builders.tiny import tiny_plan


def settings(examples: int, **training: object) -> RunSettings:
    changes = {f"training__{name}": value for name, value in training.items()}
    plan = parse_plan(
        tomli_w.dumps(
            tiny_plan(
                **{"training__warmup": 0, "training__validate_every": 1, "training__checkpoint_every": 1} | changes
            )
        )
    )
    run = next(r for r in planned_runs(plan) if r.variant == "control")
    data = DataVersion(hash="d", train_examples=examples, validation_examples=1, test_examples=1, labels=["a", "b"])
    return run_settings(plan, "h", run, data, "cpu")


def test_an_epoch_is_a_permutation_that_depends_on_seed_and_epoch_alone() -> None:
    order = epoch_order(100, 7, 0)
    assert sorted(order) == list(range(100))
    assert order == epoch_order(100, 7, 0)
    assert order != epoch_order(100, 7, 1) != epoch_order(100, 8, 1)


def test_predicted_updates_are_the_executed_ones_and_the_partial_one_is_counted() -> None:
    frozen = settings(3201, micro_batch=2, accumulation=8, hold="epochs", amount=2)
    updates = list(update_examples(frozen))
    assert len(updates) == frozen.updates == 402
    assert [len(u) for u in updates] == ([16] * 200 + [1]) * 2
    for epoch in range(2):
        seen = [i for u in updates[201 * epoch : 201 * (epoch + 1)] for i in u]
        assert sorted(seen) == list(range(3201))


@pytest.mark.parametrize("amount", [100, 3200, 3210, 3201])
def test_held_examples_are_seen_exactly(amount: int) -> None:
    frozen = settings(3200, micro_batch=2, accumulation=8, hold="examples", amount=amount)
    assert sum(len(u) for u in update_examples(frozen)) == amount == frozen.examples


def test_a_run_taken_up_in_the_second_epoch_sees_what_it_would_have_seen() -> None:
    frozen = settings(50, micro_batch=4, accumulation=2, hold="epochs", amount=3)
    whole = list(update_examples(frozen))
    for first in range(frozen.updates):
        assert list(update_examples(frozen, first)) == whole[first:]


def test_micro_batches_keep_order_and_lose_nothing() -> None:
    assert micro_batches([5, 3, 9, 1, 7], 2) == [[5, 3], [9, 1], [7]]
