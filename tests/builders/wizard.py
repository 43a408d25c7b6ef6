"""A person at the wizard: keys alone, in the order a person would press them."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
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
            assert not scene.facts_problem, scene.facts_problem
            return not scene.looking and scene.facts is not None

        await until(self.pilot, looked, "what data and model are", 60)

    async def type(self, text: str) -> None:
        """Type a short text; a longer one is pasted, as a terminal does it."""
        if len(text) <= 8:
            await self.pilot.press(*("enter" if character == "\n" else character for character in text))
            return
        assert self.app.screen.focused is not None
        self.app.screen.focused.post_message(events.Paste(text))
        await self.pilot.pause()

    async def tap(self, key: str, times: int) -> None:
        """Press one key so many times without waiting in between, as one who holds it down."""
        for _ in range(times):
            self.app.post_message(events.Key(key, None))
        await self.pilot.pause()

    async def to(self, name: str, item: int | None = None) -> None:
        """Go to a question, through its step."""
        step = next(index for index, step in enumerate(STEPS) if any(q.name == name for q in step.questions))
        await self.pilot.press(str((step + 1) % 10))
        if item is not None and self.wizard.opened != item:
            await self._down_to((STEPS[step].items, item))
            await self.pilot.press("enter")
        await self._down_to((name, item))

    async def _down_to(self, key: tuple[str, int | None]) -> None:
        await self.pilot.press("home")
        rows = [row.key for row in self.form.rows]
        assert key in rows, f"{key} is not on its page"
        await self.tap("down", rows.index(key))
        await until(self.pilot, lambda: self.form.chosen and self.form.chosen.key == key, f"the cursor at {key}")

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
                await self._point(panel, offered.index(text))
                await self.pilot.press("enter")
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
        await self.pilot.press("backspace")
        await self.type(text)
        await self.pilot.press("f2")

    async def _mark(self, panel: OffersPanel, offered: Sequence[str], wanted: Sequence[str]) -> None:
        for answer in [*(panel.marked or ()), *wanted]:
            if (answer in wanted) != (answer in (panel.marked or ())):
                await self._point(panel, offered.index(answer))
                await self.pilot.press("space")
        await self.pilot.press("enter")

    async def _point(self, panel: OffersPanel, at: int) -> None:
        await self.pilot.press("home")
        await self.tap("down", at)
        await until(self.pilot, lambda: panel.cursor == at, "the offer under the cursor")

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
