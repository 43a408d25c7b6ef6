"""A text token by token: the characters, and under them a ruler that shows where each token begins and what becomes of it.

The ruler carries the meaning without colour: a thick line carries loss, a mere tick is context, a broken line was cut off.
Pure; the inspection screen and `ftui inspect` draw what this says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, chop_cells

from ftui.record.text import safe

Piece = tuple[str, str, bool, int]
"""Text, state ("context", "loss", "cut", "cut loss"), whether it is the tokenizer's own token, and how many tokens it stands for."""


@dataclass(frozen=True)
class Marks:
    """First and further cells of the ruler under a token, by its state."""

    context: str
    loss: str
    cut: str
    cut_loss: str
    line_end: str
    """Stands for a line end in the text."""

    def of(self, state: str) -> str:
        return {"loss": self.loss, "cut": self.cut, "cut loss": self.cut_loss}.get(state, self.context)

    def legend(self) -> list[tuple[str, str]]:
        """Sign and meaning of each state."""
        return [
            (self.loss[0] + self.loss[1] * 2, "carries loss"),
            (self.context[0] + self.context[1] * 2, "context"),
            (self.cut[0] + self.cut[1] * 2, "cut off"),
            (self.cut_loss[0] + self.cut_loss[1] * 2, "target cut off"),
        ]


UNICODE = Marks("╵ ", "┗━", "╎╌", "╳╳", "⏎")
ASCII = Marks("' ", "^=", "-~", "xx", "$")


@dataclass(frozen=True)
class Part:
    """Some cells of a line, of one state."""

    text: str
    ruler: str
    state: str
    special: bool


def token_lines(pieces: Sequence[Piece], width: int, marks: Marks) -> list[list[Part]]:
    """The text in lines of at most `width` cells, broken between tokens where that is possible and behind line ends."""
    lines: list[list[Part]] = [[]]
    used = 0
    for text, state, special, tokens in pieces:
        for shown, begins, ends_line in _shown(text, width, marks):
            cells = cell_len(shown)
            if used + cells > width and used:
                lines.append([])
                used = 0
            lines[-1].append(Part(shown, _ruler(cells, state, marks, begins=begins and tokens > 0), state, special))
            used += cells
            if ends_line:
                lines.append([])
                used = 0
    return [line for line in lines if line] or [[]]


def example_head(example: dict[str, Any]) -> list[tuple[str, str]]:
    """What is said above an example of `ftui.data.examples`: lines and their roles."""
    same = example["place"].startswith(example["id"])
    where = safe(example["id"]) if same else f"{safe(example['id'])}   {safe(example['place'])}"
    if example["unit"] is not None:
        where += f"   unit {safe(example['unit'])}"
    lines = [(where, "bright")]
    if example["class"] is not None:
        number = "no class" if example["class"] < 0 else f"class {example['class']}"
        lines.append((f"target: {safe(example['category'])} ({number})", "text"))
    elif example["category"] != "all":
        lines.append((f"category {safe(example['category'])}", "text"))
    if example["pieces"]:
        gone, lost = example["tokens"] - example["kept"], example["targets_lost"]
        targets = f", {example['targets']:,} carry loss" if example["class"] is None else ""
        cuts = f", {gone:,} cut off" if gone else ""
        lines.append(
            (f"{example['tokens']:,} tokens{targets}{cuts}{f', {lost:,} targets lost' if lost else ''}", "text")
        )
    if example["joined"]:
        lines.append(("one token holds the end of the prompt and the start of the answer", "warn"))
    return lines


def _shown(text: str, width: int, marks: Marks) -> Iterator[tuple[str, bool, bool]]:
    """A token's text as it can be shown, in parts that fit a line: (text, whether the token begins here, whether a line ends)."""
    begins = True
    parts = text.split("\n")
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if last and not part and len(parts) > 1:
            return
        written = safe(part, 1 << 20) + ("" if last else marks.line_end)
        chopped = chop_cells(written, width) if cell_len(written) > width else [written]
        for number, piece in enumerate(chopped):
            yield piece, begins, not last and number == len(chopped) - 1
            begins = False


def _ruler(cells: int, state: str, marks: Marks, *, begins: bool) -> str:
    first, further = tuple(marks.of(state))
    return (first + further * (cells - 1))[:cells] if begins else further * cells
