"""Whatever the bytes are: no traceback, and every line and row is a row or has a finding on it (D9)."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ftui.data.findings import Finding
from ftui.data.prepare import DataReport, check_data
from ftui.plan.schema import Plan
from ftui.record.text import safe
from tests.builders.writing import chats
from tests.data.conftest import PLAN

FORMATS = ("jsonl", "json", "csv", "parquet")

TEXTS: list[dict[str, Any]] = [{"text": f"text {i} zażółć", "label": "ab"[i % 2], "n": i} for i in range(5)]
PROMPTS = [{"prompt": f"prompt {i}", "answer": "yes"} for i in range(5)]

fuzz = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def as_file(rows: list[dict[str, Any]], kind: str) -> bytes:
    if kind == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    if kind == "json":
        return json.dumps(rows, ensure_ascii=False, indent=1).encode()
    if kind == "csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode()
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file, row_group_size=2)
    return file.getvalue()


def rows_of(task: str, kind: str) -> list[dict[str, Any]]:
    if task == "text":
        return TEXTS
    return PROMPTS if kind == "csv" else chats(5, start=500)


PIECES = st.one_of(
    st.sampled_from(
        [b"\0", b"\n", b"\r", b'"', b"'", b"{", b"}", b"[", b"]", b",", b";", b":", b"\\", b"NaN", b"1e999"]
    ),
    st.sampled_from(
        [
            b"\xff",
            b"\xef\xbb\xbf",
            b"\xff\xfe",
            b"\\ud800",
            b"\xc2\x85",
            b"\xe2\x80\xa8",
            b"null",
            b"\n\n",
            b"-",
            b"\n[1]\n",
            b"\n0\n",
        ]
    ),
    st.binary(min_size=1, max_size=4),
)
CHANGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), PIECES | st.just(b"")), min_size=1, max_size=4)


def changed(content: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """`content` with bytes replaced, inserted and taken out: at a share of its length, so many bytes by others."""
    for share, taken, piece in changes:
        at = round(share * len(content))
        content = content[:at] + piece + content[at + taken :]
    return content


@pytest.fixture(scope="module")
def campaign(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("campaign")
    (root / "data").mkdir()
    for split in ("validation", "test"):
        texts = [{"text": f"{split} {i}", "label": "ab"[i % 2]} for i in range(2)]
        prompts = [{"prompt": f"{split} {i}", "answer": "x"} for i in range(2)]
        for task, rows in {"text": texts, "prompt": prompts, "chat": chats(2)}.items():
            (root / "data" / f"{task}-{split}.jsonl").write_bytes(as_file(rows, "jsonl"))
    return root


def plan_for(task: str, kind: str, **data: Any) -> Plan:
    held = task if task == "text" or kind != "csv" else "prompt"
    about = {"train": f"data/train.{kind}", **{s: f"data/{held}-{s}.jsonl" for s in ("validation", "test")}, **data}
    content = {**PLAN, "data": about}
    if task == "chat":
        about["columns"] = {"messages": None if kind == "csv" else "messages"}
        goal = {"task": "generation", "metric": "loss", "direction": "lower"}
        content["hypothesis"] = {**PLAN["hypothesis"], **goal}
    return Plan.model_validate(content)


def checked(campaign: Path, plan: Plan, content: bytes) -> DataReport:
    """The report of a training file; that it can be shown and written is part of the promise."""
    path = campaign / plan.data.train[0]
    path.write_bytes(content)
    report = check_data(plan, campaign)
    for finding in report.findings:
        assert finding.message and safe(str(finding), 10_000) == str(finding), repr(finding)
        json.dumps(finding.row(), ensure_ascii=False).encode()
    for row in report.splits["train"]:
        assert row.text.strip() and row.wanted.strip() and row.id
        json.dumps([row.text, row.label, row.messages], ensure_ascii=False).encode()
    return report


def seen_lines(report: DataReport, name: str) -> set[int]:
    """Lines of the file that became a row, or have a finding."""
    rows = [*report.splits["train"], *(drop.row for drop in report.dropped)]
    lines = {row.line for row in rows} | {row.line for row in report.left_out}
    for finding in about(report, name):
        if (found := re.search(r"rows (\d+) to (\d+) cannot", finding.message)) is not None:
            lines |= set(range(int(found[1]), int(found[2]) + 1))
        elif finding.place != name:
            lines.add(int(finding.place.rpartition(":")[2]))
    return lines


def about(report: DataReport, name: str) -> list[Finding]:
    return [f for f in report.findings if f.place == name or f.place.rpartition(":")[0] == name]


def says_more(report: DataReport, name: str) -> bool:
    """Whether a finding says that reading stopped, or that there are more findings than are listed."""
    words = ("not read", "nothing of it was read", "nothing was read", "nothing more was read", "more of the same kind")
    return any(word in finding.message for finding in about(report, name) for word in words)


def expect_nothing_unseen(report: DataReport, name: str, kind: str, content: bytes) -> None:
    seen = seen_lines(report, name)
    if says_more(report, name):
        return
    lines = [number for number, line in enumerate(content.split(b"\n"), 1) if not is_blank(line)]
    match kind:
        case "jsonl":
            assert set(lines) <= seen
        case "csv" if b'"' not in content:  # a quoted cell may hold line ends
            first = next((n for n in lines if n not in seen), None)  # the header, unless it has a finding
            assert set(lines) - {first} <= seen
        case "json":
            assert len(report.splits["train"]) + len(about(report, name)) >= elements(content)
        case "parquet":
            assert set(range(1, table_rows(content) + 1)) <= seen
    assert seen or [f for f in about(report, name) if f.severity == "error"]


def is_blank(line: bytes) -> bool:
    try:
        return not line.decode().strip()
    except UnicodeDecodeError:
        return False


def elements(content: bytes) -> int:
    """Elements of a JSON array; 1 where a finding is due for the whole."""
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return 1
    return len(value) if isinstance(value, list) else 1


def table_rows(content: bytes) -> int:
    try:
        return int(pq.ParquetFile(io.BytesIO(content)).metadata.num_rows)
    except (pa.ArrowException, OSError, ValueError):
        return 0


@pytest.mark.parametrize("task", ["text", "chat"])
@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_files_give_findings_and_nothing_is_skipped_unseen(campaign: Path, kind: str, task: str) -> None:
    good, plan = as_file(rows_of(task, kind), kind), plan_for(task, kind)
    whole = checked(campaign, plan, good)
    assert not whole.errors and len(whole.splits["train"]) == 5

    @fuzz
    @given(CHANGES)
    def damage(changes: list[tuple[float, int, bytes]]) -> None:
        content = changed(good, changes)
        expect_nothing_unseen(checked(campaign, plan, content), f"data/train.{kind}", kind, content)

    damage()


BEGINNINGS: dict[str, list[bytes]] = {
    "jsonl": [b"", b'{"text": "x", "label": '],
    "json": [b"", b"[", b'[{"text": '],
    "csv": [b"", b"text,label\n", b'text,label\n"'],
    "parquet": [b"", b"PAR1"],
}


@pytest.mark.parametrize("kind", FORMATS)
def test_arbitrary_bytes_give_findings_and_nothing_is_skipped_unseen(campaign: Path, kind: str) -> None:
    plan = plan_for("text", kind)

    @fuzz
    @given(st.sampled_from(BEGINNINGS[kind]), st.lists(PIECES, max_size=40).map(b"".join) | st.binary(max_size=200))
    def feed(start: bytes, rest: bytes) -> None:
        content = start + rest
        expect_nothing_unseen(checked(campaign, plan, content), f"data/train.{kind}", kind, content)

    feed()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.sampled_from(["role", "content"]), inner)
    ),
    max_leaves=6,
)
ROWS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "text": lambda value: {"text": value, "label": value},
    "chat": lambda value: {"messages": value},
}


@pytest.mark.parametrize("task", ["text", "chat"])
def test_values_of_any_kind_are_rows_or_are_left_out_and_kept(campaign: Path, task: str) -> None:
    """With `bad_rows = "drop"`, each line is a row or stands among the rows left out."""
    plan = plan_for(task, "jsonl", bad_rows="drop")

    @fuzz
    @given(st.lists(VALUES, min_size=1, max_size=6), st.sampled_from(["bare", "in a message"]))
    def feed(values: list[Any], where: str) -> None:
        if where == "in a message":
            values = [
                [{"role": "user", "content": value}, value, {"role": "assistant", "content": "x"}] for value in values
            ]
        content = "".join(json.dumps(ROWS[task](value)) + "\n" for value in values).encode()
        report = checked(campaign, plan, content)
        rows = [*report.splits["train"], *(drop.row for drop in report.dropped)]
        assert sorted([row.line for row in rows] + [row.line for row in report.left_out]) == list(
            range(1, len(values) + 1)
        )
        assert all(row.problems for row in report.left_out)

    feed()
