"""GPUs through NVML: what it says, and nothing that waits for it when it says nothing (K31, K32)."""

from __future__ import annotations

import sys
import time

import pytest

from ftui.machine.nvidia import SILENT, GpuAnswer, GpuSample, NvidiaLibrary

GIB = 1 << 30


def test_two_gpus_are_read_in_plain_units(nvml) -> None:
    fake = nvml(2)
    answer = NvidiaLibrary().gpus()
    assert answer.gpus == [
        GpuSample(0, "NVIDIA A", 1 * GIB, 80 * GIB, 40.0, 50.0, 300.5),
        GpuSample(1, "NVIDIA B", 2 * GIB, 80 * GIB, 41.0, 51.0, 300.5),
    ]
    assert (answer.problem, answer.driver, answer.cuda) == (None, "580.1", "12.4")
    assert not [name for name in fake.calls if "Process" in name]  # K32: pids of the library are never asked for


def test_library_is_started_once_and_again_after_an_error(nvml) -> None:
    fake, library = nvml(1), NvidiaLibrary()
    library.gpus()
    library.gpus()
    assert fake.calls.count("nvmlInit") == 1
    fake.fail["nvmlDeviceGetCount"] = fake.NVMLError("Driver was reloaded")
    library.gpus()
    fake.fail.clear()
    library.gpus()
    assert fake.calls.count("nvmlInit") == 2


@pytest.mark.parametrize("where", ["nvmlInit", "nvmlDeviceGetMemoryInfo"])
def test_hanging_library_costs_one_time_limit_and_no_second_thread(nvml, where: str) -> None:
    """K31."""
    fake, library = nvml(1), NvidiaLibrary()
    fake.hang.add(where)
    began = time.monotonic()
    assert library.gpus(timeout=0.2) == GpuAnswer(problem=SILENT)
    waited = time.monotonic() - began
    assert 0.2 <= waited < 5
    asked = fake.calls.count(where)
    for _ in range(50):
        assert library.gpus(timeout=60).problem == SILENT
    assert fake.calls.count(where) == asked == 1
    assert time.monotonic() - began < 10
    fake.hang.clear()
    fake.released.set()
    library._asking.done.wait(10)  # type: ignore[union-attr]
    assert [gpu.index for gpu in library.gpus().gpus] == [0]


def test_machine_without_the_library_or_the_package_has_no_gpus_and_no_problem(nvml, monkeypatch) -> None:
    fake = nvml(1)
    fake.fail["nvmlInit"] = fake.NVMLError_LibraryNotFound("Shared library not found")
    assert NvidiaLibrary().gpus() == GpuAnswer()
    monkeypatch.setitem(sys.modules, "pynvml", None)  # what the import system does for a package that is not there
    assert NvidiaLibrary().gpus() == GpuAnswer()


def test_errors_become_words_and_pass_when_they_pass(nvml) -> None:
    fake, library = nvml(1), NvidiaLibrary()
    fake.fail["nvmlInit"] = fake.NVMLError_DriverNotLoaded("Driver Not Loaded")
    assert library.gpus().problem == "the NVIDIA driver is not loaded"
    fake.fail["nvmlInit"] = fake.NVMLError("Driver/library version mismatch")
    assert library.gpus().problem == "the NVIDIA library answers: Driver/library version mismatch"
    fake.fail["nvmlInit"] = RuntimeError("odd")
    assert library.gpus().problem == "the NVIDIA library fails: odd"
    fake.fail.clear()
    assert len(library.gpus().gpus) == 1


def test_what_a_device_does_not_say_is_none_and_a_lost_device_is_named(nvml) -> None:
    fake = nvml(2)
    for name in ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage"):
        fake.fail[name] = fake.NVMLError("Not Supported")
    (first, _) = NvidiaLibrary().gpus().gpus
    assert (first.utilisation_percent, first.temperature_c, first.watts) == (None, 50.0, None)

    def lost(handle: int):
        if handle == 1:
            raise fake.NVMLError("GPU is lost")
        return fake.answers["first"](handle)

    fake.answers["first"] = fake.answers["nvmlDeviceGetMemoryInfo"]
    fake.answers["nvmlDeviceGetMemoryInfo"] = lost
    answer = NvidiaLibrary().gpus()
    assert [gpu.index for gpu in answer.gpus] == [0]
    assert answer.problem == "GPU 1 does not answer: GPU is lost"
