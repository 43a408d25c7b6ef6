"""One file's bytes to records (column → value) with their lines: JSON Lines, a JSON array, CSV, TSV, Parquet.

Each reader yields `(line, record)` and, in between, findings. What cannot be read is a finding, and reading goes on behind it
wherever the format lets one find the next record; where it must stop, the finding says so. Lines count from 1; in a Parquet
file, which has none, the line is the number of the row.

The standard library and pyarrow read here, not `datasets` or polars: those stop at the first error, name no line, and `datasets`
writes a second copy of everything to the disk, where here every row has its line and all errors come at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ftui.data.findings import Finding, error
from ftui.data.jsons import Stream, json_array, json_lines
from ftui.data.lines import LONGEST
from ftui.data.separated import separated
from ftui.data.tables import table_rows

__all__ = ["LONGEST", "READERS", "TABLES", "Stream", "read_records"]


def read_records(path: Path, name: str, columns: Collection[str] | None = None) -> Stream:
    """Records of the file at `path`, called `name` in findings. The ending of the name chooses the reader.

    Where the format allows it, only the values of `columns` are read (None: of all), and those of others are None. Raises
    KeyError for an unknown ending; a file without records gives an error finding, and so does what is no regular file: a pipe
    or a device may never end.
    """
    ending = path.suffix.lower()
    reader = partial(table_rows, columns=columns) if ending in TABLES else READERS[ending]
    anything = False
    try:
        if not path.is_file():
            raise FileNotFoundError(0, "no regular file" if path.exists() else "No such file")
        with path.open("rb") as file:
            for item in reader(file, name):
                anything = anything or not isinstance(item, Finding) or item.severity == "error"
                yield item
    except OSError as problem:
        yield error(
            name, "", f"cannot be read: {problem.strerror or problem}; nothing more was read", "unreadable file"
        )
        return
    if not anything:
        yield error(name, "", "holds no rows; fill it, or take it out of the plan", "no rows")


TABLES = (".parquet",)

READERS: dict[str, Callable[[BinaryIO, str], Stream]] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".json": json_array,
    ".csv": partial(separated, delimiter=","),
    ".tsv": partial(separated, delimiter="\t"),
    ".parquet": table_rows,
}
"""Readers by the ending of a file's name."""
