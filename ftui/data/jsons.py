"""JSON Lines and JSON arrays to records. What JSON leaves open is refused by name: a key that stands twice, NaN, infinities.

An array is read through a window, not whole: a file of any size needs the memory of its longest record.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from ftui.data.findings import Finding, error, warning
from ftui.data.lines import BOM, LONGEST, Lines, byte_order_mark, way_to_utf8, wrong_beginning
from ftui.record.text import safe

Record = tuple[int, dict[str, Any]]
Stream = Iterator[Record | Finding]

_SPACE = re.compile(r"[ \t\r\n]*")


class Decoder:
    """Values from JSON text, and in `noticed` what is no JSON in the last one though the library would take it."""

    def __init__(self) -> None:
        self.noticed: list[tuple[str, str, str]] = []
        """(key or "", sentence, kind)"""
        self._library = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._constant, parse_float=self._float
        )

    def value(self, text: str) -> Any:
        """The one value that `text` is. Raises ValueError and RecursionError."""
        self.noticed = []
        return self._library.decode(text)

    def next(self, text: str, at: int) -> tuple[Any, int]:
        """The value at `at`, and where it ends. Raises ValueError and RecursionError."""
        self.noticed = []
        return self._library.raw_decode(text, at)

    def findings(self, place: str) -> list[Finding]:
        return [error(place, key, f"{sentence}; correct the row", kind) for key, sentence, kind in self.noticed]

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            for name in (name for name in found if names.count(name) > 1):
                sentence = f"the key {safe(name, 60)!r} stands {names.count(name)} times in one object"
                self.noticed.append((name, sentence, "repeated key"))
        return found

    def _constant(self, name: str) -> None:
        self.noticed.append(("", f"{name} is no JSON value; write null or a number", "no JSON number"))

    def _float(self, text: str) -> float:
        number = float(text)
        if number in (float("inf"), float("-inf")):
            message = f"the number {safe(text, 40)} is too large to be held"
            self.noticed.append(("", message, "no JSON number"))
        return number


def json_lines(file: BinaryIO, name: str) -> Stream:
    """One object per line."""
    lines, decoder = Lines(file, name), Decoder()
    for text in lines:
        yield from lines.drain()
        place = f"{name}:{lines.number}"
        if not text.strip():
            yield warning(place, "", "is a blank line; it was passed over", "blank line")
            continue
        try:
            value = decoder.value(text)
        except (ValueError, RecursionError) as problem:
            yield _broken_line(text, problem, place)
            continue
        if decoder.noticed:
            yield from decoder.findings(place)
        elif isinstance(value, dict):
            yield lines.number, value
        else:
            yield error(place, "", _not_object(value), "not an object")
    yield from lines.drain()


def _broken_line(text: str, problem: Exception, place: str) -> Finding:
    if "\0" in text:
        message = (
            f"holds {text.count(chr(0)):,} NUL bytes, the first as character {text.index(chr(0)) + 1}: a hole from a crash, "
            "or UTF-16 without its mark; copy the file again, or save it as UTF-8"
        )
        return error(place, "", message, "NUL in file")
    if not text.endswith("\n"):
        message = "the last line breaks off (no line end, incomplete JSON); copy the file again, or remove the line"
        return error(place, "", message, "torn last line")
    hint = "; lines that end in CR alone are one line here" if "\r" in text.rstrip("\r\n") else ""
    return error(place, "", f"is not valid JSON: {_said(problem)}{hint}; correct the line", "broken JSON")


def _said(problem: Exception) -> str:
    return "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)


def _not_object(value: object) -> str:
    try:
        text = safe(json.dumps(value, ensure_ascii=False), 40)
    except RecursionError:
        text = "a value nested too deeply"
    return f"holds {text}, not an object with columns ({{…}})"


class _Window:
    """The part of a file's text that is being read, at least one record long."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder("utf-8")()
        self.text, self.at, self.line = "", 0, 1
        """What is held, where reading stands in it, and the file's line there."""
        self.whole = False
        """Whether the file's end is held."""
        self.wrong: int | None = None
        """The byte that is not UTF-8, behind which nothing is read."""

    def fill(self) -> None:
        """Hold more than `LONGEST` characters from `at` on, as far as the file has them."""
        while len(self.text) - self.at <= LONGEST and not self.whole:
            block = self._file.read(LONGEST)
            self.whole = not block
            try:
                more = self._decoder.decode(block, final=self.whole)
            except UnicodeDecodeError as problem:
                more = problem.object[: problem.start].decode("utf-8")
                self.wrong, self.whole = problem.object[problem.start], True
            self.text, self.at = self.text[self.at :] + more, 0

    def move(self, to: int) -> None:
        self.line += self.text.count("\n", self.at, to)
        self.at = to

    def skip_space(self) -> str:
        """Go to the next character that is no white space and give it, "" at the end."""
        while True:
            self.fill()
            found = _SPACE.match(self.text, self.at)
            assert found is not None
            self.move(found.end())
            if self.at < len(self.text) or self.whole:
                return self.text[self.at : self.at + 1]


