"""Promises of the doctor's screen: it says what `ftui doctor` says, and a GPU library that hangs holds nothing."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from ftui.ui.app import FtuiApp
from ftui.ui.screens.doctor import DoctorPanel, DoctorScreen
from ftui.ui.screens.home import HomeScreen
from tests.ui.seen import lines, text, until


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    repository = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "first"), repository]))
    (tmp_path / "first").mkdir()
    return tmp_path


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_screen_says_what_doctor_says_and_can_be_asked_again(here: Path, size: tuple[int, int]) -> None:
    app = FtuiApp()
    async with app.run_test(size=size) as pilot:
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, DoctorScreen), "the screen")
        panel = app.screen.query_one(DoctorPanel)
        await until(pilot, lambda: panel.checks, "the answer", 60)
        for name in ("python", "memory", "disk", "gpus", "torch"):
            assert any(line.startswith("│ ") and f" {name} " in line for line in lines(app)), name
        await pilot.press("n")
        assert isinstance(app.screen, DoctorScreen) and "note" not in lines(app)[-1], "no campaign, no notebook"
        assert not [word for word, *_ in app.screen.palette() if word.startswith("note")]
        before = panel.checks
        await pilot.press("f5")
        await until(pilot, lambda: panel.checks is not before and panel.checks, "another answer", 60)


async def test_a_library_that_hangs_holds_neither_screen_nor_app(here: Path) -> None:
    """A driver that never answers: its Python library is found first, and sleeps."""
    mark = here / "first" / "asked"
    (here / "first" / "pynvml.py").write_text(
        f"import os, pathlib, time\npathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\ntime.sleep(3600)\n"
    )
    app = FtuiApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("d")
        await until(pilot, lambda: mark.exists() and mark.read_text(), "the library is asked", 60)
        first = psutil.Process(int(mark.read_text()))
        assert "No answer yet" in text(app)
        await until(pilot, lambda: "no answer for 1 s" in text(app), "the seconds")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen), "home")
        await until(pilot, lambda: not first.is_running(), "the process is gone")
        mark.unlink()
        await pilot.press("d")
        await until(pilot, lambda: mark.exists() and mark.read_text(), "the library is asked", 60)
        second = psutil.Process(int(mark.read_text()))
        await pilot.press("q")
    assert not second.is_running(), "the app takes it along"


async def test_a_doctor_that_fails_gives_its_reason(here: Path) -> None:
    (here / "first" / "psutil.py").write_text('raise ImportError("psutil is \\x1b[31mbroken")\n')
    app = FtuiApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("d")
        await until(pilot, lambda: "psutil is broken" in text(app), "the reason", 60)
        assert "could not be looked at" in text(app) and "\x1b" not in text(app)
