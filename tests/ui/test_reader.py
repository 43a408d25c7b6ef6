"""Promises of the reader: it says what is new, once, and never more than was asked for."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
from textual.message import Message

from ftui.machine.sample import HostSample, Sample
from ftui.record.journal import Journal, now
from ftui.record.lines import LineWriter
from ftui.record.rows import MACHINE, MACHINE_SCHEMA, machine_writer
from ftui.record.series import cut_series_after
from ftui.ui.curves import CurveFollower
from ftui.ui.messages import CurvesRead, GatesRead, LogRead, MachineRead, ReadFailed, StateRead
from ftui.ui.reader import MACHINE_TAIL_BYTES, CampaignWatch, LogTail, TailReader
from tests.builders.campaign import append_series, build_campaign, loss_at, series_rows, supervised


def kinds(messages: list[Message]) -> set[type[Message]]:
    return {type(message) for message in messages}


def test_a_poll_without_news_says_nothing(tmp_path: Path) -> None:
    watch = CampaignWatch(build_campaign(tmp_path).files)
    assert kinds(list(watch.poll())) == {StateRead, GatesRead, MachineRead, LogRead, CurvesRead}
    assert list(watch.poll()) == []


def test_only_the_run_that_grew_is_read_again(tmp_path: Path) -> None:
    built = build_campaign(tmp_path, updates=120)
    watch = CampaignWatch(built.files)
    list(watch.poll())
    run = next(r for r in built.runs if r.id == built.running[1])
    append_series(built.files, run, series_rows(run, 121, 130, now()))
    (message,) = watch.poll()
    assert isinstance(message, CurvesRead)
    assert list(message.curves) == [run.id]
    curve = message.curves[run.id]
    assert curve.last_update == 130
    np.testing.assert_allclose(curve.loss, [loss_at(run, update) for update in range(1, 131)])


def test_a_snapshot_does_not_change_when_the_series_grows(tmp_path: Path) -> None:
    built = build_campaign(tmp_path, updates=250)
    run = next(r for r in built.runs if r.id == built.running[0])
    follower = CurveFollower(built.files.run(run.id).series)
    while follower.read():
        pass
    before = follower.snapshot()
    copy = before.loss.copy()
    append_series(built.files, run, series_rows(run, 251, 900, now()))
    while follower.read():
        pass
    assert len(before.loss) == 250
    np.testing.assert_array_equal(before.loss, copy)
    assert len(follower.snapshot().loss) == 900


def test_a_series_cut_back_by_a_resumed_run_is_read_anew(tmp_path: Path) -> None:
    built = build_campaign(tmp_path, updates=120)
    path = built.files.run(built.running[0]).series
    follower = CurveFollower(path)
    follower.read()
    cut_series_after(path, 100)
    assert follower.read()
    assert follower.snapshot().last_update == 100
    assert follower.snapshot().validation_updates.tolist() == [50, 100]


def test_a_killed_supervisor_is_noticed_without_a_journal_event(tmp_path: Path) -> None:
    files = build_campaign(tmp_path).files
    watch = CampaignWatch(files)
    with supervised(files):
        first = next(m for m in list(watch.poll()) if isinstance(m, StateRead))
        assert first.alive
    (second,) = watch.poll()
    assert isinstance(second, StateRead)
    assert not second.alive


def test_the_state_given_to_the_screen_stays_as_it_was(tmp_path: Path) -> None:
    files = build_campaign(tmp_path).files
    watch = CampaignWatch(files)
    first = next(m for m in watch.poll() if isinstance(m, StateRead))
    Journal(files.journal, "supervisor").append("phase", phase="evaluation")
    second = next(m for m in watch.poll() if isinstance(m, StateRead))
    assert (first.state.phase, second.state.phase) == ("experiment", "evaluation")


def test_opening_a_long_machine_record_reads_only_its_end(tmp_path: Path) -> None:
    files = build_campaign(tmp_path, "launched").files
    host = HostSample(1.0, 1, 2, 1, 2)
    with machine_writer(files.machine) as writer:
        for index in range(30_000):
            writer.write(dataclasses.asdict(Sample(at=f"2026-01-01T00:00:{index:08d}", host=host)))
    size = files.machine.stat().st_size
    assert size > 2 * MACHINE_TAIL_BYTES
    reader = TailReader(files.machine, MACHINE, MACHINE_SCHEMA)
    reader.skip_to_tail(MACHINE_TAIL_BYTES)
    read = reader.read()
    assert sum(len(json.dumps(row)) for row in read) < 1.5 * MACHINE_TAIL_BYTES
    assert [int(row["at"][-8:]) for row in read] == list(range(30_000 - len(read), 30_000)), "whole rows, in order"
    watch = CampaignWatch(files)
    message = next(m for m in list(watch.poll()) if isinstance(m, MachineRead))
    assert message.samples[-1].at.endswith("00029999")
    with machine_writer(files.machine) as writer:
        writer.write(dataclasses.asdict(Sample(at="new", host=host)))
    (message,) = (m for m in watch.poll() if isinstance(m, MachineRead))
    assert message.samples[-1].at == "new"


def test_a_newer_file_is_reported_once_and_the_rest_still_shown(tmp_path: Path) -> None:
    files = build_campaign(tmp_path).files
    files.machine.unlink()
    LineWriter(files.machine, MACHINE, 99).close()
    watch = CampaignWatch(files)
    messages = list(watch.poll())
    assert {StateRead, CurvesRead, ReadFailed} <= kinds(messages)
    assert kinds(list(watch.poll())) == set()


def test_a_log_shows_the_last_state_of_a_progress_bar_and_the_unfinished_line(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"start\nloading 1%\rloading 50%\rloading 100%\nnot yet fin")
    tail = LogTail(path)
    assert tail.read()
    assert tail.lines() == ["start", "loading 100%", "not yet fin"]
    with path.open("ab") as file:
        file.write(b"ished\n")
    assert tail.read()
    assert tail.lines()[-1] == "not yet finished"
    assert not tail.read()
