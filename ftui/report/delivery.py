"""Which run becomes the artefact. The rule looks at the verdict for the system and at validation for the seed, never at the test
results of single runs: picking the best of several seeds by the test would report luck as quality."""

from __future__ import annotations

from collections.abc import Sequence

from ftui.plan.schema import Plan
from ftui.plan.variants import BASE, CONTROL
from ftui.record.state import Campaign
from ftui.report.model import RunRow
from ftui.verdict.evidence import planned_run
from ftui.verdict.model import Verdict


def delivery(plan: Plan, state: Campaign, verdict: Verdict, runs: Sequence[RunRow]) -> tuple[str | None, str]:
    """The run to deliver, None for nothing, and one sentence why.

    Without a system named by the verdict, the control is taken (the plan as written), then the variants in the plan's order,
    so that a rental does not end without an artefact (R5). Where the base is the better choice, nothing is.
    """
    if verdict.choice == BASE:
        return None, "Nothing is exported: by the rules the base model, which exists already, is the choice."
    order = dict.fromkeys([verdict.choice or CONTROL, CONTROL, *(variant.id for variant in plan.variants)])
    by_id = {run.run: run for run in runs}
    for system in order:
        planned = [planned_run(state, system, seed) for seed in plan.evaluation.seeds]
        done = [by_id[run.id] for run in planned if run is not None and run.status == "completed"]
        if not done:
            continue
        best, chosen = _best_seed(plan, done)
        why = (
            "the verdict's choice"
            if system == verdict.choice
            else "taken because the verdict names no choice that has a run"
        )
        seed = f", of its {len(done)} completed seeds {chosen}" if len(done) > 1 else ""
        return best.run, f"{best.run}: {system} is {why}{seed}."
    return None, "Nothing can be exported: no training run was completed."


def _best_seed(plan: Plan, done: Sequence[RunRow]) -> tuple[RunRow, str]:
    """The run that is best on validation, and by what: the hypothesis's metric or, where a validation does not write answers, the
    loss. Without either, the first."""
    metric = plan.hypothesis.metric
    for name, sign in ((metric, 1 if plan.hypothesis.direction == "higher" else -1), ("loss", -1)):
        measured = [run for run in done if name in run.validation]
        if measured:
            best = max(measured, key=lambda run: sign * run.validation[name])
            return best, f"the best by {name} on validation"
    return done[0], "the first, as none has a validation"
