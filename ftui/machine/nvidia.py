"""NVIDIA GPUs through NVML, asked in a daemon thread with a time limit: a library that hangs must hang nobody else (K31).

Process ids are never asked for: inside a container they are not ours (K32). What a run uses follows from its process tree and
from the GPU it was placed on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SILENT = "no answer from the NVIDIA library"


@dataclass(frozen=True)
class GpuSample:
    """One GPU at one moment, as the whole machine uses it. None where the device does not say."""

    index: int
    """NVML's number; CUDA numbers the same way under `CUDA_DEVICE_ORDER=PCI_BUS_ID`."""
    name: str
    memory_used: int
    """Bytes, of all processes together, the driver's own included."""
    memory_total: int
    utilisation_percent: float | None
    """Share of the last moments in which any kernel ran; says nothing about how much of the GPU it filled."""
    temperature_c: float | None
    watts: float | None


@dataclass(frozen=True)
class GpuAnswer:
    """What NVML said. Without GPUs and without a problem, this machine has no NVIDIA GPU."""

    gpus: list[GpuSample] = field(default_factory=list)
    problem: str | None = None
    driver: str | None = None
    """Version of the driver."""
    cuda: str | None = None
    """Newest CUDA version the driver supports, e.g. "12.4"."""


class NvidiaLibrary:
    """One process's access to NVML. Safe to ask from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking: _Question | None = None
        self._started = False
        self._absent = False

    def gpus(self, timeout: float = 2.0) -> GpuAnswer:
        """All GPUs, within `timeout` seconds. While an earlier question hangs no second one is asked, and nobody waits."""
        with self._lock:
            if self._absent:
                return GpuAnswer()
            waiting = self._asking
            if waiting is not None and not waiting.done.is_set():
                return GpuAnswer(problem=SILENT)
            question = self._asking = _Question(self._ask)
        question.start()
        if not question.done.wait(timeout):
            return GpuAnswer(problem=SILENT)
        return question.answer

    def _ask(self) -> GpuAnswer:
        try:
            import pynvml
        except ImportError:
            self._absent = True
            return GpuAnswer()
        try:
            if not self._started:
                pynvml.nvmlInit()
                self._started = True
            return _read(pynvml)
        except pynvml.NVMLError as problem:
            self._started = False
            if isinstance(problem, pynvml.NVMLError_LibraryNotFound):
                self._absent = True
                return GpuAnswer()
            if isinstance(problem, pynvml.NVMLError_DriverNotLoaded):
                return GpuAnswer(problem="the NVIDIA driver is not loaded")
            return GpuAnswer(problem=f"the NVIDIA library answers: {problem}")


class _Question(threading.Thread):
    """One call into the library, in a thread that dies with the process."""

    def __init__(self, ask: Callable[[], GpuAnswer]) -> None:
        super().__init__(name="nvml", daemon=True)
        self._ask = ask
        self.done = threading.Event()
        self.answer = GpuAnswer(problem=SILENT)

    def run(self) -> None:
        try:
            self.answer = self._ask()
        except Exception as problem:  # a fault of the library must not end as a silent thread
            self.answer = GpuAnswer(problem=f"the NVIDIA library fails: {problem}")
        finally:
            self.done.set()


_library = NvidiaLibrary()


def gpus(timeout: float = 2.0) -> GpuAnswer:
    """All NVIDIA GPUs of this machine, within `timeout` seconds."""
    return _library.gpus(timeout)


def _read(nvml: Any) -> GpuAnswer:
    samples, problems = [], []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            samples.append(_sample(nvml, index))
        except nvml.NVMLError as problem:
            problems.append(f"GPU {index} does not answer: {problem}")
    return GpuAnswer(
        samples,
        "; ".join(problems) or None,
        _text(_optional(nvml, nvml.nvmlSystemGetDriverVersion)),
        _cuda(_optional(nvml, nvml.nvmlSystemGetCudaDriverVersion)),
    )


def _sample(nvml: Any, index: int) -> GpuSample:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    rates = _optional(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    temperature = _optional(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
    milliwatts = _optional(nvml, nvml.nvmlDeviceGetPowerUsage, handle)
    return GpuSample(
        index=index,
        name=_text(nvml.nvmlDeviceGetName(handle)) or "GPU without a name",
        memory_used=int(memory.used),
        memory_total=int(memory.total),
        utilisation_percent=None if rates is None else float(rates.gpu),
        temperature_c=None if temperature is None else float(temperature),
        watts=None if milliwatts is None else milliwatts / 1000,
    )


def _optional(nvml: Any, ask: Callable[..., Any], *arguments: Any) -> Any:
    """An answer that not every device gives, None without it."""
    try:
        return ask(*arguments)
    except nvml.NVMLError:
        return None


def _text(value: str | bytes | None) -> str | None:
    # The library gave bytes before version 12.
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _cuda(version: int | None) -> str | None:
    return None if version is None else f"{version // 1000}.{version % 1000 // 10}"
