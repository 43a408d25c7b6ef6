"""What a person sees of the app, as text, and waiting for it."""

from __future__ import annotations

from collections.abc import Callable

from textual.pilot import Pilot
from textual.widget import Widget

from ftui.ui.app import FtuiApp


def lines(app: FtuiApp) -> list[str]:
    """The screen, line by line."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


def text(app: FtuiApp) -> str:
    return "\n".join(lines(app))


def inside(widget: Widget) -> list[str]:
    """The lines of one widget without its border."""
    return [widget.render_line(y).text for y in range(widget.size.height)]


async def until(pilot: Pilot[None], condition: Callable[[], object], what: str, seconds: float = 15) -> None:
    """Let the app work until `condition` holds; fails with what was awaited and what is on the screen."""
    for _ in range(int(seconds / 0.02)):
        await pilot.pause(0.02)
        if condition():
            await pilot.pause()
            return
    screen = text(pilot.app) if isinstance(pilot.app, FtuiApp) else ""
    raise AssertionError(f"waited {seconds} s for {what}; the screen shows:\n{screen}")
