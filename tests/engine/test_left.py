"""What still fits is told from now on, by what runs have cost (R3, R4)."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ftui.engine.estimate import Estimate
from ftui.engine.left import what_is_left
from ftui.plan.describe_rental import left_lines
from ftui.record.journal import read_journal
from ftui.record.state import Campaign, fold
from tests.builders.campaign import UPDATES, Built, build_campaign


def told(built: Built, moment: datetime | None = None) -> tuple[Campaign, Estimate, dict[str, Any]]:
    state = fold(read_journal(built.files.journal))
    estimate = Estimate(built.files, built.plan)
    estimate.measure(state, whole=True)
    assert state.clock is not None
    left = what_is_left(state, built.plan, estimate, 2, moment or state.clock.starts_at)
    assert left is not None
    return state, estimate, left


def test_a_launched_campaign_says_what_is_left_of_it_and_no_more(tmp_path: Path) -> None:
    built = build_campaign(tmp_path, "running", updates=120)
    state, estimate, left = told(built)
    told_of = [*left["surely"], *left["probably"], *left["left_out"]]
    assert set(told_of) == {run.id for run in state.runs_of("running", "queued")}
    assert set(left["seconds"]) == set(built.running), "of the others nothing is done yet"
    for run in built.running:
        seconds, whole = left["seconds"][run][0], estimate.durations[state.runs[run].variant].seconds
        assert 0.3 * (UPDATES - 120) <= seconds < whole / 2
    lines = "\n".join(left_lines(left))
    assert f"from now on: {len(told_of)} runs" in lines and f"{built.running[0]} takes another" in lines


def test_little_time_before_the_kept_hours_leaves_the_last_ones_out(tmp_path: Path) -> None:
    """With just enough for those that train, none of those that wait has time; past it nobody has."""
    built = build_campaign(tmp_path, "running", updates=120)
    state, _, left = told(built)
    assert not left["left_out"]
    until = datetime.fromisoformat(left["until"])
    longest = max(most for _, _, most in left["seconds"].values())
    _, _, late = told(built, until - timedelta(seconds=longest + 1))
    assert late["surely"] == built.running
    assert set(late["left_out"]) == {run.id for run in state.runs_of("queued")}
    assert "no time for" in "\n".join(left_lines(late))
    _, _, over = told(built, until + timedelta(hours=1))
    assert not over["surely"] and over["hours"] == 0


def test_nothing_is_told_before_the_pilot_and_of_a_closed_campaign_that_nothing_is_left(tmp_path: Path) -> None:
    early = build_campaign(tmp_path / "a", "launched")
    state = fold(read_journal(early.files.journal))
    assert what_is_left(state, early.plan, Estimate(early.files, early.plan), 1, datetime.now().astimezone()) is None
    _, _, left = told(build_campaign(tmp_path / "b", "closed"))
    assert list(left_lines(left)) == ["  from now on: no run waits or trains"]
