"""`ftui preflight` tries the gates and nothing else; until runs begin, what the gates find may change the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ftui.engine.client import supervisor_alive
from ftui.machine.versions import gates_key
from ftui.plan.load import load_plan
from ftui.record.journal import read_journal
from ftui.record.rows import GATE_NAMES
from ftui.record.state import fold
from tests.builders.processes import module
from tests.builders.tiny import tiny_campaign


@pytest.mark.timeout(600)
def test_a_pilot_that_fails_is_mended_and_tried_again_before_anything_trains(model: Path, tmp_path: Path) -> None:
    files = tiny_campaign(tmp_path / "c", model, method__targets=["nothing"])
    failed = module("ftui.cli", "preflight", files.root, "--json")
    assert failed.returncode == 1, failed.stderr
    first = json.loads(failed.stdout)
    assert (
        first["passed"] is False
        and first["cause"].startswith("load: ")
        and "'nothing' matches no module" in first["cause"]
    )
    assert [row["verdict"] for row in first["rows"]] == ["passed", "failed"] + ["skipped"] * 10
    refused = module("ftui.cli", "preflight", files.root, "--accept", "1")
    assert refused.returncode == 2 and "offer 0" in refused.stderr
    files.plan.write_text(files.plan.read_text().replace('"nothing"', '"query", "value"'))
    passed = module("ftui.cli", "preflight", files.root, "--json")
    assert passed.returncode == 0, passed.stderr
    second = json.loads(passed.stdout)
    assert second["gates"] == "g002" and [row["gate"] for row in second["rows"]] == list(GATE_NAMES)
    assert second["key"] != first["key"] and second["remedies"] == []
    predicted, measured = second["memory"]["predicted"], second["memory"]["measured"]
    assert 100_000 < predicted < measured < predicted + (512 << 20), (
        "the process holds the step's tensors, and not much more"
    )
    state = fold(read_journal(files.journal))
    assert (not supervisor_alive(files) and not state.runs and state.verdict is None) or state.gates[-1].passed
    assert any(
        row["event"] == "amended" and row["changed"] == ["method.targets"] and row["because"] is None
        for row in state.events
    )
    text = module("ftui.cli", "preflight", files.root, "--fit")
    assert text.returncode == 0, text.stderr
    assert "as planned" in text.stdout and "the largest that fits is 8" in text.stdout


def test_a_key_follows_machine_and_control_and_nothing_else(model: Path, tmp_path: Path) -> None:
    plan = load_plan(tiny_campaign(tmp_path / "c", model).root)
    here = {"torch": "2.13", "python": "3.11", "kernel": "6.1"}
    key = gates_key(plan, here)
    cheaper = plan.model_copy(update={"rental": plan.rental.model_copy(update={"days": 2}), "variants": []})
    other = plan.model_copy(update={"training": plan.training.model_copy(update={"micro_batch": 2})})
    assert gates_key(cheaper, here) == gates_key(plan, {**here, "kernel": "6.2"}) == key
    assert len({key, gates_key(other, here), gates_key(plan, {**here, "torch": "2.14"})}) == 3
    assert gates_key(plan, {**here, "gpu problem": "NVML gave no answer"}) is None
