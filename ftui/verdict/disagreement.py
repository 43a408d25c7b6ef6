"""How much systems differ in what they answered: what the planned evaluation can show, measured instead of assumed (H6).

Only validation examples are looked at, each run's last answers to them; the test set stays sealed. A score is a run's own on one
example, from 0 to 1, as `ftui/plan/power.py` takes the metrics; D is the difference of two systems' scores. An example of a
macro-metric weighs one over the size of its category.

    disagreement    mean D² (for right and wrong: the share of examples on which exactly one is right), weighed by the squares of
                    the examples' weights as their variances are, and moved towards one half as if by two further examples, one
                    of which differs (Laplace), so that none among twenty is not taken for none at all
    agreement       covariance of D between seeds as a share of its variance
    deviation       variance of the difference between seeds, less what the answers to finitely many examples explain, half of it
                    for each system (equal seeds can move both alike), or that of one setting where no other has ended; few
                    seeds hardly give one, so that the assumption takes part as two further degrees of freedom, and slices of one
                    metric are taken together as the verdict takes them: in proportion to (p(1 − p))²

Disagreement is taken from the pairs that the verdict will compare, runs of one seed; where none has ended yet, for the control as
reference, from two seeds of one setting, which is what equal settings differ by. Where only one system has answered, there is
its share p of right answers. A second one of the same p that errs independently disagrees on 2p(1 − p), and systems that find the
same examples hard disagree on less: that is an upper bound. Against the base, which training moves far away from, the bound is
taken; against the control, the assumption where it is smaller. There, p is below what a trained system will have, so that it
bounds from one half on only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from ftui.plan.power import DEVIATION, DISAGREEMENT, Asked, Measured
from ftui.plan.schema import LOWER_IS_BETTER, WHOLE, Plan
from ftui.plan.variants import BASE, CONTROL
from ftui.record.layout import CampaignFiles
from ftui.record.lines import Row
from ftui.record.rows import read_predictions
from ftui.record.state import Campaign
from ftui.verdict.evidence import planned_run, systems
from ftui.verdict.guardrails import expand
from ftui.verdict.metrics import Floats

ASSUMED_FREEDOM = 2
"""Degrees of freedom with which the assumed deviation between seeds counts beside the measured one."""

WHOLE_SCORES = {"valid_json": "valid", "required_fields": "required"}
"""Fields of a prediction that are the score of a metric; of all others it is `correct`."""


@dataclass
class _Answers:
    """One run's last validation answers, ordered by example."""

    rows: list[Row]
    known: dict[tuple[str, str], Floats] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        return [row["id"] for row in self.rows]

    def scores(self, metric: str, part: str) -> Floats:
        """(N,) scores from 0 to 1, NaN for examples that are not of the slice `part`, or whose score was not recorded."""
        if (metric, part) not in self.known:
            self.known[metric, part] = np.array([_score(row, metric, part) for row in self.rows], dtype=np.float64)
        return self.known[metric, part]


Systems = dict[str, dict[int, _Answers]]
"""Answers by system and seed."""


def _score(row: Row, metric: str, part: str) -> float:
    counts = row.get("fields")
    if counts is not None and part != WHOLE:
        found, _, wanted = counts.get(part, (0, 0, 0))
        return found / wanted if wanted else np.nan
    if counts is not None and metric == "field_f1":
        found, given, wanted = (sum(count[kind] for count in counts.values()) for kind in range(3))
        return 2 * found / (given + wanted) if given + wanted else 1.0
    score = row.get(WHOLE_SCORES.get(metric, "correct"))
    return np.nan if score is None or part not in (WHOLE, row.get("category")) else float(score)