def json_array(file: BinaryIO, name: str) -> Stream:
    """An array of objects. Behind broken JSON no record can be found again: reading stops, and the finding says so."""
    start = file.read(8)
    file.seek(0)
    if (finding := wrong_beginning(start, name)) is not None:
        yield finding
        return
    if start.startswith(BOM):
        yield byte_order_mark(name)
        file.seek(len(BOM))
    window = _Window(file)
    yield from _elements(window, name)
    if window.wrong is not None:
        window.move(len(window.text))
        message = f"byte 0x{window.wrong:02x} is not UTF-8, nothing behind it was read; {way_to_utf8(window.wrong)}"
        yield error(f"{name}:{window.line}", "", message, "wrong encoding")


def _elements(window: _Window, name: str) -> Stream:
    decoder, first = Decoder(), window.skip_space()
    if first != "[":
        if first:
            hint = "; a file with one object per line is named .jsonl" if first == "{" else ""
            message = f"does not hold a JSON array ([…]) of objects, nothing was read{hint}"
            yield error(f"{name}:{window.line}", "", message, "not an array")
        return
    window.move(window.at + 1)
    following = window.skip_space()
    while following != "]":
        window.fill()
        place = f"{name}:{window.line}"
        try:
            value, end = decoder.next(window.text, window.at)
        except (ValueError, RecursionError) as problem:
            if window.wrong is None or not _is_cut(window, problem):
                yield error(place, "", _broken_element(window, problem), "broken JSON")
            return
        if decoder.noticed:
            yield from decoder.findings(place)
        elif end - window.at > LONGEST:
            message = (
                f"the record has {end - window.at:,} characters, more than the {LONGEST:,} one may have; shorten it"
            )
            yield error(place, "", message, "line too long")
        elif isinstance(value, dict):
            yield window.line, value
        else:
            yield error(place, "", _not_object(value), "not an object")
        window.move(end)
        following = window.skip_space()
        if following == ",":
            window.move(window.at + 1)
            following = window.skip_space()
            if following == "]":
                yield error(
                    f"{name}:{window.line}", "", "a comma stands before the closing ]; remove it", "broken JSON"
                )
        elif following != "]":
            if following or window.wrong is None:
                message = (
                    "a comma or the closing ] is missing; the file breaks off or has two arrays, nothing more was read"
                )
                yield error(f"{name}:{window.line}", "", message, "broken JSON")
            return
    window.move(window.at + 1)
    if window.skip_space():
        yield error(
            f"{name}:{window.line}", "", "more text stands behind the closing ]; it was not read", "broken JSON"
        )


def _is_cut(window: _Window, problem: Exception) -> bool:
    """Whether a value looks broken where the window ends, or like a text without its closing quote: it may go on behind it."""
    return isinstance(problem, json.JSONDecodeError) and (
        problem.pos >= len(window.text) - 16 or problem.msg.startswith("Unterminated string")
    )


def _broken_element(window: _Window, problem: Exception) -> str:
    if _is_cut(window, problem) and not window.whole:
        return f"the record has more than the {LONGEST:,} characters one may have, or is broken; the rows behind it were not read"
    said = problem.msg if isinstance(problem, json.JSONDecodeError) else _said(problem)
    return f"is not valid JSON from here on: {said}; correct it, the rows behind it were not read"
