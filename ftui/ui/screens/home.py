"""The first screen: campaigns, how each stands, and what can be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from ftui.plan.load import PlanError, UnreadablePlan, load_plan
from ftui.record.journal import now, read_journal
from ftui.record.layout import CampaignFiles, campaign_folders, known_campaigns
from ftui.record.state import Campaign, fold
from ftui.ui import keys
from ftui.ui.columns import Cell, Column, Row, fit_columns, row_line, title_line, with_content_widths
from ftui.ui.glyphs import bar
from ftui.ui.screens.ask import TextQuestion
from ftui.ui.screens.base import FtuiScreen
from ftui.ui.screens.entry import TextEntry
from ftui.ui.summary import ROLE_OF_VERDICT, price, runs_ended, spent_hours, standing
from ftui.ui.theme import STYLES
from ftui.ui.widgets.about import AboutPanel, Found, problem_line
from ftui.ui.widgets.lines import KeyLine, StatusLine
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import money, span

RELOAD_SECONDS = 5.0

COLUMNS = (
    Column("name", "campaign", 20, grows=20),
    Column("state", "state", 14, grows=6),
    Column("phase", "phase", 10, priority=4),
    Column("bar", "", 8, priority=3, grows=8),
    Column("runs", "runs", 5, right=True),
    Column("left", "ends in", 9, right=True, priority=1),
    Column("spent", "spent", 11, right=True, priority=5),
    Column("verdict", "verdict", 13, priority=2),
    Column("sentence", "", 30, priority=6, grows=120),
)


@dataclass
class CampaignsRead(Message):
    """The list was read."""

    found: list[Found]


class CampaignList(Panel):
    """One line per campaign."""

    has_cursor = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("Campaigns", id=id)
        self.found: list[Found] | None = None
        self.moment = datetime.min.replace(tzinfo=UTC)

    @property
    def selected(self) -> Found | None:
        return self.found[self.cursor] if self.found and self.cursor < len(self.found) else None

    def show(self, found: list[Found], moment: datetime) -> None:
        chosen = self.selected.files if self.selected else None
        self.found, self.moment = found, moment
        self.cursor = next((i for i, f in enumerate(found) if f.files == chosen), self.cursor)
        self.changed()

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        if self.found is None:
            return None, [Text("looking for campaigns", STYLES["muted"])]
        if not self.found:
            looked = " and ".join(str(folder) for folder in campaign_folders())
            lines = (
                "No campaign here yet.",
                "",
                "N plans one step by step (`ftui new NAME`); d looks at this machine.",
                f"Looked in {looked}.",
            )
            return None, [Text(line, STYLES["muted"]) for line in lines]
        bar_width = next((w for c, w in fit_columns(COLUMNS, width) if c.key == "bar"), 8)
        rows = [self._row(found, bar_width) for found in self.found]
        fitted = fit_columns(with_content_widths(COLUMNS, rows), width)
        return title_line(fitted), [row_line(row, fitted) for row in rows]

    def _row(self, found: Found, bar_width: int) -> Row:
        state, stands = found.state, standing(found.state, found.alive)
        if found.problem:
            return {
                "name": Cell(found.files.name),
                "state": Cell("unreadable", "bad"),
                "sentence": Cell(found.problem, "bad"),
            }
        if found.problems:
            count = len(found.problems)
            return {
                "name": Cell(found.files.name, "bright"),
                "state": Cell(f"draft, {count} problem{'s' if count != 1 else ''}", "warn"),
                "sentence": Cell("its plan cannot be used yet; what is missing stands below", "muted"),
            }
        done, total = runs_ended(state)
        cost = price(state)
        spent = spent_hours(state, self.moment)
        return {
            "name": Cell(found.files.name, "bright"),
            "state": Cell(stands.word, stands.role),
            "phase": Cell(state.phase if state.phase and not state.closed else "", "text"),
            "bar": Cell(bar(done / total, bar_width, self.glyphs) if total else "", stands.role),
            "runs": Cell(f"{done}/{total}" if total else ""),
            "left": _left(state, self.moment),
            "spent": Cell(money(spent * cost[0], cost[1]) if cost else span(spent * 3600) if state.launched_at else ""),
            "verdict": Cell(state.verdict or "", ROLE_OF_VERDICT.get(state.verdict or "", "text")),
            "sentence": Cell(state.verdict_sentence or stands.hint.replace("`", ""), "muted"),
        }


def _left(state: Campaign, moment: datetime) -> Cell:
    if state.clock is None:
        return Cell("")
    left = state.clock.left(moment).total_seconds()
    return Cell(span(left) if left > 0 else "ended", "text" if left >= 3600 or state.closed else "warn")


class HomeScreen(FtuiScreen):
    """Paints first; the list comes from a worker, again every few seconds."""

    KEYS = keys.HOME
    BINDINGS: ClassVar[list[BindingType]] = list(keys.HOME)
    name_for_help = "Campaigns"

    def __init__(self, opened: CampaignFiles | None = None) -> None:
        super().__init__()
        self._opened = opened
        """A campaign that was named when the app was started: listed even where nobody would look for it."""

    def compose(self) -> ComposeResult:
        yield StatusLine(id="status")
        yield CampaignList(id="campaigns")
        yield AboutPanel(id="about")
        yield KeyLine((*keys.HOME, *keys.EVERYWHERE))

    def on_mount(self) -> None:
        self.query_one(StatusLine).show(
            [("ftui", "bright"), ("  from a written hypothesis to a defensible fine-tune", "muted")]
        )
        self.query_one(CampaignList).focus()
        self.call_after_refresh(self.load)
        self.set_interval(RELOAD_SECONDS, self._reload_if_seen)

    def on_screen_resume(self) -> None:
        self.load()

    def _reload_if_seen(self) -> None:
        if self.is_active:  # a screen behind another counts as current
            self.load()

    @work(thread=True, exclusive=True)
    def load(self) -> None:
        """Read all journals and post the list."""
        known = known_campaigns()
        if self._opened is not None and self._opened not in known:
            known.append(self._opened)
        self.post_message(CampaignsRead([_read(files) for files in known]))

    @on(CampaignsRead)
    def show_campaigns(self, message: CampaignsRead) -> None:
        campaigns = self.query_one(CampaignList)
        campaigns.styles.height = min((len(message.found) or 3) + 3, max(6, self.size.height // 2))
        campaigns.show(message.found, now())
        self.show_about()

    @on(Panel.CursorMoved, "#campaigns")
    def show_about(self) -> None:
        self.query_one(AboutPanel).show(self.query_one(CampaignList).selected)

    @property
    def _chosen(self) -> CampaignFiles | None:
        selected = self.query_one(CampaignList).selected
        return selected.files if selected else None

    @property
    def campaign_files(self) -> CampaignFiles | None:
        """The campaign under the cursor."""
        return self._chosen

    def action_open(self) -> None:
        if self._chosen:
            from ftui.ui.screens.monitor import MonitorScreen

            self.app.push_screen(MonitorScreen(self._chosen))

    def action_report(self) -> None:
        if self._chosen:
            from ftui.ui.screens.report import ReportScreen

            self.app.push_screen(ReportScreen(self._chosen))

    def action_inspect(self) -> None:
        if self._chosen:
            from ftui.ui.screens.inspect import InspectScreen

            self.app.push_screen(InspectScreen(self._chosen))

    def action_edit(self) -> None:
        if self._chosen:
            self._open_plan(self._chosen)

    def action_new(self) -> None:
        self.app.push_screen(TextQuestion("Name of the new campaign"), self._begin)

    def _begin(self, name: str | None) -> None:
        from ftui.ui.wizard.begin import BadName, begin_plan

        if not name or not name.strip():
            return
        try:
            self._open_plan(CampaignFiles(begin_plan(name)))
        except (BadName, OSError) as problem:
            self.notify(str(problem), severity="error", markup=False)

    def _open_plan(self, files: CampaignFiles) -> None:
        from ftui.ui.screens.wizard import WizardScreen

        self.app.push_screen(WizardScreen(files))

    def action_doctor(self) -> None:
        from ftui.ui.screens.doctor import DoctorScreen

        self.app.push_screen(DoctorScreen())

    def action_reload(self) -> None:
        self.load()

    def action_start(self) -> None:
        if self._chosen:
            self.start(self._chosen)

    @work(thread=True, group="start")
    def start(self, files: CampaignFiles) -> None:
        """Launch or continue a campaign; its supervisor lives on without this app."""
        from ftui.engine.client import EngineError, ReasonNeeded, start

        try:
            pid = start(files)
        except ReasonNeeded as needed:
            self.app.call_from_thread(self.ask_reason, files, needed.changed)
            return
        except EngineError as error:
            self.app.call_from_thread(self.notify, str(error), title=files.name, severity="error", markup=False)
            return
        self.app.call_from_thread(self.notify, f"supervised by process {pid}", title=files.name, markup=False)
        self.app.call_from_thread(self.load)

    def ask_reason(self, files: CampaignFiles, changed: list[str]) -> None:
        """Ask why the plan was changed after runs had begun, and start with the answer."""
        from ftui.engine.client import start

        def save(because: str) -> str:
            return f"supervised by process {start(files, because=because)}"

        about = f"Changed since runs began: {', '.join(changed)}. The reason goes into the journal and the report."
        self.app.push_screen(TextEntry("Why was the plan changed?", about, ("reason", files), save))


def _read(files: CampaignFiles) -> Found:
    from ftui.engine.client import supervisor_alive

    try:
        state = fold(read_journal(files.journal))
        if state.plan is not None:
            return Found(files, state, supervisor_alive(files), state.plan)
        try:
            return Found(files, state, supervisor_alive(files), load_plan(files.root))
        except UnreadablePlan as error:
            return Found(files, state, False, problem=problem_line(error.problems[0]))
        except PlanError as error:
            return Found(files, state, False, problems=error.problems)
    except Exception as error:  # one unreadable campaign must not hide the others
        return Found(files, Campaign(), False, problem=f"{type(error).__name__}: {error}")
