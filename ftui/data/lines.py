"""A file's bytes to lines of text with their numbers: the encoding, line ends and length that every format by lines needs.

A line that cannot be given is a finding and the next one is given; a file that is no UTF-8 text at all is one finding.
"""

from __future__ import annotations

from typing import BinaryIO

from ftui.data.findings import Finding, error, warning

LONGEST = 1 << 20
"""Bytes of one line, or characters of one record of a JSON array. More is refused: such a row is a mistake, or no text example."""

BOM = b"\xef\xbb\xbf"

_OTHER_ENCODINGS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
"""How a file in another encoding begins; the longer marks come first, for UTF-32 begins like UTF-16."""

_NO_TEXT = {
    b"\x1f\x8b": "is compressed with gzip; unpack it (`gunzip`) and name the unpacked file",
    b"PK\x03\x04": "is a ZIP archive; unpack it and name the unpacked files",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; unpack it (`unzstd`) and name the unpacked file",
    b"BZh": "is compressed with bzip2; unpack it (`bunzip2`) and name the unpacked file",
    b"\xfd7zXZ\0": "is compressed with xz; unpack it (`unxz`) and name the unpacked file",
    b"PAR1": "is a Parquet file; let its name end in .parquet",
}

_QUOTES = b"\x85\x91\x92\x93\x94\x96\x97"
"""Curly quotes, dashes and the ellipsis as Windows-1252 has them; no other encoding of Western text uses these bytes for signs."""


def wrong_beginning(start: bytes, name: str) -> Finding | None:
    """What keeps a file that begins with the bytes `start` from being UTF-8 text, None when nothing there does."""
    for mark, encoding in _OTHER_ENCODINGS.items():
        if start.startswith(mark):
            message = (
                f"the file is {encoding}, nothing of it was read; save it as UTF-8 (`iconv -f {encoding} -t UTF-8`)"
            )
            return error(f"{name}:1", "", message, "wrong encoding")
    for mark, message in _NO_TEXT.items():
        if start.startswith(mark):
            return error(f"{name}:1", "", f"the file {message}; nothing of it was read", "no text")
    return None


class Lines:
    """Text lines of a file, ends included. A line that is no text, or too long, goes to `drain` and the next one is given."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self._noticed: list[Finding] = []
        self._crlf = False
        self.number = 0
        """Line given last."""
        self.first = 0
        """First line given since `begin`, 0 when none was."""

    def begin(self) -> None:
        """A record begins with the next line that is given."""
        self.first = 0

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        while line := self._file.readline(LONGEST + 1):
            self.number += 1
            place = f"{self._name}:{self.number}"
            if self.number == 1:
                if (finding := _wrong_first_line(line, self._name)) is not None:
                    self._noticed.append(finding)
                    self._file.seek(0, 2)
                    break
                if line.startswith(BOM):
                    self._noticed.append(byte_order_mark(self._name))
                    line = line[len(BOM) :]
            if len(line) > LONGEST and not line.endswith(b"\n"):
                size = len(line) + self._skip_line()
                message = (
                    f"the line has {size:,} bytes, more than the {LONGEST:,} one row may have; shorten or split it"
                )
                self._noticed.append(error(place, "", message, "line too long"))
                continue
            if line.endswith(b"\r\n") and not self._crlf:
                self._crlf = True
                self._noticed.append(warning(place, "", "lines end in CR LF; read as plain line ends", "line ends"))
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as problem:
                self._noticed.append(error(place, "", not_utf8(problem), "wrong encoding"))
                continue
            self.first = self.first or self.number
            return text
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


def byte_order_mark(name: str) -> Finding:
    return warning(f"{name}:1", "", "starts with a byte order mark; it was left out", "byte order mark")


def not_utf8(problem: UnicodeDecodeError) -> str:
    """The sentence about a line that is not UTF-8."""
    bad = problem.object[problem.start]
    return f"byte {problem.start + 1} of the line (0x{bad:02x}) is not UTF-8; {way_to_utf8(bad)}"


def way_to_utf8(bad: int) -> str:
    """The way out for text with the byte `bad`, which is not UTF-8."""
    if bad in _QUOTES:
        return (
            "it looks like a quote or dash of Windows-1252; save the file as UTF-8 (`iconv -f WINDOWS-1252 -t UTF-8`)"
        )
    return "save the file as UTF-8 (`iconv -f … -t UTF-8`)"


def _wrong_first_line(line: bytes, name: str) -> Finding | None:
    if (finding := wrong_beginning(line, name)) is not None:
        return finding
    if b"\r" in line.rstrip(b"\r") and not line.endswith(b"\n"):
        message = "lines end in CR alone, as on old Macs, nothing was read; save the file with LF (`tr '\\r' '\\n'`)"
        return error(f"{name}:1", "", message, "line ends")
    return None
