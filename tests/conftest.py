"""What all tests share: an offline, single-threaded environment and one tiny model for the whole session."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.builders.warm import Warm

# Leases of their own: what else runs on this host neither waits for a test nor is waited for.
_LEASES = tempfile.TemporaryDirectory(prefix="ftui-leases-")
os.environ["FTUI_LEASES"] = _LEASES.name
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny random model with dropout."""
    from tests.builders.tiny import tiny_model

    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """What starts training processes in a moment."""
    from tests.builders.warm import Warm

    with Warm() as parent:
        yield parent
