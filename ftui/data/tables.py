"""Parquet files to records, row group by row group; the line of a record is the number of its row, from 1.

Texts, numbers, lists and objects become what JSON has for them. A field that is null in an object is left out of it, for a Parquet
file has no other way to say that a row has no such field; messages, a list of objects, keep theirs. A value of any other type
(bytes, a time, a decimal, a map) becomes a `Foreign`, which is no error unless the plan reads that column. pyarrow is imported
when the first file is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from ftui.data.findings import Finding, error
from ftui.data.jsons import Stream
from ftui.data.lines import LONGEST
from ftui.record.text import safe

BATCH = 1000
"""Rows that are held at a time."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A value that JSON has no form for."""

    what: str
    """Words that fit behind "the text is"."""


def table_rows(file: BinaryIO, name: str, columns: Collection[str] | None = None) -> Stream:
    """Rows of a Parquet file with the values of `columns` (None: of all); those of the others are None.

    A row group that cannot be read is a finding with its rows, and the next one is read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    broken = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)
    try:
        table = pq.ParquetFile(file, page_checksum_verification=True)
        names: list[str] = table.schema_arrow.names
        groups = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
    except broken as problem:
        message = f"cannot be read as Parquet ({_said(problem)}), nothing of it was read; copy or write the file again"
        yield error(name, "", message, "broken Parquet")
        return
    for repeated in sorted({column for column in names if names.count(column) > 1}):
        yield error(name, repeated, "is the name of two columns; rename one", "repeated column")
    wanted = sorted({column for column in names if columns is None or column in columns})
    empty: dict[str, Any] = dict.fromkeys(names)
    before = 0
    for group, size in enumerate(groups):
        done = 0
        try:
            for batch in table.iter_batches(BATCH, row_groups=[group], columns=wanted, use_threads=False):
                yield from _records(batch, name, before + done, empty)
                done += batch.num_rows
            if done < size:
                raise ValueError(f"{size - done:,} of {size:,} rows are missing")
        except broken as problem:
            message = (
                f"rows {before + done + 1:,} to {before + size:,} cannot be read ({_said(problem)}); "
                "copy or write the file again"
            )
            yield error(f"{name}:{before + done + 1}", "", message, "broken Parquet")
        before += size


def _records(
    batch: Any, name: str, before: int, empty: dict[str, Any]
) -> Iterator[tuple[int, dict[str, Any]] | Finding]:
    found = {column: _values(batch.column(i)) for i, column in enumerate(batch.schema.names)}
    large = batch.nbytes > LONGEST
    for index in range(batch.num_rows):
        record = {**empty, **{column: values[index] for column, values in found.items()}}
        if large and (size := sum(len(value) for value in record.values() if isinstance(value, str))) > LONGEST:
            message = f"the row has {size:,} characters, more than the {LONGEST:,} one may have; shorten or split it"
            yield error(f"{name}:{before + index + 1}", "", message, "line too long")
        else:
            yield before + index + 1, record


def _values(column: Any) -> list[Any]:
    import pyarrow as pa

    if not _is_plain(column.type):
        foreign = Foreign(f"of the type {safe(str(column.type), 60)}")
        return [foreign if there else None for there in column.is_valid().to_pylist()]
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = [_value(scalar) for scalar in column]
    return [_without_nulls(value) for value in values] if pa.types.is_struct(column.type) else values


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(part) for name, part in value.items() if part is not None}


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return Foreign("bytes that are not UTF-8")


def _is_plain(kind: Any) -> bool:
    """Whether values of the Arrow type `kind` are what JSON has a form for."""
    import pyarrow.types as types

    if types.is_dictionary(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_plain(kind.value_type)
    if types.is_struct(kind):
        return all(_is_plain(kind.field(i).type) for i in range(kind.num_fields))
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    return any(
        is_kind(kind) for is_kind in (*texts, types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    )


def _said(problem: BaseException) -> str:
    lines = str(problem).splitlines()
    return safe(lines[0], 200) if lines else type(problem).__name__
