"""What was noticed in the data: sentences that name the place, the field and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from ftui.record.text import safe

SHOWN = 20
"""Findings of one kind that are listed one by one in each file; the rest are counted in one more."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing noticed. An error makes the data unusable, a warning does not."""

    severity: Literal["error", "warning"]
    place: str
    """`file:line`, or the file alone where it concerns all of it."""
    field: str
    """Column or plan field, empty where there is none."""
    message: str
    kind: str = ""
    """What sort of thing it is in two or three words, such as "empty text"; equal kinds are counted together."""

    def __str__(self) -> str:
        return f"{self.place}: {self.field}: {self.message}" if self.field else f"{self.place}: {self.message}"

    def row(self) -> dict[str, str]:
        return asdict(self)


class DataError(Exception):
    """The data cannot be used as it is; `findings` holds everything noticed, errors first."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sorted(findings, key=lambda finding: finding.severity != "error")
        super().__init__("\n".join(str(f) for f in self.findings if f.severity == "error"))


class Findings:
    """Collects findings; of each kind in each file the first `SHOWN` are kept and the others counted."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str, str, str], list[Finding]] = {}
        self._more: dict[tuple[str, str, str, str], int] = {}
        self.errors = 0
        """Errors noticed so far, counted ones included."""

    def add(self, *findings: Finding) -> None:
        for finding in findings:
            self.errors += finding.severity == "error"
            key = (_file(finding.place), finding.field, finding.kind, finding.severity)
            shown = self._groups.setdefault(key, [])
            if len(shown) < SHOWN:
                shown.append(finding)
            else:
                self._more[key] = self._more.get(key, 0) + 1

    def all(self) -> list[Finding]:
        """Everything noticed, by file and kind in the order of first sight."""
        found: list[Finding] = []
        for key, shown in self._groups.items():
            found += shown
            if more := self._more.get(key):
                message = f"{more:,} more of the same kind ({shown[0].kind}) than the {SHOWN} listed"
                found.append(Finding(shown[0].severity, key[0], key[1], message, shown[0].kind))
        return found


def error(place: str, field: str, message: str, kind: str) -> Finding:
    return Finding("error", safe(place), safe(field, 200), safe(message), kind)


def warning(place: str, field: str, message: str, kind: str) -> Finding:
    return Finding("warning", safe(place), safe(field, 200), safe(message), kind)


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: its nearest known neighbour, or all that are known."""
    names = [safe(str(k), 100) for k in known]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known here: {', '.join(names)}" if names else "nothing is known here"


def _file(place: str) -> str:
    file, _, line = place.rpartition(":")
    return file if file and line.isdigit() else place
