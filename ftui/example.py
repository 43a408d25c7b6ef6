"""`ftui inspect --example`: one example token by token, as lines for this terminal."""

from __future__ import annotations

import shutil
from typing import Any

from ftui.record.text import safe
from ftui.ui.glyphs import wants_ascii
from ftui.ui.tokens import ASCII, UNICODE, example_head, token_lines


def example_text(example: dict[str, Any]) -> str:
    """The example as `ftui.data.examples` tells it: head, problem, text with its ruler, legend."""
    marks = ASCII if wants_ascii() else UNICODE
    lines = [line for line, _ in example_head(example)]
    lines += [safe(example["problem"])] if example["problem"] else []
    for parts in token_lines(example["pieces"], min(120, shutil.get_terminal_size().columns), marks):
        lines += ["".join(part.text for part in parts), "".join(part.ruler for part in parts).rstrip()]
    lines += [f"… and {example['more']:,} more tokens"] if example["more"] else []
    lines.append("   ".join(f"{sign.strip()} {meaning}" for sign, meaning in marks.legend()))
    return "\n".join(lines)
