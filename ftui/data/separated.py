"""Tables as text, CSV and TSV: a header, then one record per line or, where a quoted cell holds line ends, per several lines."""

from __future__ import annotations

import csv
from typing import BinaryIO

from ftui.data.findings import error, warning
from ftui.data.jsons import Stream
from ftui.data.lines import LONGEST, Lines
from ftui.record.text import safe

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}


def separated(file: BinaryIO, name: str, delimiter: str) -> Stream:
    """Records of a table whose cells are separated by `delimiter`; each has the line it begins on."""
    # The library's default of 128 kB per cell is less than a line may have.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    lines = Lines(file, name)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        lines.begin()
        try:
            cells = next(reader, None)
        except csv.Error as problem:
            yield from lines.drain()
            yield error(f"{name}:{lines.first}", "", _broken(problem, lines), "broken CSV")
            continue
        yield from lines.drain()
        if cells is None:
            return
        place = f"{name}:{lines.first}"
        if not cells:
            yield warning(place, "", "is a blank line; it was passed over", "blank line")
        elif header is None:
            header = cells
            if other := _other_separator(header, delimiter):
                message = (
                    f"the only column is {safe(header[0], 60)!r}, nothing more was read; cells seem to be separated by "
                    f"{_SEPARATORS[other]}: save the file with {_SEPARATORS[delimiter]} instead"
                )
                also = ", or let its name end in .tsv" if other == "\t" else ""
                yield error(place, "", message + also, "other separator")
                return
            for repeated in sorted({cell for cell in header if cell and header.count(cell) > 1}):
                yield error(place, repeated, "is the name of two columns; rename one", "repeated column")
            for index in (index for index, cell in enumerate(header, 1) if not cell):
                yield warning(place, "", f"column {index} has no name; it is not read", "column without a name")
        elif len(cells) != len(header):
            message = f"has {len(cells)} cells where the header has {len(header)}; quote cells that hold the separator"
            yield error(place, "", message, "number of cells")
        else:
            yield lines.first, {column: cell for column, cell in zip(header, cells, strict=True) if column}


def _other_separator(header: list[str], delimiter: str) -> str | None:
    """The separator that a header of one cell holds beside `delimiter`."""
    if len(header) > 1:
        return None
    return next((other for other in _SEPARATORS if other != delimiter and other in header[0]), None)


def _broken(problem: csv.Error, lines: Lines) -> str:
    swallowed = f"; lines {lines.first} to {lines.number} were not read" if lines.number > lines.first else ""
    if "new-line character" in str(problem):
        return f"holds a line end of CR alone outside quotes{swallowed}; save the file with LF, or quote the cell"
    return f"is not valid CSV: {problem}; a quote that is opened here may never be closed{swallowed}"
