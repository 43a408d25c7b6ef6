"""The report of a campaign as text, read only: works on a copied record, without a GPU and without the model (C7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from ftui.record.layout import CampaignFiles
from ftui.record.text import wrap
from ftui.ui import keys
from ftui.ui.screens.base import FtuiScreen
from ftui.ui.summary import ROLE_OF_VERDICT
from ftui.ui.theme import STYLES
from ftui.ui.widgets.lines import KeyLine, StatusLine
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import cut

if TYPE_CHECKING:
    from ftui.report.model import Report

WIDEST = 120
"""Cells beyond which lines of prose are tiring to read."""


@dataclass
class ReportRead(Message):
    """The report, None with a sentence when there is none to show."""

    report: Report | None
    sentence: str = ""


class ReportPanel(Panel):
    """The blocks of a report, wrapped and aligned by cells at the width there is."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("Report", id=id)
        self.report: Report | None = None
        self.sentence = "reading the report"

    def show(self, report: Report | None, sentence: str) -> None:
        self.report, self.sentence = report, sentence
        self.changed()

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        if self.report is None:
            return None, [Text(cut(self.sentence, width), STYLES["muted"])]
        from ftui.report.blocks import Heading, Paragraph
        from ftui.report.outline import outline
        from ftui.report.text import render

        width = min(width, WIDEST)
        lines: list[Text] = []
        for block in outline(self.report):
            role = "bright" if isinstance(block, Paragraph) and block.strong else "text"
            if isinstance(block, Heading):
                role = "bright" if block.level == 1 else "busy"
            shown = wrap(block.text, width) if isinstance(block, Heading) else render(block, width)
            if lines:
                lines.append(Text(""))
            lines += [Text(line, STYLES[role], no_wrap=True, end="") for line in shown]
        return None, lines


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
        yield ReportPanel(id="report")
        yield KeyLine((*keys.REPORT, *keys.EVERYWHERE))

    def on_mount(self) -> None:
        self.query_one(StatusLine).show([(self.files.name, "bright"), ("  report", "muted")])
        self.query_one(ReportPanel).focus()
        self.load()

    @work(thread=True, exclusive=True)
    def load(self) -> None:
        """Read the report, or build it from the record where none was written yet, and post it. Writes nothing."""
        from ftui.report.build import ReportError, current_report

        try:
            report = current_report(self.files)
        except ReportError as error:
            self.post_message(ReportRead(None, f"The report cannot be read: {error}"))
            return
        self.post_message(ReportRead(report, ""))

    @on(ReportRead)
    def show(self, message: ReportRead) -> None:
        self.query_one(ReportPanel).show(message.report, message.sentence)
        if message.report:
            word = message.report.verdict.word
            left = [(self.files.name, "bright"), ("  report  ", "muted"), (word, ROLE_OF_VERDICT.get(word, "text"))]
            self.query_one(StatusLine).show(left)

    def noted(self, saved: bool | None) -> None:
        if saved:
            self.load()

    def action_page(self, pages: int) -> None:
        self.query_one(ReportPanel).action_page(pages)
