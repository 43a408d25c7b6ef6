"""A person at the wizard: keys alone, in the order a person would press them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.pilot import Pilot

from ftui.ui.app import FtuiApp
from ftui.ui.screens.edit import AnswerArea, ChoiceEditor, OffersPanel, TextEditor
from ftui.ui.screens.wizard import WizardScreen
from ftui.ui.widgets.form import FormPanel
from ftui.ui.wizard.questions import STEPS, questions
from tests.ui.seen import until


class Person:
    """Presses keys and looks at the screen to know which."""

    def __init__(self, app: FtuiApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def wizard(self) -> WizardScreen:
        return next(screen for screen in reversed(self.app.screen_stack) if isinstance(screen, WizardScreen))

    @property
    def form(self) -> FormPanel:
        return self.wizard.query_one(FormPanel)

    async def see_wizard(self) -> None:
        await until(
            self.pilot, lambda: isinstance(self.app.screen, WizardScreen) and self.wizard.scene.draft.text, "the wizard"
        )

    async def known(self) -> None:
        """Wait until data and model were looked at."""

        def looked() -> bool:
            scene = self.wizard.scene
            return not scene.looking and scene.facts is not None

        await until(self.pilot, looked, "what data and model are", 60)

    async def type(self, text: str) -> None:
        for character in text:
            await self.pilot.press("enter" if character == "\n" else character)

    async def to(self, name: str, item: int | None = None) -> None:
        """Go to a question, through its step."""
        step = next(index for index, step in enumerate(STEPS) if any(q.name == name for q in step.questions))
        await self.pilot.press(str((step + 1) % 10))
        await self.pilot.press("home")
        for _ in range(200):
            chosen = self.form.chosen
            if chosen is not None and chosen.key == (name, item):
                return
            await self.pilot.press("down")
        raise AssertionError(f"{name} is not on its page")

    async def answer(self, name: str, text: str, item: int | None = None) -> None:
        """Answer a question by typing, or by choosing where nothing else is possible."""
        await self.to(name, item)
        await self.pilot.press("enter")
        await self.say(text)
        await until(self.pilot, lambda: isinstance(self.app.screen, WizardScreen), f"the form after {name} = {text}")

    async def say(self, text: str) -> None:
        """Give `text` to the editor that is open, choosing it where it is offered."""
        await until(self.pilot, lambda: isinstance(self.app.screen, TextEditor | ChoiceEditor), "an editor")
        if isinstance(self.app.screen, ChoiceEditor):
            panel = self.app.screen.query_one(OffersPanel)
            offered = [offer.answer for offer in panel.offers]
            if panel.marked is not None and set(text.split("\n")) <= set(offered):
                await self._mark(panel, offered, text.split("\n"))
                return
            if panel.marked is None and text in offered:
                await self.pilot.press("home", *["down"] * offered.index(text), "enter")
                return
            before = self.app.screen
            await self.pilot.press("t")
            await until(self.pilot, lambda: self.app.screen is not before, "the editor for another answer")
            await until(self.pilot, lambda: isinstance(self.app.screen, TextEditor), "the editor for another answer")
        editor = self.app.screen
        area = editor.query_one(AnswerArea)
        await until(self.pilot, lambda: area.has_focus, "the cursor")
        while area.text and not area.selected_text:
            await self.pilot.press("ctrl+end", "ctrl+u", "backspace")
        await self.type(text)
        await self.pilot.press("f2")

    async def _mark(self, panel: OffersPanel, offered: Sequence[str], wanted: Sequence[str]) -> None:
        for answer in [*(panel.marked or ()), *wanted]:
            if (answer in wanted) != (answer in (panel.marked or ())):
                await self.pilot.press("home", *["down"] * offered.index(answer), "space")
        await self.pilot.press("enter")

    async def add(self, step: str, *answers: str) -> None:
        """Add a guardrail or a variant by answering one question after the other."""
        await self.pilot.press("2" if step == "guardrails" else "9", "a")
        for answer in answers:
            before = self.app.screen
            await self.say(answer)
            await until(self.pilot, lambda: self.app.screen is not before, f"what follows {answer!r}")  # noqa: B023
        await until(self.pilot, lambda: isinstance(self.app.screen, WizardScreen), "the form")


def every_question() -> list[str]:
    """Names of all questions."""
    return [question.name for question in questions()]
