"""Panel 4: the latest pass through the gates, one row per gate and process: verdict, memory, time, cause."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import events

from ftui.record.preflight import found_words
from ftui.record.rows import GATE_NAMES, GateRow
from ftui.record.text import wrap
from ftui.ui.columns import Cell, Column, Row, fit_columns, row_line, title_line, with_content_widths
from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import cut, gib, span

COLUMNS = (
    Column("gate", "gate", max(map(len, GATE_NAMES))),
    Column("verdict", "verdict", 7),
    Column("memory", "peak", 7, right=True),
    Column("time", "time", 6, right=True, grows=6),
    Column("device", "device", 6, priority=3, grows=6),
    Column("cause", "found", 24, priority=2, grows=200),
)

ROLES = {"passed": "good", "failed": "bad", "skipped": "muted", "waiting": "muted", "running": "busy"}


class GatesPanel(Panel):
    """Gates that have not been reached yet are shown as waiting."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("4 Gates", id=id)
        self.rows: list[GateRow] = []
        self.gates = ""
        self.going_on = False
        self.notes: list[str] = []
        self._moved = False
        """A person has scrolled; nothing else does so any more."""

    def show(self, gates: str, rows: Sequence[GateRow], going_on: bool, notes: Sequence[str] = ()) -> None:
        """`notes` stand below the gates (`record.preflight.gate_notes`)."""
        self._moved = self._moved and gates == self.gates
        self.gates, self.rows, self.going_on, self.notes = gates, list(rows), going_on, list(notes)
        self.changed()
        if not self._moved:
            self._to_what_matters()

    def move(self, lines: int) -> None:
        self._moved = True
        super().move(lines)

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        if not self._moved:
            self.call_after_refresh(self._to_what_matters)

    def _to_what_matters(self) -> None:
        """Scroll until the gate that failed, or the one tried last, is in view."""
        failed = next((i for i, row in enumerate(self.rows) if row.verdict == "failed"), len(self.rows))
        self.top = max(0, failed + 1 - self.page)
        self._keep_in_view()
        self.refresh()

    def subtitle(self) -> str:
        return self.gates

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        if not self.gates:
            return None, [Text("no gate has been tried yet", STYLES["muted"])]
        rows = [_row(row) for row in self.rows]
        reached = {row.gate for row in self.rows}
        waiting = [name for name in GATE_NAMES if name not in reached]
        for index, name in enumerate(waiting):
            word = "running" if index == 0 and self.going_on else "waiting"
            rows.append({"gate": Cell(name, "muted"), "verdict": Cell(word, ROLES[word])})
        fitted = fit_columns(with_content_widths(COLUMNS, rows), width)
        lines = [row_line(row, fitted) for row in rows]
        if self.notes:
            lines.append(Text(""))
        for note in self.notes:
            indent = note[: len(note) - len(note.lstrip())]
            whole = "  " in note.strip()  # a line with columns is cut, a sentence wrapped
            parts = [cut(note, width)] if whole else [indent + part for part in wrap(note.strip(), width - len(indent))]
            lines += [Text(part, STYLES["muted"], no_wrap=True, end="") for part in parts or [""]]
        return title_line(fitted), lines


def _row(row: GateRow) -> Row:
    peak = row.reserved_peak if row.reserved_peak is not None else row.host_peak
    return {
        "gate": Cell(row.gate if row.rank == 0 else f"{row.gate} r{row.rank}"),
        "verdict": Cell(row.verdict, ROLES[row.verdict]),
        "memory": Cell(gib(peak)),
        "time": Cell(span(row.seconds)),
        "device": Cell(row.device, "muted"),
        "cause": Cell(found_words(row.cause, row.facts), "bad" if row.verdict == "failed" else "muted"),
    }
