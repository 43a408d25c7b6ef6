"""Nothing recorded is lost, nothing torn is believed."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest

from ftui.record.journal import Journal, read_journal
from ftui.record.lines import LineReader, LineWriter, NewerSchema, number, read_rows
from tests.builders.processes import ENVIRONMENT, until


def test_a_torn_last_line_is_ignored_by_readers_and_cut_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with LineWriter(path, "x", 1) as writer:
        writer.write({"a": 1})
    with path.open("ab") as file:
        file.write(b'{"a": 2, "tex')
    reader = LineReader(path, "x", 1)
    assert reader.read() == [{"a": 1}]
    with LineWriter(path, "x", 1) as writer:
        writer.write({"a": 3})
    assert read_rows(path, "x", 1) == [{"a": 1}, {"a": 3}]
    assert reader.read() == [{"a": 3}]


def test_a_line_still_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    LineWriter(path, "x", 1).close()
    reader = LineReader(path, "x", 1)
    assert reader.read() == []
    with path.open("ab") as file:
        file.write('{"text": "예'.encode()[:-1])
        file.flush()
        assert reader.read() == []
        file.write('예"}\n'.encode()[2:])
        file.flush()
        assert reader.read() == [{"text": "예"}]


def test_a_file_written_anew_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with LineWriter(path, "x", 1) as writer:
        for i in range(10):
            writer.write({"a": i})
    reader = LineReader(path, "x", 1)
    assert len(reader.read()) == 10
    path.unlink()
    with LineWriter(path, "x", 1) as writer:
        writer.write({"a": 99})
    assert reader.read() == [{"a": 99}]
    assert reader.restarted


def test_numbers_json_cannot_hold_come_back(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with LineWriter(path, "x", 1) as writer:
        writer.write({"a": [float("nan"), float("inf"), -float("inf")]})
    values = [number(v) for v in read_rows(path, "x", 1)[0]["a"]]
    assert math.isnan(values[0]) and values[1:] == [math.inf, -math.inf]
    assert "NaN" not in path.read_text()


def test_a_newer_schema_is_refused_and_an_unreadable_line_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"file":"x","schema":2}\n')
    with pytest.raises(NewerSchema, match="schema 2 is newer"):
        read_rows(path, "x", 1)
    path.write_text('{"file":"x","schema":1}\nnot json\n[1]\n{"a":1}\n')
    reader = LineReader(path, "x", 1)
    assert reader.read() == [{"a": 1}]
    assert reader.unreadable == 2


def test_a_row_that_does_not_fit_on_the_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """The limit on a file's size stands in for a full disk: the kernel writes a part and then refuses."""
    program = f"""
import resource, signal
from pathlib import Path
from ftui.record.lines import LineWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = LineWriter(Path({str(tmp_path / "x.jsonl")!r}), "x", 1)
writer.write({{"a": 1}})
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
try:
    writer.write({{"a": "x" * 500}})
except OSError as error:
    print("refused", error.errno)
writer.write({{"a": 2}})
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRONMENT, check=True
    )
    assert answer.stdout.startswith("refused")
    assert read_rows(tmp_path / "x.jsonl", "x", 1) == [{"a": 1}, {"a": 2}]


def test_a_killed_writer_loses_no_row_it_had_written(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    program = f"""
from pathlib import Path
from ftui.record.lines import LineWriter
writer, i = LineWriter(Path({str(path)!r}), "x", 1), 0
while True:
    writer.write({{"i": i, "text": "x" * 300}})
    i += 1
"""
    process = subprocess.Popen([sys.executable, "-c", program], env=ENVIRONMENT)
    until(lambda: path.exists() and path.stat().st_size > 1_000_000, "the writer writes")
    seen = len(read_rows(path, "x", 1))
    process.send_signal(signal.SIGKILL)
    process.wait()
    rows = read_rows(path, "x", 1)
    assert len(rows) >= seen > 1000
    assert [row["i"] for row in rows] == list(range(len(rows)))


def _append(path: str, name: str, count: int) -> None:
    journal = Journal(Path(path), name)
    for i in range(count):
        journal.append("note", text=f"{i}")


def test_several_processes_append_to_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    context = get_context("spawn")
    writers = [context.Process(target=_append, args=(str(path), name, 40)) for name in ("app", "cli", "supervisor")]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
        assert process.exitcode == 0
    rows = read_journal(path)
    assert len(rows) == 120
    for name in ("app", "cli", "supervisor"):
        assert [row["text"] for row in rows if row["by"] == name] == [str(i) for i in range(40)]
