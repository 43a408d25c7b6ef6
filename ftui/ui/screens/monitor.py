"""One campaign as it goes on: runs, curves, machine, gates, rental clock, log. Acts on the reader's messages only."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widget import Widget

from ftui.record.backup import Safety, safety_mark
from ftui.record.journal import now
from ftui.record.layout import CampaignFiles
from ftui.record.state import Campaign, Run
from ftui.ui import keys, pictures
from ftui.ui.calling import Caller
from ftui.ui.curves import RunCurve
from ftui.ui.layout import LOWER, PANELS, Arrangement, arrange
from ftui.ui.messages import CopiesRead, CurvesRead, GatesRead, LogRead, MachineRead, Polled, ReadFailed, StateRead
from ftui.ui.reader import Reader
from ftui.ui.screens.wishes import WishingScreen
from ftui.ui.summary import (
    event_lines,
    first_trouble,
    price,
    spent_hours,
    standing,
    summarise_run,
    validation_metrics,
)
from ftui.ui.view import View
from ftui.ui.widgets.clock import ClockPanel
from ftui.ui.widgets.gates import GatesPanel
from ftui.ui.widgets.line_chart import LineChart, x_extent
from ftui.ui.widgets.lines import KeyLine, Part, StatusLine
from ftui.ui.widgets.log import LogPanel
from ftui.ui.widgets.machine import MachinePanel
from ftui.ui.widgets.panel import Panel
from ftui.ui.widgets.runs import RunsPanel
from ftui.ui.words import money, span


class MonitorScreen(WishingScreen):
    """Watches; what it does to a campaign is leaving a request."""

    KEYS = keys.MONITOR
    BINDINGS: ClassVar[list[BindingType]] = list(keys.MONITOR)
    name_for_help = "Monitor"

    def __init__(self, files: CampaignFiles) -> None:
        super().__init__()
        self.files = files
        self.state = Campaign()
        self.alive = False
        self.totals: dict[str, int] = {}
        self.curves: dict[str, RunCurve] = {}
        self.copies: Safety | None = None
        self.caller = Caller(files.name)
        self.view = View()
        self.paused = False
        self.metric: str | None = None
        """Validation metric that the chart shows instead of the loss; where there is room both are shown."""
        self.full = False
        self.lower = "chart"
        """Panel shown below the runs where there is room for only one."""
        self.show_events = False
        self._log: LogRead | None = None
        self._reader: Reader | None = None
        self._held: dict[type[Message], Message] = {}
        self._curves_are_new = False
        self._ticked_at = monotonic()

    def compose(self) -> ComposeResult:
        yield StatusLine(id="status")
        yield RunsPanel(id="runs")
        yield StatusLine(id="tabs")
        with Horizontal(id="below"):
            with Vertical(id="left"):
                yield LineChart("2 Loss", id="chart")
                yield LineChart("", id="second")
                yield LogPanel(id="log")
            with Vertical(id="right"):
                yield MachinePanel(id="machine")
                yield GatesPanel(id="gates")
                yield ClockPanel(id="clock")
        yield KeyLine((*keys.MONITOR, *keys.EVERYWHERE))

    def on_mount(self) -> None:
        self.query_one("#second").can_focus = False
        self._status()
        self.query_one(RunsPanel).focus()
        self._reader = Reader(self.files, self.post_message)
        self.call_after_refresh(self._reader.start)
        self.set_interval(1.0, self._tick_if_late)

    def on_unmount(self) -> None:
        if self._reader:
            self._reader.end()

    # What the reader says. While the view is held still, the latest message of each kind waits.

    def _hold(self, message: Message) -> bool:
        if self.paused:
            if isinstance(message, CurvesRead) and isinstance(earlier := self._held.get(CurvesRead), CurvesRead):
                message = CurvesRead({**earlier.curves, **message.curves})
            self._held[type(message)] = message
        return self.paused

    @on(StateRead)
    def state_read(self, message: StateRead) -> None:
        self.hear(message.state)
        self.caller.hear(self.app, message.state)
        if not self._hold(message):
            self.state, self.alive, self.totals = message.state, message.alive, message.totals
            self._curves_are_new = True
            self._tick()
            self._draw_log()
            self._arrange()
            self._follow_log()

    @on(CurvesRead)
    def curves_read(self, message: CurvesRead) -> None:
        if not self._hold(message):
            self.curves.update(message.curves)
            self._curves_are_new = True  # drawn with everything else, when the reader has looked through

    @on(MachineRead)
    def machine_read(self, message: MachineRead) -> None:
        if not self._hold(message):
            self.query_one(MachinePanel).show(message.samples)
            self._arrange()

    @on(GatesRead)
    def gates_read(self, message: GatesRead) -> None:
        if not self._hold(message):
            going_on = self.alive and bool(self.state.gates) and self.state.gates[-1].ended_at is None
            self.query_one(GatesPanel).show(message.gates, message.rows, going_on, message.notes)
            self._arrange()

    @on(LogRead)
    def log_read(self, message: LogRead) -> None:
        if not self._hold(message):
            self._log = message
            self._draw_log()

    @on(CopiesRead)
    def copies_read(self, message: CopiesRead) -> None:
        if not self._hold(message):
            self.copies = message.safety  # drawn with the clock

    @on(ReadFailed)
    def read_failed(self, message: ReadFailed) -> None:
        self.notify(message.sentence, title="cannot be read", severity="error", markup=False, timeout=15)

    # Drawing.

    @on(Polled)
    def _tick(self) -> None:
        """Draw what changes with the clock, and the curves where there is something new, all in one go."""
        self._ticked_at = monotonic()
        self._status()
        if self.paused:
            return
        self.query_one(ClockPanel).show(self.state, now(), self.copies)
        if self.alive or self._curves_are_new:
            self._draw_runs()
        if self._curves_are_new:
            self._curves_are_new = False
            self._draw_curves()

    def _tick_if_late(self) -> None:
        """The reader beats the time; while a long series or a slow disk keeps it, the clock goes on."""
        if monotonic() - self._ticked_at > 1.5:
            self._tick()

    def _status(self) -> None:
        stands, moment = standing(self.state, self.alive), now()
        left: list[Part] = [(self.files.name, "bright"), (f"  {stands.word}", stands.role)]
        if self.alive and self.state.phase:
            left.append((f"  {self.state.phase}", "text"))
        if self.state.paused and not self.state.closed:
            left.append(("  queue paused, P goes on", "warn"))
        if self.paused:
            left.append(("  view held, p goes on", "warn"))
        elif (trouble := first_trouble(self.state)) and not self.state.closed:
            left.append((f"  {trouble}", "bad"))
        elif stands.hint:
            left.append((f"  {stands.hint}", "muted"))
        elif self.state.verdict:
            left.append((f"  verdict: {self.state.verdict}", "text"))
        right: list[Part] = []
        if self.copies and self.copies.cause:
            right.append((f"{safety_mark(self.copies)[0]}  ", "bad"))
        if self.state.clock:
            seconds = self.state.clock.left(moment).total_seconds()
            right.append(
                (f"ends in {span(seconds)}" if seconds > 0 else "rental ended", "warn" if seconds < 3600 else "text")
            )
            if (cost := price(self.state)) and not stands.hint:
                right.append((f"  {money(spent_hours(self.state, moment) * cost[0], cost[1])}", "muted"))
        self.query_one("#status", StatusLine).show(left, right)

    def _draw_runs(self) -> None:
        metric = next(iter(validation_metrics(self.state, self.curves.values())), "")
        rows = [
            summarise_run(self.state, self.alive, run, self.curves.get(run.id), self.totals.get(run.id, 0), metric)
            for run in self.state.in_order()
        ]
        panel = self.query_one(RunsPanel)
        never = "never launched: `s` on the first screen (Esc) or `ftui run` launches it"
        panel.empty_text = "nothing queued yet" if self.state.launched_at or self.alive else never
        panel.show(rows, pictures.letters(self.state), metric, now())

    def _draw_curves(self) -> None:
        runs = self.query_one(RunsPanel)
        drawn = pictures.drawn_runs(self.state, runs.marked)
        metrics, axis = validation_metrics(self.state, self.curves.values()), self.view.axis
        if self.metric not in metrics:
            self.metric = None
        name = self.metric or next(iter(metrics), "")
        known = [(run, self.curves[run.id]) for run in drawn if run.id in self.curves]
        marks = pictures.letters(self.state)
        loss = [pictures.loss_curve(run, curve, axis, *marks[run.id]) for run, curve in known]
        scores = [pictures.metric_curve(run, curve, axis, *marks[run.id], name) for run, curve in known]
        over = x_extent([*loss, *scores])
        front = runs.selected.run.id if runs.selected else None
        shown = [(f"Validation {name}".rstrip(), scores), ("Loss", loss)]
        for selector, (title, curves) in zip(("#chart", "#second"), shown if self.metric else shown[::-1], strict=True):
            chart = self.query_one(selector, LineChart)
            chart.title(f"2 {title}" if selector == "#chart" else title)
            chart.look(self.view)
            chart.empty_text = "no validation yet" if curves is scores else "no updates yet"
            chart.show(curves, over=over, front=front)
        self.view = self.query_one("#chart", LineChart).view

    def _draw_log(self) -> None:
        panel = self.query_one(LogPanel)
        if self.show_events:
            panel.border_title = "6 Events"
            panel.show("journal", [line for row in self.state.events for line in event_lines(row)])
        elif self._log:
            panel.border_title = "6 Log"
            panel.show(self._log.run or "supervisor", self._log.lines)

    def _arrange(self) -> None:
        """Give each panel its place for this size of terminal."""
        focused = self.full_panel
        plan: Arrangement = arrange(
            self.size.width,
            self.size.height,
            lower=self.lower,
            full=focused if self.full else None,
            runs=len(self.state.runs),
            machine=len(self.query_one(MachinePanel).lines_for(60)[1]),
        )
        for name in (*PANELS, "second", "tabs", "left", "right", "below"):
            self.query_one(f"#{name}").display = name in plan.shown
        for name, height in plan.heights.items():
            self.query_one(f"#{name}").styles.height = height
        self.query_one("#right").styles.width = plan.right_width
        self.query_one("#left").styles.width = "1fr"
        tabs: list[Part] = []
        for number, name in enumerate(LOWER, start=2):
            title = {"chart": "Chart", "machine": "Machine", "gates": "Gates", "clock": "Rental", "log": "Log"}[name]
            tabs.append((f"{number} {title}   ", "bright" if name == self.lower else "muted"))
        self.query_one("#tabs", StatusLine).show(tabs, [("Tab next", "muted")])

    @property
    def full_panel(self) -> str:
        """Name of the focused panel."""
        focused = self.focused
        return focused.id if isinstance(focused, Panel | LineChart) and focused.id else "runs"

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    # What keys wish.

    def action_focus_panel(self, name: str) -> None:
        if name != "runs":
            self.lower = name
        target = self.query_one(f"#{name}", Widget)
        if self.full or not target.display:
            # Shown before it is focused: a hidden widget does not take the focus.
            target.display = True
            for parent in target.ancestors:
                if isinstance(parent, Widget):
                    parent.display = True
        target.focus()
        self.call_after_refresh(self._arrange)

    def action_next_panel(self, direction: int) -> None:
        index = PANELS.index(self.full_panel)
        self.action_focus_panel(PANELS[(index + direction) % len(PANELS)])

    def action_full(self) -> None:
        self.full = not self.full
        self._arrange()

    async def action_back(self) -> None:
        """One layer: out of the full screen, else to the screen before."""
        if self.full:
            self.action_full()
        else:
            await super().action_back()

    def action_mark(self) -> None:
        self.query_one(RunsPanel).toggle_mark()
        self._draw_curves()

    def action_metric(self) -> None:
        """The next of what the series have: the loss, then each validation metric."""
        choices = [None, *validation_metrics(self.state, self.curves.values())]
        self.metric = choices[(choices.index(self.metric) + 1) % len(choices)] if self.metric in choices else None
        self._draw_curves()

    def _look(self, view: View) -> None:
        changed_axis = view.x_axis != self.view.x_axis
        self.view = view
        if changed_axis:
            self._draw_curves()
        for chart in self.query(LineChart):
            chart.look(view)

    def action_smooth(self, step: int) -> None:
        self._look(self.view.smoother(step))

    def action_log_y(self) -> None:
        self._look(self.view.toggled_log())

    def action_x_axis(self) -> None:
        self._look(self.view.next_axis())

    def action_zoom(self, direction: int) -> None:
        self._look(self.view.zoom(direction))

    def action_pan(self, direction: int) -> None:
        self._look(self.view.pan(direction))

    def action_follow(self) -> None:
        self._look(self.view.toggled_follow())
        panel = self.query_one(LogPanel)
        panel.follow = self.view.follow
        panel.changed()

    def action_pause(self) -> None:
        self.paused = not self.paused
        held, self._held = self._held, {}
        for message in held.values():
            self.post_message(message)
        self._tick()

    def action_wrap(self) -> None:
        self.query_one(LogPanel).toggle_wrap()

    def action_events(self) -> None:
        self.show_events = not self.show_events
        self._draw_log()

    def action_inspect(self) -> None:
        from ftui.ui.screens.inspect import InspectScreen

        self.app.push_screen(InspectScreen(self.files))

    def action_report(self) -> None:
        from ftui.ui.screens.report import ReportScreen

        self.app.push_screen(ReportScreen(self.files))

    @property
    def chosen_run(self) -> Run | None:
        selected = self.query_one(RunsPanel).selected
        return selected.run if selected else None

    @on(Panel.CursorMoved, "#runs")
    def run_selected(self) -> None:
        self._follow_log()
        self._draw_curves()

    def _follow_log(self) -> None:
        selected = self.query_one(RunsPanel).selected
        if self._reader:
            self._reader.follow_log(selected.run.id if selected else None)
