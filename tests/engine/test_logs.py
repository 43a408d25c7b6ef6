"""The log of a job stays readable and small while its processes go on printing (K30)."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

from ftui.engine.logs import LIMIT_BYTES, attempt_lines, cut_log, last_words
from tests.builders.jobs import small_job
from tests.builders.processes import until

COUNTS = """
import sys, os
for number in range(int(sys.argv[1])):
    os.write(1, b"%30d\\n" % number)
print("ftui: done", flush=True)
"""


def test_a_log_over_the_limit_keeps_its_beginning_and_its_end_while_its_process_prints_on(tmp_path: Path) -> None:
    """Every line after the kept end's first is there, each whole; only the instant of a cut may cost some."""
    job = small_job(tmp_path, COUNTS, "400000")
    cuts = 0

    def cut_and_ended() -> bool:
        nonlocal cuts
        ended = job.poll()
        if (begins := cut_log(job.log, limit=3_000_000, head=10_000, tail=1_500_000)) is not None:
            cuts, job.log_from = cuts + 1, begins
        return ended

    until(cut_and_ended, "the process has printed everything")
    assert cuts > 1 and job.exit_code == 0
    lines = job.log.read_bytes().split(b"\n")
    assert [int(line) for line in lines[:3]] == [0, 1, 2] and lines[-2] == b"ftui: done"
    assert job.log.stat().st_size < 3_000_000
    (said,) = [index for index, line in enumerate(lines) if line.startswith("… cut here: ".encode())]
    assert b"bytes, at " in lines[said]
    kept = [int(line) for line in lines[said + 1 : -2]]
    gaps = [after - before for before, after in pairwise(kept) if after != before + 1]
    assert kept[-1] == 399_999 and len(gaps) <= cuts, "only the instant of a cut costs some, and nothing is torn"
    assert all(0 < gap < 2000 for gap in gaps)
    assert [line.text for line in attempt_lines(job.log, job.log_from)][-1] == "ftui: done"


def test_a_log_within_the_limit_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"x\n" * 1000)
    assert cut_log(log) is None and cut_log(tmp_path / "none") is None
    assert log.read_bytes() == b"x\n" * 1000
    os.truncate(log, LIMIT_BYTES + 1)
    assert cut_log(log) is not None and log.stat().st_size < LIMIT_BYTES


def test_lines_are_those_of_the_attempt_with_their_numbers_in_the_file(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    first = "ftui.train train r1 pid 10\nftui: old\n"
    second = "ftui.train train r1 pid 11\nftui.train train r1 pid 12\nwarning\nftui: new\n"
    log.write_text(first + second, encoding="utf-8")
    lines = attempt_lines(log, len(first))
    assert [(line.number, line.text) for line in lines][-1] == (6, "ftui: new")
    assert len(lines) == 4
    assert attempt_lines(log) == attempt_lines(log, 10_000) == lines, (
        "where nobody knows the start, both processes' openings tell it"
    )
    assert last_words(log) == "new" and last_words(log, log.stat().st_size) is None


def test_a_line_without_end_is_cut_and_bytes_that_are_no_text_are_shown(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"\xff\xfe broken\n" + b"y" * (10 << 20) + b"\nlast\n")
    lines = attempt_lines(log)
    assert lines[-1].text == "last" and lines[-1].number == 3
    assert len(lines[-2].text) == 2000
