"""A stand-in for the NVIDIA library at its border: the module `pynvml`, which these machines need not have a GPU for."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

GIB = 1 << 30


class FakeNvml(ModuleType):
    """Answers like `pynvml` for `count` GPUs; `fail` and `hang` act on functions by name."""

    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        pass

    class NVMLError_LibraryNotFound(NVMLError):  # the library's own name
        pass

    class NVMLError_DriverNotLoaded(NVMLError):
        pass

    def __init__(self, count: int) -> None:
        super().__init__("pynvml")
        self.calls: list[str] = []
        self.fail: dict[str, Exception] = {}
        self.hang: set[str] = set()
        self.released = threading.Event()
        self.answers: dict[str, Callable[..., Any]] = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetCount": lambda: count,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetName": lambda h: b"NVIDIA A" if h == 0 else "NVIDIA B",
            "nvmlDeviceGetMemoryInfo": lambda h: SimpleNamespace(used=(h + 1) * GIB, total=80 * GIB, free=0),
            "nvmlDeviceGetUtilizationRates": lambda h: SimpleNamespace(gpu=40 + h, memory=3),
            "nvmlDeviceGetTemperature": lambda h, kind: 50 + h,
            "nvmlDeviceGetPowerUsage": lambda h: 300_500,
            "nvmlSystemGetDriverVersion": lambda: "580.1",
            "nvmlSystemGetCudaDriverVersion": lambda: 12040,
        }

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("answers", {}):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            if name in self.hang:
                self.released.wait(60)
            if name in self.fail:
                raise self.fail[name]
            return self.answers[name](*arguments)

        return call


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch):
    """`nvml(2)` makes this a machine with two GPUs for whoever imports the library."""
    made: list[FakeNvml] = []

    def make(count: int) -> FakeNvml:
        fake = FakeNvml(count)
        made.append(fake)
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        return fake

    yield make
    for fake in made:
        fake.released.set()
