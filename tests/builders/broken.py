"""A corpus of broken training files of every format and task, each with all that is to be found in it, thought out by hand."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ftui.data.records import LONGEST

A = b'{"text": "fine", "label": "a"}\n'
B = b'{"text": "also fine", "label": "b"}\n'

Expected = tuple[str, int | None, str, str]
"""Severity, line (None: the file as a whole), column, words of the sentence."""


@dataclass(frozen=True)
class Case:
    """A broken training file, all that is to be found in it, and the texts of the rows that are still read."""

    content: bytes
    expected: list[Expected]
    kept: list[str]
    file: str = "train.jsonl"
    task: str = "text"
    data: dict[str, Any] = field(default_factory=dict)


def lines(*rows: object) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    return file.getvalue()


def many(changed: dict[str, Any] | None) -> bytes:
    """600 rows; the 500th is `changed`."""
    rows: list[Any] = [{"text": f"row {i}", "label": "ab"[i % 2], "who": f"w{i}"} for i in range(1, 601)]
    rows[499] = changed
    return lines(*rows)


ALL_BUT_500 = [f"row {i}" for i in range(1, 601) if i != 500]
BOTH = ["fine", "also fine"]
TEXTS, LABELS = pa.array(["fine", "also fine"]), pa.array(["a", "b"])


def between(line: bytes, column: str, words: str, severity: str = "error") -> Case:
    """A bad second line of JSON between two good ones."""
    return Case(A + line + b"\n" + B, [(severity, 2, column, words)], BOTH)


def json_between(element: bytes, column: str, words: str) -> Case:
    return Case(
        b"[" + A.strip() + b",\n" + element + b",\n" + B.strip() + b"]",
        [("error", 2, column, words)],
        BOTH,
        "train.json",
    )


def twice_named() -> bytes:
    file = io.BytesIO()
    table = pa.Table.from_arrays([TEXTS, LABELS, LABELS], ["text", "label", "label"])
    pq.write_table(table, file)
    return file.getvalue()


def damaged_group() -> bytes:
    """Three row groups of two rows; a byte of the second one's texts is another than when it was written."""
    texts = [f"row number {i}" for i in range(1, 7)]
    options = {"row_group_size": 2, "write_page_checksum": True, "compression": "none"}
    options |= {"use_dictionary": False, "write_statistics": False}
    content = parquet({"text": texts, "label": list("ababab")}, **options)
    assert content.count(b"row number 4") == 1
    return content.replace(b"row number 4", b"row number 9")


def strange_columns() -> bytes:
    """Good texts and labels beside columns of types that JSON has no form for, which no plan reads."""
    return parquet(
        {
            "text": TEXTS,
            "label": LABELS,
            "bytes": pa.array([b"\xff\0", None]),
            "when": pa.array([2**63 - 1, 1], pa.timestamp("ns")),
            "price": pa.array([Decimal("1.20"), None]),
            "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int8())),
            "nested": pa.array([{"at": datetime(2020, 1, 1)}, None]),  # noqa: DTZ001
            "length": pa.array([1, 2], pa.duration("ns")),
        }
    )


CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
WIDE = b'{"text": "' + b"x" * (3 * LONGEST) + b'", "label": "a"}'

