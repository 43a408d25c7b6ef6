"""One example token by token, as the loss will see it: what carries loss, what is context, what was cut off (D5, N4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ftui.data.findings import Finding

State = Literal["context", "loss", "cut", "cut loss"]
"""`loss`: a target, predicted from the tokens before it. `cut`: left out by the plan's truncation; `cut loss`: a target among them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A token with the characters it stands for. Tokens that share a character (bytes of 안) are one piece."""

    text: str
    """The characters; the token's name where it stands for none."""
    ids: tuple[int, ...]
    """Empty for characters between tokens, which the model does not see (white space of a tokenizer that splits at it)."""
    state: State
    special: bool = False
    """One of the tokenizer's own tokens, such as [CLS] or <|im_end|>."""


@dataclass(frozen=True)
class Explained:
    """One example as it enters the model."""

    pieces: list[Piece] = field(default_factory=list)
    tokens: int = 0
    """Tokens before anything was cut."""
    kept: int = 0
    """Tokens the model sees."""
    targets: int = 0
    """Tokens that carry loss and were kept."""
    targets_lost: int = 0
    problem: Finding | None = None
    """Why the example cannot be used."""
    joined: bool = False
    """A token reaches from the prompt into the answer."""


def pieces_of(
    text: str,
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    names: Sequence[str],
    *,
    special: frozenset[int],
    spans: Sequence[tuple[int, int]] = (),
    cut: tuple[int, int] = (0, 0),
) -> list[Piece]:
    """The pieces of `text` as tokens `ids`, which stand for the characters `offsets`.

    `names` are the written forms of the tokens, `special` the ids that are the tokenizer's own, `spans` the positions
    `[start, end)` that carry loss and `cut` those that are left out.
    """
    targets = {i for start, end in spans for i in range(start, end)}
    pieces: list[Piece] = []
    shown = 0  # characters of the text that stand in some piece
    for i, (token, (start, end)) in enumerate(zip(ids, offsets, strict=True)):
        state: State = "loss" if i in targets else "context"
        if cut[0] <= i < cut[1]:
            state = "cut loss" if i in targets else "cut"
        if start == end:
            pieces.append(Piece(names[i], (token,), state, token in special))
            continue
        if start > shown:
            pieces.append(Piece(text[shown:start], (), state if state in ("cut", "cut loss") else "context"))
        if end <= shown and pieces and pieces[-1].ids:
            last = pieces[-1]
            pieces[-1] = Piece(last.text, (*last.ids, token), last.state, last.special)
            continue
        pieces.append(Piece(text[max(start, shown) : end], (token,), state, token in special))
        shown = max(shown, end)
    return pieces
