"""The examples of an inspection, one at a time: which are chosen, in what order, and each of them token by token."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftui.data.encoders import NO_CLASS
from ftui.data.explain import Explained
from ftui.data.facts import first_epoch_batches
from ftui.data.inspection import Inspection
from ftui.data.rows import Row
from ftui.data.store import StoredRows

SEALED = "test"
"""The split whose rows are not shown (H4)."""

ONLY = ("all", "cut", "unusable")
"""What may be chosen: all rows, those that lose tokens, those that cannot be used."""

ORDERS = ("data", "longest")

MOST_PIECES = 5000
"""Pieces of one example that are shown; nobody reads a megabyte, and a terminal should not draw it (K30)."""


class SealedError(Exception):
    """Rows of the test split were asked for."""


class Examples:
    """Rows of the train and validation splits of an inspection."""

    def __init__(self, inspection: Inspection, campaign: Path) -> None:
        self._inspection, self._campaign = inspection, campaign
        self._rows: dict[str, StoredRows] = {}
        self._padded: NDArray[np.int64] | None = None

    def rows(self, split: str) -> StoredRows:
        """Raises `SealedError`."""
        if split == SEALED:
            raise SealedError(
                "the test split is sealed until the candidates are fixed: who has seen it chooses by it; look at validation instead"
            )
        if split not in self._rows:
            self._rows[split] = StoredRows(self._inspection.folder / f"{split}.jsonl")
        return self._rows[split]

    def choose(
        self, split: str, *, only: str = "all", category: str | None = None, text: str = "", order: str = "data"
    ) -> list[int]:
        """Positions of the rows of `split` that are wanted, in the order wanted. `text` is looked for in all a row says, in any case.

        Raises `SealedError`.
        """
        rows, encoded = self.rows(split), self._inspection.encoded
        chosen = range(len(rows)) if encoded is None else np.flatnonzero(self._wanted(split, only)).tolist()
        if category is not None or text:
            needle = text.casefold()
            chosen = [i for i in chosen if self._says(rows.row(i), category, needle)]
        if order == "longest" and encoded is not None:
            lengths = encoded.splits[split].whole_lengths
            return sorted(chosen, key=lambda i: -int(lengths[i]))
        return list(chosen)

    def example(self, split: str, index: int) -> dict[str, Any]:
        """Row `index` of `split` as plain JSON values. Raises `SealedError`, IndexError."""
        row, encoder = self.rows(split).row(index), self._inspection.encoder
        explained = Explained() if encoder is None else encoder.explain(row)
        labels = self._inspection.report.labels
        classed = self._inspection.plan.hypothesis.task.endswith("classification")
        return {
            "split": split,
            "index": index,
            "id": row.id,
            "place": row.place,
            "category": row.label,
            "class": (labels.index(row.label) if row.label in labels else NO_CLASS) if classed else None,
            "unit": row.unit,
            "answer": row.answer,
            "pieces": [
                [piece.text, piece.state, piece.special, len(piece.ids)] for piece in explained.pieces[:MOST_PIECES]
            ],
            "more": sum(len(piece.ids) for piece in explained.pieces[MOST_PIECES:]),
            "tokens": explained.tokens,
            "kept": explained.kept,
            "targets": explained.targets,
            "targets_lost": explained.targets_lost,
            "joined": explained.joined,
            "padding": self._padding(split, index),
            "problem": None if explained.problem is None else str(explained.problem),
            "text": row.text if encoder is None else "",
            "picture": _picture(self._campaign / row.path) if row.path else None,
        }

    def _wanted(self, split: str, only: str) -> NDArray[np.bool_]:
        encoded = self._inspection.encoded
        assert encoded is not None
        part = encoded.splits[split]
        match only:
            case "cut":
                return np.asarray(part.whole_lengths > self._inspection.plan.training.max_length)
            case "unusable":
                return np.array([bool(kind) for kind in part.problems()], bool)
        return np.ones(len(part), bool)

    def _says(self, row: Row, category: str | None, needle: str) -> bool:
        if category is not None and row.label != category:
            return False
        texts = [m["content"] for m in row.messages] or [row.path or row.text]
        return not needle or any(needle in text.casefold() for text in texts)

    def _padding(self, split: str, index: int) -> int | None:
        """Padding behind an example in its micro-batch of the first epoch; None where there is none to tell."""
        inspection = self._inspection
        if split != "train" or inspection.padding is None or inspection.encoded is None:
            return None
        if inspection.plan.training.batching == "packed":
            return 0
        if self._padded is None:
            plan, kept = inspection.plan, inspection.encoded.splits["train"].lengths
            self._padded = np.zeros(len(kept), np.int64)
            for batch in first_epoch_batches(kept, plan.training, plan.machine, plan.evaluation.seeds[0]):
                self._padded[batch] = kept[batch].max() - kept[batch]
        return int(self._padded[index])


def _picture(path: Path) -> dict[str, Any]:
    """What a picture's file holds, or why it cannot be read."""
    from PIL import Image

    try:
        with Image.open(path) as picture:
            width, height = picture.size
            return {
                "path": str(path),
                "format": picture.format,
                "width": width,
                "height": height,
                "channels": len(picture.getbands()),
                "mode": picture.mode,
            }
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as problem:
        return {"path": str(path), "problem": f"cannot be read as a picture: {problem}"}


def thumbnail(path: Path, width: int, height: int) -> list[list[tuple[int, int, int]]]:
    """The picture at most `width` by `height` points large, row by row in RGB, its shape kept. [] where it cannot be read."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as file:
            picture = ImageOps.exif_transpose(file).convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return []
    scale = min(width / picture.width, height / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    small = picture.resize(size, Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.NEAREST)
    points = np.asarray(small)
    return [[(int(r), int(g), int(b)) for r, g, b in row] for row in points]


def serve(examples: Examples, content: dict[str, Any], ask: Callable[[], str], answer: Callable[[str], None]) -> None:
    """Answer questions, one JSON object per line each way, until none comes: what the app's inspection screen talks to.

    `{"id": 1, "ask": "inspection"}` · `{"ask": "choose", "split": …, "only": …, "category": …, "text": …, "order": …}`, which is answered
    with the number of rows and decides what `{"ask": "example", "at": k}` means · `{"ask": "picture", "path": …, "width": …,
    "height": …}`. An answer is `{"id": that of the question, "answer": …}`; what cannot be answered has `"error"`, a sentence.
    """
    split, chosen = "train", list[int]()
    while line := ask():
        question: dict[str, Any] = json.loads(line)
        try:
            match question["ask"]:
                case "inspection":
                    said: dict[str, Any] = content
                case "choose":
                    wanted = {key: question[key] for key in ("only", "category", "text", "order") if key in question}
                    chosen = examples.choose(question["split"], **wanted)
                    split, said = question["split"], {"rows": len(chosen)}
                case "example":
                    said = examples.example(split, chosen[question["at"]])
                case "picture":
                    said = {"points": thumbnail(Path(question["path"]), question["width"], question["height"])}
                case other:
                    raise ValueError(f"nobody knows what {other!r} asks for")
        except SealedError as problem:
            answer(json.dumps({"id": question["id"], "error": str(problem)}, ensure_ascii=False))
        else:
            answer(json.dumps({"id": question["id"], "answer": said}, ensure_ascii=False))
