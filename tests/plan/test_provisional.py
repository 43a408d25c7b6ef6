"""Whatever is half written, there is a whole plan to try: what was written rightly is kept, and what stands in is named."""

from __future__ import annotations

import copy
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from ftui.plan.load import PlanError, parse_plan
from ftui.plan.provisional import provisional_plan
from ftui.plan.schema import Plan

CAMPAIGNS = Path(__file__).parents[2] / "campaigns"
WHOLE = [
    tomllib.loads((CAMPAIGNS / name / "campaign.toml").read_text(encoding="utf-8"))
    for name in ("three-learning-rates", "bookings-as-json", "clothes")
]


NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def is_usable(plan: Plan) -> bool:
    """Whether the plan's own text is read back as a plan without any problem: what `ftui plan` would ask of it."""

    def without_nulls(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
        return [without_nulls(inner) for inner in value] if isinstance(value, list) else value

    try:
        return parse_plan(tomli_w.dumps(without_nulls(plan.model_dump(by_alias=True)))) == plan
    except PlanError:
        return False


@pytest.mark.parametrize("content", WHOLE)
def test_a_whole_plan_stays_what_it_is(content: dict[str, Any]) -> None:
    found = provisional_plan(content)
    assert found.plan == Plan.model_validate(content) and found.filled == ()


def test_of_an_empty_draft_everything_required_stands_in() -> None:
    found = provisional_plan({"schema": 1})
    required = {
        "hypothesis.statement", "hypothesis.min_improvement", "data.train", "model.base", "method.targets",
        "training.micro_batch", "training.amount", "training.learning_rate", "evaluation.seeds",
        "evaluation.control_inputs", "rental.days", "rental.hours",
    }  # fmt: skip
    assert set(found.filled) == required and is_usable(found.plan)


@pytest.mark.parametrize(
    ("wrong", "filled", "value"),
    [
        ({"hypothesis": {"metric": "loss"}}, {"hypothesis.metric"}, "accuracy"),
        ({"hypothesis": {"metric": "nonsense"}}, {"hypothesis.metric"}, "macro_f1"),
        ({"data": {"split": {"by": "time"}}}, {"data.split.by"}, None),
        ({"data": {"test": None}}, {"data.validation", "data.test"}, None),
        ({"data": {"train": ["data/train.jsonl", 5]}}, {"data.train"}, ["data/train.jsonl"]),
        ({"data": {"columns": {"label": ""}}}, {"data.columns.label"}, "label"),
        ({"model": {"revision": None}}, {"model.revision"}, "0" * 40),
        ({"method": {"targets": []}}, {"method.targets"}, ["all-linear"]),
        ({"method": {"targets": ["re:("]}}, {"method.targets"}, ["all-linear"]),
        ({"method": {"frozen": ["query"]}}, {"method.frozen"}, []),
        ({"training": {"validate_every": 1000}}, {"training.validate_every"}, 200),
        ({"training": {"stop": {"divergence": 0.5}}}, {"training.stop.divergence"}, 3.0),
        ({"machine": {"processes": 2}}, {"machine.strategy"}, "ddp"),
        ({"evaluation": {"seeds": [3, 3]}}, {"evaluation.seeds"}, [17]),
        ({"rental": {"days": 1e300, "starts_at": NOON, "ends_at": NOON}}, {"rental.ends_at"}, None),
        ({"rental": {"days": 10**400}}, {"rental.days"}, 3.0),
    ],
)  # fmt: skip
def test_what_is_unusable_is_replaced_and_named(wrong: dict[str, Any], filled: set[str], value: Any) -> None:
    content = copy.deepcopy(WHOLE[0])
    for section, fields in wrong.items():
        content.setdefault(section, {}).update(fields)
        content[section] = {name: inner for name, inner in content[section].items() if inner is not None}
    found = provisional_plan(content)
    assert set(found.filled) == filled and is_usable(found.plan)
    place: Any = found.plan
    for step in sorted(filled)[-1].split("."):
        place = getattr(place, step)
    assert place == value


def test_tables_that_cannot_be_used_are_left_out_by_their_place() -> None:
    content = copy.deepcopy(WHOLE[0])
    content["guardrails"].insert(0, {"name": "of another task", "metric": "valid_json", "tolerance": 0.1})
    content["variants"].insert(1, {"id": "half-rate", "because": "again", "change": {"training.warmup": 3}})
    content["variants"].insert(0, {"id": "empty"})
    found = provisional_plan(content)
    assert found.filled == ("guardrails[0]", "variants[0]", "variants[2]")
    assert found.plan == Plan.model_validate(WHOLE[0])


def test_hours_that_are_missing_fit_the_days_that_are_written() -> None:
    found = provisional_plan({"rental": {"days": 0.5, "hours": {"experiment": 6}}})
    assert found.plan.rental.days == 0.5 and found.plan.rental.hours.experiment == 6
    assert found.plan.rental.hours.total <= 12 and "rental.hours.margin" in found.filled


def test_a_stand_in_is_found_by_its_own_name_and_by_those_around_it() -> None:
    found = provisional_plan({"data": {"train": "a.jsonl", "split": {"by": "never"}}})
    assert found.stands_in("data.split.by") and found.stands_in("data.split") and found.stands_in("rental.hours.margin")
    assert not found.stands_in("data.train") and not found.stands_in("data.tr")


# Whatever a person or a file says

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.datetimes()
JUNK = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
NAMES = sorted({*Plan.model_fields, "schema"} - {"plan_schema"})


def places(value: Any, steps: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where every table, list and value of a plan stands."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, below in inner for place in ((*steps, key), *places(below, (*steps, key)))]


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), JUNK, max_size=8))
def test_of_anything_a_plan_can_be_made(content: dict[str, Any]) -> None:
    found = provisional_plan(content)
    assert Plan.model_validate(found.plan.model_dump(by_alias=True)) == found.plan


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_one_wrong_place_costs_no_other_field_unnamed(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(WHOLE))
    place = data.draw(st.sampled_from(places(whole)))
    content = copy.deepcopy(whole)
    parent: Any = content
    for step in place[:-1]:
        parent = parent[step]
    if data.draw(st.booleans()):
        del parent[place[-1]]
    else:
        parent[place[-1]] = data.draw(JUNK)
    found = provisional_plan(content)
    assert Plan.model_validate(found.plan.model_dump(by_alias=True)) == found.plan
    before, after = Plan.model_validate(whole).model_dump(by_alias=True), found.plan.model_dump(by_alias=True)
    touched = {str(place[0])}
    for name in before:
        # What another task asks of other sections is named, like everything that stands in.
        if name in touched or (place[0] == "hypothesis" and any(f.startswith(name) for f in found.filled)):
            continue
        if name in ("guardrails", "variants"):
            dropped = sum(f.startswith(f"{name}[") for f in found.filled)
            assert len(after[name]) == len(before[name]) - dropped
            continue
        assert after[name] == before[name], f"{name} changed when {place} did"
    if len(place) > 1 and isinstance(before.get(place[0]), dict):
        for field, value in before[place[0]].items():
            if field != place[1] and not found.stands_in(f"{place[0]}.{field}"):
                assert after[place[0]][field] == value, f"{field} changed when {place} did"
