"""Promises of the monitor, on recorded campaigns: what is on the screen, what keys change, what they never do."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from ftui.engine.copy import copy_campaign
from ftui.record.files import replace_text
from ftui.record.journal import Journal, now
from ftui.record.layout import CampaignFiles
from ftui.record.requests import Request, pending_requests
from ftui.ui.app import FtuiApp
from ftui.ui.screens.help import HelpScreen
from ftui.ui.screens.home import HomeScreen
from ftui.ui.screens.monitor import MonitorScreen
from ftui.ui.widgets.line_chart import LineChart
from ftui.ui.widgets.log import LogPanel
from ftui.ui.widgets.runs import RunsPanel
from tests.builders.campaign import Built, append_series, build_campaign, metrics_at, series_rows, supervised
from tests.builders.copies import backed_up
from tests.ui.seen import inside, lines, text, until

SIZES = [(80, 24), (120, 40), (200, 60)]


@asynccontextmanager
async def monitor(
    files: CampaignFiles, size: tuple[int, int] = (120, 40), *, notifications: bool = False
) -> AsyncIterator[Pilot[None]]:
    """The app on one campaign, once all that is recorded is on the screen."""
    app = FtuiApp(files)
    async with app.run_test(size=size, notifications=notifications) as pilot:
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen) and app.screen._log is not None, "the log")
        screen = monitor_of(pilot)
        trained = {run.id for run in screen.state.runs.values() if files.run(run.id).series.exists()}
        await until(pilot, lambda: trained <= set(screen.curves), "all curves")
        yield pilot


def monitor_of(pilot: Pilot[None]) -> MonitorScreen:
    return next(s for s in pilot.app.screen_stack if isinstance(s, MonitorScreen))


def chart_of(pilot: Pilot[None]) -> LineChart:
    return monitor_of(pilot).query_one("#chart", LineChart)


@pytest.fixture
def running(tmp_path: Path) -> Built:
    return build_campaign(tmp_path, "running")


@pytest.mark.parametrize("size", SIZES)
async def test_a_running_campaign_is_readable_at_every_size(running: Built, size: tuple[int, int]) -> None:
    on_it = next(run for run in running.runs if run.id == running.running[0])
    with supervised(running.files):
        async with monitor(running.files, size) as pilot:
            shown = lines(pilot.app)
            assert len(shown) == size[1]
            whole = "\n".join(shown)
            assert "three-learning-rates  running  experiment" in shown[0]
            assert "ends in 2 d 23 h" in shown[0]
            for word in (
                running.running[0],
                "running",
                "120/200",
                f"{metrics_at(on_it, 100)['macro_f1']:.4f}",
                "macro_f1",
                "2 Loss",
                "updates",
                "? keys",
            ):
                assert word in whole, word
            if size[0] >= 100:
                for word in (
                    "3 Machine",
                    "4 Gates",
                    "reload",
                    "720 MiB",
                    "5 Rental",
                    "experiment",
                    "6 Log",
                    "update  120/200",
                ):
                    assert word in whole, word
            assert "…" not in "\n".join(shown[:10]), "nothing of the status and the runs is cut"


async def test_on_a_small_terminal_every_panel_is_one_key_away(running: Built) -> None:
    async with monitor(running.files, (80, 24)) as pilot:
        for key, words in {
            "3": ("cpu", "memory", "8.0 GiB"),
            "4": ("reload", "passed", "920 MiB", "4.8 s"),
            "5": ("ends in", "preflight", "of 120", "together"),
            "6": ("update  120/200",),
            "2": ("2 Loss", "smooth 0.8"),
        }.items():
            await pilot.press(key)
            await until(
                pilot, lambda words=words: all(word in text(pilot.app) for word in words), f"panel {key}: {words}"
            )
            assert running.running[0] in text(pilot.app), "the runs stay in view"


async def test_tab_walks_through_all_six_panels_and_back_to_the_first(running: Built) -> None:
    async with monitor(running.files, (80, 24)) as pilot:
        visited = []
        for _ in range(6):
            await pilot.press("tab")
            await pilot.pause()
            visited.append(monitor_of(pilot).full_panel)
        assert visited == ["chart", "machine", "gates", "clock", "log", "runs"]


async def test_new_updates_appear_while_the_monitor_is_open(running: Built) -> None:
    with supervised(running.files):
        async with monitor(running.files) as pilot:
            run = next(r for r in running.runs if r.id == running.running[0])
            assert "121/200" not in text(pilot.app)
            append_series(running.files, run, series_rows(run, 121, 137, now()))
            await until(pilot, lambda: "137/200" in text(pilot.app), "update 137")
            assert chart_of(pilot).curves[2].x[-1] == 137


async def test_what_changes_is_drawn_where_it_stands(running: Built) -> None:
    """Only lines that differ are drawn anew: afterwards the screen shows what every panel would draw as a whole."""
    with supervised(running.files):
        async with monitor(running.files) as pilot:
            screen = monitor_of(pilot)
            for update in (121, 150, 151):
                for run in running.runs:
                    if run.id in running.running:
                        append_series(
                            running.files, run, series_rows(run, screen.curves[run.id].last_update + 1, update, now())
                        )
                await until(pilot, lambda update=update: f"{update}/200" in text(pilot.app), f"update {update}")
                shown = lines(pilot.app)
                for panel in screen.query("Panel, LineChart"):
                    if panel.is_on_screen and panel.content_region:
                        at = panel.content_region
                        seen = [line[at.x : at.right] for line in shown[at.y : at.bottom]]
                        assert seen == inside(panel), panel.id


async def test_the_clock_goes_on_while_the_reader_is_kept(running: Built) -> None:
    """A file that does not answer (here a pipe without a writer) holds the reader, not the screen."""
    gates = running.files.gates("g001").rows
    with supervised(running.files):
        async with monitor(running.files) as pilot:
            gates.unlink()
            os.mkfifo(gates)
            ticked = monitor_of(pilot)._ticked_at
            await until(pilot, lambda: monitor_of(pilot)._ticked_at > ticked + 2.5, "ticks without a poll")
            gates.open("wb").close()


async def test_a_run_that_ends_is_shown_with_its_cause(running: Built) -> None:
    with supervised(running.files):
        async with monitor(running.files, (200, 60)) as pilot:
            journal = Journal(running.files.journal, "supervisor")
            cause = "the smoothed loss 9.1 is more than 3 times its lowest value 2.0"
            journal.append(
                "run-ended", run=running.running[0], attempt=1, status="diverged", cause=cause, exit_code=1, updates=125
            )
            await until(pilot, lambda: "diverged" in text(pilot.app), "the status")
            assert cause in text(pilot.app)


async def test_a_campaign_whose_supervisor_is_gone_is_called_interrupted(running: Built) -> None:
    async with monitor(running.files) as pilot:
        assert "interrupted  `ftui run` continues it" in lines(pilot.app)[0]
        row = next(line for line in lines(pilot.app) if running.running[0] in line)
        assert "interrupted" in row
        assert " running " not in row


@pytest.mark.parametrize("stage", ["planned", "launched", "gates", "closed"])
async def test_every_stage_of_a_campaign_has_a_screen(tmp_path: Path, stage: str) -> None:
    files = build_campaign(tmp_path, stage).files  # type: ignore[arg-type]
    said = {
        "planned": "never launched",
        "launched": "nothing queued yet",
        "gates": "waiting",
        "closed": "closed  verdict: supported",
    }
    async with monitor(files, (120, 40)) as pilot:
        await until(pilot, lambda: said[stage] in text(pilot.app), said[stage])


async def test_keys_change_how_the_curves_are_drawn(running: Built) -> None:
    async with monitor(running.files) as pilot:
        await pilot.press("2")
        await pilot.pause()
        chart = chart_of(pilot)
        seen = {tuple(inside(chart))}
        for key, said in (
            ("s", "smooth 0.9"),
            ("S", "smooth 0.8"),
            ("y", "log"),
            ("y", "updates"),
            ("plus", "–"),
            ("plus", "–"),
            ("h", "not following"),
            ("l", "–"),
            ("0", "updates"),
            ("x", "tokens"),
            ("x", "time"),
            ("x", "updates"),
        ):
            await pilot.press(key)
            await pilot.pause()
            assert said in str(chart.border_subtitle), (key, chart.border_subtitle)
            seen.add(tuple(inside(chart)))
        assert len(seen) >= 8, "the picture follows the keys"


async def test_zooming_in_and_resetting_gives_the_first_picture_again(running: Built) -> None:
    async with monitor(running.files) as pilot:
        before = inside(chart_of(pilot))
        await pilot.press("plus", "plus", "plus", "h", "h")
        await pilot.pause()
        assert inside(chart_of(pilot)) != before
        await pilot.press("0")
        await pilot.pause()
        assert inside(chart_of(pilot)) == before


async def test_m_shows_the_validation_metric_with_letters_as_points(running: Built) -> None:
    async with monitor(running.files) as pilot:
        await pilot.press("m")
        await pilot.pause()
        chart = chart_of(pilot)
        assert "Validation macro_f1" in str(chart.border_title)
        drawn = "\n".join(inside(chart)[:-3])
        assert all(letter in drawn for letter in "BCD")


async def test_m_walks_through_every_metric_the_series_have(running: Built) -> None:
    async with monitor(running.files) as pilot:
        seen = []
        for _ in range(3):
            await pilot.press("m")
            await pilot.pause()
            seen.append(str(chart_of(pilot).border_title))
        assert seen == [
            "2 Validation macro_f1",
            "2 Validation accuracy",
            "2 Loss",
        ]  # the hypothesis's metric comes first


async def test_a_series_without_the_hypothesis_metric_shows_what_it_has(tmp_path: Path) -> None:
    """A generation whose validations write no answers: only the loss is known before the test."""
    built = build_campaign(tmp_path, "running", updates=40)
    for run in built.runs:
        path = built.files.run(run.id).series
        if path.exists():
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            for row in rows:
                if row.get("k") == "validation":
                    row["metrics"] = {"loss": 3.25 if row["update"] == 50 else 1.75}
            replace_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    with supervised(built.files):
        async with monitor(built.files, (200, 60)) as pilot:
            assert "Validation loss" in text(pilot.app) and "best, last: loss" in text(pilot.app)
            ended = next(line for line in lines(pilot.app) if built.runs[3].id in line and "completed" in line)
            assert "1.7500" in ended and "3.2500" not in ended  # of a loss, the lowest is the best


async def test_only_marked_runs_are_drawn_until_the_last_mark_is_gone(running: Built) -> None:
    async with monitor(running.files) as pilot:
        assert len(chart_of(pilot).curves) == 4
        await pilot.press("space")
        await pilot.pause()
        assert [curve.key for curve in chart_of(pilot).curves] == [running.running[0]]
        await pilot.press("space")
        await pilot.pause()
        assert len(chart_of(pilot).curves) == 4


async def test_a_held_view_stays_still_and_catches_up_afterwards(running: Built) -> None:
    with supervised(running.files):
        async with monitor(running.files) as pilot:
            screen = monitor_of(pilot)
            await pilot.press("p")
            run = next(r for r in running.runs if r.id == running.running[0])
            append_series(running.files, run, series_rows(run, 121, 140, now()))
            await until(pilot, lambda: screen._held, "the reader's message")
            assert "140/200" not in text(pilot.app)
            assert "view held" in text(pilot.app)
            await pilot.press("p")
            await until(pilot, lambda: "140/200" in text(pilot.app), "update 140")


async def test_escape_leaves_exactly_one_layer(running: Built) -> None:
    async with monitor(running.files) as pilot:
        app = pilot.app
        await pilot.press("2", "f")
        await pilot.pause()
        assert "3 Machine" not in text(app)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen), "the help")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen), "the monitor")
        assert monitor_of(pilot).full, "the chart is still alone"
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, MonitorScreen)
        assert "3 Machine" in text(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen), "home")
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, HomeScreen), "the first screen stays"


async def test_the_log_is_shown_and_never_interpreted(running: Built) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[bold red]not markup[/] [link=x] a\x00b \x9b31m zażółć 한국어 ok"
    replace_text(running.files.run(running.running[0]).log, f"first\n{evil}\n")
    async with monitor(running.files) as pilot:
        await until(pilot, lambda: "not markup" in text(pilot.app), "the log line")
        for key in ("tab", "w"):  # cut, then wrapped
            await pilot.press(key)
            await pilot.pause()
            assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for line in lines(pilot.app) for c in line)
        await pilot.press("w")
        await pilot.pause()
        whole = text(pilot.app)
        assert "[bold red]not markup[/] [link=x] a\\x00b \\x9b31m zażółć 한국어 ok" in whole


async def test_the_log_follows_until_it_is_scrolled_and_again_on_request(running: Built) -> None:
    run = running.running[0]
    replace_text(running.files.run(run).log, "".join(f"line {n:03d}\n" for n in range(200)))
    async with monitor(running.files) as pilot:
        panel = monitor_of(pilot).query_one(LogPanel)
        await until(pilot, lambda: "line 199" in "\n".join(inside(panel)), "the end")
        await pilot.press("6", "g")
        with running.files.run(run).log.open("a") as file:
            file.write("line 200\n")
        await until(pilot, lambda: "line 200" in panel.lines, "the new line")
        assert "line 000" in "\n".join(inside(panel))
        await pilot.press("G")
        assert "line 200" in "\n".join(inside(panel))


async def test_a_run_is_stopped_only_after_its_name_was_typed(running: Built) -> None:
    run = running.running[0]

    def wishes() -> list[Request | str]:
        return [request for _, request in pending_requests(running.files.requests)]

    with supervised(running.files):
        async with monitor(running.files) as pilot:
            await until(pilot, lambda: monitor_of(pilot).query_one(RunsPanel).selected, "a chosen run")
            await pilot.press("K")
            await until(pilot, lambda: pilot.app.screen.query(Input), "the question")
            await pilot.press(*"yes", "enter")
            await pilot.pause()
            assert wishes() == []
            assert "not the name" in text(pilot.app)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, MonitorScreen), "the monitor")
            assert wishes() == []
            await pilot.press("K")
            await until(pilot, lambda: pilot.app.screen.query(Input), "the question")
            pilot.app.screen.query_one(Input).value = run
            await pilot.press("enter")
            await until(pilot, wishes, "the request")
            (wish,) = wishes()
            assert isinstance(wish, Request)
            assert (wish.kind, wish.run, wish.by) == ("stop-run", run, "app")


async def test_a_run_that_does_not_run_cannot_be_asked_to_stop(running: Built) -> None:
    async with monitor(running.files) as pilot:
        await pilot.press("g", "K")
        await pilot.pause()
        assert isinstance(pilot.app.screen, MonitorScreen)


async def test_ascii_only_terminals_get_ascii_only(running: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTUI_ASCII", "1")
    async with monitor(running.files) as pilot:
        await pilot.pause()
        assert {c for c in text(pilot.app) if ord(c) > 126} == set()


async def test_without_colour_letters_tell_the_curves_apart(running: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with monitor(running.files) as pilot:
        drawn = "\n".join(inside(chart_of(pilot))[:-3])
        assert "●" not in drawn
        assert all(letter in drawn for letter in "BCDbcd")


async def test_a_nan_loss_leaves_a_gap_and_a_mark(tmp_path: Path) -> None:
    built = build_campaign(tmp_path, updates=40)
    run = next(r for r in built.runs if r.id == built.running[0])
    rows = series_rows(run, 41, 120, now())
    for row in rows:
        if row["k"] == "update" and 60 <= row["update"] <= 100:
            row["loss"] = float("nan")
    append_series(built.files, run, rows)
    async with monitor(built.files) as pilot:
        await pilot.press("space", "S", "S")
        await pilot.pause()
        drawn = inside(chart_of(pilot))
        canvas = [line[8:] for line in drawn[:-2]]
        marks = [index for index, c in enumerate(canvas[-1]) if c == "×"]
        assert len(marks) > 10
        middle = range(marks[2], marks[-2])
        assert all(line[column] == " " for line in canvas[:-1] for column in middle)


async def test_memory_that_ran_out_is_answered_below_the_gates(running: Built) -> None:
    built = running
    rows = built.files.gates("g001").rows
    kept = [json.loads(line) for line in rows.read_text().splitlines()]
    short = next(row for row in kept if row.get("gate") == "first update")
    short |= {"verdict": "failed", "cause": "out of memory while gradients were computed: 2.00 GiB were asked for"}
    short["facts"] = {"out_of_memory": {"part": "gradients", "asked": 2 << 30, "free": None}}
    rows.write_text("".join(json.dumps(row) + "\n" for row in kept))
    async with monitor(built.files, (120, 40)) as pilot:
        await pilot.press("4", "f")
        await until(pilot, lambda: "What would need less memory" in text(pilot.app), "the remedies")
        assert "training.micro_batch = 1, training.accumulation = 16" in text(pilot.app)
        assert "16 examples per update" in text(pilot.app) and "out of memory while gradients" in text(pilot.app)


async def test_what_is_not_safe_elsewhere_is_shown_and_a_failing_copy_stands_in_the_first_line(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files, backup = backed_up(tmp_path, f'destination = "{there}"', until="running")
    copy_campaign(files, backup)
    with supervised(files):
        async with monitor(files) as pilot:
            await until(pilot, lambda: "copied to its own disk" in text(pilot.app), "what is safe")
    there.rename(tmp_path / "gone")
    there.write_text("in the way")
    copy_campaign(files, backup)
    with supervised(files):
        async with monitor(files, (80, 24)) as pilot:
            await until(pilot, lambda: "copy fails, safe to" in lines(pilot.app)[0], "the failure")


async def test_a_plan_without_a_destination_is_said_to_be_copied_nowhere(running: Built) -> None:
    async with monitor(running.files) as pilot:
        assert "copied nowhere" in text(pilot.app)
