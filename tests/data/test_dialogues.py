"""Prompts and answers, chats, and texts with fields become rows; what cannot is named with its place (D9, K22, K23)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ftui.data.form import Form, normalised
from ftui.data.prepare import DataReport, check_data
from ftui.plan.load import load_plan
from tests.builders.writing import SCHEMA, chats, orders, writing_campaign


def checked(folder: Path, task: str, train: list[Any], **changes: Any) -> DataReport:
    files = writing_campaign(folder / "c", folder / "no-model", task, **changes)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in train]
    (files.data / "train.jsonl").write_text("".join(lines), encoding="utf-8")
    return check_data(load_plan(files.root), files.root)


def errors(report: DataReport) -> list[str]:
    return [str(f) for f in report.errors]


def test_an_empty_message_list_is_named_and_handled_by_the_policy(tmp_path: Path) -> None:
    """K23: one row of a thousand."""
    rows = chats(1000, start=1000)
    rows[499] = {"messages": []}
    (only,) = errors(checked(tmp_path / "stop", "generation", rows))
    assert only == "data/train.jsonl:500: messages: the list of messages is empty; fill it, or remove the row"
    report = checked(tmp_path / "drop", "generation", rows, data__bad_rows="drop")
    assert not report.errors and len(report.splits["train"]) == 999
    (warned,) = [str(f) for f in report.warnings if f.kind == "no messages"]
    assert warned.startswith("data/train.jsonl:500: ") and 'left out (data.bad_rows = "drop")' in warned


BAD = {
    "null": ({"messages": None}, "messages: the list of messages is null"),
    "no list": ({"messages": "hello"}, "messages: the messages are"),
    "no column": ({"mesages": []}, "messages: the column is missing; did you mean 'mesages'?"),
    "no object": ({"messages": ["hi"]}, "messages[0]: the message is"),
    "unknown role": ({"messages": [{"role": "usr", "content": "hi"}]}, 'messages[0].role: the role is "usr"'),
    "null content": ({"messages": [{"role": "user", "content": None}]}, "messages[0].content: the text is null"),
    "tool call": (
        {"messages": [{"role": "assistant", "content": "x", "tool_calls": [1]}]},
        "messages[0]: has 'tool_calls'",
    ),
    "nobody answers": ({"messages": [{"role": "user", "content": "hi"}]}, "no message is the assistant's"),
    "empty answer": (
        {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": " "}]},
        "messages[1].content: is empty after cleaning",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_chat_that_cannot_be_used_says_where_and_why(tmp_path: Path, case: str) -> None:
    row, message = BAD[case]
    found = errors(checked(tmp_path, "generation", [*chats(3, start=500), row]))
    assert any(f.startswith("data/train.jsonl:4: ") and message in f for f in found), found


def test_prompt_and_answer_become_a_chat_with_the_instruction_before_it(tmp_path: Path) -> None:
    rows = [{"prompt": f"  question  {i}", "answer": f"answer {i} ", "kind": "ab"[i % 2]} for i in range(4)]
    columns = {"prompt": "prompt", "answer": "answer", "category": "kind"}
    about = {
        "data__columns": columns,
        "data__cleaning": ["strip@1", "collapse-spaces@1"],
        "data__instruction": "Be brief.",
    }
    files = writing_campaign(tmp_path / "c", tmp_path / "no-model", "generation", **about)
    for i, name in enumerate(("train", "validation", "test")):
        part = [{**row, "prompt": f"{row['prompt']} {i}"} for row in rows]
        (files.data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    report = check_data(load_plan(files.root), files.root)
    assert not report.errors, errors(report)
    row = report.splits["train"][1]
    assert [(m["role"], m["content"]) for m in row.messages] == [
        ("system", "Be brief."), ("user", "question 1 0"), ("assistant", "answer 1"),
    ]  # fmt: skip
    assert (row.text, row.raw, row.answer, row.label) == ("question 1 0", "  question  1 0", "answer 1", "b")
    assert report.labels == ["a", "b"] and report.version.instruction == "Be brief."
    with (files.data / "test.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"prompt": "a new kind of question", "answer": "yes", "kind": "only here"}) + "\n")
    known = check_data(load_plan(files.root), files.root)
    assert not known.errors and known.labels == ["a", "b", "only here"]  # a slice of the answers, nothing to be learned


def test_two_instructions_are_one_too_many(tmp_path: Path) -> None:
    report = checked(tmp_path, "generation", chats(4, start=500), data__instruction="Be long.")
    assert any("has a system message of its own" in e for e in errors(report))


def test_equal_questions_are_found_after_cleaning_and_other_answers_are_told(tmp_path: Path) -> None:
    """K22."""
    rows = chats(6, start=500)
    test_row = json.loads(json.dumps(chats(12, start=108)[5]))
    test_row["messages"][-2]["content"] = "  " + test_row["messages"][-2]["content"]
    test_row["messages"][-1]["content"] = "something else"
    report = checked(tmp_path, "generation", [*rows, test_row], data__cleaning=["strip@1"])
    assert len(report.splits["train"]) == 6 and report.dropped[0].equals.place == "data/test.jsonl:6"
    said = [str(f) for f in report.warnings]
    assert any("only after cleaning" in s for s in said) and any("different answers" in s for s in said)


def test_the_answer_is_the_rows_fields_in_the_schemas_order(tmp_path: Path) -> None:
    report = checked(tmp_path, "extraction", orders(2, start=502))
    assert not report.errors and report.labels == ["drink", "size", "name"]
    first, second = report.splits["train"]
    assert second.answer == '{"drink": "juice", "size": "large", "name": "민준"}'
    assert [m["role"] for m in first.messages] == ["system", "user", "assistant"]


def test_required_fields_that_a_row_has_not_are_null_where_the_schema_allows_it(tmp_path: Path) -> None:
    rows = [{"text": "tea", "fields": {"drink": "tea"}}, {"text": "small", "fields": {"size": "small"}}]
    report = checked(tmp_path, "extraction", rows)
    (only,) = errors(report)
    assert only.startswith("data/train.jsonl:2: fields.drink: does not have the form of an answer: None is not one of")
    assert [r.answer for r in report.splits["train"]] == ['{"drink": "tea", "name": null}']


def test_fields_outside_the_schema_are_errors(tmp_path: Path) -> None:
    rows = [
        {"text": "A TEA", "fields": {"drink": "TEA"}},
        {"text": "b", "fields": {"drink": "tea", "milk": "yes"}},
        {"text": "c", "fields": None},
        {"text": "d", "fields": [1]},
    ]
    found = checked(tmp_path, "extraction", rows, data__cleaning=["lower@1"])
    said = errors(found)
    assert any("'milk' was unexpected" in s for s in said) and len(said) == 3
    assert any(":3: fields: the fields are null" in s for s in said) and any(
        ":4: fields: the fields are a list" in s for s in said
    )


def test_cleaning_reaches_the_values_of_an_answer_and_not_its_names(tmp_path: Path) -> None:
    schema = SCHEMA | {"properties": SCHEMA["properties"] | {"Table": {"type": "string"}}}
    files = writing_campaign(tmp_path / "c", tmp_path, "extraction", data__cleaning=["lower@1"])
    (files.root / "answer.schema.json").write_text(json.dumps(schema))
    (files.data / "train.jsonl").write_text('{"text": "TEA AT T4", "fields": {"drink": "TEA", "Table": "T4"}}\n')
    (row,) = check_data(load_plan(files.root), files.root).splits["train"]
    assert (row.text, row.answer) == ("tea at t4", '{"drink": "tea", "name": null, "Table": "t4"}')


def test_a_changed_schema_or_instruction_is_another_data_version(tmp_path: Path) -> None:
    rows = orders(4, start=500)
    one = checked(tmp_path / "1", "extraction", rows)
    two = checked(tmp_path / "2", "extraction", rows, data__instruction="Write JSON.")
    files = writing_campaign(tmp_path / "3", tmp_path, "extraction")
    (files.data / "train.jsonl").write_text(
        "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8"
    )
    same = check_data(load_plan(files.root), files.root)
    (files.root / "answer.schema.json").write_text(json.dumps(SCHEMA | {"required": ["drink"]}))
    other = check_data(load_plan(files.root), files.root)
    assert same.hash == one.hash and len({one.hash, two.hash, other.hash}) == 3


def test_the_data_version_of_the_seed_campaign_has_not_moved(seed_campaign: tuple[Any, Path]) -> None:
    """Other tasks came later; what they need is no part of its identity."""
    plan, root = seed_campaign
    assert check_data(plan, root).hash == "7e89949c6b41022c"


FORM = Form(SCHEMA)
WANTED = FORM.text({"drink": "tea", "size": "Small", "name": "Żaneta"})

NOTHING = {name: [0, 0, 1] for name in ("drink", "size", "name")}

JUDGED: dict[str, tuple[str, tuple[bool, bool, bool], dict[str, list[int]]]] = {
    "right, in another order and case": (
        '{"name": "z\u0307aneta", "size": " small ", "drink": "tea"}', (True, True, True),
        {"drink": [1, 1, 1], "size": [1, 1, 1], "name": [1, 1, 1]},
    ),
    "a wrong value": (
        '{"drink": "tea", "size": "large", "name": "Żaneta"}', (True, True, False),
        {"drink": [1, 1, 1], "size": [0, 1, 1], "name": [1, 1, 1]},
    ),
    "null and missing are absent": (
        '{"drink": "tea", "name": null}', (True, True, False),
        {"drink": [1, 1, 1], "size": [0, 0, 1], "name": [0, 0, 1]},
    ),
    "JSON, but not of the form": (
        '{"drink": "beer", "name": "Żaneta"}', (False, True, False),
        {"drink": [0, 1, 1], "size": [0, 0, 1], "name": [1, 1, 1]},
    ),
    "a required field is missing": (
        '{"drink": "tea", "size": "small"}', (False, False, False),
        {"drink": [1, 1, 1], "size": [1, 1, 1], "name": [0, 0, 1]},
    ),
    "a fence around it": (f"```json\n{WANTED}\n```", (False, False, False), NOTHING),
    "cut off": (WANTED[:-1], (False, False, False), NOTHING),
    "a key twice": ('{"drink": "tea", "drink": "tea", "name": null}', (False, False, False), NOTHING),
    "a list": ("[1]", (False, False, False), NOTHING),
    "nested past all sense": ("[" * 100_000, (False, False, False), NOTHING),
}  # fmt: skip


@pytest.mark.parametrize("case", JUDGED)
def test_an_answer_is_judged_by_its_form_and_field_by_field(case: str) -> None:
    output, (valid, required, correct), fields = JUDGED[case]
    judged = FORM.judge(output, WANTED)
    assert (judged.valid, judged.required, judged.correct) == (valid, required, correct)
    assert judged.fields == fields


def test_values_are_compared_as_normalised_texts() -> None:
    assert normalised("  Half   PAST ten ") == normalised("half past\tTEN")
    assert normalised(4) == normalised(4.0) == normalised("4") and normalised(True) == "true"
    assert normalised("") is normalised(None) is None
    assert normalised({"b": 1, "a": [2]}) == normalised({"a": [2], "b": 1})


def test_nothing_to_find_and_nothing_found_is_exactly_right() -> None:
    form = Form({"properties": {"a": {}, "b": {}}})
    judged = form.judge("{}", form.text({}))
    assert judged.correct and judged.fields == {"a": [0, 0, 0], "b": [0, 0, 0]}
