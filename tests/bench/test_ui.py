"""What the app costs: drawing, reading, opening. Measures and prints; asserts no time (budgets are in the design)."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
from textual.app import App, ComposeResult

from ftui.machine.sample import HostSample, ProcessSample, Sample
from ftui.plan.load import load_plan
from ftui.plan.variants import planned_runs
from ftui.record.journal import now, stamp
from ftui.record.layout import CampaignFiles
from ftui.record.rows import machine_writer
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


WRITER = """
import sys, time
from pathlib import Path
from tests.bench.test_ui import grow
grow(Path(sys.argv[1]), int(sys.argv[2]), set(sys.argv[3:]))
"""


def grow(root: Path, update: int, running: set[str]) -> None:
    """One update a second for each run, and a sample of the machine every five, until killed."""
    files = CampaignFiles(root)
    runs = [run for run in planned_runs(load_plan(root)) if run.id in running]
    while True:
        for run in runs:
            append_series(files, run, series_rows(run, update, update, now()))
        if update % 5 == 0:
            host = HostSample(50 + update % 30, (3 << 30) + update, 8 << 30, 21 << 30, 60 << 30)
            held = {run.id: ProcessSample(612 << 20, 99.0) for run in runs}
            with machine_writer(files.machine) as writer:
                writer.write(dataclasses.asdict(Sample(at=stamp(), host=host, gpus=[], runs=held)))
        update += 1
        time.sleep(1)


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40), (200, 60)])
def test_watching_eight_runs_in_a_terminal(tmp_path: Path, columns: int, lines: int) -> None:
    """The app as a person has it: in a terminal of its own, with what it writes read from the other end."""
    built = build_campaign(tmp_path, updates=100, side_by_side=8)
    with supervised(built.files):
        pid, terminal = pty.fork()
        if pid == 0:
            size = {"COLUMNS": str(columns), "LINES": str(lines)}
            os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", **size}
            start = "import sys; from ftui.cli import main; sys.exit(main())"
            os.execv(sys.executable, [sys.executable, "-c", start, "open", str(built.files.root)])
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        app = psutil.Process(pid)
        command = [sys.executable, "-c", WRITER, str(built.files.root), "101", *built.running]
        with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as writer:
            try:
                _read_for(terminal, 8)
                spent, begun = sum(app.cpu_times()[:2]), time.perf_counter()
                written = _read_for(terminal, 20)
                wall = time.perf_counter() - begun
                share = (sum(app.cpu_times()[:2]) - spent) / wall
                memory = app.memory_info().rss >> 20
            finally:
                writer.kill()
                app.kill()
                os.waitpid(pid, 0)
    print(
        f"\n{columns}x{lines}, watching {len(built.running)} runs: {100 * share:.1f} % of one core,"
        f" {written / wall / 1000:.0f} kB/s to the terminal, {memory} MiB"
    )


def _read_for(terminal: int, seconds: float) -> int:
    """Take what the app writes, as a terminal does; returns the bytes."""
    count, until_at = 0, time.perf_counter() + seconds
    while (left := until_at - time.perf_counter()) > 0:
        if select.select([terminal], [], [], left)[0]:
            count += len(os.read(terminal, 1 << 16))
    return count


async def test_opening_a_campaign_with_all_its_curves(tmp_path: Path) -> None:
    built = build_campaign(tmp_path, updates=100, side_by_side=8)
    with supervised(built.files):
        begun = time.perf_counter()
        app = FtuiApp(built.files)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(
                pilot, lambda: isinstance(app.screen, MonitorScreen) and len(app.screen.curves) >= 9, "all curves"
            )
            print(f"\nopened with all curves after {time.perf_counter() - begun:.2f} s")
