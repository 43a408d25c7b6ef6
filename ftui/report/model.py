"""The report as data: what `report.json` holds. Absent facts are None or empty, never invented.

Metrics are plain numbers between 0 and 1 (loss: nats per target); times are UTC in ISO 8601; bytes and seconds are named as such.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from ftui.plan.schema import LOWER_IS_BETTER, Guardrail, Hypothesis
from ftui.plan.settings import DataVersion
from ftui.record.rows import GateRow
from ftui.verdict.model import Verdict

REPORT_SCHEMA = 1
"""Version of the report's form. A newer one is refused, an older one is read."""


class Part(BaseModel):
    """A part of the report."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Across(Part):
    """One number per seed, all of them, with mean and spread."""

    mean: float
    spread: float | None
    """Standard deviation over the seeds (n − 1); None for fewer than two."""
    by_seed: dict[str, float]


class SystemMetrics(Part):
    """One system (base, control or a variant) on one split."""

    system: str
    split: str
    """`validation` (the last one of each run) or `test`."""
    metrics: dict[str, Across]
    gain_over_base: dict[str, Across]
    """Difference to the base in each metric, seed by seed, on the seeds both have."""


class SliceRow(Part):
    """One category or field of one system on the test set."""

    system: str
    slice: str
    examples: int
    """Those whose target is the category, or has the field."""
    metrics: dict[str, Across]

    @property
    def lead(self) -> str:
        """The metric that says whether the slice is recognised at all; the loss where there is no other."""
        return next((name for name in self.metrics if name not in LOWER_IS_BETTER), "loss")


class ConfusionRow(Part):
    """Classification: where the answers to one category go most often when they are wrong, over all seeds of a system."""

    system: str
    category: str
    wrong: int
    of: int
    taken_for: list[tuple[str, int]]
    """Up to three categories with their counts, most frequent first."""


class Changed(Part):
    """A variant as planned."""

    id: str
    because: str
    together: str | None
    changes: list[str]
    """`field: control → variant`."""


class Amendment(Part):
    """A change of the plan after the launch."""

    at: str
    plan_hash: str
    changed: list[str]
    because: str | None = None
    """A person's reason; None where none was recorded."""
    begun: bool = True
    """Whether runs had begun: until then the pilot may change anything without a reason."""

    @property
    def why(self) -> str:
        """The reason in words, or why there is none."""
        if self.because:
            return f"because {self.because}"
        return "no reason was recorded" if self.begun else "before runs had begun"


class Point(Part):
    update: int
    value: float | None
    """None where the number was not finite."""


class CurveSummary(Part):
    """A run's training loss, and its validation points."""

    updates: int
    first_loss: float | None
    last_loss: float | None
    min_loss: float | None
    nonfinite: int
    """Updates whose loss was not a finite number."""
    seconds_per_update: float | None
    """Median."""
    loss: list[Point]
    """At most 200 points; of each stretch of updates the lowest and the highest, so that no spike is lost."""
    validation: dict[str, list[Point]]


class AttemptRow(Part):
    number: int
    started_at: str
    ended_at: str | None
    resumed_from: int | None
    status: str | None
    cause: str | None
    exit_code: int | None
    placement: dict[str, Any]


class RunRow(Part):
    """One run, whatever became of it."""

    run: str
    variant: str
    seed: int
    kind: str
    status: str
    cause: str | None
    updates: int
    follows: str | None
    because: str
    change: dict[str, Any]
    attempts: list[AttemptRow]
    validation: dict[str, float]
    """The last validation's metrics."""
    test: dict[str, float]
    test_cause: str | None
    curve: CurveSummary | None


class GatesPass(Part):
    """One pass through the gates."""

    id: str
    started_at: str
    ended_at: str | None
    passed: bool | None
    cause: str | None
    key: str | None = None
    """Machine and plan they were tried with; None in older records."""
    rows: list[GateRow]


class BatchArithmetic(Part):
    """How the examples fall into updates, for the systems it applies to."""

    systems: list[str]
    sentences: list[str]


class PhaseRow(Part):
    phase: str
    planned_hours: float
    spent_hours: float


class RentalPart(Part):
    days: float
    starts_at: str | None
    ends_at: str | None
    price_per_hour: float | None
    currency: str
    phases: list[PhaseRow]


class DataPart(DataVersion):
    """The data version and what its preparation found. `manifest` is kept as it is."""

    findings: list[str]
    manifest: Any


class Opening(Part):
    """One opening of the test set."""

    opening: int
    at: str
    candidates: list[str]
    reason: str | None


class ModelPart(Part):
    """The base model's identity as planned, and what was found when it was loaded."""

    base: str
    revision: str | None
    source: str | None
    expected_sha256: str | None
    method: dict[str, Any]
    found: dict[str, Any]
    """Facts of the `load` gate."""


class EnvironmentPart(Part):
    """Versions and devices, with the runs that had exactly these."""

    runs: list[str]
    versions: dict[str, Any]


class CopiesPart(Part):
    """Where the record was copied, as far as the journal tells."""

    target: str
    what: list[str]
    read_back: bool
    """Whether copies were compared with what they are copies of; else a program's exit code is all that is known."""
    at: str | None
    """Since when copies work or fail; None when none had been made."""
    cause: str | None
    """Why they fail, None when they do not."""


class ArtefactPart(Part):
    """One exported artefact. `path` is relative to the campaign's directory."""

    name: str
    run: str
    variant: str | None
    verified: bool | None
    """Whether a new process reloaded it and gave the same outputs; None when that was not finished."""
    cause: str | None
    path: str
    manifest: Any


class Note(Part):
    at: str
    by: str
    text: str


class Fault(Part):
    at: str
    where: str
    cause: str


class Report(Part):
    """Everything a campaign can answer for."""

    report_schema: int = REPORT_SCHEMA
    campaign: str
    state: str
    """`never launched`, a phase of the rental, or `closed`."""
    as_of: str | None
    """Time of the journal's newest event that this report rests on."""
    launched_at: str | None
    statement: str
    hypothesis: Hypothesis
    guardrails: list[Guardrail]
    plan_hash: str
    plan: dict[str, Any]
    """The whole plan in force, defaults spelled out."""
    amendments: list[Amendment]
    verdict: Verdict
    deliver: str | None
    """The run whose parameters become the artefact; None when nothing trained is worth delivering."""
    deliver_because: str
    variants: list[Changed]
    systems: list[SystemMetrics]
    slice_word: str
    """What the task's slices are: `category` or `field`."""
    slices: list[SliceRow]
    confusions: list[ConfusionRow]
    runs: list[RunRow]
    gates: list[GatesPass]
    batches: list[BatchArithmetic]
    rental: RentalPart
    data: DataPart | None
    test_openings: list[Opening]
    model: ModelPart
    environments: list[EnvironmentPart]
    copies: CopiesPart | None = None
    """None: the plan names no place for copies, or the report is older than that question."""
    artefacts: list[ArtefactPart]
    notes: list[Note]
    faults: list[Fault]
    limits: list[str]
