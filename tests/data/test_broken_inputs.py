"""Broken input of every format and task gets its finding: how bad, where, which column, and why. Nothing is skipped unseen (D9)."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ftui.data.findings import Finding
from ftui.data.prepare import DataReport, check_data
from ftui.data.records import LONGEST, read_records
from tests.builders.writing import SCHEMA, chats, orders

A = b'{"text": "fine", "label": "a"}\n'
B = b'{"text": "also fine", "label": "b"}\n'

Expected = tuple[str, int | None, str, str]
"""Severity, line (None: the file as a whole), column, words of the sentence."""

TASKS: dict[str, dict[str, Any]] = {
    "text": {},
    "chat": {
        "hypothesis": {"task": "generation", "metric": "loss", "direction": "lower"},
        "data": {"columns": {"messages": "messages"}},
    },
    "extraction": {
        "hypothesis": {"task": "extraction", "metric": "field_f1"},
        "evaluation": {"format": "answer.schema.json"},
    },
    "picture": {"hypothesis": {"task": "image-classification"}},
}


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


def checked(build: Callable[..., Any], case: Case, **data: Any) -> DataReport:
    about = TASKS[case.task]
    held_out: dict[str, Any] = {"train.jsonl": b""}
    if case.task == "chat":
        prompts = case.data.get("columns", {"messages": ""}).get("messages") is None
        rows = [{"prompt": f"p{i}", "answer": "x"} for i in range(2)] if prompts else chats(2)
        held_out |= {"validation.jsonl": rows, "test.jsonl": rows}
    if case.task == "extraction":
        held_out |= {"validation.jsonl": orders(2), "test.jsonl": orders(2)}
    sections = {name: dict(section) for name, section in about.items()}
    own = sections.pop("data", {})
    settings = {**own, "train": f"data/{case.file}", "cleaning": [], **case.data, **data}
    plan, root = build({**held_out, case.file: case.content}, data=settings, **sections)
    (root / "answer.schema.json").write_text(json.dumps(SCHEMA))
    return check_data(plan, root)


def about_train(report: DataReport, file: str) -> list[Finding]:
    return [f for f in report.findings if f.place.rpartition(":")[0] == f"data/{file}" or f.place == f"data/{file}"]


@pytest.mark.parametrize("name", CASES)
def test_broken_input_has_exactly_its_findings_and_its_neighbours_are_kept(build, name: str) -> None:
    case = CASES[name]
    report = checked(build, case)
    found = about_train(report, case.file)
    places = [f"data/{case.file}" + ("" if line is None else f":{line}") for _, line, _, _ in case.expected]
    assert [(f.severity, f.place, f.field) for f in found] == [
        (severity, place, column) for (severity, _, column, _), place in zip(case.expected, places, strict=True)
    ], [str(f) for f in found]
    for finding, (_, _, _, words) in zip(found, case.expected, strict=True):
        assert words in finding.message
        assert finding.message.isprintable()
    assert [row.text for row in report.splits["train"]] == case.kept


def test_the_corpus_is_large_and_covers_every_reader_and_task() -> None:
    assert len(CASES) >= 45
    assert {case.file.rpartition(".")[2] for case in CASES.values()} == {"jsonl", "json", "csv", "tsv", "parquet"}
    assert {case.task for case in CASES.values()} == set(TASKS)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def dangling(path: Path) -> None:
    path.symlink_to("gone.jsonl")


def nothing(path: Path) -> None:
    pass


PATHS: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "a pipe": ("data/x.jsonl", pipe, "is a pipe or a device, which may never end"),
    "a device": ("data/x.jsonl", device, "is a pipe or a device, which may never end"),
    "a link to itself": ("data/x.jsonl", loop, "cannot be looked up: Too many levels of symbolic links"),
    "a link to nothing": ("data/x.jsonl", dangling, "x.jsonl is a link to data/gone.jsonl, which is not there"),
    "a link to nothing among others": ("data/x*.jsonl", dangling, "x.jsonl is a link to data/gone.jsonl, which is not there"),
    "a pipe among others": ("data/x*.jsonl", pipe, "is a pipe or a device"),
    "a folder": ("data", nothing, 'data is a folder; name its files, e.g. "data/*.jsonl"'),
    "compressed": ("data/x.jsonl.gz", Path.touch, "(`gunzip data/x.jsonl.gz`) and name data/x.jsonl"),
    "of no known kind": ("data/x.xlsx", Path.touch, "of no kind that is read here"),
    "a NUL in the path": ("data/x\0.jsonl", nothing, "cannot be looked up: embedded null byte"),
    "an endless name": ("x" * 5000, nothing, "cannot be looked up: File name too long"),
    "nobody's home": ("~no-such-user-here/x.jsonl", nothing, "cannot be looked up: Could not determine home directory"),
    "below a file": ("data/test.jsonl/x.jsonl", nothing, "its folder does not exist"),
    "bytes that are no name": ("data/\udcff*.jsonl", lambda path: (path.parent / "\udcff.jsonl").touch(), "rename the file"),
}  # fmt: skip


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", PATHS)
def test_what_is_no_regular_file_is_named_and_never_waited_for(build, name: str) -> None:
    pattern, make, words = PATHS[name]
    plan, root = build()
    make(root / pattern.replace("*", "")) if make is not nothing else None
    data = plan.data.model_copy(update={"train": [pattern]})
    findings = check_data(plan.model_copy(update={"data": data}), root).errors
    (finding,) = [f for f in findings if f.field.startswith("data.train") and f.kind != "empty split"]
    assert (finding.place, finding.field) == ("campaign.toml", "data.train[0]")
    assert words in finding.message


SCHEMAS: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "is not valid JSON"),
    "a list": (b"[]", "holds no object"),
    "nested past all sense": (b"[" * 100_000, "is nested too deeply"),
    "latin-1": (b'{"title": "caf\xe9"}', "is not valid JSON"),
    "no fields": (b"{}", "describes no object with fields"),
    "a type that is none": (b'{"properties": {"a": {"type": "text"}}}', "is no JSON schema"),
    "a part that is not there": (b'{"properties": {"a": {"$ref": "#/$defs/b"}}}', "refers to #/$defs/b, which is not in it"),
    "a part elsewhere": (b'{"properties": {"a": {"$ref": "https://x.example/b"}}}', "copy that part into it"),
    "nothing there": (b"", "cannot be read: No such file or directory"),
}  # fmt: skip


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", [*SCHEMAS, "a pipe"])
def test_a_schema_that_judges_no_answer_is_one_error(build, name: str) -> None:
    content, words = SCHEMAS.get(name, (b"", "is no regular file"))
    plan, root = build({"train.jsonl": lines(*orders(4))}, **TASKS["extraction"])
    schema = root / "answer.schema.json"
    if name == "a pipe":
        os.mkfifo(schema)
    elif content:
        schema.write_bytes(content)
    (finding,) = [f for f in check_data(plan, root).errors if f.kind == "no schema"]
    assert finding.place == "answer.schema.json" and words in finding.message


def test_a_file_that_may_not_be_read_is_an_error(build, monkeypatch) -> None:
    plan, root = build()

    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ftui.data.sources.sha256_file", refuse)
    found = [str(f) for f in check_data(plan, root).errors if f.kind == "unreadable file"]
    assert found[0].startswith("data/train.jsonl: cannot be read: Permission denied") and len(found) == 3


def test_a_file_that_vanishes_between_two_looks_is_an_error(build, monkeypatch) -> None:
    from ftui.data import prepare

    plan, root = build()
    whole = prepare.find_sources

    def vanishing(*arguments: Any, **options: Any) -> Any:
        for source in whole(*arguments, **options):
            if source.split == "train":
                source.path.unlink()
            yield source

    monkeypatch.setattr(prepare, "find_sources", vanishing)
    (finding,) = [f for f in check_data(plan, root).errors if f.place == "data/train.jsonl"]
    assert "cannot be read any more: No such file or directory" in finding.message


def test_a_row_group_that_gives_fewer_rows_than_it_says_is_an_error(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "x.parquet").write_bytes(parquet({"text": TEXTS, "label": LABELS}))
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *arguments, **options: iter(()))
    (finding,) = [item for item in read_records(tmp_path / "x.parquet", "x.parquet") if isinstance(item, Finding)]
    assert "rows 1 to 2 cannot be read (2 of 2 rows are missing)" in finding.message


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv"])
def test_a_line_of_fifty_megabytes_takes_the_memory_of_a_few(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(A if name == "x.jsonl" else b"text,label\nfine,a\n")
        for _ in range(50):
            file.write(b"x" * LONGEST)
        file.write(b"\n" + (B if name == "x.jsonl" else b"also fine,b\n"))
    tracemalloc.start()
    items = list(read_records(path, name))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    texts = [item[1]["text"] for item in items if not isinstance(item, Finding)]
    (finding,) = [item for item in items if isinstance(item, Finding)]
    assert texts == BOTH and f"{50 * LONGEST + 1:,} bytes" in finding.message
    assert peak < 5 * LONGEST


def test_a_large_array_is_read_through_a_window(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    row = json.dumps({"text": "ż" * 2000, "label": "a"}, ensure_ascii=False).encode()
    with path.open("wb") as file:
        file.write(b"[\n" + b",\n".join([row] * 10_000) + b"\n]")
    tracemalloc.start()
    numbers = [item[0] for item in read_records(path, "x.json") if not isinstance(item, Finding)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert numbers == list(range(2, 10_002))
    assert path.stat().st_size > 38 * LONGEST and peak < 20 * LONGEST
