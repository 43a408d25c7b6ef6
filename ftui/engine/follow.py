"""The record as it grows, line by line, for a person or a log. Reads files only; following changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from ftui.engine.client import supervisor_alive
from ftui.plan.followup import run_plan
from ftui.plan.settings import own_batches
from ftui.record.journal import journal_reader, parse_time
from ftui.record.layout import CampaignFiles
from ftui.record.lines import LineReader, Row, number
from ftui.record.series import KIND, SCHEMA
from ftui.record.state import Campaign, Run, fold
from ftui.record.text import size_words

POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Happening:
    """Something worth a line, and how far the training is; `line` is None when only the progress moved."""

    line: str | None
    updates_done: int
    updates_planned: int


class Follower:
    """Follows one campaign from the journal's end at creation, or from its start."""

    def __init__(self, files: CampaignFiles, *, from_start: bool = False) -> None:
        self._files = files
        self._journal = journal_reader(files.journal)
        self.state = Campaign()
        self._series: dict[str, LineReader] = {}
        self._done: dict[str, int] = {}
        if not from_start:
            fold(self._journal.read(), self.state)

    def follow(self) -> Iterator[Happening]:
        """Happenings until no supervisor works on the campaign any more."""
        while True:
            alive = supervisor_alive(self._files)
            yield from self._new()
            if not alive:
                return
            time.sleep(POLL_SECONDS)

    def _new(self) -> Iterator[Happening]:
        for row in self._journal.read():
            fold([row], self.state)
            if (line := event_line(row, self.state)) is not None:
                yield self._happening(f"{parse_time(row['at']).astimezone():%H:%M:%S}  {line}")
        moved = False
        for run in self.state.runs.values():
            if not run.attempts or run.kind == "baseline":
                continue
            for row in self._rows(run):
                if row["k"] == "update":
                    self._done[run.id], moved = row["update"], True
                elif row["k"] == "validation":
                    yield self._happening(validation_line(run, row, self.planned(run)))
        if moved:
            yield self._happening(None)

    def _rows(self, run: Run) -> list[Row]:
        reader = self._series.setdefault(run.id, LineReader(self._files.run(run.id).series, KIND, SCHEMA))
        return reader.read()

    def planned(self, run: Run) -> int:
        """Updates the run is to take."""
        if self.state.plan is None or self.state.data is None or run.kind == "baseline":
            return 0
        return own_batches(run_plan(self.state.plan, run.variant, run.follow_up), self.state.data).updates

    def _happening(self, line: str | None) -> Happening:
        planned = sum(self.planned(run) for run in self.state.runs.values())
        done = sum(
            self.planned(run) if run.status == "completed" else self._done.get(run.id, 0)
            for run in self.state.runs.values()
        )
        return Happening(line, done, planned)


def event_line(row: Row, state: Campaign) -> str | None:
    """One journal event in words, None for those that say nothing to a reader."""
    match row["event"]:
        case "launched":
            return f"launched; the rental ends {parse_time(row['ends_at']).astimezone():%Y-%m-%d %H:%M %Z}"
        case "amended":
            why = f" — because {row['because']}" if row.get("because") else ""
            return f"plan amended: {', '.join(row['changed'])}{why}"
        case "note":
            return f"note by the {row['by']}: {' / '.join(str(row['text']).split(chr(10)))}"
        case "phase":
            return f"phase: {row['phase']}"
        case "data-ready":
            data = row["data"]
            sizes = f"{data['train_examples']:,} / {data['validation_examples']:,} / {data['test_examples']:,}"
            return f"data ready: {sizes} training / validation / test examples, version {data['hash']}"
        case "gates-started":
            return f"gates {row['gates']}: the control's configuration through every operation"
        case "gates-ended":
            return f"gates {row['gates']}: {'passed' if row['passed'] else 'failed: ' + str(row['cause'])}"
        case "queued" if row.get("request"):
            return f"{row['run']}: queued with other settings than {row['follows']}, because: {row['because']}"
        case "run-started":
            resumed = f" from update {row['resumed_from']}" if row["resumed_from"] is not None else ""
            again = f", attempt {row['attempt']}{resumed}" if row["attempt"] > 1 else ""
            return f"{row['run']}: started on {row['placement'].get('device', 'an unknown place')}{again}"
        case "run-ended":
            cause = f": {row['cause']}" if row["cause"] else ""
            follows = f"; {row['follows']}" if row.get("follows") else ""
            place = f" ({row['run']}/{row['place']})" if row.get("place") else ""
            return f"{row['run']}: {row['status']} after {row['updates']} updates{cause}{place}{follows}"
        case "waiting":
            return None if row["cause"] is None else str(row["cause"])
        case "left-out":
            return f"{row['run']}: left out: {row['cause']}"
        case "test-opened":
            return f"test opened (opening {row['opening']}) for {len(row['candidates'])} runs: {row['reason']}"
        case "test-ended":
            if row["cause"]:
                return f"{row['run']}: test evaluation failed: {row['cause']}"
            return f"{row['run']}: test {_metrics(row['metrics'])}"
        case "export-started":
            return f"artefact {row['export']}: export"
        case "export-ended":
            return f"artefact {row['export']}: {'reloaded and verified' if row['verified'] else row['cause']}"
        case "report":
            return f"verdict: {row['verdict']}. {row['sentence']}"
        case "request":
            return wish_line(row)
        case "copy-ended":
            if row["cause"]:
                return f"copy failed: {row['cause']}"
            return f"copied: {row['copied']:,} files, {size_words(row['bytes'])}, verified"
        case "notify-failed":
            return f"notifications do not work: {row['cause']}"
        case "fault":
            return f"fault in {row['where']}: {row['cause']}"
        case "supervisor-ended":
            return f"ended: {row['reason']}"
    return None


_WORDS = {
    "stop-campaign": "stop the campaign",
    "kill-campaign": "kill everything that runs",
    "pause-queue": "pause the queue",
    "resume-queue": "let the queue go on",
    "stop-run": "stop {run}",
    "kill-run": "kill {run}",
    "pause-run": "pause {run}",
    "resume-run": "resume {run}",
    "priority": "give {run} priority {priority}",
    "relaunch": "relaunch {run} with {change}",
}


def wish_line(row: Row) -> str:
    """A wish and its answer in words."""
    done = f"done, it is {row['new_run']}" if row.get("new_run") else "done"
    answer = done if row["answer"] == "done" else f"refused: {row['reason']}"
    change = ", ".join(f"{name} = {value}" for name, value in (row.get("change") or {}).items())
    words = _WORDS.get(row["kind"] or "", str(row["kind"] or "something unreadable"))
    asked = words.format(run=row["run"], priority=row.get("priority"), change=change)
    return f"the {row['asked_by'] or 'unknown'} asked to {asked}: {answer}"


def validation_line(run: Run, row: Row, planned: int) -> str:
    """One validation point in words."""
    return f"          {run.id}: update {row['update']}/{planned}  {_metrics(row['metrics'])}"


def _metrics(metrics: Row) -> str:
    return "  ".join(f"{name} {number(value):.4f}" for name, value in metrics.items() if not isinstance(value, dict))
