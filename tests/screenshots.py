"""Pictures of the app on a real campaign, for the README: `python -m tests.screenshots [CAMPAIGN] [-o FOLDER]`.

Each picture is written as SVG, and as PNG where `resvg-py` is installed. Textual's SVG leaves braille to a font that most
machines lack, so the dots of curves are drawn as circles.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ftui.plan.edit import changed_text
from ftui.record.layout import CampaignFiles, find_campaign
from ftui.ui.app import FtuiApp
from ftui.ui.plot import BRAILLE, DOTS
from ftui.ui.screens.home import CampaignList
from ftui.ui.screens.report import ReportPanel
from ftui.ui.screens.wizard import WizardScreen
from ftui.ui.widgets.example import ExamplePanel
from ftui.ui.widgets.gates import GatesPanel
from ftui.ui.widgets.line_chart import LineChart
from ftui.ui.wizard.questions import STEPS

SIZES = ((80, 24), (120, 40))
TEXT = re.compile(r'<text class="([^"]*)" x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"[^>]*>([^<]*)</text>')
CELL_HEIGHT, BASELINE = 24.4, 20 * 0.93


def draw_dots(svg: str) -> str:
    """`svg` with every braille character replaced by circles, and fonts that are found without a network."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.S)
    svg = svg.replace("font-family: Fira Code", "font-family: 'Fira Code', 'DejaVu Sans Mono'")
    return TEXT.sub(_drawn, svg)


def _drawn(match: re.Match[str]) -> str:
    style, x, y, length, escaped = match.groups()
    text = html.unescape(escaped)
    if not any(BRAILLE <= ord(c) < BRAILLE + 256 for c in text):
        return match[0]
    width = float(length) / len(text)
    left, top = float(x), float(y) - BASELINE
    circles = []
    for index, character in enumerate(text):
        bits = ord(character) - BRAILLE
        for row in range(4):
            for column in range(2):
                if 0 <= bits < 256 and bits & int(DOTS[row, column]):
                    cx, cy = left + width * (index + 0.28 + 0.5 * column), top + CELL_HEIGHT * (row + 0.5) / 4
                    circles.append(f"M{cx - 2.2:.1f} {cy:.1f}a2.2 2.2 0 1 0 4.4 0a2.2 2.2 0 1 0-4.4 0")
    rest = "".join(" " if BRAILLE <= ord(c) < BRAILLE + 256 else c for c in text)
    kept = match[0].replace(f">{escaped}<", f">{html.escape(rest).replace(' ', '&#160;')}<") if rest.strip() else ""
    return f'<path class="{style}" d="{"".join(circles)}"/>{kept}'


async def take(files: CampaignFiles, size: tuple[int, int], folder: Path) -> list[Path]:
    """Pictures of home, monitor, inspection and report at one size of the terminal."""
    app, taken = FtuiApp(files), []

    def picture(name: str) -> None:
        path = folder / f"{name}-{size[0]}x{size[1]}.svg"
        path.write_text(draw_dots(app.export_screenshot(title=f"ftui {name}")), encoding="utf-8")
        taken.append(path)

    async with app.run_test(size=size) as pilot:
        chart = app.screen.query_one("#chart", LineChart)
        for _ in range(200):
            await pilot.pause(0.02)
            if chart.curves:
                break
        await pilot.press("6", "v", "2")
        await pilot.pause(0.3)
        picture("monitor")
        await pilot.press("r")
        for _ in range(200):
            await pilot.pause(0.02)
            if app.screen.query(ReportPanel) and app.screen.query_one(ReportPanel).report:
                break
        await pilot.pause(0.3)
        picture("report")
        await pilot.press("escape", "i")
        for _ in range(2000):
            await pilot.pause(0.02)
            if app.screen.query(ExamplePanel) and app.screen.query_one(ExamplePanel).example:
                break
        await pilot.press("o")
        await pilot.pause(0.5)
        picture("inspection")
        await pilot.press("escape", "escape")
        for _ in range(200):
            await pilot.pause(0.02)
            if app.screen.query(CampaignList) and app.screen.query_one(CampaignList).found is not None:
                break
        await pilot.pause(0.3)
        picture("home")
    return taken


