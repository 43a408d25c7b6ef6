"""What the app costs: drawing, reading, opening. Measures and prints; asserts no time (budgets are in the design)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
from textual.app import App, ComposeResult

from ftui.record.journal import now
from ftui.ui import plot
from ftui.ui.app import FtuiApp
from ftui.ui.curves import CurveFollower
from ftui.ui.screens.monitor import MonitorScreen
from ftui.ui.widgets.line_chart import Curve, LineChart
from tests.builders.campaign import append_series, build_campaign, series_rows, supervised
from tests.ui.seen import until

pytestmark = pytest.mark.bench


def milliseconds(work: Callable[[], object], times: int = 15) -> float:
    """Median duration of `work`."""
    spent = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        spent.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(spent)


class ChartApp(App[None]):
    def compose(self) -> ComposeResult:
        yield LineChart("bench")


async def test_redrawing_ten_curves_of_a_hundred_thousand_points() -> None:
    generator = np.random.default_rng(1)
    x = np.arange(1.0, 100_001.0)
    curves = [
        Curve(str(i), f"run {i}", "ABCDEFGHIJ"[i], "#58a6ff", x, generator.normal(2, 0.3, len(x))) for i in range(10)
    ]
    app = ChartApp()
    async with app.run_test(size=(120, 40)) as pilot:
        chart = app.query_one(LineChart)
        for smoothing in (0, 3):
            chart.look(chart.view.smoother(-9).smoother(smoothing))
            chart.show(curves, over=(1.0, 100_000.0))
            await pilot.pause()
            print(f"\nredraw, smoothing {chart.view.weight}: {milliseconds(lambda: chart._draw(118, 38)):.1f} ms")
        print(f"smoothing one curve anew: {milliseconds(lambda: plot.ema(curves[0].y, 0.9)):.1f} ms")


def test_reading_a_series_of_a_hundred_thousand_updates(tmp_path: Path) -> None:
    built = build_campaign(tmp_path, updates=1)
    run = next(r for r in built.runs if r.id == built.running[0])
    append_series(built.files, run, series_rows(run, 2, 100_000, now(), every=1000))

    def read() -> None:
        follower = CurveFollower(built.files.run(run.id).series)
        while follower.read():
            pass

    print(f"\nread 100,000 updates: {milliseconds(read, 3):.0f} ms")


async def test_watching_at_one_poll_a_second(tmp_path: Path) -> None:
    built = build_campaign(tmp_path, updates=100, side_by_side=4)
    with supervised(built.files):
        begun = time.perf_counter()
        app = FtuiApp(built.files)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(
                pilot, lambda: isinstance(app.screen, MonitorScreen) and len(app.screen.curves) >= 6, "all curves"
            )
            print(f"\nopened with all curves after {time.perf_counter() - begun:.2f} s")
            process = psutil.Process()
            spent, wall = sum(process.cpu_times()[:2]), time.perf_counter()
            runs = [r for r in built.runs if r.id in built.running]
            for update in range(101, 111):
                for run in runs:
                    append_series(built.files, run, series_rows(run, update, update, now()))
                await pilot.pause(1.0)
            share = (sum(process.cpu_times()[:2]) - spent) / (time.perf_counter() - wall)
            print(f"watching 4 runs: {100 * share:.1f} % of one core, {process.memory_info().rss >> 20} MiB")
