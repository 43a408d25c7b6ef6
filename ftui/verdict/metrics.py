"""Metrics of one run's answers, for many weightings of the same examples at once.

A bootstrap resample is a weighting: example n counts as often as it was drawn. Every metric is a function of a few sums over
examples (its sufficient statistics: hits, counts, loss), so that all resamples are one matrix product, whatever the task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ftui.plan.schema import WHOLE
from ftui.record.lines import Row
from ftui.verdict.predictions import Predictions

Column = tuple[str, str]
"""A metric and its slice, e.g. `("macro_f1", "whole")` or `("recall", "banking")`."""

Floats = NDArray[np.float64]

Part = tuple[int, float]
"""A position among an example's sums, and what the example adds there."""


class Measures(Protocol):
    """What a task measures: C sums over examples, and the metrics of the whole and of K slices that follow from them."""

    @property
    def slices(self) -> tuple[str, ...]:
        """Names of the K categories or fields."""
        ...

    @property
    def slice_word(self) -> str:
        """`category` or `field`."""
        ...

    @property
    def whole_metrics(self) -> tuple[str, ...]: ...

    @property
    def slice_metrics(self) -> tuple[str, ...]:
        """Metrics of one slice."""
        ...

    @property
    def meaning(self) -> str:
        """Definitions, in sentences, of what a reader cannot know from the names."""
        ...

    @property
    def width(self) -> int:
        """C."""
        ...

    def sums_of(self, row: Row) -> Iterator[Part]:
        """What one prediction adds to the sums, zeros left out. Raises KeyError for a missing field, ValueError for a value that
        cannot be counted, with the rest of a sentence that begins with the example."""
        ...

    def whole(self, sums: Floats) -> dict[str, Floats]:
        """Each of `whole_metrics`, (B,), from sums (B, C), for any number B of weightings."""
        ...

    def per_slice(self, sums: Floats) -> dict[str, Floats]:
        """Each of `slice_metrics`, (B, K), from sums (B, C)."""
        ...

    def support(self, sums: Floats) -> Floats:
        """(B, K) examples whose target is, or has, each slice: those its recall is about."""
        ...


def columns(measures: Measures) -> list[Column]:
    """What `measure` returns, in order: M columns."""
    whole = [(metric, WHOLE) for metric in measures.whole_metrics]
    return whole + [(metric, name) for metric in measures.slice_metrics for name in measures.slices]


def measure(answers: Predictions, weights: Floats) -> Floats:
    """(B, M) metrics of `answers` under each of B weightings `weights` (B, N); columns as in `columns`."""
    measures = answers.measures
    sums = np.asarray((answers.sums @ weights.T).T, dtype=np.float64)
    whole = measures.whole(sums)
    per_slice = measures.per_slice(sums)
    return np.hstack(
        [whole[name][:, None] for name in measures.whole_metrics] + [per_slice[name] for name in measures.slice_metrics]
    )


def measure_once(answers: Predictions) -> dict[Column, float]:
    """Metrics of `answers`, every example counting once."""
    values = measure(answers, np.ones((1, len(answers))))[0]
    return {column: float(value) for column, value in zip(columns(answers.measures), values, strict=True)}


def support(answers: Predictions) -> dict[str, int]:
    """Examples whose target is, or has, each slice."""
    counts = answers.measures.support(np.asarray(answers.sums.sum(axis=1))[None, :])[0]
    return {name: int(count) for name, count in zip(answers.measures.slices, counts, strict=True)}
