"""How a row becomes what the model sees: one encoder per kind of task. `encode.py` keeps what they give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from ftui.data.chat import ChatEncoder
from ftui.data.coded import Coded, too_long
from ftui.data.explain import Explained, pieces_of
from ftui.data.findings import Finding
from ftui.data.rows import Row
from ftui.data.tokenizer import TextTokenizer, load_tokenizer
from ftui.plan.schema import Evaluation, Training

NO_CLASS = -1
"""Class of a row whose label training does not know. Such data is refused; it can be looked at all the same."""


class Encoder(Protocol):
    """Rows to tokens. `identity` is everything their result follows from besides the rows."""

    identity: dict[str, Any]
    limit: int
    """Most tokens of an example."""
    has_targets: bool
    """Whether targets are tokens (generation, extraction) or the label."""

    def findings(self) -> list[Finding]:
        """What is to be said about the encoding as a whole."""
        ...

    def encode(self, rows: Sequence[Row]) -> list[Coded]: ...

    def explain(self, row: Row) -> Explained:
        """One row token by token."""
        ...


def make_encoder(
    task: str, labels: Sequence[str], training: Training, evaluation: Evaluation, model_dir: Path
) -> Encoder:
    """The encoder of a task with the base model in `model_dir`; `labels` is in class order. Raises `TokenizerError`."""
    if task == "image-classification":
        return PictureEncoder(labels)
    if task == "text-classification":
        return TextEncoder(labels, load_tokenizer(model_dir), training)
    return make_chat_encoder(task, training, evaluation, model_dir)


def make_chat_encoder(task: str, training: Training, evaluation: Evaluation, model_dir: Path) -> ChatEncoder:
    """The encoder of a task that writes. Raises `TokenizerError`."""
    stop = evaluation.generation.stop if evaluation.generation else []
    gap = "\n" if task == "extraction" else ""
    return ChatEncoder(load_tokenizer(model_dir, writes=True), training, stop, gap)


class TextEncoder:
    """A text and its class."""

    has_targets = False

    def __init__(self, labels: Sequence[str], tokenizer: TextTokenizer, training: Training) -> None:
        self._classes = {label: i for i, label in enumerate(labels)}
        self.tokenizer, self.limit, self._cut = tokenizer, training.max_length, training.truncation == "cut"
        self.identity = {
            "tokenizer": tokenizer.sha256,
            "max_length": training.max_length,
            "truncation": training.truncation,
        }

    def findings(self) -> list[Finding]:
        return []

    def encode(self, rows: Sequence[Row]) -> list[Coded]:
        ids = self.tokenizer.encode([row.text for row in rows])
        coded = [Coded(i, len(i), self._classes.get(row.label, NO_CLASS)) for i, row in zip(ids, rows, strict=True)]
        long = [i for i, one in enumerate(coded) if one.whole_length > self.limit]
        if not self._cut:
            for i in long:
                coded[i].problem = too_long(rows[i], coded[i].whole_length, self.limit)
        elif long:
            for i, kept in zip(long, self.tokenizer.encode_cut([rows[i].text for i in long], self.limit), strict=True):
                coded[i].ids = kept
        return coded

    def explain(self, row: Row) -> Explained:
        """The tokens of a text; none carries loss, for the one target is the class."""
        (coded,) = self.encode([row])
        ids, offsets = self.tokenizer.encode_with_offsets(row.text, special=True)
        kept = min(len(ids), self.limit)
        # What stands behind the text ([SEP]) stays when the text is cut.
        behind = next((n for n, (start, end) in enumerate(reversed(offsets)) if start != end), len(ids))
        cut = (kept - behind, len(ids) - behind) if kept < len(ids) else (0, 0)
        names, special = self.tokenizer.tokens(ids), self.tokenizer.special_ids
        pieces = pieces_of(row.text, ids, offsets, names, special=special, cut=cut)
        return Explained(pieces, tokens=len(ids), kept=kept, targets=0 if coded.problem else 1, problem=coded.problem)


class PictureEncoder:
    """A picture's class; its pixels are read when they are needed."""

    has_targets = False
    limit = 1

    def __init__(self, labels: Sequence[str]) -> None:
        self._classes = {label: i for i, label in enumerate(labels)}
        self.identity: dict[str, Any] = {"pictures": 1}

    def findings(self) -> list[Finding]:
        return []

    def encode(self, rows: Sequence[Row]) -> list[Coded]:
        return [Coded([], 1, self._classes.get(row.label, NO_CLASS)) for row in rows]

    def explain(self, row: Row) -> Explained:
        """A picture has no tokens; its one target is the class."""
        return Explained(tokens=1, kept=1, targets=1)
