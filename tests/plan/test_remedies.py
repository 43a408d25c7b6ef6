"""Remedies change what they say, need less of the part that ran out, and tell what they do to the experiment (S3)."""

from __future__ import annotations

from typing import Any

import pytest
import tomli_w

from ftui.plan.edit import changed_text
from ftui.plan.load import PlanError, parse_plan
from ftui.plan.remedies import PART_WORDS, remedies
from ftui.plan.schema import Plan
from tests.builders.tiny import tiny_plan


def plan(**changes: Any) -> Plan:
    return Plan.model_validate(tiny_plan(**changes))


def test_a_smaller_micro_batch_keeps_the_examples_of_an_update() -> None:
    first = remedies(plan(training__micro_batch=4, training__accumulation=8), "activations", 200)[0]
    assert first.change == {"training.micro_batch": 2, "training.accumulation": 16}
    assert "2 × 16 × 1 = 32 examples per update" in first.experiment and first.keeps_task


def test_an_odd_micro_batch_falls_to_the_next_divisor_of_the_update() -> None:
    first = remedies(plan(training__micro_batch=5, training__accumulation=2), "gradients", 200)[0]
    assert first.change == {"training.micro_batch": 2, "training.accumulation": 5}


def test_what_changes_the_task_comes_last_and_is_marked() -> None:
    found = remedies(plan(machine={"backend": "auto"}), "activations", 200)
    assert [remedy.keeps_task for remedy in found] == [True, True, True, False]
    assert list(found[-1].change) == ["training.max_length", "training.truncation"] and "cut" in found[-1].experiment


@pytest.mark.parametrize(
    ("part", "method", "fields"),
    [
        (
            "optimizer",
            {"kind": "full"},
            {"training.micro_batch", "training.accumulation", "method.kind", "method.targets"},
        ),
        ("weights", {"kind": "lora", "targets": ["query"]}, {"method.kind"}),
        ("evaluation", {"kind": "full"}, {"evaluation.batch_size"}),
    ],
)
def test_only_what_can_help_the_part_is_offered(part: str, method: dict[str, Any], fields: set[str]) -> None:
    found = remedies(plan(method=method), part, 200)
    assert {field for remedy in found for field in remedy.change} == fields


def test_nothing_is_offered_twice_over_what_is_there_already() -> None:
    small = plan(training__micro_batch=1, training__accumulation=1, training__activation_checkpointing=True)
    assert all("training.max_length" in remedy.change for remedy in remedies(small, "activations", 200))


@pytest.mark.parametrize("part", PART_WORDS)
def test_every_remedy_is_a_plan_that_can_be_loaded(part: str) -> None:
    for method in ({"kind": "full"}, {"kind": "lora", "targets": ["query"]}):
        own = plan(method=method)
        for remedy in remedies(own, part, 200):
            changed = parse_plan(changed_text(tomli_w.dumps(tiny_plan(method=method)), remedy.change))
            assert changed != own


def test_a_change_keeps_what_a_person_wrote() -> None:
    text = tomli_w.dumps(tiny_plan()).replace("[training]\n", "# our own words\n[training]\n")
    text = text.replace("micro_batch = 4", "micro_batch = 4  # fits the card")
    changed = changed_text(text, {"training.micro_batch": 2, "training.stop.patience": 3, "machine.threads": 2})
    assert "# our own words\n[training]\n" in changed and "micro_batch = 2  # fits the card" in changed
    own = parse_plan(changed)
    assert (own.training.micro_batch, own.training.stop.patience, own.machine.threads) == (2, 3, 2)


def test_a_change_that_makes_no_plan_is_refused() -> None:
    with pytest.raises(PlanError, match="micro_batch"):
        changed_text(tomli_w.dumps(tiny_plan()), {"training.micro_batch": 0})
