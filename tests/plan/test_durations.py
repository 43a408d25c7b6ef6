"""How long runs take follows from the plan and what operations cost; predicted costs are ranges with stated allowances (R3, S7)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftui.plan.budget import Spread
from ftui.plan.durations import RunCosts, plan_durations
from ftui.plan.predicted import (
    DISK_BYTES_PER_SECOND,
    FILES_SECONDS,
    LAUNCH_SECONDS,
    START_SECONDS,
    PredictedUpdate,
    predicted_closing,
    predicted_costs,
)
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion, own_batches
from ftui.plan.variants import variant_plan
from tests.builders.properties import drawn
from tests.builders.tiny import tiny_plan

DATA = DataVersion(hash="d" * 16, train_examples=3200, validation_examples=160, test_examples=320, labels=["a", "b"])
UPDATE = PredictedUpdate(low=1.0, high=4.0, operations=1000, parameters=10**9, trainable=10**7)


def plan(**changes: object) -> Plan:
    return Plan.model_validate(
        tiny_plan(**{"training__micro_batch": 2, "training__accumulation": 8, "training__amount": 200, **changes})
    )


def test_two_times_eight_times_one_is_sixteen_and_3200_examples_seen_once_are_200_updates_of_a_run() -> None:
    own = plan(training__hold="epochs", training__amount=1, training__validate_every=50, training__checkpoint_every=50)
    arithmetic = own_batches(own, DATA)
    assert (arithmetic.examples_per_update, arithmetic.updates, arithmetic.examples) == (16, 200, 3200)
    second = Spread(1, 1, 1)
    lasts = plan_durations(own, DATA, dict.fromkeys(("base", "control"), RunCosts(second, second, second, second)))
    # 200 updates, validations and checkpoints at 50, 100, 150 and 200, one start.
    assert lasts["control"].seconds == 200 + 4 + 4 + 1
    assert lasts["base"].seconds == 0 + 1 + 1 + 1


@given(
    st.integers(1, 8), st.integers(1, 8), st.integers(1, 8), st.integers(1, 5000), st.integers(1, 400),
    st.sampled_from(["updates", "examples", "epochs", "tokens"]),
)  # fmt: skip
@drawn
def test_a_replica_more_adds_its_examples_to_every_update_and_what_is_derived_follows(
    micro_batch: int, accumulation: int, replicas: int, rows: int, amount: int, hold: str
) -> None:
    data = DATA.model_copy(update={"train_examples": rows})

    def own(processes: int) -> Plan:
        machine = {"processes": processes, "strategy": "single" if processes == 1 else "ddp"}
        training = {"micro_batch": micro_batch, "accumulation": accumulation, "hold": hold, "amount": amount}
        return plan(machine=machine, **{f"training__{name}": value for name, value in training.items()})

    few, more = own_batches(own(replicas), data), own_batches(own(replicas + 1), data)
    assert few.examples_per_update == micro_batch * accumulation * replicas
    assert more.examples_per_update - few.examples_per_update == micro_batch * accumulation
    if hold == "updates":
        assert more.updates == few.updates == amount
    elif hold == "examples":
        assert more.examples == few.examples == amount and more.updates <= few.updates
    elif hold == "epochs":
        assert more.examples == few.examples == amount * rows
        assert few.updates == amount * math.ceil(rows / few.examples_per_update)
    else:
        assert more.tokens == few.tokens == amount
        assert few.updates == max(1, round(amount / rows * math.ceil(rows / few.examples_per_update)))


def test_predicted_costs_are_the_forecast_and_the_stated_allowances() -> None:
    costs = predicted_costs(plan(), DATA, {"control": UPDATE})
    control = costs["control"]
    assert (control.update.low, control.update.high) == (1.0, 4.0) and control.update.seconds == 2.0
    # 160 validation examples are 10 updates of 16; a third of each is its forward pass.
    assert control.validation.low == pytest.approx(10 / 3) and control.validation.high == pytest.approx(40 / 3)
    fast, slow = DISK_BYTES_PER_SECOND
    assert control.start.low == START_SECONDS[0] + 4e9 / fast and control.start.high == START_SECONDS[1] + 4e9 / slow
    assert control.checkpoint.low == pytest.approx(FILES_SECONDS[0] + 12e7 / fast)
    assert control.checkpoint.high == pytest.approx(FILES_SECONDS[1] + 12e7 / slow)
    assert costs["base"] == control
    closing = predicted_closing(DATA, costs)
    assert closing["evaluation"].low == pytest.approx(control.start.low + 2 * control.validation.low)
    assert closing["export"].high == pytest.approx(2 * control.start.high + 2 * control.checkpoint.high)


def test_where_only_the_least_time_is_known_the_start_of_operations_gives_the_most() -> None:
    update = PredictedUpdate(low=0.001, high=None, operations=5000, parameters=10**6, trainable=10**6)
    control = predicted_costs(plan(), DATA, {"control": update})["control"]
    assert control.update.high == 5000 * LAUNCH_SECONDS
    assert control.update.seconds == pytest.approx(math.sqrt(0.001 * 0.1))


def test_a_variant_has_the_costs_of_its_own_update_and_one_that_is_not_predicted_has_none() -> None:
    variants = [
        {"id": "big", "because": "b", "change": {"training.micro_batch": 4}},
        {"id": "unknown", "because": "b", "change": {"method.rank": 2}},
    ]
    own = plan(variants=variants)
    costs = predicted_costs(own, DATA, {"control": UPDATE, "big": UPDATE})
    assert set(costs) == {"base", "control", "big"}
    assert own_batches(variant_plan(own, "big"), DATA).examples_per_update == 32
    # The same time for twice the examples: half for each of those that are validated.
    assert costs["big"].validation.low == pytest.approx(costs["control"].validation.low / 2)
    assert set(plan_durations(own, DATA, costs)) == {"base", "control", "big"}
    assert predicted_costs(own, DATA, {"big": UPDATE}).keys() == {"big"}
    assert predicted_closing(DATA, {}) == {}


def test_written_answers_take_all_their_tokens_at_most() -> None:
    generation = {"batch_size": 16, "seeds": [1], "control_inputs": ["x"], "generation": {"max_new_tokens": 30}}
    own = plan(hypothesis={"statement": "s", "task": "generation", "metric": "exact_match", "min_improvement": 0.1},
               guardrails=[], evaluation=generation)  # fmt: skip
    control = predicted_costs(own, DATA, {"control": UPDATE})["control"]
    # 10 batches of 16; 30 tokens each; 1,000 operations for 8 micro-batches, a third of them forward.
    written = 10 * 30 * 1000 * LAUNCH_SECONDS / 8 / 3
    assert control.validation.high == pytest.approx(40 / 3 + written)
    assert control.validation.low == pytest.approx(10 / 3)
