"""What the schema says about each field: what kind of value it takes, its choices and its default. Read from the typed models."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ftui.plan.draft import MISSING
from ftui.plan.schema import Plan

Kind = Literal["text", "choice", "switch", "whole", "number", "texts", "wholes", "when", "change"]
"""`texts` and `wholes` are lists, `when` is a time with its zone, `change` maps dotted fields to values."""


@dataclass(frozen=True)
class Field:
    """One field of the plan. In `name`, a list of tables is written `variants[]`."""

    name: str
    kind: Kind
    optional: bool
    """Whether it may have no value at all."""
    default: Any
    """Its value where the file gives none; `MISSING` where it must be given."""
    choices: tuple[Any, ...] = ()


@cache
def all_fields() -> dict[str, Field]:
    """Every field of a plan by name, in the schema's order; `schema` itself is not among them."""
    return {field.name: field for field in _fields(Plan, "") if field.name != "schema"}


def _fields(model: type[BaseModel], prefix: str) -> list[Field]:
    found = []
    for name, info in model.model_fields.items():
        path = prefix + (info.alias or name)
        inner, optional = _without_none(info.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found += _fields(inner, f"{path}.")
        elif get_origin(inner) is list and _is_model(get_args(inner)[0]):
            found += _fields(get_args(inner)[0], f"{path}[].")
        else:
            kind, choices = _kind(inner)
            found.append(Field(path, kind, optional, _default(info), choices))
    return found


def _kind(annotation: Any) -> tuple[Kind, tuple[Any, ...]]:
    if get_origin(annotation) is Literal:
        return "choice", get_args(annotation)
    if get_origin(annotation) is dict:
        return "change", ()
    if get_origin(annotation) is list:
        return ("wholes" if _plain(get_args(annotation)[0]) is int else "texts"), ()
    kinds: dict[Any, Kind] = {bool: "switch", int: "whole", float: "number", str: "text", datetime: "when"}
    return kinds[annotation], ()


def _default(info: FieldInfo) -> Any:
    return MISSING if info.is_required() else info.get_default(call_default_factory=True)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    annotation = _plain(annotation)
    if get_origin(annotation) in (Union, UnionType):
        others = [a for a in get_args(annotation) if a is not NoneType]
        return _plain(others[0]), NoneType in get_args(annotation)
    return annotation, False


def _plain(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
