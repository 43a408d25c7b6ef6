"""From `campaign.toml` to a `Plan`, or to every problem in it at once, each with its line and a way out."""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ftui.plan.places import Places
from ftui.plan.schema import EACH_CATEGORY, SCHEMA, WHOLE, Plan

PLAN_FILE = "campaign.toml"


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a plan: where it stands, which field, and what to do."""

    file: str
    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"


class PlanError(Exception):
    """The plan cannot be used; `problems` holds everything that is wrong with it."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class UnreadablePlan(PlanError):
    """There is no file, or what it holds is no TOML that this ftui reads: nothing can be said about its fields."""


def load_plan(campaign: Path) -> Plan:
    """Read `campaign.toml` in the directory `campaign`. Raises `PlanError` with all problems."""
    path = campaign / PLAN_FILE
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise UnreadablePlan(
            [Problem(str(path), None, "", "no such file; `ftui new NAME` writes one to start from")]
        ) from None
    except OSError as error:
        raise UnreadablePlan([Problem(str(path), None, "", f"cannot be read: {error.strerror}")]) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UnreadablePlan([Problem(str(path), line, "", "is not UTF-8; save it as UTF-8")]) from None
    return parse_plan(text, str(path))


def parse_plan(text: str, file: str = PLAN_FILE) -> Plan:
    """Parse the text of a plan; `file` is only used to name the place of a problem."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadablePlan(
            [Problem(file, getattr(error, "lineno", None), "", f"is not valid TOML: {error}")]
        ) from None
    places = Places(text)
    schema = content.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        message = f"schema {schema} is newer than this ftui, which reads up to {SCHEMA}; update ftui"
        raise UnreadablePlan([Problem(file, places.line("schema"), "schema", message)])
    try:
        plan = Plan.model_validate(content)
    except ValidationError as error:
        raise PlanError(_sorted(_from_pydantic(error, content, places, file))) from None
    problems = across_sections(plan, places, file)
    if problems:
        raise PlanError(_sorted(problems))
    return plan


def unknown_slices(plan: Plan, labels: Sequence[str]) -> list[str]:
    """A sentence for each guardrail whose slice is none of the data's categories."""
    return [
        f"{PLAN_FILE}: guardrails[{index}].slice: {guardrail.slice!r} is no category of the data; "
        f"use {WHOLE!r}, {EACH_CATEGORY!r} or one of {', '.join(labels)}"
        for index, guardrail in enumerate(plan.guardrails)
        if guardrail.slice not in (WHOLE, EACH_CATEGORY, *labels)
    ]


