"""A journal told event by event, and what a supervisor would do next: for tests of what follows from the record alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import tomli_w

from ftui.engine.steps import Situation, next_steps
from ftui.plan.load import parse_plan, plan_hash
from ftui.plan.variants import planned_runs
from ftui.record.state import Campaign, fold
from tests.builders.tiny import tiny_plan

PLAN = parse_plan(tomli_w.dumps(tiny_plan(evaluation__seeds=[1, 2])))
LAUNCH = datetime(2026, 12, 1, 9, tzinfo=UTC)
BASES = ["r001-base-s1", "r002-base-s2"]
CONTROLS = ["r003-control-s1", "r004-control-s2"]
SLOWER = ["r005-slower-s1", "r006-slower-s2"]
METRICS = {"accuracy": 0.5}


class Story:
    """A journal told event by event, one second apart."""

    def __init__(self) -> None:
        self.state = Campaign()
        self.clock = LAUNCH
        self.tell(
            "launched",
            plan_hash=plan_hash(PLAN),
            plan=PLAN.content(),
            starts_at=LAUNCH.isoformat(),
            ends_at=(LAUNCH + timedelta(days=1)).isoformat(),
        )
        self.tell("supervisor-started", pid=1, host="h")

    def tell(self, event: str, **fields: Any) -> Story:
        self.clock += timedelta(seconds=1)
        fold([{"at": self.clock.isoformat(), "event": event, "by": "supervisor", **fields}], self.state)
        return self

    def ready(self) -> Story:
        data = {"hash": "d", "train_examples": 96, "validation_examples": 30, "test_examples": 30, "labels": ["a", "b"]}
        self.tell("data-ready", data=data, findings=[])
        self.tell("gates-started", gates="g001").tell("gates-ended", gates="g001", passed=True, cause=None)
        for run in planned_runs(PLAN):
            kind = "baseline" if run.variant == "base" else "train"
            self.tell(
                "queued",
                run=run.id,
                number=run.number,
                variant=run.variant,
                seed=run.seed,
                kind=kind,
                priority=run.priority,
                change={},
                because="b",
                follows=None,
            )
        return self

    def started(self, *runs: str) -> Story:
        for run in runs:
            attempt = len(self.state.runs[run].attempts) + 1
            self.tell("run-started", run=run, attempt=attempt, pid=2, resumed_from=None, placement={})
        return self

    def ended(self, *runs: str, status: str = "completed") -> Story:
        for run in runs:
            self.started(run).tell("run-ended", run=run, attempt=1, status=status, cause=None, exit_code=0, updates=12)
        return self

    def lost(self, run: str, *, fault: str = "killed", reached: int = 0) -> Story:
        self.started(run)
        attempt = len(self.state.runs[run].attempts)
        ended = {"status": "lost", "kind": "machine", "fault": fault, "place": None, "cause": "c", "exit_code": -9}
        return self.tell("run-ended", run=run, attempt=attempt, updates=reached, **ended)

    def tested(self, *runs: str) -> Story:
        for run in runs:
            self.tell("test-ended", run=run, metrics=METRICS, cause=None)
        return self

    def wish(self, kind: str, run: str | None = None, **fields: Any) -> Story:
        """A wish that was granted."""
        about = {"request": f"w{len(self.state.answers)}", "kind": kind, "run": run, "asked_by": "cli"}
        return self.tell("request", **about, answer="done", reason=None, **fields)

    def follow_up(self, run: str = "r007-slower-s1") -> Story:
        """A relaunch of the first slower run."""
        return self.tell(
            "queued", run=run, number=7, variant="slower", seed=1, kind="train", priority=0,
            change={"training.learning_rate": 2e-3}, because="b", follows=SLOWER[0], request="w0",
        )  # fmt: skip

    def steps(self, **situation: Any) -> list[Any]:
        return next_steps(
            self.state, PLAN, Situation(**{"now": self.clock, "free_places": 2, "data_checked": True} | situation)
        )
