"""What the wizard knows, and how it comes to know it: the file, the facts about data and model, what the plan comes to."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from textual import work

from ftui.plan.draft import Draft
from ftui.plan.power import power_of
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.state import fold
from ftui.ui.screens.base import FtuiScreen
from ftui.ui.wizard.asking import Asker, AskError
from ftui.ui.wizard.questions import STEPS, Step
from ftui.ui.wizard.saving import Saver
from ftui.ui.wizard.scene import Scene

LOOK_AFTER_SECONDS = 0.3
"""Quiet time before data and model are looked at again: answers often come in twos."""

DESCRIBED = ("rental", "variants", "review")
"""Steps that show what the whole plan comes to."""

_LOOKED_AT = ("data", "model", "method", "evaluation")
"""Sections that facts follow from, besides a few fields."""


class KnowingScreen(FtuiScreen):
    """A screen with a scene that is kept true. `show_scene` is called whenever something has become known."""

    def __init__(self, files: CampaignFiles, at: int = 0) -> None:
        super().__init__()
        self.files = files
        self.at = at
        """Index of the step."""
        self.scene = Scene(Draft("", str(files.plan)))
        self.saver = Saver(files.plan, self.saved, self.changed_outside)
        self.asker = Asker()
        self._looked_at = ""
        self._described_for: tuple[str, str] | None = None

    @property
    def step(self) -> Step:
        return STEPS[self.at]

    async def on_unmount(self) -> None:
        await self.asker.end()

    def show_scene(self, at: tuple[str, int | None] | None = None) -> None:
        raise NotImplementedError

    def facts_found(self) -> None:
        """Data and model were looked at."""
        raise NotImplementedError

    def saved(self, problem: str) -> None:
        """The draft was saved, or could not be: "" or why."""
        raise NotImplementedError

    def changed_outside(self) -> None:
        """Somebody else has changed the file."""
        raise NotImplementedError

    @work(exclusive=True, group="read")
    async def read(self) -> None:
        """Read the plan and what was launched, then look at data and model."""
        try:
            text = await asyncio.to_thread(self.saver.read)
            launched = await asyncio.to_thread(lambda: fold(read_journal(self.files.journal)).launched_at is not None)
        except (OSError, UnicodeDecodeError) as problem:
            self.notify(f"{self.files.plan} cannot be read: {problem}", severity="error", markup=False)
            return
        draft = Draft(text, str(self.files.plan))
        self.scene = replace(self.scene, draft=draft, launched=launched)
        self._looked_at, self._described_for = "", None
        if not draft.is_toml:
            self.notify(
                f"{draft.problems[0]}. Correct it in an editor; R reads it again.", severity="error", markup=False
            )
        self.show_scene()
        self.look()

    @work(exclusive=True, group="gpus")
    async def find_gpus(self) -> None:
        from ftui.machine.nvidia import gpus

        found = await asyncio.to_thread(gpus)
        self.scene = replace(self.scene, gpus=found)  # the scene of now: it may have changed meanwhile
        self.show_scene()

    @work(exclusive=True, group="look")
    async def look(self) -> None:
        """Look at data and base model, in a process of its own, where anything they follow from has changed."""
        content = self.scene.draft.content
        wanted = json.dumps(
            [{name: content.get(name) for name in _LOOKED_AT}, content.get("hypothesis", {}).get("task"),
             {k: v for k, v in content.get("training", {}).items() if k in ("max_length", "truncation", "hold")}],
            default=str, sort_keys=True,
        )  # fmt: skip
        if wanted == self._looked_at:
            self.scene = replace(self.scene, looking=False)  # a look that was on its way was ended by this one
            self.weigh()
            self.describe()
            return
        self.scene = replace(self.scene, looking=True)
        self.show_scene()
        await asyncio.sleep(LOOK_AFTER_SECONDS)
        await self.saver.settled()
        facts, problem = None, ""
        try:
            facts = await self.asker.scout(self.files.root)
            problem = facts.get("problem") or ""
        except AskError as error:
            problem = str(error)
        self._looked_at = wanted
        self.scene = replace(self.scene, facts=facts, facts_problem=problem, looking=False)
        self.show_scene()
        self.facts_found()
        self.weigh()
        self.describe()

    @work(exclusive=True, group="weigh")
    async def weigh(self) -> None:
        """Work out what the evaluation can show: on a thread, for the library behind it takes its time to come."""
        draft, sizes = self.scene.draft, self.scene.sizes
        power = None
        if draft.plan is not None and sizes and sizes.get("test"):
            tests = {label: counts.get("test", 0) for label, counts in self.scene.categories.items()}
            power = await asyncio.to_thread(power_of, draft.plan, sizes["test"], tests)
        self.scene = replace(self.scene, power=power)
        self.show_scene()

    @work(exclusive=True, group="describe")
    async def describe(self) -> None:
        """Have `ftui plan` work the whole plan out where a step shows it and something has changed."""
        scene = self.scene
        if scene.draft.plan is None or not (self.step.key in DESCRIBED or scene.device):
            return
        wanted = (scene.draft.text, scene.device)
        if wanted == self._described_for:
            return
        self.scene = replace(scene, describing=True, described_problem="")
        self.show_scene()
        await asyncio.sleep(LOOK_AFTER_SECONDS)
        await self.saver.settled()
        described, problem = None, ""
        try:
            described = await self.asker.describe(self.files.root, scene.device or None)
        except AskError as error:
            problem = str(error)
        self._described_for = wanted
        self.scene = replace(self.scene, described=described, described_problem=problem, describing=False)
        self.show_scene()
