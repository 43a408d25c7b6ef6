"""How a command answers: exit codes, the exception that ends one with a sentence, one JSON document."""

from __future__ import annotations

from typing import Any

DONE, NO, USAGE, STATE, FAULT, STOPPED = 0, 1, 2, 3, 70, 75


class Answer(Exception):
    """Ends a command with a sentence on standard error and an exit code."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def print_json(value: Any) -> None:
    """The one document that standard output holds with `--json`."""
    import json

    print(json.dumps(value, ensure_ascii=False, indent=2))
