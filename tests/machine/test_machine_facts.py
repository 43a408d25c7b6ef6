"""Versions, their fingerprint (B1, B2) and the doctor."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from ftui.machine import nvidia
from ftui.machine.doctor import diagnose
from ftui.machine.nvidia import NvidiaLibrary
from ftui.machine.versions import differences, fingerprint, versions


@pytest.fixture(autouse=True)
def fresh_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test asks as a new process would."""
    monkeypatch.setattr(nvidia, "_library", NvidiaLibrary())


def test_versions_are_those_installed_and_name_the_gpus(nvml) -> None:
    nvml(2)
    found = versions()
    for name in ("ftui", "torch", "transformers", "peft", "accelerate", "tokenizers", "textual"):
        assert found[name] == metadata.version(name)
    assert (found["driver"], found["gpus"]) == ("580.1", "NVIDIA A, NVIDIA B")
    assert found["kernel"] and found["cpu"] and int(found["cores"]) >= 1


def test_fingerprint_changes_with_what_gates_depend_on_and_with_nothing_else() -> None:
    before = versions()
    assert fingerprint(before) == fingerprint(dict(reversed(before.items())))
    assert fingerprint({**before, "textual": "99", "kernel": "99", "cores": "99"}) == fingerprint(before)
    for name, value in (("torch", "2.12.0"), ("driver", "1"), ("gpus", "another"), ("python", "3.12.0")):
        changed = {**before, name: value}
        assert fingerprint(changed) != fingerprint(before)
        assert differences(before, changed) == [f"{name}: {before.get(name, 'not installed')} → {value}"]


def test_doctor_looks_at_everything_and_finds_this_machine_fit(tmp_path: Path) -> None:
    checks = {check.name: check for check in diagnose(tmp_path / "campaigns")}
    assert set(checks) >= {"python", "cores", "memory", "disk", "gpus", "torch", "campaigns", "terminal"}
    assert not [check for check in checks.values() if check.verdict == "problem"]
    assert not (tmp_path / "campaigns").exists()


def test_doctor_names_an_idle_gpu_a_silent_library_and_a_folder_that_cannot_be(
    tmp_path: Path, nvml, monkeypatch
) -> None:
    fake = nvml(1)
    blocked = tmp_path / "file"
    blocked.write_text("")
    checks = {check.name: check for check in diagnose(blocked / "campaigns")}
    assert checks["campaigns"].verdict == "problem" and str(blocked) in checks["campaigns"].message
    assert "NVIDIA A (80 GiB)" in checks["gpus"].message
    if metadata.version("torch").endswith("+cpu"):
        assert checks["torch"].verdict == "warning"
    fake.fail["nvmlDeviceGetCount"] = fake.NVMLError("Unknown Error")
    monkeypatch.setattr(nvidia, "_library", NvidiaLibrary())
    checks = {check.name: check for check in diagnose(tmp_path)}
    assert checks["gpus"].verdict == "warning" and "Unknown Error" in checks["gpus"].message


def test_machine_room_imports_no_training_library() -> None:
    script = (
        "import sys, ftui.machine.doctor, ftui.machine.sample; ftui.machine.doctor.diagnose();"
        "print(sorted({'torch', 'transformers', 'textual', 'accelerate'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
