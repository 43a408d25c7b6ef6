"""Answers that fit: what the schema allows, what was found in the data, in the base model and on the machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ftui.plan.fields import all_fields
from ftui.plan.schema import EACH_CATEGORY, SLICE_METRICS, WHOLE, WHOLE_METRICS
from ftui.plan.variants import CHANGEABLE
from ftui.ui.screens.edit import Offer
from ftui.ui.wizard.answers import in_a_line, meaning, shown
from ftui.ui.wizard.assist import MADE_FORMAT
from ftui.ui.wizard.questions import Question, task, value_of
from ftui.ui.wizard.scene import Scene

RATES = {"full": ("1e-5", "2e-5", "5e-5"), "lora": ("1e-4", "2e-4", "5e-4"), "qlora": ("1e-4", "2e-4", "5e-4")}
"""Learning rates people begin with, by method: an adapter's new weights bear larger steps than trained ones."""


def offers(scene: Scene, question: Question, item: int | None) -> tuple[list[Offer], bool]:
    """Offers for a question and whether another answer may be typed."""
    field, draft = question.field, scene.draft
    if field.kind == "switch":
        return [Offer("yes"), Offer("no")], False
    if field.kind == "choice":
        choices: Iterable[Any] = field.choices
        if question.name == "hypothesis.metric":
            choices = WHOLE_METRICS.get(task(draft), field.choices)
        if question.name == "guardrails[].metric":
            whole = draft.given(("guardrails", item or 0, "slice")) in (WHOLE, "") or not draft.given(
                ("guardrails", item or 0, "slice")
            )
            choices = (WHOLE_METRICS if whole else SLICE_METRICS).get(task(draft), field.choices)
        return [
            Offer(shown(choice, "switch" if isinstance(choice, bool) else "text"), meaning(question.name, choice))
            for choice in choices
        ], False
    return _found(scene, question), True


def _found(scene: Scene, question: Question) -> list[Offer]:
    facts, base, draft = scene.facts or {}, scene.base, scene.draft
    name = question.name
    if name in ("data.train", "data.validation", "data.test"):
        return [Offer(path) for path in facts.get("candidates") or []]
    if name.startswith("data.columns.") or name in ("data.unit", "data.time"):
        suggested = (facts.get("suggested") or {}).get(name.rpartition(".")[2])
        return [Offer(c["name"], _column(c, c["name"] == suggested)) for c in scene.columns]
    if name == "model.base":
        return [
            Offer(b["base"], f"in the hub's cache, {b['revision'][:12]}" if b["revision"] else "a folder here")
            for b in facts.get("bases") or []
        ]
    if name == "data.cleaning":
        return [Offer(rule, note) for rule, note in (facts.get("cleaning_rules") or {}).items()]
    if name == "data.labels":
        return [Offer(label, _rows(counts)) for label, counts in scene.categories.items()]
    if name == "guardrails[].slice":
        return [
            Offer(WHOLE, "all test examples"),
            Offer(EACH_CATEGORY, "each of them by itself"),
            *(Offer(label, _rows(counts)) for label, counts in scene.categories.items()),
        ]
    if name == "method.targets":
        suggested = base.get("suggested_targets") or []
        modules = [m for m in base.get("modules") or [] if m["kind"] in ("linear", "convolution")]
        found = [Offer(m["name"], _module(m, m["name"] in suggested)) for m in modules]
        return [*found, Offer("all-linear", "every linear module; stands alone")] if found else []
    if name == "method.save_modules":
        must = base.get("must_save") or []
        found = [
            Offer(m["name"], f"{m['parameters']:,} parameters")
            for m in base.get("saved") or []
            if m["name"] not in must
        ]
        return [*(Offer(module, "must be: the base has none for this task") for module in must), *found]
    if name == "method.frozen":
        return [Offer(m["name"], f"{m['kind']}, {m['count']} of them") for m in base.get("modules") or []]
    if name == "evaluation.format" and facts.get("suggested_format"):
        return [Offer(MADE_FORMAT, "made from the fields of the data, every one may be null")]
    if name == "training.learning_rate":
        return [Offer(rate, "usual to begin with") for rate in RATES.get(str(value_of(draft, "method.kind")), ())]
    if name == "machine.processes" and scene.gpus and scene.gpus.gpus:
        count = len(scene.gpus.gpus)
        return [Offer(str(n), f"{n} of {count} GPUs found") for n in range(1, count + 1)]
    if name == "evaluation.seeds":
        return [
            Offer("17, 18, 19", "three: the least that tells luck from progress"),
            Offer("17, 18", "two: small gains stay undecided"),
            Offer("17, 18, 19, 20, 21", "five: for small gains"),
            Offer("17", "one: says nothing about luck"),
        ]
    if name == "rental.days":
        return [Offer("3", "one question"), Offer("7", "a few"), Offer("30", "a programme")]
    if name == "rental.currency":
        return [Offer(code) for code in ("USD", "EUR", "KRW", "PLN", "IDR", "GBP")]
    return []


def suggestion(scene: Scene, question: Question) -> list[str] | None:
    """What is marked where several may be taken and nothing is: what fits the base."""
    if question.name == "method.targets":
        return list(scene.base.get("suggested_targets") or [])
    return None


def changeable(scene: Scene) -> list[Offer]:
    """Fields a variant may change, with the control's values."""
    names = [name for name in all_fields() if name.split(".")[0] in CHANGEABLE]
    first = ("training.learning_rate", "method.rank", "method.targets", "training.amount")
    kinds = all_fields()
    order = [*first, *(name for name in names if name not in first)]
    return [
        Offer(name, f"control: {in_a_line(value_of(scene.draft, name), kinds[name].kind) or 'none'}") for name in order
    ]


def _column(column: dict[str, Any], suggested: bool) -> str:
    parts = [column["kind"]]
    if column.get("distinct"):
        parts.append(f"{column['distinct']:,} different")
    if column.get("filled", 1) < 1:
        parts.append(f"{column['filled']:.0%} filled")
    if suggested:
        parts.insert(0, "suggested")
    if column.get("example"):
        parts.append(f"e.g. {column['example']}")
    return ", ".join(parts)


def _module(module: dict[str, Any], suggested: bool) -> str:
    size = f"{module['inputs']} → {module['outputs']}, " if module.get("inputs") else ""
    return f"{'suggested, ' if suggested else ''}{size}{module['count']} of them"


def _rows(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {split}" for split, count in counts.items())
