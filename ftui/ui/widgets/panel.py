"""The frame of every region: a titled border, lines that scroll, and a cursor where there is something to choose."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ftui.ui import keys
from ftui.ui.glyphs import Glyphs, glyphs
from ftui.ui.theme import CURSOR, STYLES


class Panel(Widget, can_focus=True):
    """Lines of text under an optional line of titles. Subclasses give the lines for a width; the panel scrolls and draws."""

    BINDINGS: ClassVar[list[BindingType]] = list(keys.PANEL)

    class CursorMoved(Message):
        """Another line is under the cursor."""

        def __init__(self, panel: Panel, line: int) -> None:
            super().__init__()
            self.panel, self.line = panel, line

        @property
        def control(self) -> Panel:
            return self.panel

    class Chosen(CursorMoved):
        """Enter was pressed on a line."""

    has_cursor = False
    """Whether one line is chosen; a panel without a cursor scrolls."""

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = title
        self.cursor = 0
        self.top = 0
        """First line shown."""
        self._lines: list[Text] = []
        self._titles: Text | None = None
        self._built_for: int | None = None
        self._base = Style.null()
        """The panel's own colours, which are costly to work out for each line."""
        self._subtitle_shown = ""

    @property
    def glyphs(self) -> Glyphs:
        return glyphs(bool(getattr(self.app, "ascii_only", False)))

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        """The titles (None: no such line) and the lines, for a content `width` cells wide."""
        raise NotImplementedError

    def changed(self) -> None:
        """What `lines_for` would give may have changed; the lines that did are drawn anew."""
        known, before = self._built_for is not None, self._shown()
        self._built_for = None
        if not known or not self.size:
            self.refresh()
            return
        self._build()
        different = [y for y, (old, new) in enumerate(zip(before, self._shown(), strict=True)) if old != new]
        if different:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in different))

    def _shown(self) -> list[object]:
        """What decides how each line of the panel looks."""
        titles = [self._titles] if self._titles is not None else []
        shown: list[object] = []
        for y in range(self.size.height):
            index = self.top + y - len(titles)
            line = titles[0] if y < len(titles) else self._lines[index] if 0 <= index < len(self._lines) else None
            parts = line and (line.plain, line.spans, line.style)
            shown.append((parts, self.has_cursor and y >= len(titles) and index == self.cursor))
        return shown

    def _build(self) -> None:
        if self._built_for != self.size.width:
            self._titles, self._lines = self.lines_for(self.size.width - self._margin)
            self._built_for = self.size.width
            self._base = self.rich_style
            self.cursor = min(self.cursor, max(0, len(self._lines) - 1))
            self._keep_in_view()

    @property
    def _margin(self) -> int:
        """Cells at the left that hold the cursor's glyph."""
        return 2 if self.has_cursor else 0

    @property
    def page(self) -> int:
        """Lines that fit under the titles."""
        return max(1, self.size.height - (self._titles is not None))

    def _keep_in_view(self) -> None:
        if self.has_cursor:
            self.top = min(self.top, self.cursor)
            self.top = max(self.top, self.cursor - self.page + 1)
        self.top = max(0, min(self.top, len(self._lines) - self.page))
        below = len(self._lines) - self.top - self.page
        marks = ("↑" if self.top else "") + ("↓" if below > 0 else "") if self.glyphs.braille else ""
        position = f"{self.top + self.page} of {len(self._lines)}" if below > 0 or self.top else ""
        text = "  ".join(filter(None, (self.subtitle(), f"{marks} {position}".strip())))
        if text != self._subtitle_shown:
            self._subtitle_shown = text
            self.call_later(self._set_subtitle)  # not while a line is being drawn: it refreshes the border

    def _set_subtitle(self) -> None:
        self.border_subtitle = Content(self._subtitle_shown)

    def subtitle(self) -> str:
        """Text in the lower border."""
        return ""

    def render_line(self, y: int) -> Strip:
        self._build()
        width, base = self.size.width, self._base
        titles = self._titles is not None
        index = self.top + y - titles
        if titles and y == 0:
            line: Text | None = self._titles
        else:
            line = self._lines[index] if 0 <= index < len(self._lines) else None
        if line is None:
            return Strip.blank(width, base)
        chosen = self.has_cursor and index == self.cursor and not (titles and y == 0)
        margin = (self.glyphs.cursor if chosen else " ").ljust(self._margin) if self._margin else ""
        strip = Strip([Segment(margin, STYLES["busy"]), *segments(line, self)]).adjust_cell_length(width)
        if chosen:
            base += Style(bgcolor=CURSOR, bold=self.has_focus)
        return strip.apply_style(base)

    def on_resize(self, event: events.Resize) -> None:
        self._built_for = None
        self.call_after_refresh(self._place)

    def _place(self) -> None:
        """Say anew which lines are in view: none may have to be drawn for it. A panel that is hidden has no place for any."""
        if self.size.width > self._margin and self.size.height > 0:
            self._build()

    def move(self, lines: int) -> None:
        """Move the cursor, or scroll where there is none."""
        if not self.has_cursor:
            self.top += lines
            self._keep_in_view()
            self.refresh()
            return
        before, self.cursor = self.cursor, max(0, min(self.cursor + lines, len(self._lines) - 1))
        self._keep_in_view()
        self.refresh()
        if self.cursor != before:
            self.post_message(self.CursorMoved(self, self.cursor))

    def action_move(self, lines: int) -> None:
        self.move(lines)

    def action_page(self, pages: int) -> None:
        self.move(pages * self.page)

    def action_end(self, direction: int) -> None:
        self.move(direction * max(1, len(self._lines)))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move(3 if not self.has_cursor else 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move(-3 if not self.has_cursor else -1)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and self.has_cursor:
            line = self.top + offset.y - (self._titles is not None)
            if 0 <= line < len(self._lines):
                self.move(line - self.cursor)


def segments(line: Text, widget: Widget) -> list[Segment]:
    """The styled parts of a line. A text without spans gives its own style away only when asked for it."""
    own = line.style if isinstance(line.style, Style) else Style.null()
    return [Segment(text, own + style if style else own) for text, style, _ in line.render(widget.app.console) if text]
