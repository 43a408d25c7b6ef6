"""Broken input of every format and task gets its finding: how bad, where, which column, and why. Nothing is skipped unseen (D9)."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ftui.data.findings import Finding
from ftui.data.prepare import DataReport, check_data
from ftui.data.records import LONGEST, read_records
from tests.builders.broken import BOTH, CASES, LABELS, TEXTS, A, B, Case, lines, parquet
from tests.builders.writing import SCHEMA, chats, orders

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
    settings["duplicates"] = {"near": "off", **settings.get("duplicates", {})}
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
