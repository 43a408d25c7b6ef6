"""Starting ftui's own processes in tests, and waiting for what they write."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
}


def module(*words: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """Run `python -m WORDS…` to its end."""
    command = [sys.executable, "-m", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=240, check=False, **options)  # type: ignore[call-overload, no-any-return]


def start_module(*words: str | Path) -> subprocess.Popen[bytes]:
    """Start `python -m WORDS…` and leave it running."""
    command = [sys.executable, "-m", *map(str, words)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def until(condition: Callable[[], Result | None], what: str, seconds: float = 120.0) -> Result:
    """Wait until `condition` gives something true and return it; fails with `what` when it never does."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s in vain: {what}"
        time.sleep(0.01)
    return found
