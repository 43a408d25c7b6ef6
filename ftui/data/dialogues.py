"""Records to chats: a prompt and its answer, messages of any number of turns, or a text and the fields to be found in it.

All three become messages, the answer included, so that one encoder serves them. The plan's instruction is their system message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ftui.data.clean import Rule, clean
from ftui.data.findings import Finding, error
from ftui.data.form import Form
from ftui.data.jsons import Decoder
from ftui.data.rows import Message, Row, identity_of, missing, name_of, shown, text_of
from ftui.plan.schema import Data

ALL = "all"
"""The category of every example where the plan names no column for it."""

ROLES = ("system", "user", "assistant")


def generation_row(
    name: str, line: int, record: dict[str, Any], data: Data, rules: Sequence[Rule]
) -> Iterator[Row | Finding]:
    """A row of prompt and answer, or of messages where the plan names such a column."""
    columns, place = data.columns, f"{name}:{line}"
    category = ALL if columns.category is None else name_of(record, columns.category, place, "category")
    if columns.messages is not None:
        said, problems = _messages(record, columns.messages, place)
    else:
        prompt, answer = text_of(record, columns.prompt, place), text_of(record, columns.answer, place)
        problems = [value for value in (prompt, answer) if isinstance(value, Finding)]
        said = [_message("user", prompt), _message("assistant", answer)] if not problems else []
    yield from _row(name, line, record, data, rules, said, category, problems)


def extraction_row(
    name: str, line: int, record: dict[str, Any], data: Data, rules: Sequence[Rule], form: Form
) -> Iterator[Row | Finding]:
    """A row of a text and its fields. The answer is the form's text of them, their texts cleaned like all others."""
    columns, place = data.columns, f"{name}:{line}"
    text = text_of(record, columns.text, place)
    fields = _fields(record, columns.fields, place)
    problems = [value for value in (text, fields) if isinstance(value, Finding)]
    said: list[Message] = []
    if not problems:
        assert isinstance(fields, dict)
        found = _clean_values(fields, rules)
        for field, message in form.problems(found):
            where = f"{columns.fields}.{field}" if field else columns.fields
            problems.append(error(place, where, f"does not have the form of an answer: {message}", "not of the form"))
        said = [_message("user", text), {"role": "assistant", "content": form.text(found)}]
    # The answer is clean already, and a rule must not touch the names of its fields.
    yield from _row(name, line, record, data, rules, said, ALL, problems, answer_is_clean=True)


def _row(
    name: str,
    line: int,
    record: dict[str, Any],
    data: Data,
    rules: Sequence[Rule],
    said: list[Message],
    category: str | Finding,
    problems: list[Finding],
    *,
    answer_is_clean: bool = False,
) -> Iterator[Row | Finding]:
    identity, group = identity_of(name, line, record, data.columns, data.unit)
    whole = not problems
    problems = [*problems, *(value for value in (category, identity, group) if isinstance(value, Finding))]
    raw = _before_answer(said)
    last = len(said) - 1
    messages = [
        m if answer_is_clean and i == last else {**m, "content": clean(m["content"], rules)} for i, m in enumerate(said)
    ]
    if whole:  # of messages that were not all read, nothing can be said as a whole
        problems += _check(messages, data, f"{name}:{line}")
    if problems:
        yield from problems
        return
    assert isinstance(identity, str) and isinstance(category, str)
    text = _before_answer(messages)
    if data.instruction is not None:
        messages = [{"role": "system", "content": data.instruction}, *messages]
    unit = group if isinstance(group, str) else None
    yield Row(identity, text, category, unit, name, line, raw, messages=tuple(messages))


def _messages(record: dict[str, Any], column: str, place: str) -> tuple[list[Message], list[Finding]]:
    """The messages of a record and what is wrong with them."""
    if column not in record:
        return [], [missing(record, column, place)]
    value = record[column]
    if value is None or value == []:
        what = "null" if value is None else "empty"
        message = f"the list of messages is {what}; fill it, or remove the row"
        return [], [error(place, column, message, "no messages")]
    if not isinstance(value, list):
        return [], [error(place, column, f"the messages are {shown(value)}, not a list", "messages of another type")]
    said, problems = [], []
    for index, item in enumerate(value):
        field = f"{column}[{index}]"
        if not isinstance(item, dict):
            message = f'the message is {shown(item)}, not {{"role": …, "content": …}}'
            problems.append(error(place, field, message, "message of another type"))
            continue
        if item.get("role") not in ROLES:
            message = f"the role is {json.dumps(item.get('role'), ensure_ascii=False)}; known here: {', '.join(ROLES)}"
            problems.append(error(place, f"{field}.role", message, "unknown role"))
        if more := [key for key, kept in item.items() if key not in ("role", "content") and kept is not None]:
            message = f"has {', '.join(map(repr, more))} beside role and content, which would be lost; take it out"
            problems.append(error(place, field, message, "more in a message"))
        content = text_of(item, "content", place)
        if isinstance(content, Finding):
            problems.append(error(place, f"{field}.content", content.message, content.kind))
        elif not problems:
            said.append(_message(item["role"], content))
    return said, problems


def _check(messages: list[Message], data: Data, place: str) -> Iterator[Finding]:
    """What keeps a cleaned chat from being learnt."""
    if not messages:
        return
    column = data.columns.messages or ""
    if not any(m["role"] == "assistant" for m in messages):
        yield error(
            place, column, "no message is the assistant's, so there is nothing to learn; remove the row", "no answer"
        )
    for index, message in enumerate(messages):
        content, role = message["content"], message["role"]
        field = (
            f"{column}[{index}].content"
            if column
            else {"user": "the prompt", "assistant": "the answer"}.get(role, role)
        )
        if not content.strip():
            yield error(place, field, "is empty after cleaning; fill it, or remove the row", "empty text")
        if "\0" in content:
            hint = 'remove it, or add "drop-control@1" to data.cleaning'
            yield error(place, field, f"holds a NUL character; {hint}", "NUL in text")
    if data.instruction is not None and messages[0]["role"] == "system":
        message_ = "has a system message of its own, and data.instruction gives one to every row; keep one of them"
        yield error(place, column, message_, "two instructions")


def _before_answer(messages: Sequence[Message]) -> str:
    """All that is said before the last answer: equal questions are equal rows."""
    last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=len(messages))
    return "\n".join(m["content"] for m in messages[:last])


def _fields(record: dict[str, Any], column: str, place: str) -> dict[str, Any] | Finding:
    if column not in record:
        return missing(record, column, place)
    value = record[column]
    if isinstance(value, str):  # CSV has no other way to hold an object
        try:
            decoder = Decoder()
            value = decoder.value(value)
        except (ValueError, RecursionError) as problem:
            said = "it is nested too deeply" if isinstance(problem, RecursionError) else problem
            return error(place, column, f"is not valid JSON: {said}", "broken JSON")
        if decoder.noticed:
            (_, sentence, kind), *_ = decoder.noticed
            return error(place, column, f"{sentence}; correct it", kind)
    if value is None:
        return error(place, column, "the fields are null; write {} where there are none", "null fields")
    if not isinstance(value, dict):
        return error(place, column, f"the fields are {shown(value)}, not an object ({{…}})", "fields of another type")
    return value


def _clean_values(value: Any, rules: Sequence[Rule]) -> Any:
    if isinstance(value, str):
        return clean(value, rules)
    if isinstance(value, dict):
        return {name: _clean_values(part, rules) for name, part in value.items()}
    return [_clean_values(part, rules) for part in value] if isinstance(value, list) else value


def _message(role: str, content: object) -> Message:
    return {"role": role, "content": str(content)}
