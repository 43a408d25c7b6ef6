"""The Textual app: the screens' stack, the theme, the palette. Everything else is in the screens."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import ClassVar, Literal

from textual.app import App, SystemCommand
from textual.screen import Screen

from ftui.record.layout import CampaignFiles
from ftui.ui.glyphs import wants_ascii
from ftui.ui.screens.base import FtuiScreen
from ftui.ui.screens.entry import UNSAVED
from ftui.ui.screens.home import HomeScreen
from ftui.ui.theme import THEME

Begin = Literal["monitor", "report", "plan"]
"""Which screen of a campaign the app begins with."""


class FtuiApp(App[None]):
    """`campaign` None shows the list of campaigns, else one of them with the list behind it: its monitor, `begin` "report" its report
    over that, or "plan" the wizard on its plan."""

    TITLE = "ftui"
    CSS_PATH = "ftui.tcss"
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = True

    def __init__(self, campaign: CampaignFiles | None = None, *, begin: Begin = "monitor") -> None:
        super().__init__()
        self.campaign, self.begin = campaign, begin
        self.ascii_only = wants_ascii()
        self.register_theme(THEME)
        self.theme = THEME.name

    def on_mount(self) -> None:
        self.set_class(self.ascii_only, "-ascii")
        home = HomeScreen(self.campaign)
        self.push_screen(home)
        if self.campaign is None and self.begin == "plan":
            home.call_after_refresh(home.action_new)
        if self.campaign is not None and self.begin == "plan":
            from ftui.ui.screens.wizard import WizardScreen

            self.push_screen(WizardScreen(self.campaign))
        elif self.campaign is not None:
            from ftui.ui.screens.monitor import MonitorScreen

            self.push_screen(MonitorScreen(self.campaign))
            if self.begin == "report":
                from ftui.ui.screens.report import ReportScreen

                self.push_screen(ReportScreen(self.campaign))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette holds the actions of the screen, under the words and sentences of its keys."""
        if isinstance(screen, FtuiScreen):
            for word, sentence, call in screen.palette():
                yield SystemCommand(word, sentence, call)


def run_app(campaign: CampaignFiles | None, *, begin: Begin = "monitor") -> int:
    """Run the app until it is left; returns the exit code. Says which trainings go on."""
    app = FtuiApp(campaign, begin=begin)
    app.run()
    for (what, files), text in UNSAVED.items():
        print(f"This {what} for {files.name} was not saved:\n{text}", file=sys.stderr)
    for files in _still_running(campaign):
        print(f"{files.name} goes on without the app; `ftui open {files.name}` shows it again.", file=sys.stderr)
    return app.return_code or 0


def _still_running(campaign: CampaignFiles | None) -> list[CampaignFiles]:
    from ftui.engine.client import supervisor_alive
    from ftui.record.layout import known_campaigns

    known = known_campaigns()
    if campaign is not None and campaign not in known:
        known.append(campaign)
    return [files for files in known if supervisor_alive(files)]
