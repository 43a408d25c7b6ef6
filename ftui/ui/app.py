"""The Textual app: the screens' stack, the theme, the palette. Everything else is in the screens."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.screen import Screen

from ftui.record.layout import CampaignFiles
from ftui.ui.glyphs import wants_ascii
from ftui.ui.screens.base import FtuiScreen
from ftui.ui.screens.entry import UNSAVED
from ftui.ui.screens.home import HomeScreen
from ftui.ui.theme import THEME


class FtuiApp(App[None]):
    """`campaign` None shows the list of campaigns, else the monitor of one with the list behind it; `report` its report on top."""

    TITLE = "ftui"
    CSS_PATH = "ftui.tcss"
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = True

    def __init__(self, campaign: CampaignFiles | None = None, *, report: bool = False) -> None:
        super().__init__()
        self.campaign, self.begin_with_report = campaign, report
        self.ascii_only = wants_ascii()
        self.register_theme(THEME)
        self.theme = THEME.name

    def on_mount(self) -> None:
        self.set_class(self.ascii_only, "-ascii")
        self.push_screen(HomeScreen(self.campaign))
        if self.campaign is not None:
            from ftui.ui.screens.monitor import MonitorScreen

            self.push_screen(MonitorScreen(self.campaign))
            if self.begin_with_report:
                from ftui.ui.screens.report import ReportScreen

                self.push_screen(ReportScreen(self.campaign))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette holds the actions of the screen, under the words and sentences of its keys."""
        if isinstance(screen, FtuiScreen):
            for word, sentence, call in screen.palette():
                yield SystemCommand(word, sentence, call)


def run_app(campaign: CampaignFiles | None, *, report: bool = False) -> int:
    """Run the app until it is left; returns the exit code. Says which trainings go on."""
    app = FtuiApp(campaign, report=report)
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
