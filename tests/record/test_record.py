"""The journal folds from any prefix, series are cut back to a checkpoint, names and texts are safe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ftui.plan.load import load_plan, plan_hash
from ftui.record.journal import Journal, read_journal
from ftui.record.layout import CampaignFiles, find_campaign
from ftui.record.notebook import LONGEST, NoteError, read_notes, write_note
from ftui.record.requests import Kind, make_request, pending_requests, put_request
from ftui.record.series import Curve, CurveReader, cut_series_after, read_series, series_writer
from ftui.record.state import fold
from ftui.record.text import safe

SEED_CASE = Path(__file__).parents[2] / "campaigns" / "three-learning-rates"


def journal_of_a_resumed_run(path: Path) -> None:
    plan = load_plan(SEED_CASE)
    journal = Journal(path, "supervisor")
    journal.append(
        "launched",
        plan_hash=plan_hash(plan),
        plan=plan.content(),
        starts_at="2026-12-01T09:00:00+00:00",
        ends_at="2026-12-04T09:00:00+00:00",
    )
    journal.append("supervisor-started", pid=1, host="h")
    journal.append("phase", phase="experiment")
    queued = {
        "number": 3,
        "variant": "control",
        "seed": 17,
        "kind": "train",
        "priority": 1,
        "change": {},
        "because": "b",
        "follows": None,
    }
    journal.append("queued", run="r003-control-s17", **queued)
    for attempt, status in ((1, "lost"), (2, "completed")):
        journal.append(
            "run-started", run="r003-control-s17", attempt=attempt, pid=9, resumed_from=50 * (attempt - 1), placement={}
        )
        journal.append(
            "run-ended",
            run="r003-control-s17",
            attempt=attempt,
            status=status,
            cause="killed" if attempt == 1 else None,
            exit_code=0,
            updates=200,
        )
        if attempt == 1:
            journal.append("queued", run="r003-control-s17", **queued)
    journal.append("an event of a later version", anything=1)
    journal.append("phase", phase="closed")


def test_every_prefix_of_a_journal_gives_a_state(tmp_path: Path) -> None:
    journal_of_a_resumed_run(tmp_path / "journal.jsonl")
    rows = read_journal(tmp_path / "journal.jsonl")
    for length in range(len(rows) + 1):
        fold(rows[:length])
    state = fold(rows)
    run = state.runs["r003-control-s17"]
    assert run.status == "completed" and run.cause is None
    assert [(a.status, a.cause, a.resumed_from) for a in run.attempts] == [
        ("lost", "killed", 0),
        ("completed", None, 50),
    ]
    assert state.closed


def test_hours_between_a_killed_supervisor_and_the_next_count_for_nothing(tmp_path: Path) -> None:
    """A note in between, or a plan found changed by the next one, does not make them hours of work."""
    journal = Journal(tmp_path / "journal.jsonl", "supervisor")
    plan = load_plan(SEED_CASE)
    decided = {"plan_hash": plan_hash(plan), "plan": plan.content(), "ends_at": "2026-12-04T09:00:00+00:00"}
    decided["starts_at"] = "2026-12-01T09:00:00+00:00"
    for hour, event, fields in (
        (8, "note", {"text": "before the launch"}),
        (9, "launched", decided),
        (9, "supervisor-started", {"pid": 1, "host": "h"}),
        (9, "phase", {"phase": "experiment"}),
        (10, "fault", {"where": "host", "cause": "the last sign of life"}),
        (15, "note", {"text": "it is gone"}),
        (16, "amended", {**decided, "changed": ["rental.days"], "because": "b"}),
        (16, "supervisor-started", {"pid": 2, "host": "h"}),
        (17, "supervisor-ended", {"reason": "asked"}),
    ):
        journal.append(event, **{"at": f"2026-12-01T{hour:02d}:00:00.000+00:00", **fields})
    assert fold(read_journal(journal.path)).spent_seconds == {"experiment": 2 * 3600.0}


def test_a_note_keeps_its_lines_and_is_always_one_that_can_be_read_back(tmp_path: Path) -> None:
    files = CampaignFiles(tmp_path)
    write_note(files, "\n  한국어 \t\r\n\nhalf a character: \udcff\n\n", "app")
    files.journal.write_bytes(files.journal.read_bytes() + b'{"at": "torn')
    write_note(files, "after a power cut", "cli")
    assert [row["text"] for row in read_notes(files)] == ["한국어\n\nhalf a character: ?", "after a power cut"]
    for text in ("", " \n\t", "x" * (LONGEST + 1)):
        with pytest.raises(ValueError, match="a note"):
            write_note(files, text, "cli")


def test_a_newer_journal_gets_no_note(tmp_path: Path) -> None:
    files = CampaignFiles(tmp_path)
    files.journal.write_text('{"file": "journal", "schema": 99}\n')
    with pytest.raises(NoteError, match="schema 99 is newer than this ftui"):
        write_note(files, "lost?", "cli")
    assert files.journal.read_text() == '{"file": "journal", "schema": 99}\n'


def test_folding_in_pieces_equals_folding_at_once(tmp_path: Path) -> None:
    journal_of_a_resumed_run(tmp_path / "journal.jsonl")
    rows = read_journal(tmp_path / "journal.jsonl")
    state = fold(rows[:4])
    for row in rows[4:]:
        fold([row], state)
    assert state == fold(rows)


def test_a_series_is_cut_back_to_its_checkpoint_and_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "series.jsonl"
    with series_writer(path) as writer:
        for update in range(1, 8):
            writer.write(
                {"k": "update", "update": update, "loss": 1.0, "lr": 0.1, "grad_norm": 1.0, "seconds": 0.1, "at": "t"}
            )
    reader = CurveReader(path)
    assert reader.read()[0].updates == list(range(1, 8))
    assert cut_series_after(path, 4) == 3
    assert [row["update"] for row in read_series(path)] == [1, 2, 3, 4]
    assert reader.read()[0].updates == [1, 2, 3, 4]


def test_a_metric_that_appears_late_has_gaps_before_it() -> None:
    curve = Curve()
    curve.add(
        [
            {"k": "validation", "update": 1, "metrics": {"loss": 1.0}},
            {"k": "validation", "update": 2, "metrics": {"loss": 0.5, "f1": 0.9}},
        ]
    )
    assert len(curve.validation["f1"]) == 2 and curve.validation["f1"][1] == 0.9


def test_metrics_of_only_some_validations_stay_at_their_updates_and_tables_stay_out() -> None:
    curve = Curve()
    for update, metrics in (
        (1, {"exact_match": 0.1}),
        (2, {"loss": 1.0}),
        (3, {"exact_match": 0.3, "categories": {"a": {}}}),
    ):
        curve.add([{"k": "validation", "update": update, "metrics": metrics}])
    first, second, third = curve.validation["exact_match"]
    assert (first, third) == (0.1, 0.3) and second != second  # not a number where none was measured
    assert curve.validation.keys() == {"exact_match", "loss"}


def test_a_report_that_delivers_nothing_folds(tmp_path: Path) -> None:
    journal_of_a_resumed_run(tmp_path / "journal.jsonl")
    Journal(tmp_path / "journal.jsonl", "supervisor").append("report", verdict="no verdict", sentence="No verdict.")
    state = fold(read_journal(tmp_path / "journal.jsonl"))
    assert (state.verdict, state.deliver) == ("no verdict", None)


def test_requests_come_in_order_and_a_broken_one_is_named(tmp_path: Path) -> None:
    wishes = [
        make_request("stop-run", run="r001-base-s17", by="app"),
        make_request(
            "relaunch", run="r002-control-s17", by="cli", change={"training.stop.patience": None}, because="예"
        ),
        make_request("stop-campaign", by="cli"),
    ]
    for wish in wishes:
        put_request(tmp_path, wish)
    (tmp_path / "zzz.json").write_text("{")
    (tmp_path / "zzzz.json").write_text((tmp_path / f"{wishes[0].id}.json").read_text())
    (tmp_path / "zzzzz.json").write_text('{"schema": 1, "id": "zzzzz", "kind": "explode", "by": "me", "at": "now"}')
    found = [request for _, request in pending_requests(tmp_path)]
    assert found[:3] == wishes
    assert all(isinstance(said, str) for said in found[3:])
    assert "zzz.json is no request" in str(found[3]) and f"a copy of {wishes[0].id}" in str(found[4])
    assert "zzzzz.json is no request: kind: Input should be 'stop-campaign'" in str(found[5])


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("stop-campaign", {"run": "r001-base-s17"}, "stop-campaign names no run"),
        ("pause-run", {}, "pause-run names a run"),
        ("priority", {"run": "r001-base-s17"}, "priority needs a number"),
        ("priority", {"run": "r001-base-s17", "priority": 10**9}, "less than or equal to 1000000"),
    ],
)
def test_a_wish_says_what_its_kind_needs(kind: Kind, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_request(kind, by="cli", **fields)


def test_a_campaign_is_found_by_directory_or_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "campaigns" / "mine").mkdir(parents=True)
    (tmp_path / "campaigns" / "mine" / "campaign.toml").touch()
    assert find_campaign("mine") == find_campaign("campaigns/mine") == CampaignFiles(tmp_path / "campaigns" / "mine")
    with pytest.raises(FileNotFoundError, match="no such campaign, neither a directory nor a name under campaigns"):
        find_campaign("yours")


def test_control_characters_are_shown_and_never_sent() -> None:
    text = safe("a\x1b[31mred\x1b[0m\x07\x00\u202eb\t\u200b\n예")
    assert text == "ared\\x07\\x00\\u202eb  \\u200b\\x0a예"
    assert len(safe("x" * 10_000_000, 100)) == 100
