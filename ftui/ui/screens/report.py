"""The report of a campaign as text, read only: works on a copied record, without a GPU and without the model (C7)."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Markdown

from ftui.record.layout import CampaignFiles
from ftui.record.text import safe
from ftui.ui import keys
from ftui.ui.screens.base import FtuiScreen
from ftui.ui.widgets.lines import KeyLine, StatusLine


class ReportScreen(FtuiScreen):
    """Shows what `ftui.report` wrote; computes nothing."""

    KEYS = keys.REPORT
    BINDINGS: ClassVar[list[BindingType]] = list(keys.REPORT)
    name_for_help = "Report"

    def __init__(self, files: CampaignFiles) -> None:
        super().__init__()
        self.files = files

    def compose(self) -> ComposeResult:
        yield StatusLine(id="status")
        with VerticalScroll(id="page"):
            yield Markdown(id="text", open_links=False)
        yield KeyLine((*keys.REPORT, *keys.EVERYWHERE))

    def on_mount(self) -> None:
        self.query_one(StatusLine).show([(self.files.name, "bright"), ("  report", "muted")])
        self.query_one("#page").focus()
        self.load()

    @work(thread=True, exclusive=True)
    def load(self) -> None:
        """Read the report and hand its text to the screen."""
        from ftui.report.build import ReportError, load_report
        from ftui.report.markdown import to_markdown

        try:
            report = load_report(self.files)
            text = to_markdown(report) if report else "No report yet. It is written when the campaign closes."
        except ReportError as error:
            text = f"The report cannot be read.\n\n    {safe(str(error))}"
        self.app.call_from_thread(self.query_one(Markdown).update, text)

    @property
    def _page(self) -> VerticalScroll:
        return self.query_one("#page", VerticalScroll)

    def action_scroll_lines(self, lines: int) -> None:
        self._page.scroll_relative(y=lines, animate=False)

    def action_scroll_page(self, pages: int) -> None:
        self._page.scroll_relative(y=pages * (self._page.size.height - 1), animate=False)

    def action_scroll_far(self, direction: int) -> None:
        (self._page.scroll_end if direction > 0 else self._page.scroll_home)(animate=False)
