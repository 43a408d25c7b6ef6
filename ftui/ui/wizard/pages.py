"""A step of the wizard as rows of a form, and how each step stands. Pure functions of the scene."""

from __future__ import annotations

from ftui.plan.draft import MISSING, Draft
from ftui.plan.load import Problem, dotted
from ftui.record.text import safe
from ftui.ui.widgets.form import FormRow
from ftui.ui.widgets.steps import StepState
from ftui.ui.wizard.answers import in_a_line
from ftui.ui.wizard.questions import STEPS, Question, Step, value_of, writes
from ftui.ui.wizard.scene import Scene, begun, problems_of

TO_ANSWER = "to be answered"


def form_rows(step: Step, scene: Scene, opened: int | None) -> list[FormRow]:
    """The rows of a step; of a list of tables, item `opened` with its questions."""
    if step.key == "inspect":
        return _facts(scene)
    if not step.items:
        rows = [_row(question, None, scene.draft) for question in step.questions if _asked(question, scene.draft)]
    else:
        rows = []
        for index, item in enumerate(scene.draft.items(step.items)):
            own = [] if index == opened else scene.draft.problems_at((step.items, index))
            rows.append(FormRow((step.items, index), *_head(step, index, item), problems=own, head=True))
            if index == opened:
                rows += [_row(question, index, scene.draft) for question in step.questions]
    return [*rows, *_others(step, scene.draft, opened)]


def _asked(question: Question, draft: Draft) -> bool:
    return question.applies(draft) or draft.given(question.steps()) is not MISSING


def _row(question: Question, item: int | None, draft: Draft) -> FormRow:
    steps, field = question.steps(item), question.field
    given = draft.given(steps)
    problems = [p.message for p in draft.problems if _belongs(p.field, dotted(list(steps)))]
    asks = f"  {question.asks}" if item is not None else question.asks
    key = (question.name, item)
    if given is not MISSING:
        return FormRow(key, asks, safe(in_a_line(given, field.kind), 4000), "bad" if problems else "text", problems)
    if field.default is MISSING or needs_targets(question.name, draft):
        return FormRow(key, asks, TO_ANSWER, "warn", [p for p in problems if not p.startswith("is missing")])
    return FormRow(key, asks, in_a_line(field.default, field.kind) or "–", "muted", problems)


def needs_targets(name: str, draft: Draft) -> bool:
    """Whether the field is what an adapter cannot do without and the file does not have; the schema says so of the whole method."""
    wants = value_of(draft, "method.kind") in ("lora", "qlora") and not draft.given(("method", "targets"))
    return wants and name in ("method.targets", "method")


def _missing(problem: Problem, draft: Draft) -> bool:
    """Whether nothing is wrong but that nobody has answered yet."""
    return problem.message.startswith("is missing") or needs_targets(problem.field, draft)


def _belongs(problem: str, field: str) -> bool:
    return problem == field or problem.startswith((f"{field}.", f"{field}["))


def _head(step: Step, index: int, item: dict[str, object]) -> tuple[str, str]:
    """Title and summary of an item."""
    if step.items == "guardrails":
        where, tolerance = item.get("slice", "whole"), item.get("tolerance", "…")
        worse = f"at most {tolerance} worse than the {item.get('reference', 'control')}"
        return safe(f"{index + 1} {item.get('name', '…')}"), safe(f"{item.get('metric', '…')}, {where}, {worse}")
    priority = f"  priority {item['priority']}" if item.get("priority") else ""
    return safe(f"{index + 1} {item.get('id', '…')}"), safe(in_a_line(item.get("change", {}), "change") + priority)


def _others(step: Step, draft: Draft, opened: int | None) -> list[FormRow]:
    """Problems of the step that no question shows."""
    count = len(draft.items(step.items)) if step.items else 0
    shown = [f"{step.items}[{index}]" for index in range(count) if index != opened]
    if opened is not None or not step.items:
        shown += [dotted(list(question.steps(opened))) for question in step.questions]
    rows: list[FormRow] = []
    for problem in problems_of(step, draft):
        if needs_targets(problem.field, draft) or any(_belongs(problem.field, name) for name in shown):
            continue
        place = f"{problem.field}: " if problem.message.startswith("is missing") else ""
        rows.append(FormRow(("problem", len(rows)), "", "", problems=[place + problem.message], head=True))
    return rows


def _facts(scene: Scene) -> list[FormRow]:
    """What is known about the data, as rows nobody answers."""
    if scene.facts is None or scene.sizes is None:
        return []
    rows = [(name, f"{count:,} examples") for name, count in scene.sizes.items()]
    if scene.categories:
        rows.append(_spread(scene))
    if told := scene.facts.get("lengths"):
        rows.append(("longest example", f"{told['longest']:,} tokens"))
        rows.append(("longer than the limit", f"{told['over']:,} of {told['rows']:,} looked at"))
        if told.get("targets_lost"):
            rows.append(("target tokens lost", f"{told['targets_lost']:,}"))
    if writes(scene.draft) and scene.facts.get("train_targets"):
        rows.append(("targets of one pass", f"{scene.facts['train_targets']:,} tokens carry loss"))
    counts = {kind: sum(f["severity"] == kind for f in scene.findings) for kind in ("error", "warning")}
    rows.append(
        ("findings", ", ".join(f"{n} {kind}{'s' if n != 1 else ''}" for kind, n in counts.items() if n) or "none")
    )
    return [FormRow(("inspect", index), asks, safe(value)) for index, (asks, value) in enumerate(rows)]


def _spread(scene: Scene) -> tuple[str, str]:
    """How many categories or fields there are, and how many examples the smallest and the largest have to learn from."""
    trained = {label: counts.get("train", 0) for label, counts in scene.categories.items()}
    smallest, largest = (end(trained, key=lambda label: trained[label]) for end in (min, max))
    what = "fields" if value_of(scene.draft, "hypothesis.task") == "extraction" else "categories"
    ends = f"from {trained[smallest]:,} ({smallest}) to {trained[largest]:,} ({largest}) in train"
    return what, f"{len(trained)}, {ends}"


def step_states(scene: Scene) -> list[StepState]:
    """How every step stands."""
    return [StepState(step.title, step.short or step.title, *_state(step, scene)) for step in STEPS]


def _state(step: Step, scene: Scene) -> tuple[str, str]:
    if step.key == "inspect":
        if scene.errors:
            return f"{len(scene.errors)} !", "bad"
        return ("done", "good") if scene.sizes else ("–", "muted")
    if step.key == "review":
        if scene.draft.problems or scene.errors:
            return "–", "muted"
        return ("ready", "good") if scene.draft.plan is not None else ("–", "muted")
    problems = problems_of(step, scene.draft)
    wrong = [problem for problem in problems if not _missing(problem, scene.draft)]
    if step.key == "model" and not problems and scene.base.get("problem"):
        return "1 !", "bad"
    if wrong:
        return f"{len(wrong)} !", "bad"
    if problems:
        return "to do", "warn"
    if step.items and not begun(step, scene.draft):
        return "none", "muted"
    return "done", "good"
