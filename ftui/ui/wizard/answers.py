"""Values of fields as a person reads and types them."""

from __future__ import annotations

import tomllib
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ftui.plan.draft import MISSING, Draft
from ftui.plan.fields import Field
from ftui.plan.numbers import number_text
from ftui.ui.wizard.questions import Question

WORDS: dict[tuple[str, Any], str] = {
    ("hypothesis.task", "text-classification"): "sort texts into categories",
    ("hypothesis.task", "generation"): "write an answer",
    ("hypothesis.task", "extraction"): "find fields in a text and give them as JSON",
    ("hypothesis.task", "image-classification"): "sort pictures into categories",
    ("hypothesis.metric", "accuracy"): "share of examples that are right",
    ("hypothesis.metric", "macro_f1"): "F1 of every category, averaged",
    ("hypothesis.metric", "loss"): "mean per target token",
    ("hypothesis.metric", "exact_match"): "share of answers that are exactly right",
    ("hypothesis.metric", "valid_json"): "share of answers of the asked form",
    ("hypothesis.metric", "required_fields"): "share of answers with every required field",
    ("hypothesis.metric", "field_f1"): "F1 over all fields of all examples",
    ("hypothesis.reference", "base"): "the model before training",
    ("hypothesis.reference", "control"): "the plan as written, trained",
    ("data.split.by", "hash"): "by the name of a unit; rows added later change nothing",
    ("data.split.by", "stratified"): "in proportion within each category",
    ("data.split.by", "time"): "the latest rows are the test",
    ("method.kind", "full"): "every weight is trained",
    ("method.kind", "lora"): "an adapter of low rank beside frozen weights",
    ("method.kind", "qlora"): "the same on weights held in 4 bits",
    ("training.hold", "updates"): "optimizer steps",
    ("training.hold", "examples"): "examples seen",
    ("training.hold", "tokens"): "target tokens seen",
    ("training.hold", "epochs"): "passes over the training set",
    ("training.batching", "shuffled"): "in drawn order, padded",
    ("training.batching", "length-grouped"): "by length, less padding",
    ("training.batching", "packed"): "in one row, no padding",
    ("training.truncation", "error"): "is an error",
    ("training.truncation", "cut"): "loses its end, and is counted",
    ("training.truncation", "keep-target"): "loses the left of its prompt, keeps its target",
    ("machine.strategy", "single"): "one process",
    ("machine.strategy", "ddp"): "a whole replica in each process",
}
"""What a choice means."""


def meaning(name: str, choice: Any) -> str:
    """What a choice means, "" where the word says it."""
    return WORDS.get((name.replace("guardrails[]", "hypothesis"), choice), "")


def shown(value: Any, kind: str) -> str:
    """A value as a person would type it, one item per line for a list of texts."""
    if value is None or value is MISSING:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if kind == "texts" and isinstance(value, list):
        return "\n".join(map(str, value))
    if kind == "wholes" and isinstance(value, list):
        return ", ".join(map(str, value))
    if kind == "change" and isinstance(value, dict):
        return "\n".join(f"{field} = {toml(part)}" for field, part in value.items())
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, float):
        return number_text(value)
    return str(value)


def in_a_line(value: Any, kind: str) -> str:
    """A value in one line, for a list of values."""
    return shown(value, kind).replace("\n", " · " if kind == "texts" else "; ")


def toml(value: Any) -> str:
    """One value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    import tomlkit

    return str(tomlkit.item(value).as_string())


def read(text: str, field: Field) -> tuple[Any, str | None]:
    """What was typed as a value, and how it was written where that is worth keeping (`2e-4`). "" is `MISSING`: no value.

    Raises ValueError with a sentence. Whether the value is a good one is not asked here: the plan's own checks say that.
    """
    text = text.strip()
    if not text:
        return MISSING, None
    match field.kind:
        case "text":
            return text, None
        case "choice":
            return _choice(text, field), None
        case "switch":
            if (
                answer := {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}.get(
                    text.lower()
                )
            ) is None:
                raise ValueError(f"{text!r} is neither yes nor no")
            return answer, None
        case "whole":
            return _whole(text), None
        case "number":
            return _number(text)
        case "texts":
            return [line.strip() for line in text.splitlines() if line.strip()], None
        case "wholes":
            return [_whole(part) for part in text.replace("\n", ",").split(",") if part.strip()], None
        case "when":
            return _when(text), None
        case "change":
            return _change(text), None


def answered(draft: Draft, question: Question, item: int | None, text: str) -> Draft:
    """The draft with a question's field set to what was typed; "" takes it out of the file. Raises ValueError with a sentence.

    What the file says already is left as it is written there.
    """
    steps, field = question.steps(item), question.field
    if text.strip() == shown(draft.given(steps), field.kind):
        return draft
    value, literal = read(text, field)
    return draft.remove(steps) if value is MISSING else draft.set(steps, value, literal)


def _choice(text: str, field: Field) -> Any:
    for choice in field.choices:
        if text == shown(choice, "switch" if isinstance(choice, bool) else "text"):
            return choice
    raise ValueError(f"{text!r} is none of {', '.join(map(str, field.choices))}")


def _whole(text: str) -> int:
    try:
        return int(text.strip().replace(",", "").replace(" ", ""))
    except ValueError:
        raise ValueError(f"{text.strip()!r} is no whole number") from None


def _number(text: str) -> tuple[float | int, str | None]:
    if "," in text:
        raise ValueError(f"{text!r}: write a number with a point, like {text.replace(',', '.')}")
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number; 0.05 and 2e-4 are") from None
    try:
        literal = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return value, None  # ".5" and "5." are numbers, but not TOML
    if isinstance(literal, bool) or not isinstance(literal, int | float):
        return value, None
    return literal, text


def _when(text: str) -> datetime:
    words = text.rsplit(" ", 1)
    zone = None
    if len(words) == 2 and "/" in words[1]:
        try:
            zone = ZoneInfo(words[1])
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"{words[1]!r} is no time zone; Europe/Warsaw and Asia/Seoul are") from None
        text = words[0]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time; write 2026-12-01 09:00 Europe/Warsaw or 2026-12-01T09:00:00+01:00"
        ) from None
    if zone is not None:
        # The offset of that day is written: a file with the zone's name would need its rules to be read.
        moment = datetime.fromisoformat(moment.replace(tzinfo=zone).isoformat())
    return moment


def _change(text: str) -> dict[str, Any]:
    change: dict[str, Any] = {}
    for line in filter(None, (part.strip() for part in text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not value.strip():
            raise ValueError(f"{line!r}: write a field and its value, like training.learning_rate = 5e-5")
        try:
            change[name.strip().strip('"')] = tomllib.loads(f"x = {value.strip()}")["x"]
        except tomllib.TOMLDecodeError:
            raise ValueError(
                f'{value.strip()!r} is no value; numbers, true, false, "text" and ["a", "list"] are'
            ) from None
    return change
