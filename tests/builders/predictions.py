"""Prediction rows made in memory, for tests of what is computed from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ftui.verdict.predictions import Predictions, predictions_from_rows
from ftui.verdict.tasks import Classification


def classified(labels: Sequence[str], target: np.ndarray, output: np.ndarray) -> Predictions:
    """Answers of a classification, from class numbers."""
    pairs = enumerate(zip(target.tolist(), output.tolist(), strict=True))
    rows = [{"id": f"{i:05d}", "target": labels[wanted], "output": labels[given]} for i, (wanted, given) in pairs]
    return predictions_from_rows(rows, Classification(tuple(labels)), "test")
