"""Each task has its own metrics and settings; what does not fit is refused when the plan is read."""

from __future__ import annotations

from typing import Any

import pytest
import tomli_w

from ftui.plan.load import PlanError, parse_plan
from ftui.plan.schema import SLICE_METRICS, TASK_COLUMNS, WHOLE_METRICS, Columns
from tests.builders.tiny import tiny_plan

EXTRACTION: dict[str, Any] = {
    "hypothesis__task": "extraction",
    "hypothesis__metric": "field_f1",
    "guardrails": [],
    "evaluation__format": "answer.schema.json",
    "evaluation__generation": {"max_new_tokens": 8},
}
GENERATION: dict[str, Any] = {
    "hypothesis__task": "generation",
    "hypothesis__metric": "loss",
    "hypothesis__direction": "lower",
    "guardrails": [],
}


def problems(**changes: Any) -> list[str]:
    try:
        parse_plan(tomli_w.dumps(tiny_plan(**changes)))
    except PlanError as error:
        return [str(problem) for problem in error.problems]
    return []


def test_every_task_is_described_whole() -> None:
    assert WHOLE_METRICS.keys() == SLICE_METRICS.keys() == TASK_COLUMNS.keys()
    assert {name for names in TASK_COLUMNS.values() for name in names} <= set(Columns.model_fields)


@pytest.mark.parametrize("base", [EXTRACTION, GENERATION, {"hypothesis__task": "image-classification"}, {}])
def test_a_fitting_plan_is_accepted(base: dict[str, Any]) -> None:
    assert problems(**base) == []


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "metric of another task": (
        EXTRACTION | {"hypothesis__metric": "macro_f1"},
        "hypothesis: metric 'macro_f1' is none of extraction; use one of valid_json,",
    ),
    "a higher loss": (
        GENERATION | {"hypothesis__direction": "higher"},
        'less loss is better; write direction = "lower"',
    ),
    "guardrail of another task": (
        EXTRACTION | {"guardrails": [{"name": "x", "metric": "accuracy", "tolerance": 0}]},
        "guardrails[0].metric: metric 'accuracy' does not apply to the slice 'whole' of extraction",
    ),
    "no form": (EXTRACTION | {"evaluation__format": ""}, "evaluation.format"),
    "a form for nothing": (
        {"evaluation__format": "x.json"},
        "evaluation.format: text-classification has no use for it",
    ),
    "answers of any length": (
        GENERATION | {"hypothesis__metric": "exact_match", "hypothesis__direction": "higher"},
        "evaluation.generation: answers are judged by exact_match; say how long one may be",
    ),
    "a guardrail that needs answers": (
        GENERATION | {"guardrails": [{"name": "x", "metric": "exact_match", "tolerance": 0}]},
        "evaluation.generation: answers are judged by exact_match",
    ),
    "settings for nothing": (
        {"evaluation__generation": {"max_new_tokens": 3}},
        "text-classification writes no answers",
    ),
    "sampling": (
        EXTRACTION | {"evaluation__generation": {"max_new_tokens": 3, "do_sample": True}},
        "evaluation.generation.do_sample: unknown key",
    ),
    "an instruction for nothing": (
        {"data": {"train": "a.jsonl", "instruction": "Be brief."}},
        "data.instruction: text-classification gives no instruction",
    ),
    "a target that is no token": (
        {"training__truncation": "keep-target"},
        "training.truncation: the target of text-classification is not among the tokens",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_the_task_is_refused(case: str) -> None:
    changes, message = REFUSED[case]
    found = problems(**changes)
    assert any(message in problem for problem in found), found


def test_extraction_needs_a_form() -> None:
    without = {name: value for name, value in EXTRACTION.items() if name != "evaluation__format"}
    assert any("extraction needs the JSON schema of an answer" in p for p in problems(**without))
