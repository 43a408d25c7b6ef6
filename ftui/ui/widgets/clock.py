"""Panel 5: the rental clock and its burn-down, hours and money by phase, planned against spent."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.text import Text

from ftui.plan.budget import phase_use, training_ends_at
from ftui.record.backup import Safety, safety_mark
from ftui.record.state import Campaign
from ftui.ui.columns import Cell, Column, Row, fit_columns, row_line, title_line
from ftui.ui.glyphs import bar
from ftui.ui.summary import price
from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import hours, span

COLUMNS = (
    Column("phase", "phase", 10),
    Column("planned", "planned", 7, right=True),
    Column("spent", "spent", 5, right=True),
    Column("bar", "", 6, priority=2, grows=24),
    Column("money", "money", 13, right=True, priority=1, grows=5),
)


class ClockPanel(Panel):
    """Hours are of the rental, not of computing: a phase that waits for a person burns them too."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("5 Rental", id=id)
        self.state = Campaign()
        self.moment = datetime.min.replace(tzinfo=UTC)
        self.copies: Safety | None = None

    def show(self, state: Campaign, moment: datetime, copies: Safety | None = None) -> None:
        """`copies` is what is safe elsewhere, None while nobody has looked."""
        self.state, self.moment, self.copies = state, moment, copies
        self.changed()

    def subtitle(self) -> str:
        cost, plan = price(self.state), self.state.plan
        copies = "copied nowhere" if plan and plan.backup is None else safety_mark(self.copies)[0]
        money = f"{cost[0]:g} {cost[1]} per hour" if cost else ""
        return ", ".join(filter(None, (copies, money)))

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        plan, clock = self.state.plan, self.state.clock
        if plan is None or clock is None:
            return None, [Text("the clock starts with the launch", STYLES["muted"])]
        left = clock.left(self.moment).total_seconds()
        training = (training_ends_at(plan.rental, clock) - self.moment).total_seconds()
        ends = clock.ends_at.astimezone()
        lines = [
            _sentence("ends in " if left >= 0 else "ended ", span(abs(left)), f"  {ends:%a %d %b %H:%M}", left < 3600),
            _sentence("training may go on for ", span(training), "", training < 3600)
            if training > 0
            else _sentence("training is over since ", span(-training), "", True),
        ]
        uses = phase_use(plan.rental, self.state.spent_now(self.moment))
        fitted = fit_columns(COLUMNS, width)
        bar_width = next((w for c, w in fitted if c.key == "bar"), 6)
        lines.append(title_line(fitted))
        rate = plan.rental.price_per_hour
        for use in uses:
            cost, now = use.cost(rate), use.phase == self.state.phase and not self.state.closed
            over = use.spent_hours > use.planned_hours
            role = "bad" if over else "busy" if now else "muted"
            row: Row = {
                "phase": Cell(use.phase, "busy" if now else "text"),
                "planned": Cell(hours(use.planned_hours)),
                "spent": Cell(hours(use.spent_hours), "bad" if over else "text"),
                "bar": Cell(bar(use.spent_hours / (use.planned_hours or 1), bar_width, self.glyphs), role),
                "money": Cell(f"{cost[1]:.2f} of {cost[0]:.0f}" if cost else "", "text"),
            }
            lines.append(row_line(row, fitted))
        planned, spent = sum(u.planned_hours for u in uses), sum(u.spent_hours for u in uses)
        total: Row = {
            "phase": Cell("together", "muted"),
            "planned": Cell(hours(planned), "muted"),
            "spent": Cell(hours(spent), "muted"),
            "bar": Cell(bar(spent / planned, bar_width, self.glyphs), "muted"),
            "money": Cell(f"{spent * rate:.2f} of {planned * rate:.0f}" if rate is not None else "", "muted"),
        }
        return None, [*lines, row_line(total, fitted)]


def _sentence(before: str, value: str, after: str, urgent: bool) -> Text:
    parts = ((before, "muted"), (value, "warn" if urgent else "bright"), (after, "muted"))
    return Text.assemble(*((text, STYLES[role]) for text, role in parts), no_wrap=True, end="")
