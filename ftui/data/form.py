"""The form of an extraction's answer: a JSON schema, the text that says an object in that form, and how an answer is judged.

A field counts as absent where it is missing, null or the empty text. Two values are equal when their normalised texts are: NFC,
case folded, white space collapsed; numbers as written shortest, everything else as JSON with sorted keys.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

Fields = Mapping[str, Any]


class FormError(Exception):
    """The schema cannot be used; the message says what is wrong with it."""


@dataclass(frozen=True)
class Judged:
    """An answer held against the object that was wanted."""

    valid: bool
    """One JSON object that satisfies the schema."""
    required: bool
    """A JSON object that has every required field."""
    correct: bool
    """Valid, and every field equal."""
    fields: dict[str, list[int]]
    """Per field of the schema: found rightly, answered, wanted; each 0 or 1."""


class Form:
    """A JSON schema (2020-12) of objects; its `properties` are the fields, in order."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as problem:
            raise FormError(f"is no JSON schema: {problem.message}") from None
        if not schema.get("properties"):
            raise FormError("describes no object with fields; give it `properties`")
        for reference in _references(schema):
            _check_reference(reference, schema)
        self.schema = dict(schema)
        self.fields: list[str] = list(schema["properties"])
        self.required: list[str] = list(schema.get("required", []))
        if unknown := [name for name in self.required if name not in self.fields]:
            raise FormError(f"requires {', '.join(unknown)}, which `properties` does not describe")
        self._validator = Draft202012Validator({"type": "object", **schema})

    def complete(self, fields: Fields) -> dict[str, Any]:
        """The object to be answered: the row's fields in the schema's order, required ones it has not as null, others last."""
        known = {name: fields.get(name) for name in self.fields if name in fields or name in self.required}
        return known | {name: value for name, value in fields.items() if name not in known}

    def text(self, fields: Fields) -> str:
        """The answer as text: what the model learns to write."""
        return json.dumps(self.complete(fields), ensure_ascii=False)

    def problems(self, fields: Fields) -> list[tuple[str, str]]:
        """Where the completed object does not satisfy the schema, as (field, sentence)."""
        found = sorted(self._validator.iter_errors(self.complete(fields)), key=lambda e: [str(step) for step in e.path])
        return [(".".join(map(str, problem.path)), problem.message) for problem in found]

    def judge(self, output: str, target: str) -> Judged:
        """Hold the text `output` against `target`, a text as `text` makes it."""
        wanted: dict[str, Any] = json.loads(target)
        answer = parse_object(output)
        given: dict[str, Any] = answer or {}
        counts: dict[str, list[int]] = {}
        for name in self.fields:
            here, there = normalised(given.get(name)), normalised(wanted.get(name))
            counts[name] = [int(here is not None and here == there), int(here is not None), int(there is not None)]
        valid = answer is not None and self._validator.is_valid(answer)
        return Judged(
            valid=valid,
            required=answer is not None and all(name in answer for name in self.required),
            correct=valid and all(hit == said == want for hit, said, want in counts.values()),
            fields=counts,
        )


def read_form(path: Path) -> Form:
    """The form in a file. Raises `FormError`."""
    try:
        if path.exists() and not path.is_file():
            raise FormError("is no regular file")
        schema = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise FormError(f"cannot be read: {problem.strerror}") from None
    except RecursionError:
        raise FormError("is nested too deeply") from None
    except ValueError as problem:
        raise FormError(f"is not valid JSON: {problem}") from None
    if not isinstance(schema, dict):
        raise FormError("holds no object")
    return Form(schema)


def _references(part: Any) -> Iterator[str]:
    """What a schema refers to, anywhere in it."""
    if isinstance(part, Mapping):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for inner in part.values():
            yield from _references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _references(inner)


def _check_reference(reference: str, schema: Mapping[str, Any]) -> None:
    """Raises `FormError` for what is not in the schema itself: nothing is fetched to judge an answer."""
    if not reference.startswith("#"):
        raise FormError(f"refers to {reference}, which is not in it; copy that part into it")
    whole = Registry().with_resource("", DRAFT202012.create_resource(dict(schema)))
    try:
        whole.resolver().lookup(reference)
    except Unresolvable:
        raise FormError(f"refers to {reference}, which is not in it; correct it") from None


def parse_object(text: str) -> dict[str, Any] | None:
    """The JSON object that `text` is, None when it is none: nothing around it, no NaN, no key twice."""
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def normalised(value: Any) -> str | None:
    """The text by which two values of a field are compared, None for an absent one."""
    if value is None:
        return None
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFC", value).casefold().split()) or None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)
