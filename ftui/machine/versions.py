"""Versions of everything that may change a result (B1), and the fingerprint that says whether gates still hold (B2)."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from ftui.machine.nvidia import gpus
from ftui.plan.schema import Plan
from ftui.plan.variants import variant_plan
from ftui.record.files import sha256_json

PACKAGES = (
    "ftui",
    "torch",
    "transformers",
    "peft",
    "accelerate",
    "safetensors",
    "tokenizers",
    "numpy",
    "scipy",
    "scikit-learn",
    "pyarrow",
    "pydantic",
    "bitsandbytes",
    "textual",
)
"""Packages whose versions are recorded, as far as they are installed."""

DECISIVE = (
    "python",
    "ftui",
    "torch",
    "transformers",
    "peft",
    "accelerate",
    "safetensors",
    "tokenizers",
    "numpy",
    "bitsandbytes",
    "cuda runtime",
    "driver",
    "gpus",
    "cpu",
    "machine",
)
"""What a gate's memory, time and numbers depend on. Another kernel, core count or app version leaves them valid."""

ABSENT = "not installed"

NO_BITSANDBYTES = (
    'method.kind = "qlora" needs bitsandbytes, which is not installed here; '
    "`pip install 'ftui[qlora]'`, or choose kind = \"lora\""
)


def versions(timeout: float = 2.0) -> dict[str, str]:
    """Versions by name, from package metadata without importing anything; asks NVML for at most `timeout` seconds."""
    found = {"python": platform.python_version()}
    found |= {name: installed(name) or ABSENT for name in PACKAGES if name != "bitsandbytes" or installed(name)}
    if runtime := _cuda_runtime():
        found["cuda runtime"] = runtime
    found |= {
        "os": _os_name(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_name(),
        "cores": str(usable_cores()),
    }
    answer = gpus(timeout)
    if answer.driver:
        found["driver"] = answer.driver
    if answer.gpus:
        found["gpus"] = ", ".join(gpu.name for gpu in answer.gpus)
    if answer.problem:
        found["gpu problem"] = answer.problem
    return found


def fingerprint(found: Mapping[str, str] | None = None) -> str:
    """12 hex digits over what invalidates gates when it changes; of this machine unless `found` is given."""
    own = versions() if found is None else found
    return sha256_json({name: own.get(name) for name in DECISIVE})[:12]


CONTROL_SECTIONS = ("data", "model", "method", "training", "evaluation", "machine")
"""Sections of a plan that the pilot depends on: it tries the control, whatever the hypothesis says and the rental costs."""


def gates_key(plan: Plan, found: Mapping[str, str]) -> str | None:
    """What gates are valid for: the machine's fingerprint and what the plan says about the control. None where the GPUs gave no
    answer, for then nobody knows whether the machine is another one."""
    if "gpu problem" in found:
        return None
    content = plan.content()
    return f"{fingerprint(found)}-{sha256_json({name: content[name] for name in CONTROL_SECTIONS})[:12]}"


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Decisive versions that changed, as "torch: 2.12.0 → 2.13.0"."""
    return [
        f"{name}: {before.get(name, ABSENT)} → {after.get(name, ABSENT)}"
        for name in DECISIVE
        if before.get(name) != after.get(name)
    ]


def installed(package: str) -> str | None:
    """Version of an installed package, None without it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def missing_packages(plan: Plan) -> list[str]:
    """A sentence for each package that the plan's control or a variant needs and that is not installed."""
    kinds = {own.method.kind for own in (plan, *(variant_plan(plan, variant.id) for variant in plan.variants))}
    return [NO_BITSANDBYTES] if "qlora" in kinds and installed("bitsandbytes") is None else []


def usable_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cuda_runtime() -> str | None:
    for package in ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu13", "nvidia-cuda-runtime-cu12"):
        if found := installed(package):
            return found
    return None


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
