"""`ftui plan C --for DEVICE`: a table for people, one JSON document for scripts, and no training library in the process itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ftui.record.layout import CampaignFiles
from tests.builders.processes import module
from tests.builders.tiny import tiny_campaign, tiny_model
from tests.test_rooms import HEAVY, command, loaded_by


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> CampaignFiles:
    """A campaign without weights, with one variant that shares the control's step and two that have their own."""
    folder = tmp_path_factory.mktemp("forecast")
    model = tiny_model(folder / "m")
    (model / "model.safetensors").unlink()
    variants = [
        {"id": "slower", "because": "Smaller steps.", "change": {"training.learning_rate": 1e-3}},
        {"id": "wider", "because": "More room.", "change": {"method.rank": 8}},
        {"id": "packed", "because": "Less memory.", "change": {"method.kind": "qlora"}},
    ]
    return tiny_campaign(folder / "c", model, variants=variants)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, campaign: CampaignFiles) -> CampaignFiles:
    """The control alone, without weights."""
    return tiny_campaign(tmp_path_factory.mktemp("small") / "c", (campaign.root / "model").resolve(), variants=[])


def test_each_distinct_step_is_told_once_with_checkpointing_off_and_on(campaign: CampaignFiles) -> None:
    answer = module("ftui.cli", "plan", campaign.root, "--for", "l4", "--json")
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)["forecast"]
    assert [method["variants"] for method in told["methods"]] == [["control", "slower"], ["wider"], ["packed"]]
    first, second, third = told["methods"]
    assert second["trainable"] > first["trainable"] and first["parameters"] < second["parameters"]
    assert third["problem"].startswith('method.kind = "qlora"') and third["rows"] == []
    assert told["fits"] is None, "nobody knows whether all fits"
    for method in (first, second):
        assert [(row["activation_checkpointing"], row["planned"]) for row in method["rows"]] == [
            (False, True),
            (True, False),
        ]
        for row, prediction in zip(method["rows"], method["predictions"], strict=True):
            assert row["peak"] == max(prediction["peak"], prediction["evaluation_peak"])
            margin = told["margin"]["bytes"] + round(row["peak"] * told["margin"]["share_of_peak"])
            assert row["needed"] == row["peak"] + margin
            assert row["fits"] and row["left"] == told["device"]["memory"] - row["needed"]
            low, high = row["seconds_per_update"]
            assert low > 0 and (high is None or high >= low)
            assert row["hours_of_a_run"][0] == pytest.approx(low * 12 / 3600)
    assert len(told["margin"]["stands_for"]) >= 4


def test_what_fits_is_predicted_where_nothing_was_measured_and_is_called_so(campaign: CampaignFiles) -> None:
    told = json.loads(module("ftui.cli", "plan", campaign.root, "--for", "l4", "--json").stdout)
    fit = told["fit"]
    assert fit["predicted_for"] == "l4" and fit["places"] == 1 and len(fit["assumptions"]) >= 4
    assert set(fit["seconds_per_run"]) == {"base", "control", "slower", "wider"}
    low, high = told["forecast"]["methods"][0]["rows"][0]["seconds_per_update"]
    middle, least, most = fit["seconds_per_run"]["control"]
    assert least >= 12 * low and least < middle < most and (high is None or most >= 12 * high)
    # Nobody knows how long a step in 4 bits takes.
    assert [run for run in told["runs"] if "packed" in run] == fit["left_out"]
    assert told["closing"]["export"]["hours"] > 0


def test_what_does_not_fit_is_said_and_is_no_error(small: CampaignFiles) -> None:
    answer = module("ftui.cli", "plan", small.root, "--for", "1GB")
    assert answer.returncode == 0, answer.stderr
    assert (
        "does not fit" in answer.stdout and "off, planned" in answer.stdout and "only memory is known" in answer.stdout
    )
    assert "More is better." in answer.stdout, "the plan comes first"
    assert "what fits is known after the pilot" in answer.stdout, "of a size, no time is known"


def test_an_unknown_device_is_wrong_usage_with_what_is_near(campaign: CampaignFiles) -> None:
    answer = module("ftui.cli", "plan", campaign.root, "--for", "h1000")
    assert answer.returncode == 2 and "did you mean h100" in answer.stderr and answer.stdout == ""


def test_the_command_itself_loads_no_training_library(small: CampaignFiles) -> None:
    assert not loaded_by(command("plan", str(small.root), "--for", "l4")) & {*HEAVY, "textual"}


def test_a_plan_without_a_device_predicts_and_writes_nothing(campaign: CampaignFiles, tmp_path: Path) -> None:
    files = tiny_campaign(tmp_path / "c", (campaign.root / "model").resolve())
    before = sorted(files.root.rglob("*"))
    assert "forecast" not in json.loads(module("ftui.cli", "plan", files.root, "--json").stdout)
    assert sorted(files.root.rglob("*")) == before
