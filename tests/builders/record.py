"""Small campaign records, written by the real writers, whose right answers follow from their construction.

Every example has a difficulty; a run answers it rightly exactly when its skill is above that. Difficulties are spread evenly
within each category, so that a skill of 0.6 gives a recall of 0.6 in every category, the better of two systems is right wherever
the worse is, and every difference is known without computing a metric. Wrong answers go to the next category in turn.

The other tasks are made alike: a generation of skill 0.6 has 0.6 exact answers, with a loss of 0.5 where it is right and 2.0 where
it is wrong; an extraction of skill 0.6 finds each field in 0.6 of the examples and answers something else in the others, which
are valid JSON but for the hardest tenth. An image classification answers as one of texts does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftui.plan.load import load_plan, plan_hash
from ftui.plan.schema import Plan
from ftui.plan.settings import DataVersion
from ftui.plan.variants import BASE, PlannedRun, planned_runs
from ftui.record.files import replace_json
from ftui.record.journal import Journal, stamp
from ftui.record.layout import CampaignFiles
from ftui.record.lines import Row
from ftui.record.rows import GATE_NAMES, GateRow, gate_writer, prediction_writer, write_outcome
from ftui.record.series import series_writer

LABELS = ["환불 | 취소", "zwrot_płatności", "pengembalian dana"]
PER_CATEGORY = 100
UPDATES = 20

PLAN = """schema = 1

[hypothesis]
statement = "A larger step | sorts *questions* better by 0.05 accuracy."
metric = "accuracy"
direction = "higher"
min_improvement = 0.05
reference = "control"

[[guardrails]]
name = "no category is given up"
metric = "recall"
slice = "each category"
tolerance = 0.10

[[guardrails]]
name = "better than doing nothing"
metric = "accuracy"
tolerance = 0.0
reference = "base"

[data]
train = "train.jsonl"
columns = { text = "text", label = "category", id = "id" }

[model]
base = "owner/name"
revision = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"

[method]
kind = "lora"
targets = ["query"]

[training]
micro_batch = 2
accumulation = 8
hold = "updates"
amount = 20
learning_rate = 1e-4
validate_every = 10
checkpoint_every = 10

[evaluation]
seeds = [17, 18]
control_inputs = ["halo"]
resamples = 500

[rental]
days = 1
price_per_hour = 2.0
hours = { preflight = 1, experiment = 10, evaluation = 1, resume = 1, export = 1, margin = 1 }

[[variants]]
id = "half-rate"
because = "Smaller steps end lower."
change = { "training.learning_rate" = 5e-5 }