def measure_disagreement(files: CampaignFiles, state: Campaign, plan: Plan) -> Measured | None:
    """What the completed runs of `plan` say, None before one has answered. Their record is `state`, in `files`."""
    answers = _completed(files, state, plan)
    if not answers or state.data is None:
        return None
    first = (plan.hypothesis.reference, plan.hypothesis.metric, WHOLE)
    guarded = [(g.reference, g.metric, g.slice) for g in expand(plan.guardrails, state.data.labels)]
    asked = [one for one in dict.fromkeys([first, *guarded]) if one[1] not in LOWER_IS_BETTER]
    found = {one: answer for one in asked if (answer := _disagreement(answers, one)) is not None}
    if not found:
        return None
    words = found[first][1] if first in found else "measured for the guardrails, assumed for the hypothesis"
    deviation = _deviations(answers, asked, state.data.labels)
    return Measured(
        disagreement={one: share for one, (share, _) in found.items()},
        agreement={name: share for name in (BASE, CONTROL) if (share := _agreement(answers, name, first)) is not None},
        deviation=deviation,
        words=words if deviation or len(plan.evaluation.seeds) == 1 else f"{words}; seeds as assumed",
    )


def _completed(files: CampaignFiles, state: Campaign, plan: Plan) -> Systems:
    """Answers of completed planned runs by system and seed; those to other examples than the first run's are left out."""
    found: Systems = {}
    ids: list[str] | None = None
    for name in systems(plan):
        for seed in plan.evaluation.seeds:
            run = planned_run(state, name, seed)
            if run is None or run.status != "completed":
                continue
            path = files.run(run.id).validation_predictions(run.updates)  # the last update is always validated
            if not path.is_file():
                continue
            answers = _Answers(sorted(read_predictions(path), key=lambda row: str(row["id"])))
            ids = ids or answers.ids
            if ids and answers.ids == ids:
                found.setdefault(name, {})[seed] = answers
    return found


def _disagreement(answers: Systems, asked: Asked) -> tuple[float, str] | None:
    """The share, and where it is from; None where the metric was not recorded on any example of the slice."""
    reference, metric, part = asked
    own = answers.get(reference, {})
    trained = {name: seeds for name, seeds in answers.items() if name not in (BASE, reference)}
    direct = [(seeds[seed], own[seed]) for seeds in trained.values() for seed in seeds.keys() & own.keys()]
    same = [pair for name, seeds in answers.items() if name != BASE for pair in combinations(seeds.values(), 2)]
    pairs, source = direct, f"(others against the {reference})"
    if not direct and reference == CONTROL:
        pairs, source = same, "(seeds of one setting, as no other has ended)"
    weights = _weights(_any(answers), metric, part)
    if not weights.any():
        return None
    examples = int(np.count_nonzero(weights))
    size = float(weights.sum() ** 2 / (weights**2).sum())
    if pairs:
        differences = [one.scores(metric, part) - other.scores(metric, part) for one, other in pairs]
        share = float(np.mean([np.nansum(weights**2 * d**2) for d in differences]) / (weights**2).sum())
        return (share * size + 1) / (size + 2), f"measured on {examples:,} validation examples {source}"
    name = CONTROL if CONTROL in answers else BASE
    right = float(
        np.mean([np.nansum(weights * a.scores(metric, part)) for a in answers[name].values()]) / weights.sum()
    )
    right = (right * size + 1) / (size + 2)
    words = f"from the {name}'s {right:.3f} on {examples:,} validation examples"
    if reference == BASE:
        return 2 * right * (1 - right), f"{words}, the most that systems disagree by"
    return min(DISAGREEMENT, 2 * right * (1 - right) if right > 0.5 else 0.5), f"{words}, at most as assumed"


def _weights(answers: _Answers, metric: str, part: str) -> Floats:
    """(N,) weight of each example in the metric; 0 for those that take no part. Targets and slices are the same in all runs."""
    there = ~np.isnan(answers.scores(metric, part))
    if metric != "macro_f1":
        return there.astype(np.float64)
    sizes = Counter(row.get("category") for row in answers.rows)
    return np.array([1 / sizes[row.get("category")] for row in answers.rows]) * there


