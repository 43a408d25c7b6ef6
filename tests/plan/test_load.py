"""A plan gives all its problems at once, each with its line and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w

from ftui.plan.example import EXAMPLE
from ftui.plan.load import PlanError, load_plan, parse_plan, plan_hash, unknown_slices
from ftui.plan.places import Places
from tests.builders.tiny import tiny_plan

SEED_CASE = Path(__file__).parents[2] / "campaigns" / "three-learning-rates"


def problems(text: str) -> list[str]:
    with pytest.raises(PlanError) as caught:
        parse_plan(text)
    return [str(p) for p in caught.value.problems]


def test_the_seed_case_and_the_example_are_valid() -> None:
    assert load_plan(SEED_CASE).training.learning_rate == 1e-4
    assert parse_plan(EXAMPLE).evaluation.seeds == [17, 18]


def test_all_problems_are_reported_at_once_with_their_lines() -> None:
    text = (SEED_CASE / "campaign.toml").read_text()
    broken = (
        text.replace("learning_rate = 1e-4", "learning_rat = 1e-4")
        .replace('id = "half-rate"', 'id = "Half rate"')
        .replace("tolerance = 0.02", "tolerance = -1")
    )
    lines = broken.splitlines()
    at = {
        key: next(i for i, line in enumerate(lines, 1) if key in line)
        for key in ("learning_rat ", "Half rate", "tolerance = -1")
    }
    found = problems(broken)
    assert f"campaign.toml:{at['tolerance = -1']}: guardrails[1].tolerance: " in found[0]
    assert any(
        p.startswith(
            f"campaign.toml:{at['learning_rat ']}: training.learning_rat: unknown key; did you mean 'learning_rate'?"
        )
        for p in found
    )
    assert any("training.learning_rate: is missing" in p for p in found)
    assert any(p.startswith(f"campaign.toml:{at['Half rate']}: variants[0].id: ") for p in found)
    assert len(found) == 4


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model__base": "owner/name"}, "model.revision: a hub id needs the commit"),
        ({"rental__days": 0.5}, "the hours add up to 19, the rental has 12"),
        ({"rental__starts_at": "2026-12-01T09:00:00"}, "a time needs its zone"),
        ({"evaluation__seeds": [1, 1]}, "a seed is named twice"),
        ({"training__validate_every": 13}, "13 is more than the 12 updates of a run"),
        ({"method__targets": []}, "needs targets"),
        ({"data__validation": None}, "test names files but validation does not"),
        ({"guardrails": [{"name": "x", "metric": "recall", "tolerance": 0}]}, "does not apply to the slice 'whole'"),
        ({"schema": 2}, "schema 2 is newer than this ftui"),
    ],
)
def test_a_contradiction_is_said_in_words(change: dict[str, object], sentence: str) -> None:
    content = tiny_plan(**change)
    content["data"] = {k: v for k, v in content["data"].items() if v is not None}
    assert sentence in "\n".join(problems(tomli_w.dumps(content)))


@pytest.mark.parametrize(
    ("variant", "sentence"),
    [
        ({"change": {"training.learning_rate": 5e-3}}, "is already 0.005 in the control"),
        ({"change": {"training.learning_rat": 1}}, "did you mean 'training.learning_rate'?"),
        ({"change": {"data.unit": "x"}}, "cannot differ between variants"),
        ({"change": {"training.learning_rate": -1.0}}, "training.learning_rate: input should be greater than 0"),
        ({"change": {"training.learning_rate": 1.0, "method.rank": 2}}, "changes 2 fields at once"),
        ({"id": "control"}, "is the name of the plan itself"),
    ],
)
def test_a_variant_changes_one_explained_thing(variant: dict[str, object], sentence: str) -> None:
    base = {"id": "v", "because": "b", "change": {"training.learning_rate": 1e-3}}
    assert sentence in "\n".join(problems(tomli_w.dumps(tiny_plan(variants=[base | variant]))))


def test_several_changes_may_be_one_when_the_plan_says_why() -> None:
    variant = {
        "id": "v",
        "because": "b",
        "together": "one knob",
        "change": {"training.learning_rate": 1.0, "method.rank": 2},
    }
    assert parse_plan(tomli_w.dumps(tiny_plan(variants=[variant]))).variants[0].together == "one knob"


def test_an_id_names_one_variant() -> None:
    twice = [{"id": "v", "because": "b", "change": {"method.rank": r}} for r in (1, 2)]
    assert "is already the id of variants[0]" in problems(tomli_w.dumps(tiny_plan(variants=twice)))[0]


def test_the_hash_is_of_the_meaning_not_of_the_text() -> None:
    text = (SEED_CASE / "campaign.toml").read_text()
    plan = parse_plan(text)
    assert plan_hash(parse_plan("# another comment\n" + text + "\n[machine]\nbackend = 'auto'\n")) == plan_hash(plan)
    assert plan_hash(parse_plan(text.replace("amount = 200", "amount = 201"))) != plan_hash(plan)


def test_what_is_no_plan_is_refused_in_one_sentence(tmp_path: Path) -> None:
    assert "no such file; `ftui new NAME`" in str(_load_error(tmp_path))
    (tmp_path / "campaign.toml").write_bytes(b"schema = 1\nx = '\xff'\n")
    assert f"{tmp_path}/campaign.toml:2: is not UTF-8" in str(_load_error(tmp_path))
    (tmp_path / "campaign.toml").write_text("schema = = 1\n")
    assert "is not valid TOML" in str(_load_error(tmp_path))


def _load_error(folder: Path) -> PlanError:
    with pytest.raises(PlanError) as caught:
        load_plan(folder)
    return caught.value


def test_a_guardrail_on_an_unknown_category_is_named() -> None:
    plan = parse_plan((SEED_CASE / "campaign.toml").read_text())
    assert unknown_slices(plan, ["out_of_scope"]) == []
    assert "'out_of_scope' is no category of the data" in unknown_slices(plan, ["bank"])[0]


def test_places_follow_tables_arrays_and_multi_line_strings() -> None:
    text = (
        'a = 1\n[t]\ns = """\nb = 2\n"""\nb = 3\n[[list]]\nid = 1\n[[list]]\nid = 2\n[list.inner]\n"quoted key" = 4\n'
    )
    places = Places(text)
    assert places.line("a") == 1
    assert places.line("t", "b") == 6
    assert places.line("list", 1, "id") == 10
    assert places.line("list", 1, "inner", "quoted key") == 12
    assert places.line("list", 1, "missing") == 9
    assert places.line("nowhere") is None
