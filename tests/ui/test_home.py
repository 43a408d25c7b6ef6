"""Promises of the first screen, the report screen, the keys and the imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from textual.binding import Binding

from ftui.engine.client import supervisor_alive
from ftui.record.journal import read_journal
from ftui.record.layout import known_campaigns
from ftui.report.write import write_report
from ftui.ui import keys
from ftui.ui.app import FtuiApp
from ftui.ui.screens.confirm import TypedConfirmation
from ftui.ui.screens.doctor import DoctorScreen
from ftui.ui.screens.edit import ChoiceEditor
from ftui.ui.screens.entry import TextEntry
from ftui.ui.screens.help import HelpScreen
from ftui.ui.screens.home import CampaignList, HomeScreen
from ftui.ui.screens.inspect import InspectScreen
from ftui.ui.screens.monitor import MonitorScreen
from ftui.ui.screens.report import ReportPanel, ReportScreen
from ftui.ui.screens.wizard import WizardScreen
from ftui.ui.widgets.log import LogPanel
from ftui.ui.widgets.panel import Panel
from tests.builders.campaign import build_campaign, supervised
from tests.ui.seen import lines, text, until


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory and an empty home for campaigns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "campaigns"


async def test_an_empty_home_says_how_to_begin(here: Path) -> None:
    app = FtuiApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "N plans one" in text(app), "the hint")
        for key in ("enter", "s", "r", "j", "n", "e", "i"):
            await pilot.press(key)
        assert isinstance(app.screen, HomeScreen)
        await pilot.press("N")
        await until(pilot, lambda: "Name of the new campaign" in text(app), "the question")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_home_tells_every_campaign_s_state_apart(here: Path, size: tuple[int, int]) -> None:
    running = build_campaign(here, "running", name="running-one")
    build_campaign(here, "running", name="interrupted-one")
    build_campaign(here, "planned", name="planned-one")
    build_campaign(here, "closed", name="closed-one")
    (here / "broken-one").mkdir()
    (here / "broken-one" / "campaign.toml").write_text("schema = [\n")
    with supervised(running.files):
        app = FtuiApp()
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: "closed-one" in text(app), "the list")
            rows = {name: next(line for line in lines(app) if name in line) for name in
                    ("running-one", "interrupted-one", "planned-one", "closed-one", "broken-one")}  # fmt: skip
    assert "running" in rows["running-one"].removeprefix("running-one")
    ended = len([run for run in running.runs if run.variant == "base"]) + 2  # two training runs have ended
    assert f"{ended}/{len(running.runs)}" in rows["running-one"]
    assert "interrupted " in rows["interrupted-one"].replace("interrupted-one", "")
    assert "never launched" in rows["planned-one"]
    assert "closed " in rows["closed-one"].replace("closed-one", "")
    assert "supported" in rows["closed-one"]
    assert "unreadable" in rows["broken-one"]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_draft_says_how_much_is_missing_and_what(here: Path, size: tuple[int, int]) -> None:
    draft = build_campaign(here, "planned", name="a-draft").files
    plan = draft.plan.read_text(encoding="utf-8")
    draft.plan.write_text(plan.replace("rank = 8", "rank = 0").replace("micro_batch = 2", "micro_batc = 2"))
    app = FtuiApp()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "draft, 3 problems" in text(app), "the draft")
        assert "unreadable" not in text(app)
        number = plan.splitlines().index("rank = 8") + 1
        for words in (f"campaign.toml:{number}: method.rank:", "training.micro_batch: is missing", "unknown key"):
            assert words in text(app), words
        draft.plan.write_text(plan, encoding="utf-8")
        await pilot.press("f5")
        await until(pilot, lambda: "never launched" in text(app) and "draft," not in text(app), "the mended plan")
        draft.plan.write_bytes(b"\xff\xfe")
        await pilot.press("f5")
        await until(
            pilot,
            lambda: "unreadable" in text(app) and "campaign.toml:1: is not UTF-8" in text(app),
            "what nobody can read",
        )


async def test_starting_a_changed_plan_asks_for_the_reason_and_starts_with_it(here: Path) -> None:
    files = build_campaign(here, "running").files  # without its data: what is started ends at once
    files.plan.write_text(files.plan.read_text(encoding="utf-8").replace("days = 3", "days = 4"), encoding="utf-8")
    app = FtuiApp()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.screen.query_one(CampaignList).found, "the list")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, TextEntry) and "rental.days" in text(app), "the question", 30)
        await pilot.press(*"too slow", "escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen), "home")
        assert not [row for row in read_journal(files.journal) if row["event"] == "amended"]
        await pilot.press("s")
        await until(
            pilot, lambda: isinstance(app.screen, TextEntry) and "too slow" in text(app), "what was written", 30
        )
        await pilot.press(*" a host", "enter")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen), "home", 30)
        await until(pilot, lambda: "supervised by process" in text(app), "the sentence")
        await until(pilot, lambda: not supervisor_alive(files), "its end", 60)
    amended = [row for row in read_journal(files.journal) if row["event"] == "amended"]
    assert [(row["changed"], row["because"]) for row in amended] == [(["rental.days"], "too slow a host")]


async def test_enter_opens_the_monitor_and_escape_comes_back(here: Path) -> None:
    build_campaign(here, "closed")
    app = FtuiApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.screen.query_one(CampaignList).found, "the list")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen), "home")


async def test_a_list_behind_a_monitor_reads_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_campaign(here, "closed")
    monkeypatch.setattr("ftui.ui.screens.home.RELOAD_SECONDS", 0.05)
    app = FtuiApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.screen.query_one(CampaignList).found, "the list")
        home = app.screen
        assert isinstance(home, HomeScreen)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")
        await home.workers.wait_for_complete()
        before = home.query_one(CampaignList).found
        await until(pilot, lambda: app.screen.query_one(LogPanel).lines, "the monitor's log")
        assert home.query_one(CampaignList).found is before


async def test_the_report_is_read_in_the_app_and_scrolls(here: Path) -> None:
    files = build_campaign(here, "closed").files
    report = write_report(files)
    app = FtuiApp(files)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, ReportScreen), "the report")
        await until(pilot, lambda: report.verdict.word in text(app), "the verdict")
        styles = {str(segment.style) for segment in app.screen.query_one(ReportPanel).render_line(0)}
        assert any("bold" in style for style in styles), "the verdict stands out"
        before = text(app)
        await pilot.press("space")
        await until(pilot, lambda: text(app) != before, "the next page")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")


async def test_the_app_can_begin_with_the_report_and_escape_leads_to_the_monitor(here: Path) -> None:
    files = build_campaign(here, "closed").files
    report = write_report(files)
    app = FtuiApp(files, begin="report")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: report.verdict.word in text(app), "the verdict")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")


async def test_the_report_of_a_campaign_on_its_way_says_that_there_is_no_verdict_and_is_not_written(here: Path) -> None:
    files = build_campaign(here, "running").files
    app = FtuiApp(files)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "no verdict" in text(app), "the sentence")
    assert not files.report.exists()


def test_every_binding_has_an_id_a_word_and_a_sentence() -> None:
    nodes = (
        HomeScreen, MonitorScreen, InspectScreen, ReportScreen, DoctorScreen, TextEntry, HelpScreen, TypedConfirmation, Panel,
        WizardScreen, ChoiceEditor,
    )  # fmt: skip
    ours = [b for node in nodes for b in node.__dict__["BINDINGS"]]
    assert set(ours) | set(keys.EVERYWHERE) == set(keys.ALL), (
        "all keys are in keys.py, and all keys of keys.py are used"
    )
    for binding in keys.ALL:
        assert isinstance(binding, Binding)
        assert binding.id
        assert binding.description
        assert binding.tooltip
    ids = [binding.id for binding in keys.ALL]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("own", [keys.HOME, keys.MONITOR, keys.INSPECT, keys.REPORT, keys.DOCTOR])
def test_no_key_means_two_things_on_one_screen(own: tuple[Binding, ...]) -> None:
    used = [key for binding in (*own, *keys.EVERYWHERE) for key in binding.key.split(",")]
    assert len(set(used)) == len(used)


def test_no_key_that_terminals_take_for_another_is_used() -> None:
    taken = {f"ctrl+{letter}" for letter in "abshijm"}
    used = {key for binding in keys.ALL for key in binding.key.split(",")}
    assert not used & taken
    assert not any(key.startswith(("ctrl+shift+", "alt+")) for key in used)


def test_every_action_exists() -> None:
    for node in (
        HomeScreen,
        MonitorScreen,
        ReportScreen,
        DoctorScreen,
        TextEntry,
        HelpScreen,
        TypedConfirmation,
        Panel,
    ):
        for binding in [b for b in node.__dict__["BINDINGS"] if isinstance(b, Binding)]:
            name = binding.action.partition("(")[0]
            assert name.startswith("app.") or hasattr(node, f"action_{name}"), binding


async def test_help_shows_every_key_of_the_screen(here: Path) -> None:
    files = build_campaign(here, "launched").files
    app = FtuiApp(files)
    async with app.run_test(size=(100, 70)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen), "the help")
        await pilot.pause()
        for binding in (*keys.MONITOR, *keys.PANEL, *keys.EVERYWHERE):
            assert binding.tooltip in text(app)


async def test_the_palette_holds_the_actions_of_the_screen(here: Path) -> None:
    files = build_campaign(here, "launched").files
    app = FtuiApp(files)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")
        words = {command.title for command in app.get_system_commands(app.screen)}
        assert {"stop run (K)", "report (r)", "log y (y)"} <= words
        await pilot.press("colon")
        await until(pilot, lambda: "Search for" in text(app), "the palette")


def test_the_app_loads_neither_torch_nor_transformers_nor_the_data_room() -> None:
    program = (
        "import json, sys\n"
        "import ftui.ui.app, ftui.ui.screens.monitor, ftui.ui.screens.report, ftui.ui.screens.wizard, ftui.ui.reader\n"
        "import ftui.engine.client, ftui.machine.sample\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(json.loads(answer.stdout))
    for name in (
        "torch",
        "transformers",
        "peft",
        "accelerate",
        "datasets",
        "ftui.train",
        "ftui.data",
        "scipy",
        "sklearn",
        "pandas",
    ):
        assert name not in loaded, name


def test_known_campaigns_are_what_home_lists(here: Path) -> None:
    build_campaign(here, "planned", name="b")
    build_campaign(here, "planned", name="a")
    assert [campaign.name for campaign in known_campaigns()] == ["a", "b"]
