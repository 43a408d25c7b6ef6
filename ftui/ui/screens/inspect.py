"""The data as the loss will see it: examples token by token, and facts over all rows. Nothing is trained for it (D5, N4)."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from ftui.record.layout import CampaignFiles
from ftui.ui import keys
from ftui.ui.inspector import Inspector, InspectorError
from ftui.ui.screens.ask import TextQuestion
from ftui.ui.screens.base import FtuiScreen
from ftui.ui.widgets.example import ExamplePanel
from ftui.ui.widgets.facts import FactsPanel
from ftui.ui.widgets.lines import KeyLine, Part, StatusLine
from ftui.ui.words import cut

WIDE = 110
"""Cells from which example and facts stand side by side."""

WIDEST_FACTS = 150
"""Cells from which the facts have all the room they need, and the example gets more."""

SPLITS = ("train", "validation")
"""Splits whose rows may be seen; the test is sealed (H4)."""

ONLY = {"all": "all rows", "cut": "rows over the length", "unusable": "rows that cannot be used"}
ORDERS = {"data": "in the data's order", "longest": "longest first"}


class InspectScreen(FtuiScreen):
    """Asks a process of its own for every example; shows what it answers."""

    KEYS = keys.INSPECT
    BINDINGS: ClassVar[list[BindingType]] = list(keys.INSPECT)
    name_for_help = "Inspection"

    def __init__(self, files: CampaignFiles) -> None:
        super().__init__()
        self.files = files
        self.content: dict[str, Any] | None = None
        self.split, self.only, self.order = "train", "all", "data"
        self.category: str | None = None
        self.text = ""
        self.at, self.rows = 0, 0
        self._seen = "example"
        """Panel shown where there is room for one."""
        self._inspector: Inspector | None = None

    def compose(self) -> ComposeResult:
        yield StatusLine(id="status")
        yield StatusLine(id="chosen")
        with Horizontal(id="below"):
            yield ExamplePanel(id="example")
            yield FactsPanel(id="facts")
        yield KeyLine((*keys.INSPECT, *keys.EVERYWHERE))

    def on_mount(self) -> None:
        self._arrange()
        self.query_one(ExamplePanel).focus()
        self._status()
        self.load()

    async def on_unmount(self) -> None:
        await self._end()

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()
        self._ask_for_picture()

    async def _end(self) -> None:
        inspector, self._inspector = self._inspector, None
        if inspector:
            await inspector.end()

    @work(exclusive=True, group="load")
    async def load(self) -> None:
        """Read and encode the data, then show the example that is chosen."""
        await self._end()
        self.query_one(ExamplePanel).show(None, "reading and encoding the data")
        inspector = self._inspector = await Inspector.begin(self.files)
        try:
            self.content = await inspector.read()
        except InspectorError as problem:
            self._trouble(f"The data cannot be inspected: {problem}")
            return
        example, facts = self.query_one(ExamplePanel), self.query_one(FactsPanel)
        example.transform = self.content["transform"] or []
        facts.show([(title, lines) for title, lines in self.content["sections"]])
        self._status()
        self.choose()

    @work(exclusive=True, group="ask")
    async def choose(self) -> None:
        """Apply split, order and filters, then show the first row that is left."""
        if self._inspector is None or self.content is None:
            return
        wanted = {
            "split": self.split,
            "only": self.only,
            "category": self.category,
            "text": self.text,
            "order": self.order,
        }
        try:
            self.rows, self.at = (await self._inspector.ask(ask="choose", **wanted))["rows"], 0
            await self._show()
        except InspectorError as problem:
            self._trouble(str(problem))

    @work(exclusive=True, group="ask")
    async def show_example(self) -> None:
        try:
            await self._show()
        except InspectorError as problem:
            self._trouble(str(problem))

    def _trouble(self, sentence: str) -> None:
        """Say why there is nothing to show; nothing when this screen itself has ended the process."""
        if self._inspector is not None:
            self.query_one(ExamplePanel).show(None, sentence)

    async def _show(self) -> None:
        panel = self.query_one(ExamplePanel)
        self._say_what_is_chosen()
        if not self.rows or self._inspector is None:
            panel.show(None, "No row is left by this choice; Esc leaves, / and x change it.")
            return
        panel.show(await self._inspector.ask(ask="example", at=self.at))
        await self._draw()

    def _ask_for_picture(self) -> None:
        if self.query_one(ExamplePanel).example:
            self.draw_picture()

    @work(exclusive=True, group="picture")
    async def draw_picture(self) -> None:
        try:
            await self._draw()
        except InspectorError as problem:
            self._trouble(str(problem))

    async def _draw(self) -> None:
        """Have the example's picture made as large as the panel is."""
        panel = self.query_one(ExamplePanel)
        picture = panel.example["picture"] if panel.example else None
        if not picture or "problem" in picture or self._inspector is None:
            return
        width, height = max(8, panel.size.width), max(8, 2 * (panel.size.height - len(panel.transform) - 6))
        drawn = await self._inspector.ask(ask="picture", path=picture["path"], width=width, height=height)
        panel.show_picture(drawn["points"])

    # What is seen, and where.

    def _status(self) -> None:
        left: list[Part] = [(self.files.name, "bright"), ("  inspection", "muted")]
        right: list[Part] = []
        if self.content is not None:
            counts = {
                severity: sum(f["severity"] == severity for f in self.content["findings"])
                for severity in ("error", "warning")
            }
            said = [f"{n} {name}{'s' if n != 1 else ''}" for name, n in counts.items() if n]
            role = "bad" if counts["error"] else "warn" if counts["warning"] else "good"
            right = [(", ".join(said) or "nothing stands out", role)]
        self.query_one("#status", StatusLine).show(left, right)

    def _say_what_is_chosen(self) -> None:
        where = f"{self.at + 1:,} of {self.rows:,}" if self.rows else "none"
        said = [ONLY[self.only]] if self.only != "all" else []
        said += [f"category {self.category}"] if self.category is not None else []
        said += [f"with {cut(self.text, 24)!r}"] if self.text else []
        said += [ORDERS[self.order]]
        self.query_one("#chosen", StatusLine).show(
            [(self.split, "bright"), (f"  {', '.join(said)}", "muted")], [(where, "text")]
        )

    def _arrange(self) -> None:
        both = self.size.width >= WIDE
        example, facts = self.query_one(ExamplePanel), self.query_one(FactsPanel)
        example.display = both or self._seen == "example"
        facts.display = both or self._seen == "facts"
        example.styles.width = "3fr" if self.size.width >= WIDEST_FACTS else "2fr"
        facts.styles.width = "2fr"

    def action_focus_panel(self, name: str) -> None:
        self._seen = name
        self._arrange()
        self.query_one(f"#{name}").focus()

    def action_next_panel(self) -> None:
        self.action_focus_panel("facts" if self.query_one(ExamplePanel).has_focus else "example")

    # Which example.

    def action_step(self, rows: int) -> None:
        if self.rows:
            self.at = max(0, min(self.rows - 1, self.at + rows))
            self.show_example()

    def action_jump(self, end: int) -> None:
        self.action_step(end * self.rows)

    def action_to_loss(self) -> None:
        self.query_one(ExamplePanel).to_loss()

    def action_split(self) -> None:
        self.split = SPLITS[1 - SPLITS.index(self.split)]
        self.choose()

    def action_order(self) -> None:
        self.order = "longest" if self.order == "data" else "data"
        self.choose()

    def action_only(self) -> None:
        names = list(ONLY)
        self.only = names[(names.index(self.only) + 1) % len(names)]
        self.choose()

    def action_category(self, step: int) -> None:
        """The next category, all of them among the choices."""
        if self.content is None or len(self.content["counts"]) < 2:
            self.notify("There is one category.", markup=False)
            return
        choices: list[str | None] = [None, *self.content["counts"]]
        self.category = choices[(choices.index(self.category) + step) % len(choices)]
        self.choose()

    def action_filter(self) -> None:
        def apply(text: str | None) -> None:
            if text is not None:
                self.text = text
                self.choose()

        self.app.push_screen(TextQuestion("Rows that say", self.text), apply)

    def action_reload(self) -> None:
        self.load()
