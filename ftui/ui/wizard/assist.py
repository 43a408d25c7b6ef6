"""What can be answered from what was found, so that nobody has to: told when it is done, and u takes it back."""

from __future__ import annotations

from collections.abc import Collection

from ftui.plan.draft import MISSING, Draft
from ftui.plan.fields import all_fields
from ftui.plan.schema import TASK_COLUMNS
from ftui.ui.wizard.questions import task, value_of
from ftui.ui.wizard.scene import Scene

MADE_FORMAT = "answer.schema.json"
"""The JSON schema of an answer that can be made from the data."""


def completed(scene: Scene, done: Collection[str]) -> tuple[Draft, list[tuple[str, str]]]:
    """The draft with answers that follow from what was found, and for each the field and a sentence.

    Only fields the file says nothing about and that are not among `done`: columns whose usual name the data does not have, and
    modules that an adapter of this base has to save whole.
    """
    draft, told = scene.draft, []
    found = [column["name"] for column in scene.columns]
    suggested = (scene.facts or {}).get("suggested") or {}
    for column in TASK_COLUMNS.get(task(draft), ()):
        name = f"data.columns.{column}"
        usual, fits = all_fields()[name].default, suggested.get(column)
        if fits and usual not in found and usual != fits and usual is not None and _open(draft, name, done):
            draft = draft.set(tuple(name.split(".")), fits)
            told.append((name, f"{fits} looks like the column with the {column}"))
    must = list(scene.base.get("must_save") or [])
    has_adapter = value_of(draft, "method.kind") != "full" and value_of(draft, "method.targets")
    if must and has_adapter and _open(draft, "method.save_modules", done):
        draft = draft.set(("method", "save_modules"), must)
        sentence = f"{', '.join(must)} must be trained whole: the base has none for this task"
        told.append(("method.save_modules", sentence))
    return draft, told


def with_commit(draft: Draft, scene: Scene, base: str) -> Draft:
    """The draft with the commit of another base where it was found in the hub's cache; what belonged to the one before goes."""
    found = {known["base"]: known["revision"] for known in (scene.facts or {}).get("bases") or []}
    if base not in found:
        return draft
    for field in ("source", "sha256"):
        draft = draft.remove(("model", field))
    return draft.set(("model", "revision"), found[base]) if found[base] else draft.remove(("model", "revision"))


def _open(draft: Draft, name: str, done: Collection[str]) -> bool:
    return name not in done and draft.given(tuple(name.split("."))) is MISSING
