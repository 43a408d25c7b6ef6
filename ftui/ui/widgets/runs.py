"""Panel 1: the runs that were started, then those that wait as they will start; what each has done and how well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from rich.text import Text

from ftui.ui.columns import Cell, Column, Row, fit_columns, row_line, title_line, with_content_widths
from ftui.ui.glyphs import bar
from ftui.ui.summary import RunSummary
from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import metric, short_span

COLUMNS = (
    Column("mark", "", 2),
    Column("run", "run", 19, grows=24),
    Column("state", "state", 11),
    Column("bar", "", 10, priority=4, grows=10),
    Column("update", "update", 9, right=True),
    Column("eta", "left", 5, right=True, priority=1),
    Column("loss", "loss", 6, right=True, priority=3),
    Column("best", "best", 6, right=True, priority=2),
    Column("last", "last", 6, right=True),
    Column("beat", "seen", 4, right=True, priority=5),
    Column("why", "why", 24, priority=6, grows=120),
)


class RunsPanel(Panel):
    """The cursor chooses the run that the log, the chart's front and the keys for one run mean."""

    has_cursor = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("1 Runs", id=id)
        self.summaries: list[RunSummary] = []
        self.letters: Mapping[str, tuple[str, str]] = {}
        self.marked: set[str] = set()
        self.moment = datetime.min.replace(tzinfo=UTC)
        self.empty_text = "nothing queued yet"
        self.metric = ""

    @property
    def selected(self) -> RunSummary | None:
        return self.summaries[self.cursor] if self.cursor < len(self.summaries) else None

    def show(
        self,
        summaries: Sequence[RunSummary],
        letters: Mapping[str, tuple[str, str]],
        metric_name: str,
        moment: datetime,
    ) -> None:
        """Replace the rows; the cursor stays on its run. `letters` are letter and colour in the chart, by run."""
        chosen = self.selected.run.id if self.selected else _first_to_look_at(summaries)
        self.summaries, self.letters, self.moment = list(summaries), letters, moment
        self.metric = metric_name
        self.cursor = next((i for i, s in enumerate(self.summaries) if s.run.id == chosen), self.cursor)
        self.changed()

    def toggle_mark(self) -> None:
        """Mark the run under the cursor, or take its mark away."""
        if self.selected:
            self.marked ^= {self.selected.run.id}
            self.changed()

    def subtitle(self) -> str:
        return f"best, last: {self.metric}" if self.summaries else ""

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        if not self.summaries:
            return None, [Text(self.empty_text, STYLES["muted"])]
        bar_width = next((w for c, w in fit_columns(COLUMNS, width) if c.key == "bar"), 10)
        rows = [self._row(s, bar_width) for s in self.summaries]
        fitted = fit_columns(with_content_widths(COLUMNS, rows), width)
        return title_line(fitted), [row_line(row, fitted) for row in rows]

    def _row(self, summary: RunSummary, bar_width: int) -> Row:
        run, beat = summary.run, summary.heartbeat_at
        letter, colour = self.letters.get(run.id, ("", "text"))
        why = run.cause or (run.held if run.kept else None) or run.because
        if run.follows is not None:
            why = f"follows {run.follows}: {why}"
        return {
            "mark": Cell(f"{letter:1}{self.glyphs.mark if run.id in self.marked else ' '}", colour),
            "run": Cell(run.id, "bright" if summary.status == "running" else "text"),
            "state": Cell(summary.status, summary.role),
            "bar": Cell(bar(summary.share, bar_width, self.glyphs), summary.role),
            "update": Cell(f"{summary.update}/{summary.total}" if summary.total else "baseline", "text"),
            "eta": Cell(short_span(summary.eta_seconds) if summary.eta_seconds is not None else "", "text"),
            "loss": Cell(metric(summary.loss)[:6] if summary.loss is not None else "", "text"),
            "best": Cell(metric(summary.best) if summary.best is not None else "", "text"),
            "last": Cell(metric(summary.last) if summary.last is not None else "", "text"),
            "beat": Cell(short_span(self.moment.timestamp() - beat) if beat is not None else "", "muted"),
            "why": Cell(why, summary.role if run.cause else "muted"),
        }


def _first_to_look_at(summaries: Sequence[RunSummary]) -> str | None:
    """The first run that is going on, else the first of the queue."""
    going_on = [s.run.id for s in summaries if s.run.status == "running"]
    return next(iter(going_on), None)