async def take_gates(files: CampaignFiles, name: str, size: tuple[int, int], folder: Path) -> Path:
    """A picture of the latest pass through the gates, alone on the screen."""
    app = FtuiApp(files)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.5)
        await pilot.press("4", "f")
        for _ in range(200):
            await pilot.pause(0.02)
            if app.screen.query_one(GatesPanel).rows:
                break
        await pilot.pause(0.3)
        path = folder / f"{name}-{size[0]}x{size[1]}.svg"
        path.write_text(draw_dots(app.export_screenshot(title=f"ftui {name}")), encoding="utf-8")
    return path


async def take_wizard(files: CampaignFiles, size: tuple[int, int], folder: Path) -> list[Path]:
    """Pictures of every step of the wizard, with memory and time predicted for a device."""
    app, taken = FtuiApp(files, begin="plan"), []
    async with app.run_test(size=size) as pilot:
        wizard = next(screen for screen in app.screen_stack if isinstance(screen, WizardScreen))

        async def known() -> None:
            for _ in range(6000):
                await pilot.pause(0.02)
                scene = wizard.scene
                if scene.facts and scene.power and not scene.looking and not scene.describing:
                    return

        await known()
        await pilot.press("m", "end", "up", "up", "enter")
        await pilot.pause(1.0)
        await known()
        for number, step in enumerate(STEPS, 1):
            await pilot.press(str(number % 10))
            await pilot.pause(1.0)
            await known()
            path = folder / f"wizard-{step.key}-{size[0]}x{size[1]}.svg"
            path.write_text(draw_dots(app.export_screenshot(title=f"ftui {step.title.lower()}")), encoding="utf-8")
            taken.append(path)
    return taken


TOO_LARGE = {"training.micro_batch": 800, "training.accumulation": 2, "training.amount": 2, "training.warmup": 0}
ONCE = {"training.validate_every": 2, "training.checkpoint_every": 2}
ADDRESS_SPACE = 7_000_000_000
"""Bytes a process of the pilot may address: enough for the libraries and the model, not for 800 examples at a time."""


def copied_plan(files: CampaignFiles, folder: Path) -> CampaignFiles:
    """The campaign as it was before its launch: plan and data."""
    copy = folder / files.name
    (copy / "data").mkdir(parents=True)
    shutil.copy(files.plan, copy)
    for path in files.data.glob("*.jsonl"):
        shutil.copy(path, copy / "data")
    return CampaignFiles(copy)


def failing_pilot(files: CampaignFiles, folder: Path) -> CampaignFiles:
    """A copy of the campaign with a micro-batch that does not fit into the memory it may have, its gates tried for real."""
    copy = copied_plan(files, folder / "too-large")
    copy.plan.write_text(changed_text(files.plan.read_text(encoding="utf-8"), TOO_LARGE | ONCE))
    subprocess.run(
        [sys.executable, "-m", "ftui.cli", "preflight", str(copy.root)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
        check=False,
    )
    return copy


def to_png(path: Path) -> Path | None:
    """The same picture as PNG, None where the converter is not installed."""
    try:
        import resvg_py  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    image = path.with_suffix(".png")
    image.write_bytes(
        bytes(resvg_py.svg_to_bytes(svg_string=path.read_text(encoding="utf-8"), font_family="DejaVu Sans Mono"))
    )
    return image


def main() -> None:
    parser = argparse.ArgumentParser(description="Pictures of the app on a campaign.")
    parser.add_argument("campaign", nargs="?", default="three-learning-rates", help="directory or name")
    parser.add_argument("-o", "--output", type=Path, default=Path("screenshots"), help="folder (default: screenshots)")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    files = find_campaign(given.campaign)
    with tempfile.TemporaryDirectory() as folder:
        failed = failing_pilot(files, Path(folder))
        for size in SIZES:
            for which, name in ((files, "gates"), (failed, "gates-failed")):
                path = asyncio.run(take_gates(which, name, size, given.output))
                print(to_png(path) or path)
        plan = copied_plan(files, Path(folder))
        for size in SIZES:
            for path in asyncio.run(take_wizard(plan, size, given.output)):
                print(to_png(path) or path)
    for size in SIZES:
        for path in asyncio.run(take(files, size, given.output)):
            print(to_png(path) or path)


if __name__ == "__main__":
    main()
