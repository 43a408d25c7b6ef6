"""Which runs of a record can be compared, and which cannot and why. Nothing planned is dropped unseen (V3, V5)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ftui.plan.schema import Plan
from ftui.plan.variants import BASE, CONTROL
from ftui.record.layout import CampaignFiles
from ftui.record.state import Campaign, Run
from ftui.verdict.metrics import Measures
from ftui.verdict.model import Missing
from ftui.verdict.predictions import Predictions, PredictionsError, load_predictions
from ftui.verdict.tasks import measures_of


@dataclass
class Side:
    """One system: the base, the control or a variant."""

    name: str
    answers: dict[int, Predictions] = field(default_factory=dict)
    """Seed to the run's test predictions."""
    missing: list[Missing] = field(default_factory=list)

    @property
    def diverged(self) -> list[Missing]:
        return [m for m in self.missing if m.status == "diverged"]


@dataclass(frozen=True)
class Evidence:
    """Everything the decision looks at."""

    measures: Measures
    sides: dict[str, Side]


def systems(plan: Plan) -> list[str]:
    """Base, control and variants, in the plan's order."""
    return [BASE, CONTROL, *(variant.id for variant in plan.variants)]


def planned_run(state: Campaign, variant: str, seed: int) -> Run | None:
    """The run the plan asked for; a relaunch with other settings is another experiment and never takes its place."""
    for run in state.runs.values():
        if run.variant == variant and run.seed == seed and run.follows is None:
            return run
    return None


def gather(files: CampaignFiles, state: Campaign) -> Evidence:
    """Test predictions of every planned run, and a cause for each that has none.

    Only completed runs take part: one that ended early trained on less than the others.
    """
    if state.plan is None or state.data is None:
        raise ValueError("the campaign has no plan or no data yet")
    measures = measures_of(state.plan, state.data.labels)
    sides = {name: Side(name) for name in systems(state.plan)}
    for name, side in sides.items():
        for seed in state.plan.evaluation.seeds:
            answers = _answers(files, planned_run(state, name, seed), measures)
            if isinstance(answers, Predictions):
                side.answers[seed] = answers
            else:
                run, status, cause = answers
                side.missing.append(Missing(run=run, variant=name, seed=seed, status=status, cause=cause))
    return Evidence(measures, sides)


def _answers(files: CampaignFiles, run: Run | None, measures: Measures) -> Predictions | tuple[str | None, str, str]:
    if run is None:
        return None, "missing", "it was never queued"
    if run.status != "completed":
        return run.id, run.status, run.cause or "no cause was recorded"
    if run.test_metrics is None:
        return run.id, "not evaluated", run.test_cause or "it was not evaluated on the test set"
    try:
        return load_predictions(files.run(run.id).test_predictions, measures)
    except PredictionsError as error:
        return run.id, "unreadable", str(error)
