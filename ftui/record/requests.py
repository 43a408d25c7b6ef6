"""Wishes of people to the supervisor: one small file each, written aside and renamed in, answered in the journal.

Any number of clients may leave wishes at once: each has a name of its own. A file is taken away once its answer is in the journal;
one that was left although it is answered asks for nothing any more.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ftui.record.files import read_json, replace_json
from ftui.record.journal import now, stamp

REQUEST_SCHEMA = 1

Kind = Literal[
    "stop-campaign", "kill-campaign", "pause-queue", "resume-queue",
    "stop-run", "kill-run", "pause-run", "resume-run", "priority", "relaunch",
]  # fmt: skip

OF_THE_CAMPAIGN = ("stop-campaign", "kill-campaign", "pause-queue", "resume-queue")
"""Kinds that name no run."""

HIGHEST_PRIORITY = 1_000_000


class Request(BaseModel):
    """A wish. `run` is None where it concerns the campaign."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    kind: Kind
    run: str | None = None
    by: str
    at: str
    priority: Annotated[int, Field(ge=-HIGHEST_PRIORITY, le=HIGHEST_PRIORITY)] | None = None
    """Of `priority`: higher starts first."""
    change: dict[str, Any] = {}
    """Of `relaunch`: dotted fields and their values, where they differ from the run that is followed."""
    because: str | None = None
    """Of `relaunch`: why."""

    @model_validator(mode="after")
    def says_what_its_kind_needs(self) -> Request:
        if (self.run is None) != (self.kind in OF_THE_CAMPAIGN):
            raise ValueError(f"{self.kind} names {'a run' if self.run is None else 'no run'}")
        if self.kind == "priority" and self.priority is None:
            raise ValueError("priority needs a number")
        return self

    @property
    def fields(self) -> dict[str, Any]:
        """What the wish says besides its kind, its run and who left it."""
        return {
            name: value
            for name in ("priority", "change", "because")
            if (value := getattr(self, name)) not in (None, {})
        }


def make_request(kind: Kind, *, run: str | None = None, by: str, **fields: Any) -> Request:
    """A wish of this moment; names sort by time. Raises ValueError for one that says too little."""
    identity = f"{now():%Y%m%dT%H%M%S%f}-{secrets.token_hex(3)}"
    return Request(id=identity, kind=kind, run=run, by=by, at=stamp(), **fields)


def put_request(folder: Path, request: Request) -> None:
    """Leave a wish in `folder`, which is for its user alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_json(folder / f"{request.id}.json", {"schema": REQUEST_SCHEMA, **request.model_dump(exclude_defaults=True)})


def pending_requests(folder: Path) -> list[tuple[Path, Request | str]]:
    """Wishes that lie there, oldest first. What cannot be read comes as a sentence, to be refused in the journal."""
    found: list[tuple[Path, Request | str]] = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        try:
            content = read_json(path)
            if content.pop("schema") > REQUEST_SCHEMA:
                raise ValueError("it was written by a newer ftui")
            request = Request.model_validate(content)
            if request.id != path.stem:
                raise ValueError(f"it is a copy of {request.id}")
            found.append((path, request))
        except FileNotFoundError:
            continue  # answered by a supervisor while a client looked
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"]))
            found.append((path, f"{path.name} is no request: {where + ': ' if where else ''}{problem['msg']}"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            found.append((path, f"{path.name} is no request: {error}"))
    return found
