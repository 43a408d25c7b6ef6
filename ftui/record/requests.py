"""Wishes of people to the supervisor: one small file each, written aside and renamed in, answered in the journal."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ftui.record.files import read_json, replace_json
from ftui.record.journal import now, stamp

REQUEST_SCHEMA = 1
Kind = Literal["stop-campaign", "stop-run"]


@dataclass(frozen=True)
class Request:
    """A wish. `run` is None where it concerns the campaign."""

    id: str
    kind: Kind
    run: str | None
    by: str
    at: str


def put_request(folder: Path, kind: Kind, *, run: str | None = None, by: str) -> Request:
    """Leave a wish in `folder`, which is for its user alone; names sort by time."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    request = Request(f"{now():%Y%m%dT%H%M%S%f}-{secrets.token_hex(3)}", kind, run, by, stamp())
    replace_json(folder / f"{request.id}.json", {"schema": REQUEST_SCHEMA, **request.__dict__})
    return request


def pending_requests(folder: Path) -> list[tuple[Path, Request | str]]:
    """Unanswered wishes, oldest first. What cannot be read comes as a sentence, to be refused in the journal."""
    found: list[tuple[Path, Request | str]] = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        try:
            content = read_json(path)
            if content.pop("schema") > REQUEST_SCHEMA:
                raise ValueError("it was written by a newer ftui")
            found.append((path, Request(**content)))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            found.append((path, f"{path.name} is no request: {error}"))
    return found
