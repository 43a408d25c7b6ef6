"""The wizard: from a blank page to a plan that can be launched. It edits `campaign.toml` and nothing else."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any, ClassVar

from rich.text import Text
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from ftui.plan.draft import MISSING, Draft
from ftui.plan.starting import settled
from ftui.record.files import replace_text
from ftui.record.layout import CampaignFiles
from ftui.ui import keys
from ftui.ui.screens.edit import ChoiceEditor, TextEditor
from ftui.ui.theme import STYLES
from ftui.ui.widgets.follows import FollowsPanel
from ftui.ui.widgets.form import FormPanel
from ftui.ui.widgets.lines import KeyLine, Part, StatusLine
from ftui.ui.widgets.panel import Panel
from ftui.ui.widgets.steps import StepsPanel
from ftui.ui.wizard import asking
from ftui.ui.wizard.answers import answered, meaning, shown
from ftui.ui.wizard.assist import MADE_FORMAT, completed, with_commit
from ftui.ui.wizard.consequences import what_follows
from ftui.ui.wizard.dialogs import ask_for_cut, ask_for_device, ask_to_launch
from ftui.ui.wizard.items import ask_for_grid, ask_for_guardrail, ask_for_variant, shifted
from ftui.ui.wizard.knowing import KnowingScreen
from ftui.ui.wizard.offers import offers, suggestion
from ftui.ui.wizard.pages import form_rows, step_states
from ftui.ui.wizard.questions import STEPS, Question, questions

WIDE = 110
"""Cells from which form and consequences stand side by side."""

WIDEST = 150
"""Cells from which every title is written out."""

NOTHING = {
    "guardrails": "No guardrail yet. a adds one: what must not get worse while the metric gets better?",
    "variants": "No variant yet. a adds one, g a grid of several. Without variants, the control alone is compared with the base.",
    "inspect": "Nothing can be seen yet: name the training files and their columns in step 3.",
}


class WizardScreen(KnowingScreen):
    """One step at a time: its form, and what follows from it."""

    KEYS = keys.WIZARD
    BINDINGS: ClassVar[list[BindingType]] = list(keys.WIZARD)
    name_for_help = "Plan"

    def __init__(self, files: CampaignFiles, at: int = 0) -> None:
        super().__init__(files, at)
        self.opened: int | None = None
        """Item of a list whose questions are shown."""
        self._before: list[Draft] = []
        self._assisted: set[str] = set()
        """Fields that were answered from what was found, once each."""
        self._launch_problem = ""
        self._state = ""

    def compose(self) -> ComposeResult:
        yield StatusLine(id="status")
        with Horizontal(id="below"):
            yield StepsPanel(id="steps")
            with Vertical(id="page"):
                with Vertical(id="asked"):
                    yield FormPanel(id="form")
                    yield Static("", id="why", markup=False)
                yield FollowsPanel(id="follows")
        yield KeyLine((*keys.WIZARD, *keys.EVERYWHERE))

    def on_mount(self) -> None:
        self._arrange()
        self.query_one(FormPanel).focus()
        self.read()
        self.find_gpus()

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    def _arrange(self) -> None:
        self.set_class(self.size.width >= WIDE, "-wide")
        self.set_class(self.size.width >= WIDEST, "-widest")

    # Showing.

    def show_scene(self, at: tuple[str, int | None] | None = None) -> None:
        if not self.query("#asked"):
            return  # not there yet, or not any more
        step, scene = self.step, self.scene
        review = step.key == "review"
        self.query_one("#asked").display = not review
        form = self.query_one(FormPanel)
        form.border_title = f"{self.at + 1} {step.title}"
        form.show(form_rows(step, scene, self.opened), NOTHING.get(step.key, ""), at=at)
        self.query_one(StepsPanel).show(step_states(scene), self.at)
        follows = self.query_one(FollowsPanel)
        follows.border_title = f"{self.at + 1} {step.title}" if review else "What follows"
        ascii_only = not form.glyphs.braille
        problem = [(self._launch_problem, "bad"), ("", "text")] if review and self._launch_problem else []
        follows.show(lambda width: [*problem, *what_follows(step.key, scene, width, ascii_only=ascii_only)])
        self._say_why()
        self._status()

    def _status(self) -> None:
        count = len(self.scene.draft.problems) + len(self.scene.errors)
        said: Part = (f"{count} to solve", "warn") if count else ("complete", "good")
        if self.scene.draft.plan is None and not count:
            said = ("reading", "muted")
        left: list[Part] = [(self.files.name, "bright"), ("  plan", "muted"), (f"  {self.step.aim}", "text")]
        self.query_one("#status", StatusLine).show(left, [(f"{self._state}  " if self._state else "", "muted"), said])

    @on(Panel.CursorMoved, "#form")
    def _say_why(self) -> None:
        question, _ = self._question()
        why = self.query_one("#why", Static)
        if question is None:
            why.update("")
            return
        given = self.scene.draft.given(question.steps(self._item()))
        explained = meaning(question.name, given) if isinstance(given, str) else ""
        why.update(
            Text.assemble((question.why, STYLES["muted"]), (f" Now: {explained}." if explained else "", STYLES["text"]))
        )

    @on(Panel.CursorMoved, "#steps")
    def _turn_to_step(self, message: Panel.CursorMoved) -> None:
        self._turn_to(message.line)

    def _question(self) -> tuple[Question | None, int | None]:
        """The question under the cursor and its item."""
        chosen = self.query_one(FormPanel).chosen
        if chosen is None:
            return None, None
        name, item = chosen.key
        return next((q for q in questions() if q.name == name), None), item

    def _item(self) -> int | None:
        """The item of a list under the cursor."""
        chosen = self.query_one(FormPanel).chosen
        return chosen.key[1] if chosen and self.step.items and chosen.key[0] != "problem" else None

    # Moving.

    def action_turn(self, by: int) -> None:
        self._turn_to(max(0, min(len(STEPS) - 1, self.at + by)))

    def action_go(self, to: int) -> None:
        self._turn_to(to)

    def _turn_to(self, to: int) -> None:
        if to != self.at:
            self.at, self.opened = to, None
            form, follows = self.query_one(FormPanel), self.query_one(FollowsPanel)
            form.cursor = form.top = follows.top = 0
            form.rows = []
            if self.step.key == "review":
                follows.focus()
            elif not form.has_focus and not self.query_one(StepsPanel).has_focus:
                form.focus()
            self.show_scene()
            self.describe()

    def action_next_panel(self, by: int) -> None:
        panels: list[Panel] = [self.query_one(StepsPanel), self.query_one(FormPanel), self.query_one(FollowsPanel)]
        if self.step.key == "review":
            del panels[1]
        at = next((index for index, panel in enumerate(panels) if panel.has_focus), 0)
        panels[(at + by) % len(panels)].focus()

    # Answering.

    def change(self, draft: Draft, name: str = "", at: tuple[str, int | None] | None = None) -> None:
        """Take a changed draft: settle what follows, save it, look again."""
        before = self.scene.draft
        draft, told = settled(draft, name, before) if name else (draft, [])
        if draft is before:
            return
        self._before.append(before)
        self._launch_problem = ""
        self.scene = replace(self.scene, draft=draft)
        self.saver.save(draft.text)
        for sentence in told:
            self.notify(f"{sentence[:1].upper()}{sentence[1:]}.", markup=False)
        self.show_scene(at)
        self.look()

    def facts_found(self) -> None:
        """Answer what follows from the facts and nobody has answered."""
        if self.scene.launched or not self.scene.draft.is_toml:
            return
        draft, told = completed(self.scene, self._assisted)
        self._assisted |= {name for name, _ in told}
        if told:
            self.change(draft)
            self.notify("\n".join(f"{sentence[:1].upper()}{sentence[1:]}." for _, sentence in told), markup=False)

    def action_answer(self) -> None:
        if self.query_one(StepsPanel).has_focus:
            self.action_next_panel(1)
        elif self.step.key == "inspect":
            self.action_inspect()
        elif (question := self._question()[0]) is not None:
            self.answer(question, self._item())
        elif (item := self._item()) is not None:
            self.opened = None if self.opened == item else item
            self.show_scene((self.step.items, item))

    @work(exclusive=True, group="answer")
    async def answer(self, question: Question, item: int | None) -> None:
        """Ask for one answer and take it."""
        draft = self.scene.draft
        given, field = draft.given(question.steps(item)), question.field
        now = shown(given if given is not MISSING else field.default, field.kind)
        offered, open_ended = offers(self.scene, question, item)
        text: str | None = ChoiceEditor.TYPED
        if offered:
            marked = None
            if field.kind == "texts":
                marked = [line for line in now.splitlines() if line] or suggestion(self.scene, question) or []
            editor = ChoiceEditor(question.asks, question.why, offered, now, marked=marked, open_ended=open_ended)
            text = await self.app.push_screen_wait(editor)
        if text == ChoiceEditor.TYPED:
            text = await self._typed(question, item, now)
        if text is None:
            return
        if question.name == "evaluation.format" and text == MADE_FORMAT:
            await self._make_format()
        try:
            draft = answered(self.scene.draft, question, item, text)
            if question.name == "model.base" and draft is not self.scene.draft:
                draft = with_commit(draft, self.scene, text)
            self.change(draft, question.name)
        except ValueError as problem:
            self.notify(str(problem), severity="error", markup=False)

    async def _make_format(self) -> None:
        """Write the schema that was made from the data, unless there is a file of that name."""
        path, schema = self.files.root / MADE_FORMAT, (self.scene.facts or {}).get("suggested_format")
        if schema is not None and not path.exists():
            await asyncio.to_thread(replace_text, path, json.dumps(schema, ensure_ascii=False, indent=2) + "\n")

    async def _typed(self, question: Question, item: int | None, now: str) -> str | None:
        def check(text: str) -> str | None:
            try:
                answered(self.scene.draft, question, item, text)
            except ValueError as problem:
                return str(problem)
            return None

        lines = question.field.kind in ("texts", "change")
        return await self.app.push_screen_wait(TextEditor(question.asks, question.why, now, lines=lines, check=check))

    def action_clear(self) -> None:
        question, _ = self._question()
        if question is not None:
            self.change(self.scene.draft.remove(question.steps(self._item())), question.name)

    def action_undo(self) -> None:
        if not self._before:
            self.notify("Nothing was changed since the plan was opened.", markup=False)
            return
        draft = self._before.pop()
        self.scene = replace(self.scene, draft=draft)
        self.saver.save(draft.text)
        self.show_scene()
        self.look()

    # Lists of tables.

    def action_add(self) -> None:
        if self.step.items:
            self.add(self.step.items)
        else:
            self.notify("Guardrails (2) and variants (9) can be added.", markup=False)

    @work(exclusive=True, group="answer")
    async def add(self, name: str) -> None:
        ask = ask_for_guardrail if name == "guardrails" else ask_for_variant
        item = await ask(self.app, self.scene)
        if item is not None:
            count = len(self.scene.draft.items(name))
            self.opened = None
            self._take(lambda draft: draft.add(name, item), (name, count))

    def action_grid(self) -> None:
        if self.step.key != "variants":
            self.action_go(len(STEPS) - 2)
        self.add_grid()

    @work(exclusive=True, group="answer")
    async def add_grid(self) -> None:
        made = await ask_for_grid(self.app, self.scene)

        def add_all(draft: Draft) -> Draft:
            for variant in made:
                draft = draft.add("variants", variant)
            return draft

        if made:
            self._take(add_all)

    def action_drop(self) -> None:
        item = self._item()
        if item is not None:
            self.opened = None
            self._take(lambda draft: draft.drop(self.step.items, item))

    def action_shift(self, by: int) -> None:
        item = self._item()
        if item is None:
            return
        to = item + by
        if 0 <= to < len(self.scene.draft.items(self.step.items)):
            self.opened = to if self.opened == item else None
            self._take(lambda draft: shifted(draft, self.step.items, item, to), (self.step.items, to))

    def _take(self, change: Any, at: tuple[str, int | None] | None = None) -> None:
        try:
            self.change(change(self.scene.draft), at=at)
        except ValueError as problem:
            self.notify(str(problem), severity="error", markup=False)

    # Beyond the form.

    def action_inspect(self) -> None:
        if self.scene.draft.plan is None:
            self.notify(
                "The inspection needs a plan without problems; what is known of the data is on this page.", markup=False
            )
            return
        from ftui.ui.screens.inspect import InspectScreen

        self.app.push_screen(InspectScreen(self.files))

    @work(exclusive=True, group="answer")
    async def action_predict(self) -> None:
        device = await ask_for_device(self.app, self.scene)
        if device:
            self.scene = replace(self.scene, device=device)
            if self.scene.draft.plan is None:
                self.notify("Predicted as soon as the plan has no problems.", markup=False)
            self.show_scene()
            self.describe()

    def action_cut(self) -> None:
        if (self.scene.described or {}).get("cuts"):
            self.cut()
        else:
            self.notify(
                "Nothing is known that would have to be cut; what fits is shown in steps 8 and 9.", markup=False
            )

    @work(exclusive=True, group="answer")
    async def cut(self) -> None:
        draft = await ask_for_cut(self.app, self.scene)
        if draft is not None:
            self.change(draft)

    def action_reload(self) -> None:
        self.read()

    def action_launch(self) -> None:
        count = len(self.scene.draft.problems) + len(self.scene.errors)
        if self.step.key != "review":
            self.action_go(len(STEPS) - 1)
            self.notify("Read the plan once more; L launches it.", markup=False)
        elif count:
            self.notify(f"{count} to solve before the launch; they are listed here.", severity="warning", markup=False)
        else:
            self.launch()

    @work(exclusive=True, group="answer")
    async def launch(self) -> None:
        """Launch through `ftui run`, which refuses what cannot start in the words of the command line."""
        answer = await ask_to_launch(self.app, self.files.name, launched=self.scene.launched)
        if answer is None:
            return
        await self.saver.settled()
        self._state = "launching"
        self._status()
        worked, said = await asking.launch(self.files.root, answer or None)
        self._state = ""
        if worked:
            from ftui.ui.screens.monitor import MonitorScreen

            self.app.switch_screen(MonitorScreen(self.files))
            return
        self._launch_problem = said
        self.show_scene()

    # Saving and leaving.

    def saved(self, problem: str) -> None:
        self._state = "" if not problem else "NOT saved"
        if problem:
            self.notify(
                f"{problem}; the answers are kept here, u and any change save again", severity="error", markup=False
            )
        if self.query("#status"):
            self._status()

    def changed_outside(self) -> None:
        self.notify(
            f"{self.files.plan} was changed outside the wizard, so the last answer was not saved. What the file says now is shown.",
            severity="warning",
            markup=False,
        )
        self._before.clear()
        self.read()

    async def action_back(self) -> None:
        await self.saver.settled()
        await super().action_back()

    async def action_leave(self) -> None:
        await self.saver.settled()
        await super().action_leave()
