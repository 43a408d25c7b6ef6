"""A grid gives explained variants that all differ from the control and can all be run; a text of one names all its mistakes (V1)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftui.plan.grid import LABELS, GridError, grid, grid_text, parse_grid
from ftui.plan.schema import Plan, Variant
from ftui.plan.variants import apply_change, planned_runs
from tests.builders.properties import drawn
from tests.builders.tiny import tiny_plan

ID = re.compile(r"^[a-z0-9][a-z0-9-]{0,39}$")

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "training.learning_rate": st.floats(1e-9, 10),
    "training.micro_batch": st.integers(1, 10**6),
    "training.weight_decay": st.floats(0, 1),
    "training.schedule": st.sampled_from(["linear", "cosine", "constant"]),
    "training.max_grad_norm": st.one_of(st.none(), st.floats(1e-3, 100)),
    "training.activation_checkpointing": st.booleans(),
    "training.stop.patience": st.one_of(st.none(), st.integers(1, 9)),
    "method.rank": st.integers(1, 512),
    "method.alpha": st.floats(0.5, 1e6),
    "method.dropout": st.sampled_from([0.0, 0.05, 0.1, 0.5]),
    "method.use_dora": st.booleans(),
    "method.targets": st.lists(st.sampled_from(["query", "value", 'a "b", c;d', "dense"]), min_size=1, unique=True),
}

grids = st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=4, unique=True).flatmap(
    lambda names: st.fixed_dictionaries(
        {name: st.lists(FIELDS[name], min_size=1, max_size=3, unique_by=repr) for name in names}
    )
)


def plan(**changes: Any) -> Plan:
    return Plan.model_validate(tiny_plan(variants=[], **changes))


def control_value(of: Plan, field: str) -> Any:
    section: Any = of.content()
    for step in field.split("."):
        section = section[step]
    return section


@given(grids)
@drawn
def test_every_variant_applies_cleanly_and_none_equals_the_control(values: dict[str, list[Any]]) -> None:
    own = plan()
    variants = grid(own, values, "Nobody knows yet.")
    points = 1
    for listed in values.values():
        points *= len(listed)
    has_control = all(control_value(own, name) in listed for name, listed in values.items())
    assert len(variants) == points - has_control
    ids = [variant["id"] for variant in variants]
    assert len(set(ids)) == len(ids) and all(ID.match(name) for name in ids)
    for variant in variants:
        applied = apply_change(own, Variant.model_validate(variant))
        assert applied.problems == [] and applied.plan != own
        assert ("together" in variant) == (len(variant["change"]) > 1)
        assert {change.field for change in applied.changes} <= set(values)
    assert len({repr(sorted(variant["change"].items())) for variant in variants}) == len(variants)
    Plan.model_validate({**own.model_dump(by_alias=True), "variants": variants})


@given(grids)
@drawn
def test_a_grid_is_read_back_as_it_was_written(values: dict[str, list[Any]]) -> None:
    assert parse_grid(grid_text(values)) == values


def test_a_grid_as_a_person_writes_it() -> None:
    values = parse_grid("learning_rate = 5e-5, 2e-4; rank = 8, 16")
    assert values == {"training.learning_rate": [5e-5, 2e-4], "method.rank": [8, 16]}
    assert parse_grid("lr=1e-3,2e-3\n schedule = cosine, 'linear'\nuse_dora = on; patience = none, 3") == {
        "training.learning_rate": [1e-3, 2e-3],
        "training.schedule": ["cosine", "linear"],
        "method.use_dora": [True],
        "training.stop.patience": [None, 3],
    }
    assert parse_grid('targets = ["query", "value"], ["all-linear"]') == {
        "method.targets": [["query", "value"], ["all-linear"]]
    }


def test_ids_are_short_and_one_change_at_a_time_comes_before_two() -> None:
    own = plan(training__learning_rate=1e-4, method__rank=8)
    variants = grid(own, {"learning_rate": [1e-4, 5e-5], "rank": [8, 16]}, "b")
    assert {v["id"]: v["priority"] for v in variants} == {"rank-16": 1, "lr-5e-5": 1, "lr-5e-5-rank-16": 0}
    queue = planned_runs(Plan.model_validate({**own.model_dump(by_alias=True), "variants": variants}))
    assert queue[-1].variant == "lr-5e-5-rank-16"
    assert [v["id"] for v in grid(own, {"dropout": [0.05], "alpha": [32.0]}, "b")] == ["dropout-0-05-alpha-32"]


def test_ids_that_are_taken_or_too_long_are_told_apart() -> None:
    """Four values alike in what an id shows of them, and one id the plan has already."""
    own = parse_plan_with({"id": "rank-16", "because": "b", "change": {"method.alpha": 3.0}})
    assert [v["id"] for v in grid(own, {"rank": [16]}, "b")] == ["rank-16-2"]
    long = [["a-very-long-name-of-a-module", f"another-long-name-{end}"] for end in "abcd"]
    ids = [v["id"] for v in grid(own, {"targets": long}, "b")]
    assert len(set(ids)) == 4 and all(ID.match(name) for name in ids)


def parse_plan_with(variant: dict[str, Any]) -> Plan:
    return Plan.model_validate(tiny_plan(variants=[variant]))


def test_what_the_plan_has_already_is_not_added_again() -> None:
    first = grid(plan(), {"rank": [16, 32]}, "b")
    again = Plan.model_validate({**plan().model_dump(by_alias=True), "variants": first})
    assert [v["id"] for v in grid(again, {"rank": [16, 32, 64]}, "b")] == ["rank-64"]


def test_a_plan_that_is_not_complete_yet_has_its_written_values_and_the_defaults() -> None:
    """`rank` is 8 where nothing is written."""
    content = {"training": {"learning_rate": 1e-4}}
    assert [v["id"] for v in grid(content, {"rank": [8, 16], "learning_rate": [1e-4]}, "b")] == ["rank-16"]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", ["no field is named"]),
        ("rank", ["'rank' has no values"]),
        ("= 3; rank =", ["'= 3' has no name", "'rank =' has no values"]),
        ("learning_rat = 1", ["did you mean 'learning_rate'"]),
        ("evaluation.seeds = 1, 2", ["cannot differ between variants; only fields of method and training can"]),
        ("rank = 8; method.rank = 16", ["method.rank is named twice"]),
        ("rank = 8, 8", ["method.rank = 8 is named twice"]),
        ("rank = 0, 2.5; lr = -1, fast, nan; schedule = square", [
            "method.rank = 0: input should be greater than or equal to 1",
            "method.rank = 2.5: input should be a valid integer",
            "training.learning_rate = -1: input should be greater than 0",
            'training.learning_rate = "fast": input should be a valid number',
            "training.learning_rate = nan: ",
            'training.schedule = "square": input should be \'linear\'',
        ]),
    ],
)  # fmt: skip
def test_every_mistake_is_named_at_once(text: str, sentences: list[str]) -> None:
    with pytest.raises(GridError) as caught:
        parse_grid(text)
    assert len(caught.value.problems) == len(sentences)
    for sentence, problem in zip(sentences, caught.value.problems, strict=True):
        assert sentence in problem


def test_a_name_of_two_fields_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LABELS, "training.warmup", "alpha")
    with pytest.raises(GridError, match=r"may be method\.alpha or training\.warmup"):
        parse_grid("alpha = 1")


def test_combinations_that_make_no_plan_are_refused_together() -> None:
    with pytest.raises(GridError) as caught:
        grid(plan(), {"frozen": [["pooler"], ["embeddings"]]}, "b")
    assert len(caught.value.problems) == 2 and all("leave `frozen` out" in p for p in caught.value.problems)


def test_a_grid_nobody_would_run_is_refused() -> None:
    with pytest.raises(GridError, match="15 × 15 variants are more than 200"):
        grid(plan(), {"rank": list(range(1, 16)), "warmup": list(range(15))}, "b")


def test_a_grid_says_why_it_is_tried() -> None:
    with pytest.raises(GridError, match="say why"):
        grid(plan(), {"rank": [16]}, " ")


def test_no_variants_come_from_the_controls_own_values() -> None:
    assert grid(plan(), {"rank": [4]}, "b") == []
