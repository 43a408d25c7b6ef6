"""Metrics of text classification from weighted counts, for many weightings of the same examples at once.

A bootstrap resample is a weighting: example n counts as often as it was drawn. Every metric here needs only three counts per
class: hits, answers given and examples present. They are sums over examples, so all resamples are one matrix product.

Definitions are scikit-learn's with all categories of the data listed and `zero_division=0`: macro-F1 is
`f1_score(average="macro", labels=<all categories>, zero_division=0)`; a category that is never answered has precision and F1
of 0, and one without examples (possible in a resample) recall and F1 of 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ftui.plan.schema import SLICE_METRICS, WHOLE, WHOLE_METRICS
from ftui.verdict.predictions import Predictions

Column = tuple[str, str]
"""A metric and its slice, e.g. `("macro_f1", "whole")` or `("recall", "banking")`."""

Floats = NDArray[np.float64]


def columns(labels: Sequence[str]) -> list[Column]:
    """What `measure` returns, in order: M = 2 + 3 × categories."""
    whole = [(metric, WHOLE) for metric in WHOLE_METRICS]
    return whole + [(metric, label) for metric in SLICE_METRICS for label in labels]


def measure(answers: Predictions, weights: Floats) -> Floats:
    """(B, M) metrics of `answers` under each of B weightings `weights` (B, N); columns as in `columns`."""
    classes = len(answers.labels)
    hit = np.flatnonzero(answers.target == answers.output)
    present = _sums(weights, answers.target, classes)
    given = _sums(weights, answers.output, classes)
    hits = _sums(weights[:, hit], answers.target[hit], classes)
    recall, precision = _ratio(hits, present), _ratio(hits, given)
    # F1 = 2PR / (P + R) = 2·hits / (present + given), which needs no special case where P or R is undefined.
    f1 = _ratio(2 * hits, present + given)
    accuracy = hits.sum(axis=1) / weights.sum(axis=1)
    by_name = {"accuracy": accuracy[:, None], "macro_f1": f1.mean(axis=1, keepdims=True)}
    by_name |= {"recall": recall, "precision": precision, "f1": f1}
    return np.hstack([by_name[name] for name in (*WHOLE_METRICS, *SLICE_METRICS)])


def measure_once(answers: Predictions) -> dict[Column, float]:
    """Metrics of `answers`, every example counting once."""
    values = measure(answers, np.ones((1, len(answers))))[0]
    return {column: float(value) for column, value in zip(columns(answers.labels), values, strict=True)}


def support(answers: Predictions) -> dict[str, int]:
    """Examples of each category."""
    counts = np.bincount(answers.target, minlength=len(answers.labels))
    return {label: int(count) for label, count in zip(answers.labels, counts, strict=True)}


def _sums(weights: Floats, group: NDArray[np.int64], groups: int) -> Floats:
    """(B, groups) sums of `weights` (B, N) over the examples of each group."""
    ones = np.ones(group.size)
    member = sparse.csr_array((ones, (group, np.arange(group.size))), shape=(groups, group.size))
    return np.asarray((member @ weights.T).T, dtype=np.float64)


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
