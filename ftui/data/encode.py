"""Rows to token ids, once per data version and tokenizer, in Arrow files that every run maps into memory.

A cache is named by the content it was made from (data, tokenizer, length, truncation), never by names or times of files, so
that changed data or another tokenizer can not meet old ids.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ftui.data.findings import DataError, Finding, Findings, error, warning
from ftui.data.rows import Row
from ftui.data.sources import SPLITS
from ftui.data.store import read_split, whole_folder
from ftui.data.tokenizer import TextTokenizer
from ftui.plan.schema import Training
from ftui.record.files import read_json, replace_json, sha256_json
from ftui.record.text import safe

ENCODING_SCHEMA = 1
BATCH = 4096
"""Rows of one Arrow record batch."""

_COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("category", pa.string()),
        ("label", pa.int32()),
        ("unit", pa.string()),
        ("input_ids", pa.list_(pa.int32())),
        ("length", pa.int32()),
    ]
)


@dataclass(frozen=True, slots=True)
class Example:
    """One encoded example."""

    id: str
    category: str
    """Label as written in the data."""
    label: int
    """Class id: the category's position in the label list."""
    input_ids: list[int]
    """Token ids, special tokens included, no padding."""


class EncodedSplit:
    """One split's examples, mapped into memory; rows keep the order of the data version. Raises OSError, `pa.ArrowInvalid`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)]).tolist()
        self.lengths: NDArray[np.int32] = self._column("length")
        """Tokens of each example."""
        self.labels: NDArray[np.int32] = self._column("label")
        """Class id of each example."""

    def __len__(self) -> int:
        return int(self._starts[-1])

    def row(self, index: int) -> Example:
        """Example `index`, from 0. Raises IndexError."""
        if not 0 <= index < len(self):
            raise IndexError(f"{self.path.name} has {len(self)} examples, none has the index {index}")
        which = bisect_right(self._starts, index) - 1
        batch, at = self._batches[which], index - self._starts[which]
        identity, category, label, ids = (
            batch.column(name)[at].as_py() for name in ("id", "category", "label", "input_ids")
        )
        return Example(identity, category, label, ids)

    def __iter__(self) -> Iterator[Example]:
        return (self.row(index) for index in range(len(self)))

    def _column(self, name: str) -> NDArray[np.int32]:
        parts = [batch.column(name).to_numpy() for batch in self._batches]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)


@dataclass(frozen=True)
class Encoded:
    """The encoded splits of one data version under one tokenizer and length."""

    folder: Path
    splits: dict[str, EncodedSplit]
    over_length: dict[str, int]
    """Rows per split that were longer than `max_length`."""
    findings: list[Finding] = field(default_factory=list)


def encoding_key(data_hash: str, tokenizer: TextTokenizer, max_length: int, truncation: str) -> str:
    """Name of the cache: a hash of everything its content follows from, 16 hex digits."""
    identity = {
        "encoding": ENCODING_SCHEMA,
        "data": data_hash,
        "tokenizer": tokenizer.sha256,
        "library": version("tokenizers"),
        "max_length": max_length,
        "truncation": truncation,
    }
    return sha256_json(identity)[:16]


def encode_splits(version_folder: Path, labels: list[str], tokenizer: TextTokenizer, training: Training) -> Encoded:
    """Encode the splits of the data version in `version_folder`, or open what was encoded before.

    `labels` is in class order. Raises `DataError` when rows are longer than `training.max_length` and truncation is
    "error"; with "cut" they are cut at the end, and a warning says how many tokens were lost.
    """
    limit, policy = training.max_length, training.truncation
    key = encoding_key(version_folder.name, tokenizer, limit, policy)
    folder = version_folder / "encoded" / key
    if not (folder / "manifest.json").is_file():
        with whole_folder(folder) as aside:
            noticed, over, classes = Findings(), {}, {label: i for i, label in enumerate(labels)}
            for name in SPLITS:
                rows = read_split(version_folder / f"{name}.jsonl")
                lost = _write_split(
                    aside / f"{name}.arrow", rows, classes, tokenizer, limit, noticed, cut=policy == "cut"
                )
                over[name] = lost.rows
                if policy == "cut" and lost.rows:
                    message = (
                        f"{lost.rows:,} of {lost.of:,} rows have more than {limit} tokens (longest {lost.longest}); "
                        f"{lost.tokens:,} tokens were cut off"
                    )
                    noticed.add(
                        warning(f"data/{version_folder.name}/{name}.jsonl", "training.max_length", message, "cut")
                    )
            findings = noticed.all()
            if noticed.errors:
                raise DataError(findings)
            content = {"schema": ENCODING_SCHEMA, "key": key, "tokenizer": tokenizer.sha256, "max_length": limit}
            content |= {"truncation": policy, "over_length": over, "findings": [f.row() for f in findings]}
            replace_json(aside / "manifest.json", content)
    return _open(folder)


def _open(folder: Path) -> Encoded:
    manifest: dict[str, Any] = read_json(folder / "manifest.json")
    splits = {name: EncodedSplit(folder / f"{name}.arrow") for name in SPLITS}
    return Encoded(folder, splits, manifest["over_length"], [Finding(**f) for f in manifest["findings"]])


@dataclass
class _Lost:
    """Rows over the limit and what cutting them takes away."""

    of: int = 0
    rows: int = 0
    tokens: int = 0
    longest: int = 0


def _write_split(
    path: Path,
    rows: Iterator[Row],
    classes: dict[str, int],
    tokenizer: TextTokenizer,
    limit: int,
    noticed: Findings,
    *,
    cut: bool,
) -> _Lost:
    lost = _Lost()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, _COLUMNS) as writer:
        while batch := list(islice(rows, BATCH)):
            ids = tokenizer.encode([row.text for row in batch])
            long = [i for i, tokens in enumerate(ids) if len(tokens) > limit]
            lost.of += len(batch)
            lost.rows += len(long)
            lost.longest = max(lost.longest, *map(len, ids))
            if not cut:
                noticed.add(*(_too_long(batch[i], len(ids[i]), limit) for i in long))
            elif long:
                shorter = tokenizer.encode_cut([batch[i].text for i in long], limit)
                for i, tokens in zip(long, shorter, strict=True):
                    lost.tokens += len(ids[i]) - len(tokens)
                    ids[i] = tokens
            columns = [
                [row.id for row in batch],
                [row.label for row in batch],
                [classes[row.label] for row in batch],
                [row.unit for row in batch],
                ids,
                [len(tokens) for tokens in ids],
            ]
            arrays = [pa.array(column, type=kind.type) for column, kind in zip(columns, _COLUMNS, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=_COLUMNS))
    return lost


def _too_long(row: Row, length: int, limit: int) -> Finding:
    message = (
        f"has {length} tokens, more than training.max_length = {limit} ({safe(row.text, 40)!r}); "
        'raise max_length, shorten the text, or set truncation = "cut"'
    )
    return error(row.place, "text", message, "too many tokens")
