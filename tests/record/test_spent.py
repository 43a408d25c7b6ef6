"""Estimates follow what runs really cost, and only what they cost (R3, R4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from ftui.plan.budget import Spread
from ftui.plan.durations import RunCosts, plan_durations, remaining_duration
from ftui.plan.load import load_plan
from ftui.record.lines import Row
from ftui.record.series import cut_series_after, series_writer
from ftui.record.spent import ENOUGH_UPDATES, Spent, SpentReader, current_costs
from tests.builders.campaign import DATA, PLAN

BEGUN = datetime(2026, 12, 1, 9, tzinfo=UTC)
SECOND = Spread(1.0, 0.9, 1.2)
PILOT = RunCosts(update=SECOND, validation=Spread(10, 8, 12), checkpoint=Spread(2, 1, 3), start=Spread(5, 4, 6))


def rows(seconds: list[float], *, overhead: float = 0.0, begun: datetime = BEGUN, first: int = 1) -> list[Row]:
    """Updates that took so long, each after `overhead` in which nothing was computed."""
    at, made = begun, []
    for update, own in enumerate(seconds, first):
        at += timedelta(seconds=own + overhead)
        made.append({"k": "update", "update": update, "seconds": own, "at": at.isoformat()})
    return made


def spent(*made: list[Row]) -> Spent:
    one = Spent()
    for some in made:
        one.add(some)
    return one


def test_a_few_updates_do_not_overrule_the_pilot() -> None:
    few = spent(rows([9.0] * (ENOUGH_UPDATES - 1)))
    assert current_costs({"control": PILOT}, {"r": few}, {"r": "control"}) == {"control": PILOT}
    assert current_costs({"control": PILOT}, {}, {}) == {"control": PILOT}


def test_a_variants_own_updates_count_with_their_range() -> None:
    slower = spent(rows([2.0] * 20 + [4.0] * 20))
    costs = current_costs({"control": PILOT}, {"r": slower}, {"r": "control"})
    assert costs["control"].update == Spread(3.0, 2.0, 4.0)
    assert costs["control"].validation == PILOT.validation, "none was seen"


def test_one_slow_update_is_no_range() -> None:
    spike = spent(rows([1.0] * 19 + [21.0] + [1.0] * 20))
    update = current_costs({"control": PILOT}, {"r": spike}, {"r": "control"})["control"].update
    assert update == Spread(1.5, 1.0, 2.0)


def test_time_between_updates_belongs_to_them() -> None:
    """An update that is computed in a second but follows the last after one and a half takes one and a half."""
    update = current_costs({"c": PILOT}, {"r": spent(rows([1.0] * 41, overhead=0.5))}, {"r": "c"})["c"].update
    assert abs(update.seconds - 1.5) < 0.02


def test_a_clock_that_is_set_and_a_machine_that_slept_cost_nothing() -> None:
    """Set back by a day, asleep for a day, and gone on in another process."""
    day = timedelta(days=1)
    second = [1.0] * 20
    jumps = [rows(second), rows(second, begun=BEGUN - day, first=21), rows(second, begun=BEGUN + day, first=41)]
    update = current_costs({"c": PILOT}, {"r": spent(*jumps)}, {"r": "c"})["c"].update
    assert update == Spread(1.0, 1.0, 1.0)


def test_what_has_not_run_yet_is_corrected_by_what_has() -> None:
    """The pilot was half as slow as it is: so are the updates of a variant that are twice as large."""
    twice = RunCosts(SECOND.times(2), PILOT.validation, PILOT.checkpoint, PILOT.start)
    slower = spent(rows([2.0] * 40))
    costs = current_costs({"control": PILOT, "large": twice}, {"r": slower}, {"r": "control"})
    assert costs["large"].update == Spread(4.0, 4.0, 4.0)


def test_validations_and_checkpoints_are_what_they_turned_out_to_be() -> None:
    made = [{"k": "validation", "update": 1, "seconds": 30.0, "at": BEGUN.isoformat(), "metrics": {}}]
    costs = current_costs({"c": PILOT}, {"r": spent(made)}, {"r": "c"})["c"]
    assert costs.validation == Spread(30, 24, 37.5) and costs.checkpoint == PILOT.checkpoint


def test_a_reader_sees_each_row_once_and_starts_again_when_a_run_was_set_back(tmp_path: Path) -> None:
    path = tmp_path / "series.jsonl"
    with series_writer(path) as writer:
        for row in rows([1.0] * 30):
            writer.write(row)
    reader = SpentReader(path)
    assert (reader.read().updates, reader.read().counted) == (30, 30)
    cut_series_after(path, 20)
    with series_writer(path) as writer:
        for row in rows([3.0] * 5, first=21):
            writer.write(row)
    again = reader.read()
    assert (again.updates, again.counted, again.seconds) == (25, 25, 20 + 15)


def test_what_remains_and_what_is_done_make_the_whole() -> None:
    plan = load_plan(PLAN.parent)
    whole = plan_durations(plan, DATA, {"control": PILOT})["control"]
    left = [remaining_duration(plan, DATA, "control", PILOT, done).seconds for done in range(201)]
    assert whole.seconds == PILOT.start.seconds + left[0]
    assert left == sorted(left, reverse=True) and left[200] == 0
    assert left[0] - left[1] == PILOT.update.seconds
    every = plan.training.validate_every
    assert left[every - 1] - left[every] == PILOT.update.seconds + PILOT.validation.seconds + PILOT.checkpoint.seconds