def _agreement(answers: Systems, reference: str, first: Asked) -> float | None:
    """Share of the differences' variance that is the same in every seed, from pairs of seeds that a system and the reference
    share; None where no system has two of them."""
    _, metric, part = first
    own = answers.get(reference, {})
    common = variance = 0.0
    for name, seeds in answers.items():
        shared = sorted(seeds.keys() & own.keys())
        if metric in LOWER_IS_BETTER or name in (BASE, reference) or len(shared) < 2:
            continue
        weights = _weights(own[shared[0]], metric, part)
        differences = [seeds[seed].scores(metric, part) - own[seed].scores(metric, part) for seed in shared]
        for one, other in combinations(differences, 2):
            means = [np.nansum(weights * d) / weights.sum() for d in (one, other)]
            common += float(np.nansum(weights**2 * (one - means[0]) * (other - means[1])))
            variance += float(np.nansum(weights**2 * ((one - means[0]) ** 2 + (other - means[1]) ** 2))) / 2
    return min(1.0, max(0.0, common / variance)) if variance > 0 else None


def _deviations(answers: Systems, asked: Sequence[Asked], slices: Sequence[str]) -> dict[Asked, float]:
    """Standard deviation between seeds of one system's metric; {} where no trained system has two seeds."""
    trained = [run for name, seeds in answers.items() if name != BASE for run in seeds.values()]
    found: dict[Asked, float] = {}
    for reference, metric, whole in dict.fromkeys(
        (reference, metric, part == WHOLE) for reference, metric, part in asked
    ):
        parts = [WHOLE] if whole else slices
        estimates = [estimate for part in parts for estimate in _between_seeds(answers, reference, metric, part)]
        if not estimates:
            continue
        freedom = sum(free for _, free in estimates) + ASSUMED_FREEDOM
        assumed = DEVIATION**2 * len(parts)
        mean = (sum(variance * free for variance, free in estimates) + assumed * ASSUMED_FREEDOM) / freedom
        levels = np.array([_level(trained, metric, part) for part in parts])
        movable = (levels * (1 - levels)) ** 2
        shares = movable / movable.mean() if movable.any() else np.ones(len(parts))
        for part, share in zip(parts, shares, strict=True):
            found[reference, metric, part] = math.sqrt(max(0.0, mean * share))
    return found


def _between_seeds(answers: Systems, reference: str, metric: str, part: str) -> list[tuple[float, int]]:
    """Variance between seeds beyond that of their answers, for one system, and its degrees of freedom: half that of the difference
    from the reference in the same seeds, or that of one setting where no difference has two seeds."""
    own = answers.get(reference, {})
    differences, alone = [], []
    for name, seeds in answers.items():
        scores = {seed: run.scores(metric, part) for seed, run in seeds.items()}
        shared = [scores[seed] - own[seed].scores(metric, part) for seed in scores.keys() & own.keys()]
        if name not in (BASE, reference) and len(shared) > 1:
            differences.append(shared)
        if name != BASE and len(scores) > 1:
            alone.append(list(scores.values()))
    weights, share = _weights(_any(answers), metric, part), 0.5 if differences else 1.0
    return [(share * _excess(np.array(scores), weights), len(scores) - 1) for scores in differences or alone]


def _excess(scores: Floats, weights: Floats) -> float:
    """Variance between the S rows' weighted means beyond what the scores (S, N) of finitely many examples explain."""
    there = weights > 0
    if not there.any():
        return 0.0
    shares, scores = weights[there] / weights.sum(), scores[:, there]
    explained = (shares**2 * scores.var(axis=0, ddof=1)).sum()
    return float((scores @ shares).var(ddof=1) - explained)


def _any(answers: Systems) -> _Answers:
    return next(iter(next(iter(answers.values())).values()))


def _level(runs: Sequence[_Answers], metric: str, part: str) -> float:
    weights = _weights(runs[0], metric, part)
    if not weights.any():
        return 0.0
    return float(np.mean([np.nansum(weights * run.scores(metric, part)) for run in runs]) / weights.sum())
