"""Encoded examples in Arrow files, written once per data version and encoder and mapped into memory by every run.

A cache is named by the content it was made from (data, tokenizer, template, length, truncation), never by names or times of
files, so that changed data or another tokenizer can not meet old ids.
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

from ftui.data.coded import Coded
from ftui.data.encoders import Encoder
from ftui.data.findings import DataError, Finding, Findings, error, warning
from ftui.data.rows import Row
from ftui.data.sources import SPLITS
from ftui.data.store import read_split, whole_folder
from ftui.record.files import read_json, replace_json, sha256_json

ENCODING_SCHEMA = 3
BATCH = 4096
"""Rows of one Arrow record batch."""

_COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("category", pa.string()),
        ("label", pa.int32()),
        ("unit", pa.string()),
        ("input_ids", pa.list_(pa.int32())),
        ("spans", pa.list_(pa.int32())),
        ("answer", pa.string()),
        ("path", pa.string()),
        ("length", pa.int32()),
        ("targets", pa.int32()),
        ("whole", pa.int32()),
        ("lost", pa.int32()),
        ("problem", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Example:
    """One encoded example."""

    id: str
    category: str
    """Label as written in the data; for generation its category, for extraction "all"."""
    label: int
    """Class id: the category's position in the label list; -1 where there are no classes."""
    input_ids: list[int]
    """Token ids, special tokens included, no padding; empty for a picture."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Positions `[start, end)` in `input_ids` that carry loss: the token there is predicted from those before it. In order, never
    the first position; empty for classification, whose one target is the label."""
    answer: str = ""
    """What should have been written, as text; "" for classification."""
    path: str = ""
    """The picture's file, relative to the campaign; "" for text."""

    @property
    def targets(self) -> int:
        """How many targets carry loss: tokens, or the one label."""
        return sum(end - start for start, end in self.spans) if self.spans else 1

    @property
    def target_ids(self) -> list[int]:
        """The tokens that carry loss."""
        return [token for start, end in self.spans for token in self.input_ids[start:end]]


