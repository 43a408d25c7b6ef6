"""The journal: every event of a campaign, in order, appended under a file lock and synced. The campaign's truth.

Every row has `at` (UTC, ISO 8601, milliseconds), `event` and `by` (`supervisor`, `app`, `cli`). The events and their fields:

    launched            plan_hash, plan (whole, as JSON), starts_at, ends_at
    amended             plan_hash, plan, starts_at, ends_at, changed (dotted fields), because (null where no reason was
                        needed; older records lack it)
    supervisor-started  pid, host            supervisor-ended    reason
    phase               phase (one of `budget.PHASES`, or "closed")
    data-ready          data (a `DataVersion`), findings (sentences)
    gates-started       gates (id)           gates-ended         gates, passed, cause
    queued              run, number, variant, seed, kind ("baseline" | "train"), priority, change (from the control), because,
                        follows (the run it takes up with other settings, or null); when first queued also request (id)
    run-started         run, attempt, pid, resumed_from (update or null), placement
    run-ended           run, attempt, status, cause, exit_code, updates; older records lack: kind ("plan" | "machine" | "asked", null
                        when completed), fault (the cause in a word or three), place (file:line of the log), terminated_at and
                        killed_at (null where nobody had to), left_behind (processes killed afterwards), lost (times under this
                        supervisor, this one included), follows (what happens next with a lost run, in words)
    waiting             cause (which places other campaigns use, while something could start there; null when it is over)
    left-out            run, cause           (a queued run that will not start)
    test-opened         opening (1, 2 …), candidates (run ids), reason
    test-ended          run, metrics, cause (null when it worked)
    export-started      export, run          export-ended        export, run, verified, cause
    report              verdict (word), sentence, deliver (run id or null)
    request             request (id), kind (`requests.Kind`, null where it could not be read), run, asked_by, answer ("done" |
                        "refused"), reason; with `priority` also priority, with `relaunch` also change, because and, when
                        done, new_run. The answer is the act: a queue is paused, a run held back or moved by this line
    copy-ended          copied (files), bytes, left (files that changed meanwhile), cause (null when it worked): the first copy, and
                        each that went otherwise than the one before; `backup.json` has the latest
    notify-failed       cause                (once; what a person is told of goes on being tried)
    note                text                 (may come before the launch)
    fault               where, cause         (a fault of ours or of the host that no run owns)
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ftui.record.files import locked, sync_directory
from ftui.record.lines import LineReader, Row, cut_torn_tail, encode, header, read_rows, write_whole

KIND, SCHEMA = "journal", 1


def now() -> datetime:
    """This moment in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime | None = None) -> str:
    """A moment as the record writes it: UTC, milliseconds."""
    return (moment or now()).astimezone(UTC).isoformat(timespec="milliseconds")


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


class Journal:
    """Appends events; several processes may do so, one line at a time."""

    def __init__(self, path: Path, by: str) -> None:
        self.path, self.by = path, by

    def append(self, event: str, **fields: Any) -> Row:
        """Append one event and return it once it is on the disk. Raises OSError when it could not be written."""
        with locked(self.path) as descriptor:
            os.lseek(descriptor, 0, os.SEEK_END)
            cut_torn_tail(descriptor)
            os.lseek(descriptor, 0, os.SEEK_END)
            if os.fstat(descriptor).st_size == 0:
                write_whole(descriptor, encode(header(KIND, SCHEMA)))
                sync_directory(self.path.parent)
            row: Row = {"at": stamp(), "event": event, "by": self.by, **fields}
            write_whole(descriptor, encode(row))
            os.fsync(descriptor)
        return row


def journal_reader(path: Path) -> LineReader:
    return LineReader(path, KIND, SCHEMA)


def read_journal(path: Path) -> list[Row]:
    """All events so far, [] for a campaign of which nothing was ever written down."""
    return read_rows(path, KIND, SCHEMA)
