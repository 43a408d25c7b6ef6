"""What of the journal is worth calling a person for: failures, the end, copies that fail. One sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ftui.record.lines import Row
from ftui.record.state import Campaign

Kind = Literal["run failed", "gates failed", "fault", "campaign finished", "copy failing", "deadline near"]


@dataclass(frozen=True)
class News:
    """Something a person wants to know without looking."""

    kind: Kind
    sentence: str
    run: str | None = None


def news_of(row: Row, state: Campaign) -> News | None:
    """What an event is to a person who looks elsewhere, None for most. `state` holds the event already."""
    match row["event"]:
        case "run-ended" if row["status"] in ("failed", "diverged", "lost"):
            return News("run failed", f"{row['run']} {row['status']}: {row['cause']}", row["run"])
        case "gates-ended" if not row["passed"]:
            return News("gates failed", f"the gates did not pass: {row['cause']}")
        case "fault":
            return News("fault", f"fault in {row['where']}: {row['cause']}")
        case "copy-ended" if row["cause"]:
            return News("copy failing", f"the copy elsewhere failed: {row['cause']}")
        case "supervisor-ended" if state.closed:
            said = f"verdict: {state.verdict}. {state.verdict_sentence}" if state.verdict else str(row["reason"])
            return News("campaign finished", said)
    return None
