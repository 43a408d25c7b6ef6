"""What all whole screens share: help, notes, leaving, going back one layer, and the palette's actions made of the bindings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from ftui.record.layout import CampaignFiles
from ftui.ui import keys


class FtuiScreen(Screen[None]):
    """A whole screen. `KEYS` are its own bindings; those that work everywhere come on top."""

    KEYS: ClassVar[tuple[Binding, ...]] = ()
    BINDINGS: ClassVar[list[BindingType]] = list(keys.EVERYWHERE)
    name_for_help = ""
    has_notebook: ClassVar[bool] = True
    """Whether the screen is about a campaign, or a choice of them; where it is not, there is no key for notes."""

    @property
    def everywhere(self) -> tuple[Binding, ...]:
        """The keys that work on every screen, as far as they do on this one."""
        return tuple(b for b in keys.EVERYWHERE if self.has_notebook or b.id != "app.note")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.has_notebook if action == "note" else super().check_action(action, parameters)

    def palette(self) -> Iterator[tuple[str, str, Any]]:
        """Actions for the palette: word, sentence, and what to call."""
        for binding in (*self.KEYS, *self.everywhere):
            if binding.id not in ("app.palette", "app.back"):
                yield (
                    f"{binding.description} ({keys.shown_key(binding)})",
                    binding.tooltip,
                    self._caller(binding.action),
                )

    def _caller(self, action: str) -> Any:
        async def call() -> None:
            await self.run_action(action)

        return call

    def action_help(self) -> None:
        from ftui.ui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.name_for_help, self.KEYS, self.everywhere))

    @property
    def campaign_files(self) -> CampaignFiles | None:
        """The campaign that this screen is about, for its notebook; None: about none. A screen's `files` unless it says otherwise."""
        files = getattr(self, "files", None)
        return files if isinstance(files, CampaignFiles) else None

    def action_note(self) -> None:
        if self.campaign_files is None:
            self.notify("There is no campaign here that a note could belong to.", markup=False)
            return
        from ftui.ui.screens.entry import note_entry

        self.app.push_screen(note_entry(self.campaign_files), self.noted)

    def noted(self, saved: bool | None) -> None:
        """The dialog for a note was closed, the note `saved` or not. For screens that show the notebook."""

    async def action_leave(self) -> None:
        self.app.exit()

    async def action_back(self) -> None:
        """Leave this screen; the first one stays."""
        if len(self.app.screen_stack) > 2:
            self.dismiss()
