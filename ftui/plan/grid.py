"""Variants from a grid: every combination of some values of some fields, each an explained change to the control (V1).

`learning_rate = 5e-5, 2e-4; rank = 8, 16` is a grid as a person writes it. The combination that equals the control is left out: it is
the control.
"""

from __future__ import annotations

import difflib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from ftui.plan.schema import RESERVED_VARIANTS, Plan, Variant
from ftui.plan.variants import CHANGEABLE, apply_change

MOST_VARIANTS = 200
"""More than anybody runs: a grid beyond it is a slip of the hand."""

MOST_CHARACTERS = 40
"""Of a variant's id."""

LABELS = {
    "training.learning_rate": "lr",
    "training.weight_decay": "decay",
    "training.micro_batch": "micro",
    "training.accumulation": "accum",
    "training.max_grad_norm": "clip",
    "training.max_length": "length",
    "training.activation_checkpointing": "recompute",
    "training.validate_every": "validate",
    "training.checkpoint_every": "checkpoint",
    "method.save_modules": "saved",
    "method.use_rslora": "rslora",
    "method.use_dora": "dora",
}
"""Short names of fields in ids; others go by their own. A grid may be written with them, too."""


class GridError(ValueError):
    """The grid cannot be used; `problems` holds a sentence for each thing that is wrong with it."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


def grid(plan: Plan | Mapping[str, Any], values: Mapping[str, Sequence[Any]], because: str) -> list[dict[str, Any]]:
    """Variants of `plan` (or of its content, which may still be incomplete) as tables of `campaign.toml`.

    `values` maps fields, dotted or short, to what is tried. Fewer changes at once have the higher priority, as what they do is told
    apart more easily. Combinations that equal the control or a variant the plan has are left out. Raises `GridError`.
    """
    content = plan.content() if isinstance(plan, Plan) else plan
    tried, problems = _checked(values.items())
    if math.prod(map(len, tried.values())) > MOST_VARIANTS:
        problems.append(
            f"{' × '.join(str(len(v)) for v in tried.values())} variants are more than {MOST_VARIANTS}; try fewer values"
        )
    if not because.strip():
        problems.append("a variant explains itself: say why these values could help")
    if problems:
        raise GridError(problems)
    control = {name: _control(content, name) for name in tried}
    there = list(content.get("variants", []))
    ids = {*RESERVED_VARIANTS, *(variant["id"] for variant in there)}
    points = [
        {name: value for name, value in zip(tried, point, strict=True) if value != control[name]}
        for point in itertools.product(*tried.values())
    ]
    points = [point for point in points if point and point not in [variant.get("change") for variant in there]]
    most = max(map(len, points), default=0)
    variants = []
    for change in points:
        variant = {"id": _new_id(change, ids), "because": because, "change": change, "priority": most - len(change)}
        if len(change) > 1:
            variant["together"] = f"one point of a grid over {', '.join(tried)}"
        ids.add(variant["id"])
        variants.append(variant)
    _refuse_impossible(content, variants)
    return variants


def parse_grid(text: str) -> dict[str, list[Any]]:
    """Dotted fields and their values from a text like `learning_rate = 5e-5, 2e-4; rank = 8, 16`.

    Fields are parted by `;` or lines, values by commas. A short name will do where one field alone has it; a word needs no quotes.
    Raises `GridError` with everything that is wrong.
    """
    problems, named = [], []
    for part in _split(text, ";\n"):
        name, equals, listed = (piece.strip() for piece in part.partition("="))
        words = _split(listed, ",")
        if not name or not equals or not words:
            problems.append(f"{part!r} has no {'name' if equals and not name else 'values'}; write NAME = VALUE, VALUE")
            continue
        named.append((name, [_read(word) for word in words]))
    if not named and not problems:
        problems.append("no field is named; write NAME = VALUE, VALUE")
    tried, wrong = _checked(named)
    if problems + wrong:
        raise GridError(problems + wrong)
    return tried


def grid_text(values: Mapping[str, Sequence[Any]]) -> str:
    """The grid as `parse_grid` reads it."""
    return "; ".join(f"{name} = {', '.join(map(_written, listed))}" for name, listed in values.items())


def _checked(named: Iterable[tuple[str, Sequence[Any]]]) -> tuple[dict[str, list[Any]], list[str]]:
    """Values by dotted field, of the field's own type, and a sentence for each that is not."""
    fields = _fields()
    tried: dict[str, list[Any]] = {}
    problems = []
    for name, listed in named:
        found = _resolve(name, fields)
        if len(found) != 1:
            problems.append(_unknown(name, found, fields))
            continue
        field = found[0]
        if field in tried:
            problems.append(f"{field} is named twice; give all its values at once")
            continue
        tried[field] = []
        if not listed:
            problems.append(f"{field} has no values")
        info = fields[field]
        own_type: Any = Annotated[info.annotation, Field(), *info.metadata]
        adapter: TypeAdapter[Any] = TypeAdapter(own_type)
        for given in listed:
            try:
                value = adapter.validate_python(given)
                if isinstance(value, float) and not math.isfinite(value):
                    raise ValueError("input should be a finite number")
            except ValidationError as error:
                problems += [f"{field} = {_written(given)}: {said}" for said in _messages(error)]
            except ValueError as error:
                problems.append(f"{field} = {_written(given)}: {error}")
            else:
                if value in tried[field]:
                    problems.append(f"{field} = {_written(given)} is named twice")
                tried[field].append(value)
    return tried, problems


