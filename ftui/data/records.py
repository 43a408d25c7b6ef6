"""One file's bytes to records (column → value) with their lines: JSON Lines, a JSON array, CSV.

Each reader yields `(line, record)` and, in between, findings. What cannot be read is a finding, and reading goes on behind it
wherever the format lets one find the next record. Lines count from 1.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ftui.data.findings import Finding, error, warning
from ftui.record.text import safe

LONGEST = 1 << 20
"""Bytes of one line, or one record of a JSON array. More is refused: such a row is a mistake, or no text example."""

Record = tuple[int, dict[str, Any]]
Stream = Iterator[Record | Finding]


def read_records(path: Path, name: str) -> Stream:
    """Records of the file at `path`, called `name` in findings. The ending of the name chooses the reader.

    Raises KeyError for an unknown ending; a file without records gives an error finding.
    """
    reader = READERS[path.suffix.lower()]
    anything = False
    try:
        with path.open("rb") as file:
            for item in reader(file, name):
                anything = anything or not isinstance(item, Finding) or item.severity == "error"
                yield item
    except OSError as problem:
        yield error(name, "", f"cannot be read: {problem.strerror}", "unreadable file")
        return
    if not anything:
        yield error(name, "", "holds no rows; fill it, or take it out of the plan", "no rows")


class _Lines:
    """Text lines of a file, ends included. A line that is no text, or too long, goes to `drain` and the next one is given."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self._noticed: list[Finding] = []
        self._crlf = False
        self.number = 0
        """Line given last."""

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        while line := self._file.readline(LONGEST + 1):
            self.number += 1
            place = f"{self._name}:{self.number}"
            if len(line) > LONGEST and not line.endswith(b"\n"):
                size = len(line) + self._skip_line()
                message = (
                    f"the line has {size:,} bytes, more than the {LONGEST:,} one row may have; shorten or split it"
                )
                self._noticed.append(error(place, "", message, "line too long"))
                continue
            if self.number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff")):
                self._noticed.append(error(place, "", "the file is UTF-16; save it as UTF-8", "wrong encoding"))
                self._file.seek(0, 2)
                break
            if self.number == 1 and line.startswith(b"\xef\xbb\xbf"):
                self._noticed.append(
                    warning(place, "", "starts with a byte order mark; it was left out", "byte order mark")
                )
                line = line[3:]
            if line.endswith(b"\r\n") and not self._crlf:
                self._crlf = True
                self._noticed.append(warning(place, "", "lines end in CR LF; read as plain line ends", "line ends"))
            try:
                return line.decode("utf-8")
            except UnicodeDecodeError as problem:
                self._noticed.append(error(place, "", not_utf8(problem), "wrong encoding"))
        raise StopIteration

    def _skip_line(self) -> int:
        skipped = 0
        while block := self._file.readline(LONGEST):
            skipped += len(block)
            if block.endswith(b"\n"):
                break
        return skipped

    def drain(self) -> list[Finding]:
        """What was noticed since the last call."""
        noticed, self._noticed = self._noticed, []
        return noticed


def not_utf8(problem: UnicodeDecodeError) -> str:
    bad = problem.object[problem.start]
    return f"byte {problem.start + 1} of the line (0x{bad:02x}) is not UTF-8; save the file as UTF-8 (`iconv -f … -t UTF-8`)"


def _json_lines(file: BinaryIO, name: str) -> Stream:
    lines = _Lines(file, name)
    for text in lines:
        yield from lines.drain()
        place = f"{name}:{lines.number}"
        if not text.strip():
            yield warning(place, "", "is a blank line; it was passed over", "blank line")
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as problem:
            if text.endswith("\n"):
                yield error(place, "", f"is not valid JSON: {problem}; correct the line", "broken JSON")
            else:
                message = (
                    "the last line breaks off (no line end, incomplete JSON); copy the file again, or remove the line"
                )
                yield error(place, "", message, "torn last line")
            continue
        if isinstance(value, dict):
            yield lines.number, value
        else:
            yield error(place, "", _not_object(value), "not an object")
    yield from lines.drain()


def _json_array(file: BinaryIO, name: str) -> Stream:
    raw = file.read()
    if raw.startswith(b"\xef\xbb\xbf"):
        yield warning(f"{name}:1", "", "starts with a byte order mark; it was left out", "byte order mark")
        raw = raw[3:]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = raw[: problem.start].count(b"\n") + 1
        message = f"byte 0x{raw[problem.start]:02x} is not UTF-8; save the file as UTF-8 (`iconv -f … -t UTF-8`)"
        yield error(f"{name}:{line}", "", message, "wrong encoding")
        return
    decoder, at, line = json.JSONDecoder(), _skip_space(text, 0), 1
    if at == len(text):
        return
    if text[at] != "[":
        hint = "; a file with one object per line is named .jsonl" if text[at] == "{" else ""
        yield error(f"{name}:1", "", f"does not hold a JSON array ([…]) of objects{hint}", "not an array")
        return
    counted, at = 0, _skip_space(text, at + 1)
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        place = f"{name}:{line}"
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as problem:
            message = f"is not valid JSON from here on: {problem}; correct it, the rows behind it were not read"
            yield error(place, "", message, "broken JSON")
            return
        if end - at > LONGEST:
            yield error(place, "", f"the record has {end - at:,} characters, more than {LONGEST:,}", "line too long")
        elif isinstance(value, dict):
            yield line, value
        else:
            yield error(place, "", _not_object(value), "not an object")
        at = _skip_space(text, end)
        if text[at : at + 1] == ",":
            at = _skip_space(text, at + 1)
        elif text[at : at + 1] != "]":
            line += text.count("\n", counted, at)
            message = "a comma or the closing ] is missing; the file breaks off or has two arrays"
            yield error(f"{name}:{line}", "", message, "broken JSON")
            return
    if (rest := _skip_space(text, at + 1)) < len(text):
        line += text.count("\n", counted, rest)
        yield error(f"{name}:{line}", "", "more text stands behind the closing ]; it was not read", "broken JSON")


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _not_object(value: object) -> str:
    return f"holds {safe(json.dumps(value, ensure_ascii=False), 40)}, not an object with columns ({{…}})"


def _separated(file: BinaryIO, name: str, delimiter: str) -> Stream:
    # The library's default of 128 kB per cell is less than a line may have.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    lines = _Lines(file, name)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        first = lines.number + 1
        try:
            cells = next(reader, None)
        except csv.Error as problem:
            yield from lines.drain()
            message = f"is not valid CSV: {problem}; a quote that is opened here may never be closed"
            yield error(f"{name}:{first}", "", message, "broken CSV")
            continue
        yield from lines.drain()
        if cells is None:
            return
        place = f"{name}:{first}"
        if not cells:
            yield warning(place, "", "is a blank line; it was passed over", "blank line")
        elif header is None:
            header = cells
            repeated = sorted({cell for cell in header if header.count(cell) > 1})
            if repeated:
                yield error(place, repeated[0], "is the name of two columns; rename one", "repeated column")
        elif len(cells) != len(header):
            message = f"has {len(cells)} cells where the header has {len(header)}; quote cells that hold the separator"
            yield error(place, "", message, "number of cells")
        else:
            yield first, dict(zip(header, cells, strict=True))


READERS: dict[str, Callable[[BinaryIO, str], Stream]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_array,
    ".csv": partial(_separated, delimiter=","),
    ".tsv": partial(_separated, delimiter="\t"),
}
"""Readers by the ending of a file's name."""
