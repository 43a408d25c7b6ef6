"""Training processes that start in a moment: a parent that has imported everything forks them, each as new as a started one.

`with Warm() as warm: warm.train(run)` runs the real entry point on real files; `start` leaves it running, to be killed. Several
processes of a run get the variables a launcher would give them, without its seconds.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.builders.processes import ENVIRONMENT


@dataclass(frozen=True)
class Group:
    """The processes of one job, by rank."""

    pids: list[int]

    def kill(self) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)


class Warm:
    """The parent, reached through pipes."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.builders.warm"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT | {"WARM": "1"}, text=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def start(self, function: str, *arguments: str | Path, log: Path, processes: int = 1) -> Group:
        """Start `module:function` with a list of arguments, in each of `processes` processes; it returns an exit code."""
        words = [str(argument) for argument in arguments]
        return Group(self._ask({"do": function, "arguments": words, "log": str(log), "processes": processes}))

    def wait(self, group: Group) -> list[int]:
        """Exit codes, negative for a signal, once all have ended."""
        codes: list[int] = self._ask({"do": "wait", "pids": group.pids})
        return codes

    def start_training(self, run: Path, processes: int = 1, verb: str = "train") -> Group:
        return self.start("ftui.train.__main__:main", verb, run, log=run / "log.txt", processes=processes)

    def train(self, run: Path, processes: int = 1, verb: str = "train") -> list[int]:
        """Run to the end."""
        return self.wait(self.start_training(run, processes, verb))

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _fork(function: str, arguments: list[str], log: str, processes: int) -> list[int]:
    pids = []
    port = str(_free_port())
    for rank in range(processes):
        if (pid := os.fork()) == 0:
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            if processes > 1:
                os.environ |= {"WORLD_SIZE": str(processes), "RANK": str(rank), "LOCAL_RANK": str(rank)}
                os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "ACCELERATE_USE_CPU": "true"}
            module, name = function.split(":")
            code = 99
            try:
                code = getattr(importlib.import_module(module), name)(arguments)
            finally:
                try:
                    sys.stdout.flush()
                finally:
                    os._exit(code)
        pids.append(pid)
    return pids


def _serve() -> None:
    # Everything a training process imports; nothing of it may start a thread or touch a device.
    importlib.import_module("ftui.train.loop")
    importlib.import_module("ftui.train.pilot")
    importlib.import_module("transformers.models.bert.modeling_bert")
    importlib.import_module("transformers.models.llama.modeling_llama")
    importlib.import_module("ftui.train.generation")
    for line in sys.stdin:
        question = json.loads(line)
        if question["do"] == "wait":
            codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in question["pids"]]
            answer: list[int] = codes
        else:
            answer = _fork(question["do"], question["arguments"], question["log"], question["processes"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
