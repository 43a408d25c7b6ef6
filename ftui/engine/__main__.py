"""`python -m ftui.engine [--detach] [--only-gates] CAMPAIGN_DIRECTORY`: supervise a campaign, or only try its gates.

With `--detach`, in a session of its own without a terminal; the command returns when the supervisor has taken over, with its pid on
standard output, or with its reason on standard error and exit code 1.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from ftui.record.layout import CampaignFiles


def main(arguments: list[str]) -> int:
    files, only_gates = CampaignFiles(Path(arguments[-1]).resolve()), "--only-gates" in arguments
    return _detach(files, only_gates) if "--detach" in arguments else _serve(files, None, only_gates)


def _detach(files: CampaignFiles, only_gates: bool) -> int:
    """Fork twice, so that the supervisor has no parent here and no terminal, and wait for its first word."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.close(reading)
        null = os.open(os.devnull, os.O_RDWR)
        log = os.open(files.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for target, source in ((0, null), (1, log), (2, log)):
            os.dup2(source, target)
        os._exit(_serve(files, writing, only_gates))
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    if answer.startswith("ok "):
        print(answer.removeprefix("ok ").strip())
        return 0
    print(answer.strip() or f"the supervisor ended without a word; see {files.supervisor_log}", file=sys.stderr)
    return 1


def _serve(files: CampaignFiles, first_word: int | None, only_gates: bool) -> int:
    from ftui.engine.supervisor import Supervisor

    def answer(text: str) -> None:
        if first_word is not None:
            os.write(first_word, text.encode())
            os.close(first_word)

    supervisor = Supervisor(files, only_gates=only_gates)
    try:
        supervisor.take_over()
    except Exception as error:
        ours = type(error).__module__.startswith("ftui.")
        if not ours:
            traceback.print_exc()
        answer(str(error) if ours else f"{type(error).__name__}: {error}; see {files.supervisor_log}")
        return 1
    answer(f"ok {os.getpid()}")
    try:
        supervisor.run()
    except Exception:
        traceback.print_exc()
        return 70
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
