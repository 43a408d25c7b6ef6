"""Bad input gets a finding that names file, line and field; nothing is lost or skipped unseen (D9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ftui.data.findings import SHOWN, Finding
from ftui.data.prepare import check_data
from ftui.data.records import LONGEST, read_records
from ftui.data.rows import Row, class_row
from ftui.plan.schema import Columns

GOOD = b'{"text": "fine", "label": "a"}\n'
TWO = b'{"text": "also fine", "label": "b"}\n'


def read(tmp_path: Path, name: str, content: bytes, columns: Columns | None = None, unit: str | None = None):
    path = tmp_path / name
    path.write_bytes(content)
    items: list[Row | Finding] = []
    for record in read_records(path, f"data/{name}"):
        found = (
            [record] if isinstance(record, Finding) else class_row(f"data/{name}", *record, columns or Columns(), unit)
        )
        items.extend(found)
    return [i for i in items if isinstance(i, Row)], [i for i in items if isinstance(i, Finding)]


BROKEN = {
    "broken line": (GOOD + b'{"text": "x", "label"\n' + TWO, 2, "", "not valid JSON"),
    "torn last line": (GOOD + TWO + b'{"text": "x", "la', 3, "", "breaks off"),
    "not an object": (GOOD + b'["x", "a"]\n' + TWO, 2, "", "not an object"),
    "missing column": (GOOD + b'{"txet": "x", "label": "a"}\n' + TWO, 2, "text", "did you mean 'txet'?"),
    "null text": (GOOD + b'{"text": null, "label": "a"}\n' + TWO, 2, "text", "null"),
    "number as text": (GOOD + b'{"text": 12, "label": "a"}\n' + TWO, 2, "text", "a number (12)"),
    "list as text": (GOOD + b'{"text": ["x"], "label": "a"}\n' + TWO, 2, "text", "a list"),
    "null label": (GOOD + b'{"text": "x", "label": null}\n' + TWO, 2, "label", "null"),
    "empty label": (GOOD + b'{"text": "x", "label": " "}\n' + TWO, 2, "label", "empty"),
    "label with spaces": (GOOD + b'{"text": "x", "label": "a "}\n' + TWO, 2, "label", "spaces around"),
    "fraction as label": (GOOD + b'{"text": "x", "label": 0.5}\n' + TWO, 2, "label", "a number (0.5)"),
    "latin-1": (GOOD + '{"text": "café", "label": "a"}\n'.encode("latin-1") + TWO, 2, "", "not UTF-8"),
    "half character": (GOOD + b'{"text": "\\ud83d", "label": "a"}\n' + TWO, 2, "text", "surrogate"),
    "very long line": (GOOD + b'{"text": "' + b"x" * (3 * LONGEST) + b'", "label": "a"}\n' + TWO, 2, "", "shorten"),
    "deep nesting": (GOOD + b"[" * 100_000 + b"\n" + TWO, 2, "", "not valid JSON"),
    "huge number": (GOOD + b'{"text": ' + b"9" * 5000 + b', "label": "a"}\n' + TWO, 2, "", "not valid JSON"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_line_is_named_and_its_neighbours_are_kept(tmp_path: Path, case: str) -> None:
    content, line, field, words = BROKEN[case]
    rows, findings = read(tmp_path, "train.jsonl", content)
    assert [row.text for row in rows] == ["fine", "also fine"]
    (finding,) = findings
    assert (finding.severity, finding.place, finding.field) == ("error", f"data/train.jsonl:{line}", field)
    assert words in finding.message


def test_each_wrong_field_of_a_row_has_its_own_finding(tmp_path: Path) -> None:
    _, findings = read(tmp_path, "x.jsonl", b'{"text": 1, "label": null}\n', Columns(id="id"), "patient")
    assert [f.field for f in findings] == ["text", "label", "id", "patient"]


def test_byte_order_mark_and_cr_lf_are_read_and_mentioned_once(tmp_path: Path) -> None:
    rows, findings = read(tmp_path, "x.jsonl", b"\xef\xbb\xbf" + (GOOD + TWO).replace(b"\n", b"\r\n"))
    assert [row.text for row in rows] == ["fine", "also fine"]
    assert [(f.severity, f.place, f.kind) for f in findings] == [
        ("warning", "data/x.jsonl:1", "byte order mark"),
        ("warning", "data/x.jsonl:1", "line ends"),
    ]


def test_utf16_file_is_one_finding(tmp_path: Path) -> None:
    rows, findings = read(tmp_path, "x.jsonl", (GOOD + TWO).decode().encode("utf-16"))
    assert not rows
    assert ["UTF-16" in f.message for f in findings] == [True]


def test_line_separator_inside_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    text = "one\u2028two\x85three"
    rows, findings = read(
        tmp_path, "x.jsonl", (json.dumps({"text": text, "label": "a"}, ensure_ascii=False) + "\n").encode()
    )
    assert (rows[0].text, findings) == (text, [])


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.csv"])
def test_empty_file_is_an_error(tmp_path: Path, name: str) -> None:
    rows, (finding,) = read(tmp_path, name, b"")
    assert not rows and finding.severity == "error" and "no rows" in finding.message


def test_numbers_as_labels_and_ids_are_names(tmp_path: Path) -> None:
    (row,), findings = read(tmp_path, "x.jsonl", b'{"text": "x", "label": 3, "id": 7}\n', Columns(id="id"))
    assert (row.label, row.id, findings) == ("3", "7", [])


def test_row_without_an_id_column_is_called_by_its_place(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, "x.jsonl", GOOD + b"\n" + TWO)
    assert [row.id for row in rows] == ["data/x.jsonl:1", "data/x.jsonl:3"]


def test_csv_counts_lines_through_quoted_line_ends(tmp_path: Path) -> None:
    content = 'text,label\n"two\nlines",a\nplain,b\n"comma, inside",c\n'
    rows, findings = read(tmp_path, "x.csv", content.encode())
    assert [(r.text, r.label, r.line) for r in rows] == [
        ("two\nlines", "a", 2),
        ("plain", "b", 4),
        ("comma, inside", "c", 5),
    ]
    assert findings == []


def test_csv_names_wrong_cells_missing_columns_and_open_quotes(tmp_path: Path) -> None:
    rows, findings = read(tmp_path, "x.csv", b'text,label\nok,a\none,two,three\n\xff\xfe,a\nlast,b\n"open,a\n')
    assert [r.text for r in rows] == ["ok", "last"]
    assert [(f.place, f.kind) for f in findings] == [
        ("data/x.csv:3", "number of cells"),
        ("data/x.csv:4", "wrong encoding"),
        ("data/x.csv:6", "broken CSV"),
    ]
    _, findings = read(tmp_path, "y.csv", b"Text,label\nx,a\n")
    assert [(f.place, f.field) for f in findings] == [("data/y.csv:2", "text")] and "'Text'" in findings[0].message


def test_tab_separated_file_is_read(tmp_path: Path) -> None:
    rows, findings = read(tmp_path, "x.tsv", "text\tlabel\nzażółć, gęślą\ta\n".encode())
    assert ([r.text for r in rows], findings) == (["zażółć, gęślą"], [])


def test_json_array_gives_each_record_its_line(tmp_path: Path) -> None:
    rows, findings = read(
        tmp_path,
        "x.json",
        b'[\n{"text": "a", "label": "x"},\n\n{"text": "b",\n "label": "y"}, {"text": "c", "label": "z"}]\n',
    )
    assert [(r.text, r.line) for r in rows] == [("a", 2), ("b", 4), ("c", 5)]
    assert findings == []


@pytest.mark.parametrize(
    ("content", "line", "kept"),
    [
        (b'[\n{"text": "a", "label": "x"},\n{"text": "b" "label": "y"}]', 3, ["a"]),
        (b'[\n{"text": "a", "label": "x"}\n{"text": "b", "label": "y"}]', 3, ["a"]),
        (b'[\n{"text": "a", "label": "x"},\n', 3, ["a"]),
        (b'[\n{"text": "a", "label": "x"}]\n{"text": "b"}', 3, ["a"]),
        (b'[\n1,\n{"text": "a", "label": "x"}]', 2, ["a"]),
        (b'{"text": "a", "label": "x"}\n', 1, []),
    ],
)
def test_broken_json_array_is_named_where_it_breaks(tmp_path: Path, content: bytes, line: int, kept: list[str]) -> None:
    rows, (finding,) = read(tmp_path, "x.json", content)
    assert ([r.text for r in rows], finding.severity, finding.place) == (kept, "error", f"data/x.json:{line}")


def test_many_findings_of_one_kind_are_counted_and_none_hides_another_kind(build) -> None:
    lines = ['{"text": "x", "label": null}\n'] * 200 + ["{\n"]
    plan, root = build({"train.jsonl": "".join(lines)})
    report = check_data(plan, root)
    null = [f for f in report.errors if f.kind == "null label"]
    assert len(null) == SHOWN + 1
    assert null[-1].message.startswith(f"{200 - SHOWN} more")
    assert any(f.place == "data/train.jsonl:201" for f in report.errors)


def test_missing_files_and_empty_globs_are_all_named_at_once(build) -> None:
    plan, root = build(
        data={"train": ["data/trian.jsonl", "data/*.csv"], "test": "data/README.md", "validation": "data"}
    )
    (root / "data" / "README.md").write_text("x")
    (root / "data" / "validation.jsonl").unlink()
    by_field = {f.field: f.message for f in check_data(plan, root).errors}
    assert "did you mean 'train.jsonl'?" in by_field["data.train[0]"]
    assert "matches no file" in by_field["data.train[1]"]
    assert "is a folder" in by_field["data.validation[0]"]
    assert "of no kind that is read here" in by_field["data.test[0]"]


def test_glob_takes_files_in_order_and_never_what_a_preparation_wrote(build) -> None:
    from ftui.data.prepare import prepare
    from ftui.record.layout import CampaignFiles

    part = {f"in/part-{i}.jsonl": [{"text": f"t{i}", "label": "ab"[i % 2]}] for i in (2, 0, 1)}
    plan, root = build(part, data={"train": "data/**/part-*.jsonl"})
    assert [row.text for row in check_data(plan, root).splits["train"]] == ["t0", "t1", "t2"]
    everything, _ = build(part, data={"train": ["data/**/*.jsonl"], "validation": None, "test": None})
    before = check_data(everything, root)
    version = prepare(plan, CampaignFiles(root))
    assert (root / "data" / version.hash / "train.jsonl").is_file()
    assert check_data(everything, root).hash == before.hash


def test_file_named_in_two_splits_is_an_error(build) -> None:
    plan, root = build(data={"train": "data/*.jsonl"})
    errors = [f for f in check_data(plan, root).errors if f.kind == "file named twice"]
    assert {f.field for f in errors} == {"data.validation[0]", "data.test[0]"}


def test_empty_text_nul_and_repeated_ids_are_errors_with_their_line(build) -> None:
    rows = [
        {"text": "x", "label": "a", "id": "1"},
        {"text": " \u00a0", "label": "a", "id": "2"},
        {"text": "nul\0", "label": "b", "id": "3"},
        {"text": "y", "label": "b", "id": "1"},
    ]
    plan, root = build({"train.jsonl": rows}, data={"columns": {"id": "id"}, "validation": None, "test": None})
    found = {(f.place, f.field, f.kind) for f in check_data(plan, root).errors}
    assert {
        ("data/train.jsonl:2", "text", "empty text"),
        ("data/train.jsonl:3", "text", "NUL in text"),
        ("data/train.jsonl:4", "id", "repeated id"),
    } <= found
