"""A run with other settings than one there is: validated like a variant, measured against the run it follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from ftui.plan.followup import ChangeRefused, FollowUp, changed_plan, follow, parse_change, run_plan
from ftui.plan.load import parse_plan, plan_hash
from ftui.plan.settings import DataVersion, dump_settings, read_settings, run_settings
from ftui.plan.variants import PlannedRun
from tests.builders.tiny import tiny_plan

PLAN = parse_plan(tomli_w.dumps(tiny_plan()))
SLOWER = "r003-slower-s7"
DATA = DataVersion(hash="d", train_examples=96, validation_examples=3, test_examples=3, labels=["none", "예"])


def test_the_change_comes_on_top_of_the_runs_own() -> None:
    made = follow(PLAN, SLOWER, "slower", None, {"method.rank": 16}, "b")
    assert made == FollowUp(SLOWER, "b", {"training.learning_rate": 1e-3, "method.rank": 16})
    own = run_plan(PLAN, "slower", made)
    assert (own.method.rank, own.training.learning_rate, PLAN.method.rank) == (16, 1e-3, 4)
    third = follow(PLAN, "r004-slower-s7", "slower", made, {"training.learning_rate": 2e-3}, "b")
    assert third.change == {"training.learning_rate": 2e-3, "method.rank": 16}
    assert third.follows == "r004-slower-s7"


def test_going_back_to_the_control_leaves_no_difference() -> None:
    made = follow(PLAN, SLOWER, "slower", None, {"training.learning_rate": 5e-3}, "b")
    assert made.change == {} and run_plan(PLAN, "slower", made) == changed_plan(PLAN, {}) == PLAN


@pytest.mark.parametrize(
    ("variant", "change", "because", "said"),
    [
        ("slower", {"training.learning_rate": 1e-3}, "b", f"is already 0.001 in {SLOWER}; this changes nothing"),
        ("slower", {"method.rnak": 16}, "b", "did you mean 'method.rank'"),
        ("slower", {"evaluation.seeds": [8]}, "b", "cannot differ between variants"),
        ("slower", {"method.rank": 0, "training.micro_batch": 0}, "b", "method.rank: .*; training.micro_batch: "),
        ("slower", {}, "b", "no field is changed"),
        ("slower", {"method.rank": 16}, " ", "needs a reason"),
        ("base", {"method.rank": 16}, "b", "the base model, which is not trained"),
    ],
)
def test_what_a_variant_may_not_do_a_follow_up_may_not(
    variant: str, change: dict[str, Any], because: str, said: str
) -> None:
    with pytest.raises(ChangeRefused, match=said):
        follow(PLAN, SLOWER, variant, None, change, because)


def test_a_change_is_read_as_a_person_types_it() -> None:
    typed = ["rank=16", "training.learning_rate = 2e-4", "precision=bf16", "patience = none"]
    assert parse_change(typed) == {
        "method.rank": 16,
        "training.learning_rate": 2e-4,
        "training.precision": "bf16",
        "training.stop.patience": None,
    }
    for texts, said in (
        (["rank=8, 16"], "one value"),
        (["rank=8", "method.rank=16"], "one value"),
        (["rank"], "has no values"),
        (["rank=many"], "method.rank"),
    ):
        with pytest.raises(ChangeRefused, match=said):
            parse_change(texts)


def test_the_settings_of_a_follow_up_are_frozen_whole(tmp_path: Path) -> None:
    plan = parse_plan(tomli_w.dumps(tiny_plan(training__stop={"patience": 3})))
    made = follow(plan, SLOWER, "slower", None, {"training.stop.patience": None, "method.rank": 16}, "no patience, 예")
    run = PlannedRun(4, "slower", 7, 0)
    frozen = run_settings(plan, plan_hash(plan), run, DATA, "cpu", follow_up=made)
    (tmp_path / "run.toml").write_text(dump_settings(frozen), encoding="utf-8")
    assert read_settings(tmp_path) == frozen
    assert (frozen.run, frozen.follows, frozen.because) == ("r004-slower-s7", SLOWER, "no patience, 예")
    assert (frozen.method.rank, frozen.training.stop.patience, frozen.training.learning_rate) == (16, None, 1e-3)
    assert frozen.change == made.change and "training.stop.patience" in frozen.change
