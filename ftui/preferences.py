"""What a person has set for all campaigns of a machine: `settings.toml` in the user's configuration folder. Nothing needs it.

[notify]
command = ["ntfy-from-stdin", "my-topic"]    # run on events, which it reads as JSON on standard input
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_config_path


class BrokenSettings(Exception):
    """The file is there and cannot be used; the sentence says where and why."""


@dataclass(frozen=True)
class Preferences:
    """What was set."""

    notify: tuple[str, ...] = ()
    """Words of the program that is told of events; () for none."""


def settings_file() -> Path:
    return user_config_path("ftui") / "settings.toml"


def read_preferences() -> Preferences:
    """What the file says, and what holds without it. Raises `BrokenSettings`."""
    path = settings_file()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Preferences()
    except OSError as error:
        raise BrokenSettings(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # no UTF-8, or no TOML
        raise BrokenSettings(f"{path}: is not valid TOML: {error}") from None
    return Preferences(notify=_command(content, path))


def _command(content: dict[str, Any], path: Path) -> tuple[str, ...]:
    if unknown := sorted(content.keys() - {"notify"}):
        raise BrokenSettings(f"{path}: {unknown[0]}: unknown section; there is only [notify]")
    section = content.get("notify", {})
    if not isinstance(section, dict) or (unknown := sorted(section.keys() - {"command"})):
        raise BrokenSettings(f'{path}: notify: holds only command, e.g. command = ["notify-send-json"]')
    words = section.get("command", [])
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        raise BrokenSettings(
            f'{path}: notify.command: must be a list of words, e.g. ["curl", "--json", "@-", "https://…"]'
        )
    return tuple(words)