[[variants]]
id = "double-rate"
because = "Larger steps get further."
change = { "training.learning_rate" = 2e-4 }
"""

TASKS = ("text-classification", "image-classification", "generation", "extraction")


def plan_for(task: str) -> str:
    """`PLAN` for another task: the same story, its own metrics, columns and guardrails."""
    if task == "text-classification":
        return PLAN
    metric, columns, guarded, evaluation = {
        "image-classification": ("accuracy", 'image = "file", label = "category"', "recall", ""),
        "generation": ("exact_match", 'prompt = "ask", answer = "say"', "loss", "generation = { max_new_tokens = 8 }"),
        "extraction": (
            "field_f1",
            'text = "text", fields = "booking"',
            "recall",
            'format = "booking.json"\ngeneration = { max_new_tokens = 8 }',
        ),
    }[task]
    text = PLAN.replace('metric = "accuracy"', f'metric = "{metric}"')
    text = text.replace(f'metric = "{metric}"', f'task = "{task}"\nmetric = "{metric}"', 1)
    text = text.replace('text = "text", label = "category"', columns)
    text = text.replace("resamples = 500", f"resamples = 500\n{evaluation}")
    if guarded == "loss":
        text = text.replace('metric = "recall"\nslice = "each category"', 'metric = "loss"')
        text = text.replace("no category is given up", "no token is harder to guess")
    return text


FIELDS = ["date", "people", "이름"]


def labels_of(task: str) -> list[str]:
    return {"generation": ["all"], "extraction": FIELDS}.get(task, LABELS)


SKILLS = {"base": 0.3, "control": 0.6, "half-rate": 0.5, "double-rate": 0.8}
"""The default story: double-rate gains 0.2 and half-rate loses 0.1 against the control."""


def answers(skill: float | Mapping[str, float], labels: Sequence[str] = LABELS, per: int = PER_CATEGORY) -> list[Row]:
    """Prediction rows of a system with this skill, one for all categories or one for each."""
    rows = []
    for position, label in enumerate(labels):
        own = skill if isinstance(skill, float) else skill[label]
        for i in range(per):
            right = (i + 0.5) / per < own
            output = label if right else labels[(position + 1) % len(labels)]
            rows.append(
                {
                    "id": f"test-{position}-{i:04d}",
                    "category": label,
                    "target": label,
                    "output": output,
                    "correct": right,
                    "loss": 0.5 if right else 2.0,
                    "probability": 0.75,
                }
            )
    return rows


def texts(skill: float, count: int = len(LABELS) * PER_CATEGORY) -> list[Row]:
    """Prediction rows of a generation with this skill; targets are 1, 2 or 3 tokens long in turn."""
    rows = []
    for i in range(count):
        right, target = (i + 0.5) / count < skill, f"응답 {i}"
        row = {"id": f"test-{i:04d}", "category": "all", "target": target, "output": target if right else "no"}
        rows.append({**row, "correct": right, "loss": 0.5 if right else 2.0, "targets": 1 + i % 3})
    return rows


def objects(
    skill: float | Mapping[str, float], fields: Sequence[str] = FIELDS, count: int = len(LABELS) * PER_CATEGORY
) -> list[Row]:
    """Prediction rows of an extraction with this skill, one for all fields or one for each. Every example wants every field."""
    rows = []
    for i in range(count):
        difficulty = (i + 0.5) / count
        right = {name: difficulty < (skill if isinstance(skill, float) else skill[name]) for name in fields}
        wanted, valid = {name: f"{name} {i}" for name in fields}, difficulty < 0.9
        answered = {name: value if right[name] else "?" for name, value in wanted.items()}
        rows.append(
            {
                "id": f"test-{i:04d}",
                "category": "all",
                "target": json.dumps(wanted),
                "output": json.dumps(answered) if valid else "{",
                "correct": valid and all(right.values()),
                "loss": 1.0,
                "targets": 5,
                "valid": valid,
                "required": valid,
                "fields": {name: [int(valid and right[name]), int(valid), 1] for name in fields},
            }
        )
    return rows


def scores(task: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Metrics as a run's test evaluation leaves them, counted plainly."""
    right = sum(row["correct"] for row in rows) / len(rows)
    if task.endswith("classification"):
        return {"loss": 1.0, "accuracy": right, "categories": {}}
    targets = sum(row["targets"] for row in rows)
    metrics: dict[str, Any] = {
        "loss": sum(row["loss"] * row["targets"] for row in rows) / targets,
        "exact_match": right,
    }
    if task == "extraction":
        found, given, wanted = (sum(c[k] for row in rows for c in row["fields"].values()) for k in range(3))
        metrics["field_f1"] = 2 * found / (given + wanted)
        metrics["valid_json"] = metrics["required_fields"] = sum(row["valid"] for row in rows) / len(rows)
    return metrics


