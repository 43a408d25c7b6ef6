"""Where copies go is part of the plan, can be changed at any time, and costs plans that copy nothing no change."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w

from ftui.engine.amend import check_amendment
from ftui.plan.draft import MISSING, Draft
from ftui.plan.load import PlanError, load_plan, parse_plan, plan_hash
from ftui.plan.starting import settled
from ftui.ui.wizard.consequences import what_follows
from ftui.ui.wizard.scene import Scene
from tests.builders.tiny import tiny_plan

SEED_CASE = Path(__file__).parents[2] / "campaigns" / "three-learning-rates"


def planned(**backup: object) -> str:
    return tomli_w.dumps(tiny_plan(**({"backup": backup} if backup else {})))


def test_a_plan_that_copies_nothing_keeps_its_hash() -> None:
    assert plan_hash(load_plan(SEED_CASE)) == "760ddf9fe7344baf387556f22f512960e5004f95648f1b2524c3ee321f44abe4"
    assert "backup" not in parse_plan(planned()).content()
    assert plan_hash(parse_plan(planned())) != plan_hash(parse_plan(planned(destination="/there")))


@pytest.mark.parametrize(
    ("backup", "problem"),
    [
        ({"every": 5}, "backup: needs destination or command, found neither"),
        ({"destination": "/a", "command": ["cp", "{source}"]}, "backup: needs destination or command, found both"),
        ({"destination": "copies"}, "backup.destination: 'copies' would lie beside the plan"),
        ({"destination": "ftp://me:secret@host/a"}, "backup.destination: holds a password"),
        ({"command": ["rclone", "copy"]}, "backup: command needs {source}"),
        ({"destination": "/a", "what": []}, "backup.what: "),
        ({"destination": "/a", "what": ["record", "record"]}, "backup.what: names a part twice"),
        ({"destination": "/a", "what": ["weights"]}, "backup.what[0]: "),
        ({"destination": "/a", "every": 0}, "backup.every: "),
    ],
)
def test_a_place_that_cannot_be_meant_is_refused_in_a_sentence(backup: dict[str, object], problem: str) -> None:
    with pytest.raises(PlanError) as refused:
        parse_plan(planned(**backup))
    assert problem in str(refused.value) and "secret" not in str(refused.value)


@pytest.mark.parametrize("destination", ["/mnt/elsewhere", "~/there", "s3://bucket/name", "sftp://me@host/there"])
def test_folders_and_urls_are_places(destination: str) -> None:
    backup = parse_plan(planned(destination=destination)).backup
    assert backup is not None and backup.target == destination


def test_copies_can_be_decided_on_when_runs_have_begun() -> None:
    before, after = parse_plan(planned()), parse_plan(planned(destination="/there"))
    assert check_amendment(before, after, begun=True) == ["backup"]
    other = parse_plan(planned(destination="/there", every=5))
    assert check_amendment(after, other, begun=True) == ["backup.every"]


def test_taking_the_destination_back_in_the_wizard_takes_the_section_back() -> None:
    plan = Draft(planned())
    copied = plan.set(("backup", "destination"), "/there")
    draft, told = settled(copied.remove(("backup", "destination")), "backup.destination", copied)
    assert draft.given(("backup",)) is MISSING and draft.problems == []
    assert told == ["nothing is copied: what is on the machine ends with the rental"]
    assert settled(copied, "backup.destination", plan) == (copied, [])


def told_by_the_rental_step(text: str) -> list[str]:
    return [line for line, _ in what_follows("rental", Scene(Draft(text)), 80)]


def test_the_wizard_says_beside_the_hours_what_ends_with_the_rental() -> None:
    assert "Nothing is copied: what is on this machine ends with the rental." in told_by_the_rental_step(planned())
    by_folder = told_by_the_rental_step(planned(destination="/there", what=["record"], every=7))
    assert "Copied every 7 min and at each checkpoint: record; read back and compared." in by_folder
    by_program = told_by_the_rental_step(planned(command=["rclone", "copy", "{source}", "remote:name"]))
    assert any("by the program's word; nothing is read back" in line for line in by_program)
