"""Promises of a draft: what the wizard changes is changed, everything else in the file stays as a person wrote it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ftui.plan.draft import MISSING, Draft
from ftui.plan.example import EXAMPLE
from ftui.plan.fields import all_fields
from ftui.plan.load import load_plan, parse_plan
from ftui.plan.numbers import number_text
from ftui.plan.rental import default_hours
from ftui.plan.schema import WHOLE_METRICS
from ftui.plan.starting import new_draft, settled
from ftui.ui.wizard.answers import answered, read, shown
from ftui.ui.wizard.questions import Question, questions

CAMPAIGNS = sorted((Path(__file__).parents[2] / "campaigns").glob("*/campaign.toml"))
TEXTS = {path.parent.name: path.read_text(encoding="utf-8") for path in CAMPAIGNS} | {"the commented example": EXAMPLE}


def asked(draft: Draft) -> list[tuple[Question, int | None]]:
    """Every question of a draft, those of lists once per item."""
    return [
        (question, item)
        for question in questions()
        for item in (range(len(draft.items(question.name.partition("[]")[0]))) if "[]" in question.name else [None])
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_giving_every_answer_that_the_file_gives_already_changes_no_byte(name: str) -> None:
    draft = Draft(TEXTS[name])
    given_fields = 0
    for question, item in asked(draft):
        value = draft.given(question.steps(item))
        assert answered(draft, question, item, shown(value, question.field.kind)).text == draft.text, question.name
        given_fields += value is not MISSING
    assert given_fields > 40


@pytest.mark.parametrize("name", TEXTS)
def test_everything_in_the_file_is_asked_for_by_the_wizard(name: str) -> None:
    def leaves(table: dict[str, Any], prefix: str = "") -> list[str]:
        found = []
        for key, value in table.items():
            path = prefix + key
            if isinstance(value, list) and value and isinstance(value[0], dict):
                found += [leaf for part in value for leaf in leaves(part, f"{path}[].")]
            elif isinstance(value, dict) and not path.endswith("[].change"):
                found += leaves(value, f"{path}.")
            else:
                found.append(path)
        return found

    known = {question.name for question in questions()}
    assert set(leaves(tomllib.loads(TEXTS[name]))) - {"schema"} <= known


def test_every_field_of_the_schema_is_asked_for_once() -> None:
    names = [question.name for question in questions()]
    assert sorted(names) == sorted(all_fields())


@pytest.mark.parametrize("name", TEXTS)
def test_an_answer_taken_out_and_given_again_gives_the_same_plan(name: str) -> None:
    draft = Draft(TEXTS[name])
    for question, item in asked(draft):
        steps = question.steps(item)
        if (value := draft.given(steps)) is not MISSING:
            typed = shown(value, question.field.kind)
            again = answered(draft.remove(steps), question, item, typed)
            assert again.plan == draft.plan, question.name
            assert [line for line in draft.text.splitlines() if line.startswith("#")] == [
                line for line in again.text.splitlines() if line.startswith("#")
            ]


def test_a_change_keeps_comments_order_and_the_way_a_number_was_typed() -> None:
    text = '# why\n[training]\nlearning_rate = 1e-4   # the seed case\nmicro_batch = 2\n\n[hypothesis]\nstatement = "한국어 zażółć"\n'
    changed = Draft(text).set(("training", "learning_rate"), 2e-4, "2.0e-4")
    assert changed.text == text.replace("1e-4", "2.0e-4")


def test_items_are_added_moved_and_dropped_with_their_comments() -> None:
    text = 'schema = 1\n\n# the first\n[[variants]]\nid = "a" # mine\nbecause = "b"\nchange = { "method.rank" = 4 }\n'
    draft = Draft(text).add("variants", {"id": "c", "because": "d", "change": {"training.learning_rate": 2e-4}})
    assert [item["id"] for item in draft.items("variants")] == ["a", "c"]
    assert draft.text.startswith(text)
    moved = draft.move("variants", 1, 0)
    assert [item["id"] for item in moved.items("variants")] == ["c", "a"]
    assert '"a" # mine' in moved.text
    assert 'learning_rate" = 2e-4' in moved.text
    assert moved.move("variants", 1, 0).content == draft.content
    assert Draft(text).content == draft.drop("variants", 1).content
    assert draft.drop("variants", 0).drop("variants", 0).items("variants") == []


@given(some.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_written_as_exactly_what_it_is(value: float) -> None:
    assert tomllib.loads(f"x = {number_text(value)}")["x"] == value


@settings(max_examples=60, deadline=None)
@given(
    some.lists(
        some.tuples(some.integers(0, 10**6), some.sampled_from(["set", "remove", "add", "drop", "move"])), max_size=12
    )
)
def test_any_row_of_changes_leaves_a_file_that_can_be_read(changes: list[tuple[int, str]]) -> None:
    draft, fields = Draft(TEXTS["three-learning-rates"]), [q for q in questions() if "[]" not in q.name]
    for number, what in changes:
        question = fields[number % len(fields)]
        count = len(draft.items("variants"))
        if what == "set":
            value = {"whole": number, "number": number / 7, "switch": bool(number % 2), "texts": [f"t{number}"]}.get(
                question.field.kind, f"text {number}"
            )
            draft = draft.set(question.steps(), value)
            assert draft.given(question.steps()) == value
        elif what == "remove":
            draft = draft.remove(question.steps())
            assert draft.given(question.steps()) is MISSING
        elif what == "add":
            draft = draft.add(
                "variants", {"id": f"v{number}", "because": "b", "change": {"method.rank": 1}}, number % (count + 1)
            )
            assert draft.items("variants")[number % (count + 1)]["id"] == f"v{number}"
        elif what == "drop" and count:
            before = draft.items("variants")
            draft = draft.drop("variants", number % count)
            assert draft.items("variants") == before[: number % count] + before[number % count + 1 :]
        elif what == "move" and count:
            draft = draft.move("variants", number % count, (number // 7) % count)
            assert len(draft.items("variants")) == count
        assert tomllib.loads(draft.text) == draft.content


def test_the_wizard_says_what_the_command_line_says(tmp_path: Path) -> None:
    text = TEXTS["three-learning-rates"].replace("micro_batch = 2", "micro_batch = 0").replace('"macro_f1"', '"macro"')
    (tmp_path / "campaign.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Exception, match="micro_batch") as raised:
        load_plan(tmp_path)
    draft = Draft(text, str(tmp_path / "campaign.toml"))
    assert [str(problem) for problem in draft.problems] == str(raised.value).splitlines()
    assert draft.problems_at(("training", "micro_batch")) != []


def test_a_new_plan_lacks_only_what_its_owner_alone_can_say() -> None:
    assert {problem.field for problem in new_draft().problems} == {
        "hypothesis.statement",
        "hypothesis.min_improvement",
        "data.train",
        "model.base",
        "evaluation.control_inputs",
    } | {"method"}  # an adapter needs targets, which depend on the base


def test_hours_follow_the_days_until_a_person_sets_them() -> None:
    draft = new_draft()
    week, told = settled(draft.set(("rental", "days"), 7), "rental.days", draft)
    assert week.given(("rental", "hours")) == default_hours(7).model_dump()
    assert told
    own = week.set(("rental", "hours", "margin"), 1)
    month, told = settled(own.set(("rental", "days"), 30), "rental.days", own)
    assert month.given(("rental", "hours")) == own.given(("rental", "hours"))
    assert told == []


@pytest.mark.parametrize("task", WHOLE_METRICS)
def test_another_task_leaves_no_setting_behind_that_it_has_no_use_for(task: str) -> None:
    before = Draft(TEXTS["bookings-as-json"] if "classification" in task else TEXTS["three-learning-rates"])
    draft, told = settled(before.set(("hypothesis", "task"), task), "hypothesis.task", before)
    assert told
    fields = {problem.field for problem in draft.problems}
    # What only its owner can say may be missing: columns, the form of an answer, a base that can do it.
    assert fields <= {"evaluation.format"}, draft.problems


@pytest.mark.parametrize(
    ("name", "typed", "sentence"),
    [
        ("training.learning_rate", "fast", "'fast' is no number; 0.05 and 2e-4 are"),
        ("hypothesis.min_improvement", "0,05", "write a number with a point, like 0.05"),
        ("training.micro_batch", "2.5", "'2.5' is no whole number"),
        ("evaluation.seeds", "17, x", "'x' is no whole number"),
        ("rental.starts_at", "tomorrow", "'tomorrow' is no time"),
        ("rental.starts_at", "2026-12-01 09:00 Mars/Olympus", "'Mars/Olympus' is no time zone"),
        ("method.use_dora", "maybe", "neither yes nor no"),
        ("method.kind", "magic", "none of full, lora, qlora"),
        ("variants[].change", "training.learning_rate", "write a field and its value"),
        ("variants[].change", "training.learning_rate = fast", "'fast' is no value"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(name: str, typed: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read(typed, all_fields()[name])


def test_a_time_in_a_zone_is_written_with_that_day_s_offset() -> None:
    winter, _ = read("2026-12-01 09:00 Europe/Warsaw", all_fields()["rental.starts_at"])
    summer, _ = read("2027-07-01 09:00 Europe/Warsaw", all_fields()["rental.starts_at"])
    assert (winter.isoformat(), summer.isoformat()) == ("2026-12-01T09:00:00+01:00", "2027-07-01T09:00:00+02:00")
    text = Draft("schema = 1\n").set(("rental", "starts_at"), winter).text
    assert "starts_at = 2026-12-01T09:00:00+01:00" in text


def test_text_that_is_not_toml_is_left_alone_and_named() -> None:
    draft = Draft("schema = [\n")
    assert "is not valid TOML" in str(draft.problems[0])
    with pytest.raises(ValueError, match="correct it in an editor"):
        draft.set(("training", "micro_batch"), 2)
    assert parse_plan(TEXTS["three-learning-rates"]) is not None
