"""Metrics of base, control and variants: whole and per category or field, every seed shown, mean and spread beside them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from ftui.plan.schema import WHOLE_METRICS, Plan
from ftui.plan.variants import BASE
from ftui.record.state import Campaign
from ftui.report.model import Across, ConfusionRow, RunRow, SliceRow, SystemMetrics
from ftui.verdict.evidence import Evidence, planned_run, systems
from ftui.verdict.metrics import measure_once, support
from ftui.verdict.tasks import Classification, Generation

Numbers = Mapping[int, float]
"""Seed to value."""


def across(values: Numbers) -> Across:
    """Mean, spread and every value; `values` must not be empty."""
    ordered = [values[seed] for seed in sorted(values)]
    return Across(
        mean=fmean(ordered),
        spread=stdev(ordered) if len(ordered) > 1 else None,
        by_seed={str(seed): values[seed] for seed in sorted(values)},
    )


def system_metrics(plan: Plan, state: Campaign, runs: Sequence[RunRow]) -> list[SystemMetrics]:
    """Whole metrics of every system that has any, on validation and test, in the plan's order."""
    by_id = {run.run: run for run in runs}
    found: list[SystemMetrics] = []
    for split in ("validation", "test"):
        per_system: dict[str, dict[str, dict[int, float]]] = {}
        for system in systems(plan):
            for seed in plan.evaluation.seeds:
                planned = planned_run(state, system, seed)
                if planned is None or planned.status != "completed":
                    continue
                row = by_id[planned.id]
                for metric, value in (row.validation if split == "validation" else row.test).items():
                    per_system.setdefault(system, {}).setdefault(metric, {})[seed] = value
        base = per_system.get(BASE, {})
        for system, metrics in per_system.items():
            gains = {} if system == BASE else {m: _gain(v, base.get(m, {})) for m, v in metrics.items()}
            found.append(
                SystemMetrics(
                    system=system,
                    split=split,
                    metrics={metric: across(values) for metric, values in _ordered(plan, metrics).items()},
                    gain_over_base={
                        metric: across(values) for metric, values in _ordered(plan, gains).items() if values
                    },
                )
            )
    return found


def _gain(values: Numbers, base: Numbers) -> dict[int, float]:
    return {seed: value - base[seed] for seed, value in values.items() if seed in base}


def _ordered(plan: Plan, metrics: Mapping[str, dict[int, float]]) -> dict[str, dict[int, float]]:
    """The metrics of the task first, then the others by name."""
    names = [m for m in WHOLE_METRICS[plan.hypothesis.task] if m in metrics]
    return {name: metrics[name] for name in names + sorted(metrics.keys() - set(names))}


def slice_rows(evidence: Evidence) -> list[SliceRow]:
    """Every category or field of every system on the test set."""
    measures = evidence.measures
    if isinstance(measures, Generation) and len(measures.slices) == 1:
        return []  # the only category is the whole
    rows = []
    for side in evidence.sides.values():
        measured = {seed: measure_once(answers) for seed, answers in side.answers.items()}
        if not measured:
            continue
        counts = support(next(iter(side.answers.values())))
        for name in measures.slices:
            values = {m: across({s: v[m, name] for s, v in measured.items()}) for m in measures.slice_metrics}
            rows.append(SliceRow(system=side.name, slice=name, examples=counts[name], metrics=values))
    return rows


def confusion_rows(evidence: Evidence, shown: int = 3) -> list[ConfusionRow]:
    """For every category of every trained system: what it is taken for when it is missed. Only a classification has these."""
    if not isinstance(evidence.measures, Classification):
        return []
    rows = []
    for side in evidence.sides.values():
        if side.name == BASE or not side.answers:
            continue
        pairs = Counter(pair for run in side.answers.values() for pair in zip(run.targets, run.outputs, strict=True))
        for label in evidence.measures.slices:
            counts = {other: pairs[label, other] for other in evidence.measures.slices}
            others = sorted(((o, n) for o, n in counts.items() if n and o != label), key=lambda pair: -pair[1])
            rows.append(
                ConfusionRow(
                    system=side.name,
                    category=label,
                    wrong=sum(n for _, n in others),
                    of=sum(counts.values()),
                    taken_for=others[:shown],
                )
            )
    return rows


def finite_metrics(metrics: Mapping[str, object] | None) -> dict[str, float]:
    """The plain finite numbers among a row's metrics: what can be averaged and kept as JSON."""
    found = {}
    for name, value in (metrics or {}).items():
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            found[name] = float(value)
    return found