CASES: dict[str, Case] = {
    # JSON Lines
    "NaN, in a column nobody reads": between(b'{"text": "x", "label": "a", "score": NaN}', "", "NaN is no JSON value"),
    "minus infinity": between(b'{"text": "x", "label": -Infinity}', "", "-Infinity is no JSON value"),
    "a number past all floats": between(b'{"text": "x", "label": "a", "n": 1e999}', "", "1e999 is too large"),
    "a key twice": between(b'{"text": "x", "text": "y", "label": "a"}', "text", "'text' stands 2 times in one object"),
    "a key thrice, deep inside": between(
        b'{"text": "x", "label": "a", "m": [{"k": 1, "k": 1, "k": 2}]}', "k", "'k' stands 3 times"
    ),
    "an object as label": between(b'{"text": "x", "label": {"name": "a"}}', "label", "the label is an object"),
    "an object as text": between(b'{"text": {"en": "x"}, "label": "a"}', "text", 'the text is an object ({"en": "x"})'),
    "a list as label": between(b'{"text": "x", "label": ["a"]}', "label", "the label is a list"),
    "a text on a line": between(b'"x"', "", 'holds "x", not an object'),
    "null on a line": between(b"null", "", "holds null, not an object"),
    "half a character, not even an object": between(b'["\\ud83d"]', "", "not an object"),
    "a hole of NUL bytes": between(b"\0\0\0\0", "", "holds 4 NUL bytes, the first as character 1"),
    "NUL in a label": between(b'{"text": "x", "label": "a\\u0000"}', "label", "the label holds a NUL"),
    "a blank line": between(b"  ", "", "is a blank line", "warning"),
    "a CR in the middle of a line": between(b'{"text": "x", "label": "a"}\r{"text": "y", "label": "a"}', "", "CR alone"),
    "lines of an old Mac": Case((A + B).replace(b"\n", b"\r"), [("error", 1, "", "tr '\\r' '\\n'")], []),
    "UTF-16, little end": Case((A + B).decode().encode("utf-16"), [("error", 1, "", "UTF-16, nothing of it")], []),
    "UTF-16, big end": Case(
        b"\xfe\xff" + (A + B).decode().encode("utf-16-be"), [("error", 1, "", "iconv -f UTF-16 -t UTF-8")], []
    ),
    "UTF-32": Case((A + B).decode().encode("utf-32"), [("error", 1, "", "the file is UTF-32")], []),
    "UTF-16 without its mark": Case(
        (A + B).decode().encode("utf-16-le"), [("error", line, "", "UTF-16 without its mark") for line in (1, 2, 3)], []
    ),
    "quotes of Windows-1252": between(b'{"text": "it\x92s", "label": "a"}', "", "iconv -f WINDOWS-1252 -t UTF-8"),
    "two encodings in one file": Case(
        A + '{"text": "café", "label": "a"}\n'.encode() + '{"text": "café", "label": "a"}\n'.encode("latin-1") + B,
        [("error", 3, "", "byte 14 of the line (0xe9) is not UTF-8")],
        ["fine", "café", "also fine"],
    ),
    "compressed under another name": Case(gzip.compress(A + B, mtime=0), [("error", 1, "", "gunzip")], []),
    "Parquet under another name": Case(
        parquet({"text": TEXTS, "label": LABELS}), [("error", 1, "", "end in .parquet")], []
    ),
    "one label as number and as text": Case(
        lines({"text": "x", "label": "1"}, {"text": "y", "label": 1}, {"text": "z", "label": 1}, {"text": "w", "label": 2}),
        [("warning", 1, "label", "'1' is written as a text in 1 row, first data/train.jsonl:1 and as a number in 2 rows, "
          "first data/train.jsonl:2")],
        ["x", "y", "z", "w"],
    ),
    "labels that differ in case": Case(
        lines(*({"text": f"t{i}", "label": name} for i, name in enumerate(("Banking", "banking", "Banking", "loan")))),
        [("warning", 2, "label", "'Banking' (2 rows, first data/train.jsonl:1) and 'banking' (1 row, first data/train.jsonl:2)")],
        ["t0", "t1", "t2", "t3"],
    ),
    "labels that differ in a hyphen": Case(
        lines({"text": "x", "label": "out_of_scope"}, {"text": "y", "label": "out-of-scope"}),
        [("warning", 1, "label", "differ only in how they are written")],
        ["x", "y"],
    ),
    "the unit is null in the 500th row": Case(
        many({"text": "x", "label": "a", "who": None}), [("error", 500, "who", "the unit is null")], ALL_BUT_500,
        data={"unit": "who"},
    ),
    "the unit is missing in the 500th row": Case(
        many({"text": "x", "label": "a", "whom": "w"}), [("error", 500, "who", "did you mean 'whom'?")], ALL_BUT_500,
        data={"unit": "who"},
    ),
    "the label is missing in the 500th row": Case(
        many({"text": "x"}), [("error", 500, "label", "the column is missing")], ALL_BUT_500
    ),
    "everything is wrong in the 500th row": Case(
        many({"text": 1, "label": None, "who": ""}),
        [("error", 500, "text", "a number"), ("error", 500, "label", "is null"), ("error", 500, "who", "is empty")],
        ALL_BUT_500, data={"unit": "who"},
    ),
    "a key with escapes and half characters": between(
        b'{"\\ud83d\\u001b[31mtext": "x", "label": "a"}', "text", "the column is missing"
    ),
    # a JSON array
    "NaN in an array": json_between(b'{"text": "x", "label": NaN}', "", "NaN is no JSON value"),
    "a key twice in an array": json_between(b'{"text": "x", "label": "a", "label": "b"}', "label", "stands 2 times"),
    "a list in an array": json_between(b'["x", "a"]', "", "not an object"),
    "a comma before the end": Case(
        b"[" + A + b"," + B + b",\n]", [("error", 4, "", "a comma stands before the closing ]")], BOTH, "train.json"
    ),
    "an array that breaks off": Case(
        b"[" + A + b"," + B + b',{"text": "x', [("error", 3, "", "the rows behind it were not read")], BOTH, "train.json"
    ),
    "latin-1 in an array": Case(
        b"[" + A + b"," + B + b',{"text": "caf\xe9"}]', [("error", 3, "", "nothing behind it was read")], BOTH, "train.json"
    ),
    "a record longer than any": Case(
        b"[" + A + b"," + WIDE + b"]", [("error", 2, "", "the rows behind it were not read")], ["fine"], "train.json"
    ),
    "an empty array": Case(b"[ ]", [("error", None, "", "holds no rows")], [], "train.json"),
    "lines that are named an array": Case(A + B, [("error", 1, "", "is named .jsonl")], [], "train.json"),
    "an array in UTF-16": Case((A + B).decode().encode("utf-16"), [("error", 1, "", "UTF-16")], [], "train.json"),
    # CSV
    "semicolons": Case(
        b"text;label\nfine;a\n", [("error", 1, "", "'text;label', nothing more was read; cells seem to be separated by a semi")],
        [], "train.csv",
    ),
    "tabs": Case(b"text\tlabel\nfine\ta\n", [("error", 1, "", "or let its name end in .tsv")], [], "train.csv"),
    "commas where tabs were said": Case(b"text,label\nfine,a\n", [("error", 1, "", "with a tab instead")], [], "train.tsv"),
    "a header only": Case(b"text,label\n", [("error", None, "", "holds no rows")], [], "train.csv"),
    "a column without a name": Case(
        b",text,label\n0,fine,a\n1,also fine,b\n", [("warning", 1, "", "column 1 has no name")], BOTH, "train.csv"
    ),
    "two columns of one name": Case(
        b"text,label,label\nfine,a,b\n", [("error", 1, "label", "the name of two columns")], ["fine"], "train.csv"
    ),
    "a byte order mark before the header": Case(
        b"\xef\xbb\xbftext,label\nfine,a\nalso fine,b\n", [("warning", 1, "", "byte order mark")], BOTH, "train.csv"
    ),
    "a quote that is never closed": Case(
        b'text,label\nfine,a\n"open,a\nx,b\ny,b\n', [("error", 3, "", "lines 3 to 5 were not read")], ["fine"], "train.csv"
    ),
    "a cell too many and one too few": Case(
        b"text,label\nfine,a\nx,y,a\nz\nalso fine,b\n",
        [("error", 3, "", "has 3 cells where the header has 2"), ("error", 4, "", "has 1 cells")],
        BOTH, "train.csv",
    ),
    "a line that is no text shifts no other's number": Case(
        b"text,label\nfine,a\ncaf\xe9,a\nx,\nalso fine,b\n",
        [("error", 3, "", "(0xe9) is not UTF-8"), ("error", 4, "label", "the label is empty")],
        BOTH, "train.csv",
    ),
    "CSV of an old Mac": Case(b"text,label\rfine,a\r", [("error", 1, "", "CR alone")], [], "train.csv"),
    "CR alone further down": Case(
        b"text,label\nfine,a\nx,a\ry,b\nalso fine,b\n", [("error", 3, "", "outside quotes")], BOTH, "train.csv"
    ),
    "the header has another case": Case(
        b"text,Label\nfine,a\n", [("error", 2, "label", "did you mean 'Label'?")], [], "train.csv"
    ),
    # Parquet
    "cut off": Case(
        parquet({"text": TEXTS, "label": LABELS})[:-20], [("error", None, "", "cannot be read as Parquet")], [],
        "train.parquet",
    ),
    "no Parquet at all": Case(A + B, [("error", None, "", "nothing of it was read")], [], "train.parquet"),
    "not one byte": Case(b"", [("error", None, "", "cannot be read as Parquet")], [], "train.parquet"),
    "no rows": Case(
        parquet({"text": TEXTS[:0], "label": LABELS[:0]}), [("error", None, "", "holds no rows")], [], "train.parquet"
    ),
    "a name for two columns": Case(
        twice_named(), [("error", None, "label", "the name of two columns")], BOTH, "train.parquet"
    ),
    "bytes as text": Case(
        parquet({"text": TEXTS.cast(pa.binary()), "label": LABELS}),
        [("error", row, "text", "the text is of the type binary") for row in (1, 2)], [], "train.parquet",
    ),
    "a time as label": Case(
        parquet({"text": TEXTS, "label": pa.array([None, 1], pa.timestamp("ns"))}),
        [("error", 1, "label", "is null"), ("error", 2, "label", "the label is of the type timestamp[ns]")],
        [], "train.parquet",
    ),
    "a fraction as label": Case(
        parquet({"text": TEXTS, "label": pa.array([1, 2], pa.decimal128(5, 2))}),
        [("error", row, "label", "of the type decimal128(5, 2)") for row in (1, 2)], [], "train.parquet",
    ),
    "strange columns that nobody reads": Case(strange_columns(), [], BOTH, "train.parquet"),
    "null in the second row": Case(
        parquet({"text": ["fine", None, "also fine"], "label": ["a", "a", "b"]}), [("error", 2, "text", "is null")], BOTH,
        "train.parquet",
    ),
    "text in Parquet that is no UTF-8": Case(
        parquet({"text": pa.array([b"fine", b"caf\xe9", b"also fine"]).view(pa.string()), "label": ["a", "a", "b"]}),
        [("error", 2, "text", "the text is bytes that are not UTF-8")], BOTH, "train.parquet",
    ),
    "no column of the plan's": Case(
        parquet({"txt": ["x"], "category": ["a"]}),
        [("error", 1, "text", "did you mean 'txt'?"), ("error", 1, "label", "known here: txt, category")],
        [], "train.parquet",
    ),
    "one damaged row group": Case(
        damaged_group(), [("error", 3, "", "rows 3 to 4 cannot be read")],
        ["row number 1", "row number 2", "row number 5", "row number 6"], "train.parquet",
    ),
    "a text longer than any": Case(
        parquet({"text": ["fine", "x" * (LONGEST + 1)], "label": ["a", "b"]}), [("error", 2, "", "shorten or split")],
        ["fine"], "train.parquet",
    ),
    # chats
    "chats from Parquet": Case(parquet({"messages": [CHAT]}), [], ["hi"], "train.parquet", "chat"),
    "a chat without content in Parquet": Case(
        parquet({"messages": [CHAT, [{"role": "user", "content": None}, CHAT[1]]]}),
        [("error", 2, "messages[0].content", "the text is null")], ["hi"], "train.parquet", "chat",
    ),
    "times inside a chat": Case(
        parquet({"messages": pa.array([[{"role": "user", "content": "x", "at": datetime(2020, 1, 1)}]])}),  # noqa: DTZ001
        [("error", 1, "messages", "the messages are of the type list<")], [], "train.parquet", "chat",
    ),
    "a chat as text": Case(
        lines({"messages": CHAT}, {"messages": json.dumps(CHAT)}), [("error", 2, "messages", "the messages are a text")],
        ["hi"], task="chat",
    ),
    "an unknown role": Case(
        lines({"messages": CHAT}, {"messages": [{"role": "human", "content": "x"}, CHAT[1]]}),
        [("error", 2, "messages[0].role", 'the role is "human"; known here: system, user, assistant')], ["hi"], task="chat",
    ),
    "a message without content": Case(
        lines({"messages": CHAT}, {"messages": [CHAT[0], {"role": "assistant"}]}),
        [("error", 2, "messages[1].content", "the column is missing")], ["hi"], task="chat",
    ),
    "a null answer": Case(
        lines({"prompt": "p", "answer": None}, {"prompt": "hi", "answer": "x"}), [("error", 1, "answer", "is null")], ["hi"],
        task="chat", data={"columns": {"messages": None}},
    ),
    "a category of another type": Case(
        lines({"messages": CHAT, "kind": 0.5}), [("error", 1, "kind", "the category is a number (0.5)")], [], task="chat",
        data={"columns": {"messages": "messages", "category": "kind"}},
    ),
    # extraction
    "fields from Parquet, where null stands for absent": Case(
        parquet({"text": BOTH, "fields": [{"drink": "tea", "size": None, "name": None}, {"drink": "tea", "size": "small"}]}),
        [], BOTH, "train.parquet", "extraction",
    ),
    "a required field is null in Parquet": Case(
        parquet({"text": BOTH, "fields": [{"drink": None, "name": "Ada"}, {"drink": "tea", "name": None}]}),
        [("error", 1, "fields.drink", "None is not one of")], ["also fine"], "train.parquet", "extraction",
    ),
    "fields in CSV that are no JSON": Case(
        b"text,fields\nx,{drink: tea}\n", [("error", 2, "fields", "is not valid JSON")], [], "train.csv", "extraction"
    ),
    "NaN in the fields": Case(
        b'text,fields\nx,"{""drink"": NaN}"\n', [("error", 2, "fields", "NaN is no JSON value")], [], "train.csv", "extraction"
    ),
    "a field twice": Case(
        b'text,fields\nx,"{""drink"": ""tea"", ""drink"": ""cocoa""}"\n', [("error", 2, "fields", "'drink' stands 2 times")],
        [], "train.csv", "extraction",
    ),
    "fields nested past all sense": Case(
        b"text,fields\nx," + b"[" * 100_000 + b"\n", [("error", 2, "fields", "nested too deeply")], [], "train.csv",
        "extraction",
    ),
    "fields that are a list": Case(
        lines({"text": "x", "fields": ["tea"]}), [("error", 1, "fields", "the fields are a list")], [], task="extraction"
    ),
    # pictures
    "no picture there": Case(
        lines({"image": "no.png", "label": "a"}), [("error", 1, "image", "No such file or directory")], [], task="picture"
    ),
    "NUL in a picture's name": Case(
        lines({"image": "a\0.png", "label": "a"}), [("error", 1, "image", "no picture at")], [], task="picture"
    ),
    "a folder as picture": Case(
        lines({"image": "../data", "label": "a"}), [("error", 1, "image", "Is a directory")], [], task="picture"
    ),
}  # fmt: skip
