"""What each entry point loads, seen in a process of its own: contracts on paper are not enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.processes import ENVIRONMENT, module

HEAVY = ("torch", "transformers", "peft", "accelerate", "sklearn")
SEED_CASE = Path(__file__).parents[1] / "campaigns" / "three-learning-rates"


def loaded_by(program: str) -> set[str]:
    """Top-level modules in `sys.modules` after a program."""
    code = f"import sys\n{program}\nprint('\\n'.join(sorted({{m.split('.')[0] for m in sys.modules}})))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    return set(answer.stdout.split("\n"))


def command(*words: str) -> str:
    """A program that runs one command of the CLI and keeps its output to itself."""
    lines = (
        "import contextlib, io",
        "from ftui.cli import main",
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):",
        f"    main({list(words)!r})",
    )
    return "\n".join(lines)


def test_help_loads_almost_nothing() -> None:
    assert not loaded_by(command("--help")) & {*HEAVY, "textual", "pydantic", "numpy", "rich"}


@pytest.mark.parametrize(
    "words",
    [
        ("report", str(SEED_CASE)),
        ("status", str(SEED_CASE)),
        ("check", str(SEED_CASE)),
        ("plan", str(SEED_CASE)),
        ("doctor",),
    ],
)
def test_commands_that_only_read_load_no_training_library(words: tuple[str, ...]) -> None:
    assert not loaded_by(command(*words)) & {*HEAVY, "textual"}


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("ftui.ui.app", HEAVY),
        ("ftui.engine.supervisor", (*HEAVY, "textual", "pyarrow", "scipy")),
        ("ftui.data.prepare", (*HEAVY, "textual")),
        ("ftui.verdict.decide", (*HEAVY, "textual")),
        ("ftui.report.build", (*HEAVY, "textual")),
        ("ftui.machine.sample", (*HEAVY, "textual")),
        ("ftui.record.state", (*HEAVY, "textual", "numpy")),
        ("ftui.plan.load", (*HEAVY, "textual", "numpy")),
    ],
)
def test_a_room_loads_nothing_it_must_not(room: str, forbidden: tuple[str, ...]) -> None:
    assert not loaded_by(f"import {room}") & set(forbidden)


def test_the_report_reads_where_torch_is_not_installed(tmp_path: Path) -> None:
    """Importing any training library raises in this process, as on a laptop without them."""
    blocked = f"""
import importlib.abc
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {(*HEAVY, "safetensors", "tokenizers", "pynvml")!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from ftui.cli import main
assert main(["report", {str(SEED_CASE)!r}, "-o", {str(tmp_path / "r.txt")!r}]) == 0
assert main(["report", {str(SEED_CASE)!r}, "--format", "json", "-o", {str(tmp_path / "r.json")!r}]) == 0
"""
    loaded_by(blocked)
    assert (tmp_path / "r.txt").read_text().strip()


def test_every_room_says_what_lives_there() -> None:
    root = Path(__file__).parents[1] / "ftui"
    for room in (p for p in root.iterdir() if (p / "__init__.py").exists() and p.name != "__pycache__"):
        text = (room / "__init__.py").read_text()
        assert text.startswith('"""'), room.name
        missing = [f.name for f in room.glob("*.py") if f.name != "__init__.py" and f.name not in text]
        assert not missing, f"{room.name}/__init__.py does not name {missing}"


def test_import_contracts_hold() -> None:
    answer = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-logo"],
        capture_output=True,
        text=True,
        cwd=SEED_CASE.parents[1],
        check=False,
    )
    assert answer.returncode == 0, answer.stdout


def test_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert module("ftui.cli", "--version").stdout.strip() == f"ftui {version('ftui')}"