class EncodedSplit:
    """One split's examples, mapped into memory; rows keep the order of the data version. Raises OSError, `pa.ArrowInvalid`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)]).tolist()
        self.lengths: NDArray[np.int32] = self._column("length")
        """Tokens of each example; 1 for a picture."""
        self.targets: NDArray[np.int32] = self._column("targets")
        """Targets of each example that carry loss."""
        self.whole_lengths: NDArray[np.int32] = self._column("whole")
        """Tokens of each example before anything was cut."""
        self.lost: NDArray[np.int32] = self._column("lost")
        """Targets of each example that were cut off."""
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
        names = ("id", "category", "label", "input_ids", "spans", "answer", "path")
        identity, category, label, ids, bounds, answer, path = (batch.column(name)[at].as_py() for name in names)
        return Example(identity, category, label, ids, list(zip(bounds[::2], bounds[1::2], strict=True)), answer, path)

    def __iter__(self) -> Iterator[Example]:
        return (self.row(index) for index in range(len(self)))

    def problems(self) -> list[str]:
        """Per example, what makes it unusable in two or three words; "" where nothing does."""
        return [kind for batch in self._batches for kind in batch.column("problem").to_pylist()]

    def count_token(self, token: int) -> tuple[int, int]:
        """How often a token id is in the examples, and in how many of them."""
        times, rows = 0, 0
        for batch in self._batches:
            ids = batch.column("input_ids")
            found = np.flatnonzero(ids.values.to_numpy() == token)
            times += len(found)
            rows += len(np.unique(np.searchsorted(ids.offsets.to_numpy(), found, side="right")))
        return times, rows

    def _column(self, name: str) -> NDArray[np.int32]:
        parts = [batch.column(name).to_numpy() for batch in self._batches]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)


@dataclass(frozen=True)
class Encoded:
    """The encoded splits of one data version by one encoder."""

    folder: Path
    splits: dict[str, EncodedSplit]
    over_length: dict[str, int]
    """Rows per split that were longer than `max_length`."""
    findings: list[Finding] = field(default_factory=list)


def encoding_key(data_hash: str, encoder: Encoder) -> str:
    """Name of the cache: a hash of everything its content follows from, 16 hex digits."""
    identity = {"encoding": ENCODING_SCHEMA, "data": data_hash, "library": version("tokenizers"), **encoder.identity}
    return sha256_json(identity)[:16]


def encode_splits(version_folder: Path, encoder: Encoder, *, refuse: bool = True) -> Encoded:
    """Encode the splits of the data version in `version_folder`, or open what was encoded before.

    Raises `DataError` with every row that cannot be encoded as the plan wants it, counted per split. Only to look at the rows
    and never to train on them, `refuse=False` opens them all the same; the findings then say what is wrong.
    """
    key = encoding_key(version_folder.name, encoder)
    folder = version_folder / "encoded" / key
    if not (folder / "manifest.json").is_file():
        with whole_folder(folder) as aside:
            noticed, over = Findings(), {}
            noticed.add(*encoder.findings())
            for name in SPLITS:
                rows = read_split(version_folder / f"{name}.jsonl")
                lost = _write_split(aside / f"{name}.arrow", rows, encoder, noticed)
                noticed.add(*lost.findings(f"data/{version_folder.name}/{name}.jsonl", encoder))
                over[name] = lost.rows
            if refuse and noticed.errors:
                raise DataError(noticed.all())
            content = {"schema": ENCODING_SCHEMA, "key": key, "made_from": encoder.identity, "over_length": over}
            findings = [f.row() for f in noticed.all()]
            replace_json(aside / "manifest.json", {**content, "errors": noticed.errors, "findings": findings})
    manifest: dict[str, Any] = read_json(folder / "manifest.json")
    found = [Finding(**f) for f in manifest["findings"]]
    if refuse and manifest["errors"]:
        raise DataError(found)
    splits = {name: EncodedSplit(folder / f"{name}.arrow") for name in SPLITS}
    return Encoded(folder, splits, manifest["over_length"], found)


@dataclass
class _Lost:
    """Rows over the limit and what cutting them takes away."""

    of: int = 0
    rows: int = 0
    tokens: int = 0
    targets: int = 0
    rows_with_targets: int = 0
    longest: int = 0
    without_target: int = 0
    joined: int = 0

    def add(self, coded: Coded, limit: int) -> None:
        self.of += 1
        self.rows += coded.whole_length > limit
        self.longest = max(self.longest, coded.whole_length)
        self.tokens += coded.whole_length - len(coded.ids) if coded.ids else 0
        self.targets += coded.lost_targets
        self.rows_with_targets += coded.lost_targets > 0
        self.joined += coded.joined
        self.without_target += coded.problem is not None and coded.problem.kind == "no target left"

    def findings(self, place: str, encoder: Encoder) -> Iterator[Finding]:
        limit = encoder.limit
        if self.without_target:
            message = (
                f"{self.without_target:,} of {self.of:,} rows keep no target within training.max_length = {limit}; "
                "they would train nothing, so nothing is trained"
            )
            yield error(place, "training.max_length", message, "split without targets")
        elif self.tokens:
            message = (
                f"{self.rows:,} of {self.of:,} rows have more than {limit} tokens (longest {self.longest}); "
                f"{self.tokens:,} tokens were cut off"
            )
            if encoder.has_targets:
                message += f", {self.targets:,} of them targets, of {self.rows_with_targets:,} rows"
            yield warning(place, "training.max_length", message, "cut")
        if self.joined:
            message = (
                f"in {self.joined:,} of {self.of:,} rows one token holds the end of the prompt and the start of the answer; it carries "
                "loss, but a prompt that is asked alone ends in other tokens: begin answers without white space, or end prompts so"
            )
            yield warning(place, "messages", message, "joined token")


def _write_split(path: Path, rows: Iterator[Row], encoder: Encoder, noticed: Findings) -> _Lost:
    lost = _Lost()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, _COLUMNS) as writer:
        while batch := list(islice(rows, BATCH)):
            coded = encoder.encode(batch)
            for one in coded:
                lost.add(one, encoder.limit)
                noticed.add(*([one.problem] if one.problem is not None else []))
            columns = [
                [row.id for row in batch],
                [row.label for row in batch],
                [one.label for one in coded],
                [row.unit for row in batch],
                [one.ids for one in coded],
                [[bound for span in one.spans for bound in span] for one in coded],
                [row.answer for row in batch],
                [row.path for row in batch],
                [max(1, len(one.ids)) for one in coded],
                [_targets(one, encoder) for one in coded],
                [one.whole_length for one in coded],
                [one.lost_targets for one in coded],
                ["" if one.problem is None else one.problem.kind for one in coded],
            ]
            arrays = [pa.array(column, type=kind.type) for column, kind in zip(columns, _COLUMNS, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=_COLUMNS))
    return lost


def _targets(coded: Coded, encoder: Encoder) -> int:
    if coded.problem is not None:
        return 0
    return sum(end - start for start, end in coded.spans) if encoder.has_targets else 1