def _messages(error: ValidationError) -> list[str]:
    return [f"{detail['msg'][:1].lower()}{detail['msg'][1:]}" for detail in error.errors()]


def _fields() -> dict[str, FieldInfo]:
    """Every field a variant may change, by its dotted name."""
    return {name: info for section in CHANGEABLE for name, info in _leaves(Plan.model_fields[section], section)}


def _leaves(info: FieldInfo, name: str) -> Iterator[tuple[str, FieldInfo]]:
    model = info.annotation
    if isinstance(model, type) and issubclass(model, BaseModel):
        for field, inner in model.model_fields.items():
            yield from _leaves(inner, f"{name}.{field}")
    else:
        yield name, info


def _resolve(name: str, fields: Iterable[str]) -> list[str]:
    """Fields that `name` may mean."""
    if name in fields:
        return [name]
    return [field for field in fields if field.endswith(f".{name}") or LABELS.get(field) == name]


def _unknown(name: str, found: Sequence[str], fields: Iterable[str]) -> str:
    if found:
        return f"{name!r} may be {' or '.join(found)}; write which"
    if name.split(".")[0] in Plan.model_fields and name.split(".")[0] not in CHANGEABLE:
        return f"{name!r} cannot differ between variants; only fields of {' and '.join(CHANGEABLE)} can"
    short = {field.rpartition(".")[2]: field for field in fields}
    near = difflib.get_close_matches(name, [*short, *fields], n=1)
    return f"{name!r} is no field of {' or '.join(CHANGEABLE)}" + (f"; did you mean {near[0]!r}?" if near else "")


def _control(content: Mapping[str, Any], name: str) -> Any:
    """What the control has: what is written, else the field's default."""
    section: Any = content
    for step in name.split("."):
        if not isinstance(section, Mapping) or step not in section:
            return _fields()[name].get_default(call_default_factory=True)
        section = section[step]
    return section


def _refuse_impossible(content: Mapping[str, Any], variants: Sequence[dict[str, Any]]) -> None:
    """Raises `GridError` for combinations that make no plan; of a plan that is none yet, nothing can be said."""
    try:
        plan = Plan.model_validate({**content, "variants": []})
    except ValidationError:
        return
    problems = [
        f"{variant['id']}: {problem}"
        for variant in variants
        for problem in apply_change(plan, Variant.model_validate(variant)).problems
    ]
    if problems:
        raise GridError(problems)


def _new_id(change: Mapping[str, Any], taken: set[str]) -> str:
    words = [f"{LABELS.get(name, name.rpartition('.')[2])}-{_short(value)}" for name, value in change.items()]
    slug = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")
    for number in itertools.count(1):
        ending = f"-{number}" if number > 1 else ""
        own = slug[: MOST_CHARACTERS - len(ending)].rstrip("-") + ending
        if own not in taken:
            return own
    raise AssertionError("there is always another number")


def _short(value: Any) -> str:
    """A value in few characters: 0.00005 as 5e-5."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return "-".join(map(_short, value)) or "none"
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < 1e5:
        return str(int(value))
    if 0.01 <= abs(value) < 1e5:
        return f"{value:.6g}"
    mantissa, exponent = f"{value:.5e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def _split(text: str, separators: str) -> list[str]:
    """Parts of `text` between separators outside of quotes and brackets, without those that are empty."""
    parts, depth, quote, escaped = [""], 0, "", False
    for character in text:
        if quote:
            quote = "" if character == quote and not escaped else quote
            escaped = character == "\\" and not escaped and quote == '"'
        elif character in "\"'":
            quote = character
        elif character in "[]":
            depth += 1 if character == "[" else -1
        elif character in separators and depth <= 0:
            parts.append("")
            continue
        parts[-1] += character
    return [stripped for part in parts if (stripped := part.strip())]


def _read(word: str) -> Any:
    """A value as TOML has it, or as it is said: on, off, none, a word without quotes."""
    if word.lower() in ("on", "off", "none"):
        return {"on": True, "off": False, "none": None}[word.lower()]
    try:
        return tomllib.loads(f"value = {word}")["value"]
    except tomllib.TOMLDecodeError:
        return word


def _written(value: Any) -> str:
    """What `_read` reads back."""
    if value is None:
        return "none"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | str | list) else f"{value!r}"
