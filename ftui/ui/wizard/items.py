"""Asking for a guardrail, a variant or a grid of variants, one question after the other. None or [] when left on the way."""

from __future__ import annotations

import re
from typing import Any

from textual.app import App

from ftui.plan.draft import Draft
from ftui.plan.fields import Field, all_fields
from ftui.plan.grid import GridError, grid, parse_grid
from ftui.plan.schema import EACH_CATEGORY, SLICE_METRICS, WHOLE, WHOLE_METRICS
from ftui.ui.screens.edit import ChoiceEditor, Offer, TextEditor
from ftui.ui.wizard.answers import meaning, read, shown
from ftui.ui.wizard.offers import changeable, offers
from ftui.ui.wizard.questions import GUARDRAILS, Question, questions, task, value_of
from ftui.ui.wizard.scene import Scene


async def ask_for_guardrail(app: App[None], scene: Scene) -> dict[str, Any] | None:
    """A guardrail: where, by what, and how much."""
    by_name = {question.name.partition(".")[2]: question for question in GUARDRAILS.questions}
    where = await _ask(app, scene, by_name["slice"], EACH_CATEGORY)
    if not where:
        return None
    metrics = (WHOLE_METRICS if where == WHOLE else SLICE_METRICS)[task(scene.draft)]
    offered = [Offer(metric, meaning("hypothesis.metric", metric)) for metric in metrics]
    metric = await app.push_screen_wait(
        ChoiceEditor(by_name["metric"].asks, by_name["metric"].why, offered, metrics[0])
    )
    if metric is None:
        return None
    tolerance = await _number(app, by_name["tolerance"], "0.05")
    if tolerance is None:
        return None
    suggested = f"{metric} of {where}" if where != WHOLE else metric
    name = await app.push_screen_wait(TextEditor(by_name["name"].asks, by_name["name"].why, suggested))
    if name is None:
        return None
    return {
        "name": name.strip() or suggested,
        "metric": metric,
        "slice": where,
        "tolerance": tolerance,
        "reference": "control",
    }


async def ask_for_variant(app: App[None], scene: Scene) -> dict[str, Any] | None:
    """A variant: the field it changes, the value, and why."""
    why = "One explained thing each. The control's value is beside every field; t types several changes at once."
    field = await app.push_screen_wait(
        ChoiceEditor("What does the variant change?", why, changeable(scene), "", open_ended=True)
    )
    if field is None:
        return None
    if field == ChoiceEditor.TYPED:
        change = await _changes(app)
    else:
        change = await _change(app, scene, field)
    if not change:
        return None
    because = await app.push_screen_wait(
        TextEditor("Why could this help?", "An answer you can be wrong about is worth asking for.", "", check=_some)
    )
    if because is None:
        return None
    taken = {str(variant.get("id")) for variant in scene.draft.items("variants")}
    variant: dict[str, Any] = {"id": _id(change, taken), "because": because.strip(), "change": change}
    if len(change) > 1:
        together = await app.push_screen_wait(
            TextEditor(
                "Why do these belong together?", "Several fields change at once; the report says why.", "", check=_some
            )
        )
        if together is None:
            return None
        variant["together"] = together.strip()
    return variant


async def ask_for_grid(app: App[None], scene: Scene) -> list[dict[str, Any]]:
    """Variants for every combination of some values."""

    def check(text: str) -> str | None:
        try:
            parse_grid(text)
        except GridError as problem:
            return str(problem)
        return None

    why = (
        "Fields and their values, such as learning_rate = 5e-5, 2e-4; rank = 8, 16. Each combination becomes a variant."
    )
    text = await app.push_screen_wait(TextEditor("A grid of variants", why, "learning_rate = 5e-5, 2e-4", check=check))
    if text is None:
        return []
    because = await app.push_screen_wait(
        TextEditor("Why could this help?", "One sentence for the whole grid; each variant gets it.", "", check=_some)
    )
    if because is None:
        return []
    return grid(scene.draft.content, parse_grid(text), because.strip())


def shifted(draft: Draft, name: str, item: int, to: int) -> Draft:
    """The draft with an item one place up or down. Variants that have different priorities exchange them, so that the queue follows
    the list."""
    before = [table.get("priority", 0) for table in draft.items(name)]
    draft = draft.move(name, item, to)
    if name == "variants" and before[item] != before[to]:
        for place in (item, to):
            draft = draft.set((name, place, "priority"), before[place])
    return draft


async def _ask(app: App[None], scene: Scene, question: Question, value: str) -> str | None:
    offered, open_ended = offers(scene, question, None)
    text = await app.push_screen_wait(ChoiceEditor(question.asks, question.why, offered, value, open_ended=open_ended))
    if text == ChoiceEditor.TYPED:
        return await app.push_screen_wait(TextEditor(question.asks, question.why, ""))
    return text


async def _number(app: App[None], question: Question, value: str) -> Any:
    def check(text: str) -> str | None:
        return _problem(text, question.field) or _some(text)

    text = await app.push_screen_wait(TextEditor(question.asks, question.why, value, check=check))
    return None if text is None else read(text, question.field)[0]


async def _change(app: App[None], scene: Scene, name: str) -> dict[str, Any] | None:
    """The new value of one field."""
    question = next(question for question in questions() if question.name == name)
    now = shown(value_of(scene.draft, name), question.field.kind)
    offered, open_ended = offers(scene, question, None)
    text: str | None = ChoiceEditor.TYPED
    title = f"{name} instead of {now or 'none'}".replace("\n", " · ")
    if offered:
        marked = now.splitlines() if question.field.kind == "texts" else None
        text = await app.push_screen_wait(
            ChoiceEditor(title, question.why, offered, now, marked=marked, open_ended=open_ended)
        )
    if text == ChoiceEditor.TYPED:

        def check(words: str) -> str | None:
            return _problem(words, question.field) or _some(words)

        lines = question.field.kind == "texts"
        text = await app.push_screen_wait(TextEditor(title, question.why, now, lines=lines, check=check))
    return None if text is None else {name: read(text, question.field)[0]}


async def _changes(app: App[None]) -> dict[str, Any] | None:
    field = all_fields()["variants[].change"]

    def check(text: str) -> str | None:
        return _problem(text, field) or _some(text)

    text = await app.push_screen_wait(
        TextEditor(
            "What does the variant change?",
            "One field and its value per line: training.learning_rate = 5e-5",
            "",
            lines=True,
            check=check,
        )
    )
    return None if text is None else read(text, field)[0]


def _problem(text: str, field: Field) -> str | None:
    try:
        read(text, field)
    except ValueError as problem:
        return str(problem)
    return None


def _some(text: str) -> str | None:
    return None if text.strip() else "an answer is needed; Esc leaves without one"


def _id(change: dict[str, Any], taken: set[str]) -> str:
    """A short name for a change: `learning-rate-5e-5`, numbered when it is taken."""
    words = [
        f"{name.rpartition('.')[2]}-{shown(value, 'number' if isinstance(value, float) else 'text')}"
        for name, value in change.items()
    ]
    name = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")[:36].strip("-") or "variant"
    number = 2
    made = name
    while made in taken:
        made, number = f"{name}-{number}", number + 1
    return made
