"""`python -m ftui.engine [--detach] [--only-gates] [--because TEXT] CAMPAIGN_DIRECTORY`: supervise a campaign, or only try its gates.

With `--detach`, in a session of its own without a terminal; the command returns when the supervisor has taken over, with its pid on
standard output, or with its reason on standard error and exit code 1. Exit code 3: the plan was changed after runs had begun, and
`--because` is missing; the changed fields are on standard output as a JSON list.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from pathlib import Path

from ftui.engine.client import REASON_MISSING
from ftui.record.layout import CampaignFiles
from ftui.record.secrets import redact


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m ftui.engine")
    parser.add_argument("campaign", type=Path)
    parser.add_argument("--detach", action="store_true")
    parser.add_argument("--only-gates", action="store_true")
    parser.add_argument("--because")
    given = parser.parse_args(arguments)
    # What the supervisor and everything it starts make is for its user alone: prompts, answers and weights are nobody else's.
    os.umask(0o077)
    files = CampaignFiles(given.campaign.resolve())
    if given.detach:
        return _detach(files, given.only_gates, given.because)
    return _serve(files, None, given.only_gates, given.because)


def _detach(files: CampaignFiles, only_gates: bool, because: str | None) -> int:
    """Fork twice, so that the supervisor has no parent here and no terminal, and wait for its first word."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.close(reading)
        null = os.open(os.devnull, os.O_RDWR)
        log = os.open(files.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for target, source in ((0, null), (1, log), (2, log)):
            os.dup2(source, target)
        os._exit(_serve(files, writing, only_gates, because))
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        word, _, rest = pipe.read().partition(" ")
    match word:
        case "ok":
            print(rest)
            return 0
        case "changed":
            changed, _, sentence = rest.partition("\n")
            print(changed)
            print(sentence, file=sys.stderr)
            return REASON_MISSING
        case "no":
            print(rest.strip(), file=sys.stderr)
        case _:
            print(f"the supervisor ended without a word; see {files.supervisor_log}", file=sys.stderr)
    return 1


def _serve(files: CampaignFiles, first_word: int | None, only_gates: bool, because: str | None) -> int:
    from ftui.engine.amend import ReasonMissing
    from ftui.engine.supervisor import Supervisor

    def answer(text: str) -> None:
        if first_word is not None:
            os.write(first_word, text.encode())
            os.close(first_word)

    supervisor = Supervisor(files, only_gates=only_gates, because=because)
    try:
        supervisor.take_over()
    except ReasonMissing as missing:
        answer(f"changed {json.dumps(missing.changed)}\n{missing}")
        return REASON_MISSING
    except Exception as error:
        ours = type(error).__module__.startswith("ftui.")
        if not ours:
            _print_fault()
        sentence = redact(str(error) if ours else f"{type(error).__name__}: {error}; see {files.supervisor_log}")
        answer(f"no {sentence}")
        return 1
    answer(f"ok {os.getpid()}")
    try:
        supervisor.run()
    except Exception:
        _print_fault()
        return 70
    return 0


def _print_fault() -> None:
    print(redact(traceback.format_exc()), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
