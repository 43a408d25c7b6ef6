"""One input file to cleaned rows of the plan's task, and what is wrong with the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftui.data.clean import Rule, clean
from ftui.data.dialogues import extraction_row, generation_row
from ftui.data.findings import Finding, Findings, error, warning
from ftui.data.form import Form
from ftui.data.leaks import UnnamedUnits, time_of
from ftui.data.pictures import folder_rows, picture_row
from ftui.data.records import read_records
from ftui.data.rows import Row, class_row
from ftui.data.sources import Source
from ftui.plan.schema import TASK_COLUMNS, Data, Plan


@dataclass(frozen=True)
class LeftOut:
    """A row that cannot be used and was left out, because the plan says `data.bad_rows = "drop"`."""

    file: str
    line: int
    problems: Sequence[Finding]
    """What is wrong with it, at least one thing."""
    record: dict[str, Any]
    """All that the file says in this row, of Parquet the columns that the plan reads."""


@dataclass
class Reader:
    """Reads the files of one plan, notices what is wrong, and keeps every row that is left out."""

    plan: Plan
    campaign: Path
    rules: list[Rule]
    form: Form | None
    noticed: Findings
    unnamed: UnnamedUnits
    left_out: list[LeftOut] = field(default_factory=list)

    def rows(self, source: Source) -> list[Row]:
        """Cleaned rows of one file. What is wrong with a row is an error, or the row is left out, as the plan says."""
        rows, already = [], len(self.left_out)
        try:
            before = source.path.stat()
            for item in self._items(source):
                if isinstance(item, Finding):
                    self.noticed.add(item)
                else:
                    rows.append(item)
            after = source.path.stat()
        except OSError as problem:
            message = f"cannot be read any more: {problem.strerror}; put it back, then try again"
            self.noticed.add(error(source.name, "", message, "unreadable file"))
            return rows
        changed = (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)
        if changed or (before.st_size != source.bytes and source.path.is_file()):
            message = "changed while it was read; wait until it is written, then try again"
            self.noticed.add(error(source.name, "", message, "changed"))
        if count := len(self.left_out) - already:
            many = "1 row was" if count == 1 else f"{count:,} rows were"
            message = (
                f'{many} left out (data.bad_rows = "drop"); dropped.jsonl of the data version holds each with its line, '
                "field and reason"
            )
            self.noticed.add(warning(source.name, "", message, "rows left out"))
        return rows

    def _items(self, source: Source) -> Iterator[Row | Finding]:
        if source.path.is_dir():
            yield from folder_rows(source.path, source.name, self.campaign)
            return
        for record in read_records(source.path, source.name, used_columns(self.plan)):
            if isinstance(record, Finding):
                yield record
                continue
            try:
                found = list(self._found(source, *record))
            except RecursionError:
                place = f"{source.name}:{record[0]}"
                found = [error(place, "", "is nested too deeply to be read; correct the row", "nested too deeply")]
            self.unnamed.see(source.split, record[1])
            if self.plan.data.time is not None:
                found = [_at_its_time(item, record[1], self.plan.data.time) for item in found]
            problems = [item for item in found if isinstance(item, Finding) and item.severity == "error"]
            if problems and self.plan.data.bad_rows == "drop":
                self.left_out.append(LeftOut(source.name, record[0], problems, record[1]))
                found = [_as_left_out(item) if item in problems else item for item in found]
            yield from found

    def _found(self, source: Source, line: int, record: dict[str, Any]) -> Iterator[Row | Finding]:
        data, name = self.plan.data, source.name
        match self.plan.hypothesis.task:
            case "generation":
                return generation_row(name, line, record, data, self.rules)
            case "extraction":
                # Without a form there is an error about it, and no row can be judged.
                return extraction_row(name, line, record, data, self.rules, self.form) if self.form else iter(())
            case "image-classification":
                return picture_row(name, line, record, data.columns, data.unit, source.path, self.campaign)
        return _class_row(name, line, record, data, self.rules)


def used_columns(plan: Plan) -> set[str]:
    """Columns of the data files that the plan reads."""
    named = [getattr(plan.data.columns, name) for name in TASK_COLUMNS[plan.hypothesis.task]]
    return {name for name in (*named, plan.data.unit, plan.data.time) if name is not None}


def _class_row(name: str, line: int, record: dict[str, Any], data: Data, rules: list[Rule]) -> Iterator[Row | Finding]:
    for item in class_row(name, line, record, data.columns, data.unit):
        if isinstance(item, Finding):
            yield item
            continue
        row = dataclasses.replace(item, text=clean(item.text, rules))
        if problems := _check_text(row, data.columns.text):
            yield from problems
        else:
            yield row


def _at_its_time(item: Row | Finding, record: dict[str, Any], column: str) -> Row | Finding:
    if isinstance(item, Finding):
        return item
    time = time_of(record, column, item.place)
    return time if isinstance(time, Finding) else dataclasses.replace(item, time=time)


def _as_left_out(finding: Finding) -> Finding:
    """An error about a row as a warning that the row was left out."""
    message = f'{finding.message}; the row was left out (data.bad_rows = "drop")'
    return dataclasses.replace(finding, severity="warning", message=message)


def _check_text(row: Row, column: str) -> list[Finding]:
    if not row.text.strip():
        state = "is empty" if not row.raw.strip() else "is empty after cleaning"
        return [error(row.place, column, f"the text {state}; fill it, or remove the row", "empty text")]
    if "\0" in row.text:
        message = 'the text holds a NUL character; remove it, or add "drop-control@1" to data.cleaning'
        return [error(row.place, column, message, "NUL in text")]
    return []