@dataclass
class Record:
    """A campaign's directory in the making; each method is one stage, in the order of a real campaign."""

    root: Path
    text: str = PLAN
    labels: Sequence[str] = field(default_factory=lambda: LABELS)
    per_category: int = PER_CATEGORY

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "campaign.toml").write_text(self.text, encoding="utf-8")
        self.files = CampaignFiles(self.root)
        self.journal = Journal(self.files.journal, "supervisor")

    @property
    def plan(self) -> Plan:
        return load_plan(self.root)

    @property
    def task(self) -> str:
        return self.plan.hypothesis.task

    def answers(self, skill: Any) -> list[Row]:
        """What a system with this skill answers to the test set."""
        if self.task == "generation":
            return texts(skill)
        return (
            objects(skill, self.labels) if self.task == "extraction" else answers(skill, self.labels, self.per_category)
        )

    @property
    def runs(self) -> list[PlannedRun]:
        return planned_runs(self.plan)

    def run_id(self, variant: str, seed: int) -> str:
        return next(run.id for run in self.runs if (run.variant, run.seed) == (variant, seed))

    def launch(self) -> None:
        self.journal.append(
            "launched",
            plan_hash=plan_hash(self.plan),
            plan=self.plan.content(),
            starts_at="2026-12-01T08:00:00.000+00:00",
            ends_at="2026-12-02T08:00:00.000+00:00",
        )
        self.journal.append("supervisor-started", pid=1, host="example")
        self.journal.append("phase", phase="preflight")

    def prepare(self) -> None:
        data = DataVersion(
            hash="d" * 16,
            train_examples=320,
            validation_examples=60,
            test_examples=self.per_category * len(self.labels),
            labels=list(self.labels),
        )
        replace_json(
            self.files.manifest(data.hash), {"schema": 1, "files": [{"path": "train.jsonl", "sha256": "ab" * 32}]}
        )
        self.journal.append("data-ready", data=data.model_dump(), findings=["train.jsonl:7: repeats line 3"])

    def gates(self, failed: str | None = None, cause: str | None = None) -> None:
        """All gates, passed up to the one that `failed`."""
        self.journal.append("gates-started", gates="g001")
        verdict = "passed"
        with gate_writer(self.files.gates("g001").rows) as writer:
            for name in GATE_NAMES:
                verdict = "failed" if name == failed else "skipped" if verdict != "passed" else "passed"
                facts = {"base_sha256": "5a" * 32, "parameters": 1000, "trainable": 10} if name == "load" else {}
                row = GateRow(
                    gate=name,
                    device="cpu",
                    verdict=verdict,
                    cause=cause if verdict == "failed" else None,
                    seconds=0.25,
                    facts=facts,
                    host_peak=512 * 2**20,
                    at=stamp(),
                )
                writer.write(row.model_dump())
        self.journal.append("gates-ended", gates="g001", passed=failed is None, cause=cause)

    def queue(self) -> None:
        for run in self.runs:
            self.journal.append(
                "queued",
                run=run.id,
                number=run.number,
                variant=run.variant,
                seed=run.seed,
                kind="baseline" if run.variant == BASE else "train",
                priority=run.priority,
                change={},
                because="as planned",
                follows=None,
            )
        self.journal.append("phase", phase="experiment")

    def start(self, run: PlannedRun, attempt: int = 1, resumed_from: int | None = None) -> None:
        self.journal.append(
            "run-started", run=run.id, attempt=attempt, pid=100, resumed_from=resumed_from, placement={"device": "cpu"}
        )

    def end(self, run: PlannedRun, status: str, cause: str | None = None, *, updates: int, attempt: int = 1) -> None:
        """The run's end in its folder and in the journal. A lost run leaves no outcome."""
        if status != "lost":
            metrics: dict[str, Any] = {"loss": 1.0, self.plan.hypothesis.metric: 0.5}
            write_outcome(
                self.files.run(run.id).outcome, status, updates=updates, attempt=attempt, cause=cause, metrics=metrics
            )
        self.journal.append(
            "run-ended",
            run=run.id,
            attempt=attempt,
            status=status,
            cause=cause,
            exit_code=0 if status == "completed" else 1,
            updates=updates,
        )

    def series(self, run: PlannedRun, first: int, last: int, losses: Mapping[int, float] | None = None) -> None:
        """Updates `first` to `last` with a falling loss, or the given ones, and a validation every ten."""
        with series_writer(self.files.run(run.id).series) as writer:
            for update in range(first, last + 1):
                loss = (losses or {}).get(update, 2.0 - update / 20)
                row = {"k": "update", "update": update, "loss": loss, "lr": 1e-4, "grad_norm": 1.0}
                writer.write({**row, "examples": 16, "targets": 16, "tokens": 160, "seconds": 0.1, "at": stamp()})
                if update % 10 == 0:
                    metrics = {
                        "loss": 1.5,
                        self.plan.hypothesis.metric: 0.5 + run.seed / 1000,
                        "categories": {"a": {"f1": 1.0}},
                    }
                    writer.write(
                        {"k": "validation", "update": update, "metrics": metrics, "seconds": 0.2, "at": stamp()}
                    )

    def train(self, run: PlannedRun) -> None:
        """One undisturbed run."""
        self.start(run)
        updates = 0 if run.variant == BASE else UPDATES
        if updates:
            self.series(run, 1, updates)
        replace_json(
            self.files.run(run.id).environment, {"schema": 1, "versions": {"python": "3.11", "torch": "2.13.0"}}
        )
        self.end(run, "completed", updates=updates)

    def test(self, skills: Mapping[str, Any], skipped: Sequence[str] = (), opening: int = 1) -> None:
        """Opens the test set for every run not `skipped`. A skill is one per system, or one per (system, seed)."""
        self.journal.append("phase", phase="evaluation")
        candidates = [run for run in self.runs if run.id not in skipped]
        reason = "all runs have ended" if opening == 1 else "a run was completed later"
        self.journal.append("test-opened", opening=opening, candidates=[run.id for run in candidates], reason=reason)
        for run in candidates:
            skill = skills.get((run.variant, run.seed), skills.get(run.variant))
            rows = self.answers(skill)
            path = self.files.run(run.id).test_predictions
            path.unlink(missing_ok=True)
            with prediction_writer(path) as writer:
                for row in rows:
                    writer.write(row)
            self.journal.append("test-ended", run=run.id, metrics=scores(self.task, rows), cause=None)

    def export(self, run_id: str, verified: bool | None = True, cause: str | None = None) -> None:
        self.journal.append("phase", phase="export")
        self.journal.append("export-started", export=run_id, run=run_id)
        replace_json(self.files.exports / run_id / "manifest.json", {"schema": 1, "run": run_id, "kind": "adapter"})
        self.journal.append("export-ended", export=run_id, run=run_id, verified=verified, cause=cause)

    def close(self, reason: str = "the campaign is complete") -> None:
        self.journal.append("phase", phase="closed")
        self.journal.append("supervisor-ended", reason=reason)

    def begin(self) -> None:
        """Everything up to the queue."""
        self.launch()
        self.prepare()
        self.gates()
        self.queue()


