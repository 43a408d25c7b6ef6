"""The verdict as data: what `report.json` holds and every view of it shows."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from ftui.plan.schema import LOWER_IS_BETTER

Word = Literal["supported", "not supported", "inconclusive", "no verdict"]
"""`no verdict`: nothing could be compared (not launched, gates failed, still running, no reference)."""

VariantWord = Literal["supported", "not supported", "inconclusive", "not judged"]

Hold = Literal["holds", "broken", "cannot tell"]


def better_sign(metric: str) -> int:
    """1 where more of a metric is better, −1 where less is."""
    return -1 if metric in LOWER_IS_BETTER else 1


class Part(BaseModel):
    """A part of a verdict; immutable, unknown fields refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Difference(Part):
    """variant − reference, mean over the shared seeds, with its interval."""

    variant: float
    reference: float
    point: float
    low: float
    high: float
    level: float
    """Two-sided level of the interval; each end alone misses with chance (1 − level) / 2."""


class GuardrailRow(Part):
    """One guardrail on one slice, for one candidate."""

    name: str
    metric: str
    slice: str
    reference: str
    tolerance: float
    state: Hold
    difference: Difference | None
    """None where nothing could be compared."""
    seeds: list[int]
    note: str
    """One sentence: why this state, and what it does not say."""

    @property
    def cannot_fail(self) -> bool:
        """Whether it holds only because the reference has no more than the tolerance to lose; a loss can always grow."""
        small = self.difference is not None and self.difference.reference <= self.tolerance
        return self.state == "holds" and small and better_sign(self.metric) > 0


class Missing(Part):
    """A planned run that could not take part, with its cause."""

    run: str | None
    """None when it was never queued."""
    variant: str
    seed: int
    status: str
    cause: str

    def __str__(self) -> str:
        return f"{self.run or f'{self.variant} with seed {self.seed}'}: {self.status} ({self.cause})"


class VariantVerdict(Part):
    """One candidate judged against the hypothesis."""

    variant: str
    word: VariantWord
    sentence: str
    seeds: list[int]
    """Seeds that candidate and reference both have; only these were compared."""
    missing: list[Missing]
    difference: Difference | None
    p_value: float | None
    """One-sided, of "no improvement"."""
    adjusted_p: float | None
    """Holm-adjusted over all planned candidates."""
    guardrails: list[GuardrailRow]
    resolve: str | None
    """What would turn an inconclusive answer into an answer; an estimate."""


class Verdict(Part):
    """The campaign's answer to its hypothesis."""

    word: Word
    sentence: str
    metric: str
    direction: str
    min_improvement: float
    reference: str
    alpha: float
    comparisons: int
    """Planned candidates, missing ones included: what p-values and intervals are corrected for."""
    examples: int | None
    """Test examples that every run answered."""
    resamples: int
    method: str
    """How differences, intervals and p-values were computed, in sentences."""
    variants: list[VariantVerdict]
    control_guardrails: list[GuardrailRow]
    """The control against the base, where a guardrail says so."""
    missing: list[Missing]
    """Runs of the reference and the base that could not take part."""
    choice: str | None
    """The system to leave with by these rules; None where none can be named."""
