"""On which line of a TOML text a field stands. The standard library's reader does not say."""

from __future__ import annotations

import re

_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_MULTILINE = ('"""', "'''")


class Places:
    """Lines of tables and keys. Reads the usual layout (one key per line); what it cannot find takes its table's line."""

    def __init__(self, text: str) -> None:
        self._lines: dict[tuple[int | str, ...], int] = {}
        table: tuple[int | str, ...] = ()
        counts: dict[tuple[int | str, ...], int] = {}
        inside: str | None = None
        for number, line in enumerate(text.splitlines(), 1):
            if inside is not None:
                inside = None if inside in line else inside
                continue
            if match := _TABLE.match(line):
                table = self._resolve(_parts(match[2]), counts, new_item=match[1] == "[[")
                self._lines.setdefault(table, number)
            elif match := _KEY.match(line):
                self._lines.setdefault((*table, *_parts(match[1])), number)
                rest = line[match.end() :]
                inside = next((q for q in _MULTILINE if rest.count(q) == 1), None)

    @staticmethod
    def _resolve(
        names: tuple[str, ...], counts: dict[tuple[int | str, ...], int], *, new_item: bool
    ) -> tuple[int | str, ...]:
        path: tuple[int | str, ...] = ()
        for position, name in enumerate(names):
            path = (*path, name)
            if new_item and position == len(names) - 1:
                counts[path] = counts.get(path, -1) + 1
            if path in counts:
                path = (*path, counts[path])
        return path

    def line(self, *steps: int | str) -> int | None:
        """Line of the field, else of the closest table around it, else None. Lines count from 1."""
        for length in range(len(steps), 0, -1):
            if (found := self._lines.get(tuple(steps[:length]))) is not None:
                return found
        return None


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(key))