def never_launched(root: Path) -> Record:
    return Record(root)


def failed_gate(root: Path) -> Record:
    """The steady update runs out of memory; nothing is trained."""
    record = Record(root)
    record.launch()
    record.prepare()
    record.gates("steady update", "OutOfMemoryError: 9 GiB asked, 8 GiB there")
    record.close("the gates did not pass; nothing was trained")
    return record


def closed(
    root: Path,
    skills: Mapping[str, Any] = SKILLS,
    text: str = PLAN,
    labels: Sequence[str] = LABELS,
    per_category: int = PER_CATEGORY,
) -> Record:
    """A whole campaign in which nothing went wrong."""
    record = Record(root, text, labels, per_category)
    record.begin()
    for run in record.runs:
        record.train(run)
    record.test(skills)
    record.export(record.run_id("double-rate", 18))
    record.close()
    return record


def of_task(root: Path, task: str, skills: Mapping[str, Any] = SKILLS) -> Record:
    """A whole campaign of another task in which nothing went wrong."""
    return closed(root, skills, plan_for(task), labels_of(task))


def diverged(root: Path, seeds: Sequence[int] = (17, 18)) -> Record:
    """double-rate diverges in these seeds, with a loss that becomes infinite."""
    record = Record(root)
    record.begin()
    gone = [run for run in record.runs if run.variant == "double-rate" and run.seed in seeds]
    for run in record.runs:
        if run not in gone:
            record.train(run)
            continue
        record.start(run)
        record.series(run, 1, 6, {5: 50.0, 6: float("inf")})
        record.end(run, "diverged", "the loss was infinite at update 6", updates=6)
    record.test(SKILLS, skipped=[run.id for run in gone])
    record.close()
    return record


def killed_and_resumed(root: Path) -> Record:
    """The control's first run is killed at update 13 and goes on from the checkpoint of update 10."""
    record = Record(root)
    record.begin()
    killed = next(run for run in record.runs if (run.variant, run.seed) == ("control", 17))
    for run in record.runs:
        if run != killed:
            record.train(run)
            continue
        record.start(run)
        record.series(run, 1, 10)
        record.end(run, "lost", "its process was ended by signal 9", updates=13)
        record.start(run, attempt=2, resumed_from=10)
        record.series(run, 11, UPDATES)
        record.end(run, "completed", updates=UPDATES, attempt=2)
    record.test(SKILLS)
    record.export(record.run_id("double-rate", 18))
    record.close()
    return record
