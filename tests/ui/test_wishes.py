"""Promises of the monitor's keys that act on the queue: each leaves one wish, and says what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from ftui.engine.wishes import granted
from ftui.record.journal import Journal
from ftui.record.layout import CampaignFiles
from ftui.record.requests import Request, pending_requests
from ftui.ui.screens.ask import TextQuestion
from ftui.ui.screens.confirm import TypedConfirmation
from ftui.ui.screens.entry import EntryArea, TextEntry
from ftui.ui.screens.monitor import MonitorScreen
from ftui.ui.widgets.runs import RunsPanel
from tests.builders.campaign import Built, build_campaign, supervised
from tests.ui.seen import lines, text, until
from tests.ui.test_monitor import monitor, monitor_of


@pytest.fixture
def running(tmp_path: Path) -> Built:
    return build_campaign(tmp_path, "running")


def wishes(files: CampaignFiles) -> list[Request]:
    return [request for _, request in pending_requests(files.requests) if isinstance(request, Request)]


async def wished(pilot: Pilot[None], files: CampaignFiles, *keys: str) -> Request:
    """The one wish that these keys leave; it is taken away."""
    await pilot.press(*keys)
    await until(pilot, lambda: wishes(files), f"a wish by {keys}")
    (wish,) = wishes(files)
    (files.requests / f"{wish.id}.json").unlink()
    return wish


def grant(files: CampaignFiles, wish: Request, **more: Any) -> None:
    """Answer as the supervisor does."""
    Journal(files.journal, "supervisor").append("request", request=wish.id, **granted(wish), **more)


def said(pilot: Pilot[None]) -> str:
    """What the app tells a person now."""
    return "\n".join(str(notification.message) for notification in pilot.app._notifications)


async def choose(pilot: Pilot[None], run: str) -> None:
    """Move the cursor to a run."""
    panel = monitor_of(pilot).query_one(RunsPanel)
    await until(pilot, lambda: any(s.run.id == run for s in panel.summaries), run)
    await pilot.press("g")
    for _ in range(next(i for i, s in enumerate(panel.summaries) if s.run.id == run)):
        await pilot.press("down")
    await until(pilot, lambda: panel.selected is not None and panel.selected.run.id == run, f"the cursor on {run}")


async def test_the_queue_is_paused_and_let_go_on_by_the_same_key(running: Built) -> None:
    with supervised(running.files):
        async with monitor(running.files, notifications=True) as pilot:
            wish = await wished(pilot, running.files, "P")
            assert (wish.kind, wish.run, wish.by) == ("pause-queue", None, "app")
            grant(running.files, wish)
            await until(pilot, lambda: "queue paused, P goes on" in lines(pilot.app)[0], "the status")
            await until(pilot, lambda: "nothing new starts" in said(pilot), "the answer")
            assert (await wished(pilot, running.files, "P")).kind == "resume-queue"


async def test_a_waiting_run_is_held_moved_and_let_go(running: Built) -> None:
    with supervised(running.files):
        async with monitor(running.files, notifications=True) as pilot:
            panel = monitor_of(pilot).query_one(RunsPanel)
            order = [s.run.id for s in panel.summaries]
            last = order[-1]
            await choose(pilot, last)
            wish = await wished(pilot, running.files, "less_than_sign")
            assert (wish.kind, wish.run, wish.priority) == ("priority", last, 1)
            grant(running.files, wish)
            await until(pilot, lambda: [s.run.id for s in panel.summaries] != order, "the new order")
            assert panel.selected is not None and panel.selected.run.id == last, "the cursor stays on its run"
            moved = [s.run.id for s in panel.summaries]
            assert moved.index(last) < order.index(last) and sorted(moved) == sorted(order)
            assert (await wished(pilot, running.files, "greater_than_sign")).priority == 0
            held = await wished(pilot, running.files, "H")
            assert (held.kind, held.run) == ("pause-run", last)
            grant(running.files, held)
            await until(pilot, lambda: any(last in line and " held " in line for line in lines(pilot.app)), "held")
            assert (await wished(pilot, running.files, "H")).kind == "resume-run"


async def test_a_run_is_killed_only_after_its_name_was_typed(running: Built) -> None:
    run = running.running[0]
    with supervised(running.files):
        async with monitor(running.files, notifications=True) as pilot:
            await choose(pilot, run)
            await pilot.press("X")
            await until(pilot, lambda: isinstance(pilot.app.screen, TypedConfirmation), "the question")
            await pilot.press(*"yes", "enter")
            await pilot.pause()
            assert not wishes(running.files) and "without a checkpoint" in text(pilot.app)
            pilot.app.screen.query_one(Input).value = run
            wish = await wished(pilot, running.files, "enter")
            assert (wish.kind, wish.run) == ("kill-run", run)


async def test_a_relaunch_asks_what_changes_until_it_can_be_and_then_why(running: Built) -> None:
    run = running.running[0]
    with supervised(running.files):
        async with monitor(running.files, notifications=True) as pilot:
            await choose(pilot, run)
            await pilot.press("R")
            await until(pilot, lambda: isinstance(pilot.app.screen, TextQuestion), "the question")
            pilot.app.screen.query_one(Input).value = "rank = 8"
            await pilot.press("enter")
            await until(pilot, lambda: f"is already 8 in {run}" in said(pilot), "the refusal")
            await until(pilot, lambda: pilot.app.screen.query(Input), "the question again")
            assert pilot.app.screen.query_one(Input).value == "rank = 8", "what was typed is still there"
            pilot.app.screen.query_one(Input).value = "rank = 16"
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, TextEntry), "the reason")
            await until(pilot, lambda: pilot.app.screen.query_one(EntryArea).has_focus, "the place to write")
            wish = await wished(pilot, running.files, *"more", "enter")
            assert (wish.kind, wish.run, wish.change, wish.because) == ("relaunch", run, {"method.rank": 16}, "more")
            await until(pilot, lambda: isinstance(pilot.app.screen, MonitorScreen), "the monitor")
            journal = Journal(running.files.journal, "supervisor")
            about = {"number": 9, "variant": "control", "seed": 18, "kind": "train", "priority": 1}
            new = "r009-control-s18"
            journal.append("queued", run=new, **about, change=wish.change, because="more", follows=run, request=wish.id)
            grant(running.files, wish, new_run=new)
            await until(pilot, lambda: f"{new} follows {run}" in said(pilot), "the answer")
            await until(
                pilot, lambda: any(s.run.id == new for s in monitor_of(pilot).query_one(RunsPanel).summaries), new
            )


async def test_a_refusal_is_shown_with_its_reason(running: Built) -> None:
    with supervised(running.files):
        async with monitor(running.files, notifications=True) as pilot:
            wish = await wished(pilot, running.files, "P")
            refused = {**granted(wish), "answer": "refused", "reason": "the queue is paused already"}
            Journal(running.files.journal, "supervisor").append("request", request=wish.id, **refused)
            await until(pilot, lambda: "Refused: the queue is paused already" in said(pilot), "the reason")


async def test_without_a_supervisor_a_wish_is_kept_or_refused_at_once(running: Built) -> None:
    async with monitor(running.files, notifications=True) as pilot:
        await choose(pilot, "r001-base-s17")
        await pilot.press("H")
        await until(pilot, lambda: "r001-base-s17 is completed" in said(pilot), "the refusal")
        assert not wishes(running.files)
        assert (await wished(pilot, running.files, "P")).kind == "pause-queue"
        await until(pilot, lambda: "Kept for the next supervisor" in said(pilot), "what becomes of it")
