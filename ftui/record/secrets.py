"""Secrets of the environment never enter a file we write: what quotes another's words goes through `redact` first."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_NAMES = re.compile(r"(API_?KEY|ACCESS_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)
_SHORTEST = 6
"""A shorter value is no secret, and as a word too likely to stand in a sentence for itself."""
_WORDS = frozenset({"disabled", "enabled", "offline", "online"})

HIDDEN = "[secret]"


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Values of the variables whose names say that they are secret, the longest first.

    A number or a path is a setting, whatever its name: `TOKENIZERS_TOKEN` may be a count, a credentials variable a file's name.
    """
    found = {
        value
        for name, value in environment.items()
        if _NAMES.search(name)
        and len(value) >= _SHORTEST
        and value.lower() not in _WORDS
        and not value.startswith("/")
        and not (value.isdecimal() and len(value) < 10)
    }
    return sorted(found, key=len, reverse=True)


def redact(text: str, environment: Mapping[str, str] | None = None) -> str:
    """`text` without the secrets of `environment`, this process's own if None."""
    for secret in secrets_of(os.environ if environment is None else environment):
        text = text.replace(secret, HIDDEN)
    return text
