"""How properties are tried: the same drawn cases every time, and no clock, for a slow machine breaks no promise."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

drawn = settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
