"""Records to pictures: the path of a file and its category, or a folder with one folder of pictures per category.

Only looked at from outside here: that the file is there, and its hash, by which equal pictures are found. Pixels are the task's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ftui.data.findings import Finding, error, warning
from ftui.data.rows import Row, identity_of, kind_of, name_of, text_of
from ftui.plan.schema import Columns
from ftui.record.files import sha256_file
from ftui.record.text import safe

PICTURES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
"""Endings of files that count as pictures in a folder."""


def picture_row(
    name: str, line: int, record: dict[str, Any], columns: Columns, unit: str | None, index: Path, campaign: Path
) -> Iterator[Row | Finding]:
    """A row of the file `index`, which is called `name` and which the paths in it are relative to."""
    place = f"{name}:{line}"
    image = text_of(record, columns.image, place)
    label = name_of(record, columns.label, place, "label")
    identity, group = identity_of(name, line, record, columns, unit)
    problems = [value for value in (image, label, identity, group) if isinstance(value, Finding)]
    if problems:
        yield from problems
        return
    assert isinstance(image, str) and isinstance(label, str) and isinstance(identity, str)
    path = index.parent / image
    digest = _hash(path, place, columns.image)
    if isinstance(digest, Finding):
        yield digest
        return
    yield Row(
        identity,
        digest,
        label,
        group if isinstance(group, str) else None,
        name,
        line,
        digest,
        path=_relative(path, campaign),
        label_as=kind_of(record[columns.label]),
    )


def folder_rows(folder: Path, name: str, campaign: Path) -> Iterator[Row | Finding]:
    """Rows of a folder that holds one folder per category; their id and place is the path of the picture in it."""
    categories = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    if not categories:
        yield error(name, "", "holds no folder per category with pictures in it", "no rows")
    for category in categories:
        files = [path for path in sorted(category.rglob("*")) if path.is_file()]
        pictures = [path for path in files if path.suffix.lower() in PICTURES]
        if more := len(files) - len(pictures):
            yield warning(
                f"{name}/{category.name}", "", f"{more} files are no pictures; they were passed over", "no picture"
            )
        if not pictures:
            yield error(f"{name}/{category.name}", "", "holds no pictures; fill it, or remove it", "no rows")
        for number, path in enumerate(pictures, 1):
            place = f"{name}/{path.relative_to(folder).as_posix()}"
            digest = _hash(path, place, "")
            if isinstance(digest, Finding):
                yield digest
            else:
                yield Row(place, digest, category.name, None, place, number, digest, path=_relative(path, campaign))


def _hash(path: Path, place: str, field: str) -> str | Finding:
    try:
        if path.stat().st_size:
            return sha256_file(path)
        return error(place, field, f"{safe(path.name)} is empty; copy it again, or remove the row", "empty picture")
    except (OSError, ValueError) as problem:  # a name with a NUL character is the second
        reason = problem.strerror if isinstance(problem, OSError) else problem
        message = f"no picture at {safe(str(path))} ({reason}); paths are relative to the file that names them"
        return error(place, field, message, "no picture")


def _relative(path: Path, campaign: Path) -> str:
    """As the campaign sees it; a picture elsewhere keeps its whole path."""
    resolved, root = path.resolve(), campaign.resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else str(resolved)