def plan_hash(plan: Plan) -> str:
    """Hash of the plan's meaning: order, comments and spelled-out defaults do not change it. 64 hex digits."""
    canonical = json.dumps(plan.content(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _sorted(problems: list[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda p: (p.line is None, p.line or 0, p.field))


def _from_pydantic(error: ValidationError, content: dict[str, Any], places: Places, file: str) -> list[Problem]:
    problems = []
    for detail in error.errors():
        steps = [step for step in detail["loc"] if isinstance(step, int) or not _is_model_tag(step, content)]
        field = dotted(steps)
        kind, found = detail["type"], detail["input"]
        if kind == "extra_forbidden":
            names = field_names(steps[:-1])
            near = difflib.get_close_matches(str(steps[-1]), names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(names)}"
            message = f"unknown key; {hint}"
        elif kind == "missing":
            message = "is missing and has no default"
        elif kind == "value_error":
            message = str(detail["ctx"]["error"])
        else:
            message = f"{_lower_first(detail['msg'])}; found {_shown(found)}"
        problems.append(Problem(file, places.line(*steps), field, message))
    return problems


def _is_model_tag(step: str, content: dict[str, Any]) -> bool:
    # Union members add their type's name to the location ("constrained-str", "list[...]"); no field has such a name.
    return "[" in step or ("-" in step and step not in content)


def _lower_first(message: str) -> str:
    return message[:1].lower() + message[1:]


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "…"


def dotted(steps: list[int | str]) -> str:
    """`["variants", 1, "id"]` as `variants[1].id`, counting from 0 as TOML readers do."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def field_names(steps: list[int | str]) -> list[str]:
    """Names of the fields of the section that `steps` leads to, `[]` when it leads to no section."""
    model: type[BaseModel] | None = Plan
    for step in steps:
        if isinstance(step, int):
            continue
        if model is None:
            return []
        field = next((f for n, f in model.model_fields.items() if (f.alias or n) == step), None)
        model = None if field is None else _model_in(field.annotation)
    return [] if model is None else [f.alias or n for n, f in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) is not None:
        return next((m for a in get_args(annotation) if (m := _model_in(a)) is not None), None)
    return None


def across_sections(plan: Plan, places: Places, file: str) -> list[Problem]:
    """What does not fit between sections that are each valid."""
    from ftui.plan.batch import describe_excess
    from ftui.plan.variants import apply_change

    problems: list[Problem] = []

    def report(message: str, *steps: int | str) -> None:
        problems.append(Problem(file, places.line(*steps), dotted(list(steps)), message))

    looks_like_hub_id = plan.model.base.count("/") == 1 and not plan.model.base.startswith((".", "/", "~"))
    if looks_like_hub_id and plan.model.revision is None:
        report("a hub id needs the commit it was taken from; `main` moves", "model", "revision")
    seen: dict[str, int] = {}
    for index, guardrail in enumerate(plan.guardrails):
        if message := guardrail.problem(plan.hypothesis.task):
            report(message, "guardrails", index, "metric")
        if guardrail.slice not in (WHOLE, EACH_CATEGORY) and guardrail.slice != guardrail.slice.strip():
            report("has spaces around the category's name", "guardrails", index, "slice")
    for index, variant in enumerate(plan.variants):
        if variant.id in seen:
            report(
                f"is already the id of variants[{seen[variant.id]}]; each id names one variant", "variants", index, "id"
            )
        seen.setdefault(variant.id, index)
        for message in apply_change(plan, variant).problems:
            report(message, "variants", index, "change")
    for message, field in describe_excess(plan):
        report(message, "training", field)
    for message, steps in _task_needs(plan):
        report(message, *steps)
    return problems


def _task_needs(plan: Plan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Settings a task cannot do without, and those it has no use for, as (message, field)."""
    task, evaluation = plan.hypothesis.task, plan.evaluation
    writes = task in ("generation", "extraction")
    judged = {plan.hypothesis.metric, *(guardrail.metric for guardrail in plan.guardrails)} - {"loss"}
    if task == "extraction" and evaluation.format is None:
        yield (
            'extraction needs the JSON schema of an answer, e.g. format = "answer.schema.json"',
            ("evaluation", "format"),
        )
    if task != "extraction" and evaluation.format is not None:
        yield f"{task} has no use for it; leave it out", ("evaluation", "format")
    if writes and judged and evaluation.generation is None:
        message = f"answers are judged by {', '.join(sorted(judged))}; say how long one may be: generation = {{ max_new_tokens = 64 }}"
        yield message, ("evaluation", "generation")
    if not writes and evaluation.generation is not None:
        yield f"{task} writes no answers; leave it out", ("evaluation", "generation")
    if writes and plan.data.labels is not None:
        yield f"{task} has no classes; leave it out", ("data", "labels")
    if writes and plan.data.split.by == "stratified" and plan.data.columns.category is None:
        yield f'{task} has no categories to keep in proportion; use by = "hash"', ("data", "split")
    if not writes and plan.training.batching == "packed":
        yield (
            f'packed rows are for tasks that write text, not for {task}; use "length-grouped"',
            ("training", "batching"),
        )
    if not writes and plan.data.instruction is not None:
        yield f"{task} gives no instruction; leave it out", ("data", "instruction")
    if not writes and plan.training.truncation == "keep-target":
        yield f'the target of {task} is not among the tokens; use "error" or "cut"', ("training", "truncation")
