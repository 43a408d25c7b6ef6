"""Promises of the drawing: nothing finite disappears, nothing non-finite is invented."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ftui.ui import plot

UPDATES = np.arange(1.0, 100_001.0)


def columns_with_ink(y: np.ndarray, x0: float, x1: float, width: int = 160) -> np.ndarray:
    columns = plot.reduce_columns(UPDATES[: len(y)], y, x0, x1, width)
    return plot.raster(columns, 0.0, 10.0, 80).any(axis=0)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01, 0.001, 0.0001])
def test_one_spike_among_a_hundred_thousand_points_is_seen_at_every_zoom(share: float) -> None:
    y = np.ones(100_000)
    y[61_234] = 9.5
    half = share * 50_000
    columns = plot.reduce_columns(UPDATES, y, 61_235 - 0.937 * half, 61_235 + 1.063 * half, 160)
    assert np.nanmax(columns.high) == 9.5
    assert plot.raster(columns, 0.0, 10.0, 80)[:6].any(), "the spike reaches the top rows"


def test_every_point_lies_within_the_range_of_its_pixel_column() -> None:
    generator = np.random.default_rng(5)
    y = generator.normal(size=10_000)
    columns = plot.reduce_columns(UPDATES[:10_000], y, 1, 10_000, 130)
    at = np.minimum(((UPDATES[:10_000] - 1) / 9_999 * 130).astype(int), 129)
    assert (y >= columns.low[at] - 1e-12).all()
    assert (y <= columns.high[at] + 1e-12).all()
    assert columns.low.min() == y.min()
    assert columns.high.max() == y.max()


def test_nan_leaves_a_gap_and_the_line_is_not_drawn_across_it() -> None:
    y = np.full(100, 5.0)
    y[40:60] = np.nan
    ink = columns_with_ink(y, 1, 100)
    assert ink[:60].all()
    assert ink[100:].all()
    assert not ink[66:92].any()


def test_a_single_nan_breaks_the_line_between_its_neighbours() -> None:
    y = np.array([1.0, 1.0, np.nan, 9.0, 9.0])
    whole = plot.raster(plot.reduce_columns(UPDATES[:5], np.array([1.0, 1.0, 5.0, 9.0, 9.0]), 1, 5, 40), 0, 10, 40)
    broken = plot.raster(plot.reduce_columns(UPDATES[:5], y, 1, 5, 40), 0, 10, 40)
    assert whole.any(axis=0).all()
    assert not broken[8:32].any(), "nothing between the low and the high part"


def test_a_gap_among_more_points_than_columns_is_not_bridged() -> None:
    y = np.where(np.arange(10_000) < 5_000, 1.0, 9.0)
    y[5_000] = np.nan
    pixels = plot.raster(plot.reduce_columns(UPDATES[:10_000], y, 1, 10_000, 100), 0, 10, 40)
    assert pixels.any(axis=0).all()
    assert not pixels[8:32].any()


def test_infinite_values_are_gaps_too() -> None:
    y = np.array([1.0, np.inf, 1.0, -np.inf, 1.0])
    columns = plot.reduce_columns(UPDATES[:5], y, 1, 5, 50)
    assert np.nanmax(columns.high) == 1.0
    assert np.isnan(columns.low).any()


def test_few_points_are_joined_by_an_unbroken_line() -> None:
    pixels = plot.raster(
        plot.reduce_columns(np.array([1.0, 50.0, 100.0]), np.array([9.0, 1.0, 9.0]), 1, 100, 60), 0, 10, 40
    )
    assert pixels.any(axis=0).all()
    for left, right in zip(pixels.T, pixels.T[1:], strict=False):
        rows, following = np.flatnonzero(left), np.flatnonzero(right)
        assert rows.min() <= following.max() + 1
        assert following.min() <= rows.max() + 1


def test_a_zoomed_line_reaches_both_edges() -> None:
    columns = plot.reduce_columns(np.array([0.0, 100.0]), np.array([0.0, 10.0]), 40.0, 60.0, 30)
    assert np.isfinite(columns.low).all()
    assert 4.0 < columns.low[0] < 4.5
    assert 5.5 < columns.high[-1] < 6.0


def test_an_empty_or_wholly_broken_series_draws_nothing() -> None:
    assert not plot.reduce_columns(np.empty(0), np.empty(0), 0, 1, 10)
    assert not plot.reduce_columns(UPDATES[:3], np.full(3, np.nan), 1, 3, 10)


def test_smoothing_equals_the_bias_corrected_average_computed_one_by_one() -> None:
    y = np.random.default_rng(3).normal(2, 1, 700)
    for weight in (0.6, 0.9, 0.99):
        average, expected = 0.0, []
        for step, value in enumerate(y, start=1):
            average = weight * average + (1 - weight) * value
            expected.append(average / (1 - weight**step))
        np.testing.assert_allclose(plot.ema(y, weight), expected, rtol=1e-10)


def test_smoothing_carries_a_constant_from_the_first_point_and_keeps_gaps() -> None:
    y = np.full(200, 3.0)
    y[50] = np.nan
    smooth = plot.ema(y, 0.95)
    assert np.isnan(smooth[50])
    np.testing.assert_allclose(np.delete(smooth, 50), 3.0)


def test_braille_puts_each_pixel_at_its_dot() -> None:
    for row in range(4):
        for column in range(2):
            pixels = np.zeros((4, 2), dtype=bool)
            pixels[row, column] = True
            assert plot.braille(pixels)[0, 0] == plot.DOTS[row, column]
    assert plot.braille(np.ones((8, 6), dtype=bool)).tolist() == [[255] * 3] * 2


@pytest.mark.parametrize(("low", "high"), [(0, 200), (1.13, 2.61), (-3, 3), (0.00012, 0.00019), (1e5, 3e6)])
def test_ticks_are_round_inside_the_range_and_evenly_spaced(low: float, high: float) -> None:
    ticks = plot.nice_ticks(low, high, 5)
    assert 2 <= len(ticks) <= 6
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    step = ticks[1] - ticks[0]
    assert round(step / 10 ** math.floor(math.log10(step) + 1e-9), 6) in (1, 2, 5)
    np.testing.assert_allclose(np.diff(ticks), step)
    assert len({plot.tick_label(tick) for tick in ticks}) == len(ticks), "labels tell the ticks apart"


def test_log_ticks_are_decades_over_a_wide_range_and_values_within_one() -> None:
    assert plot.log_ticks(-3, 2, 6) == pytest.approx([0.001, 0.01, 0.1, 1, 10, 100])
    narrow = plot.log_ticks(math.log10(1.2), math.log10(2.6), 4)
    assert len(narrow) >= 2
    assert all(1.2 <= tick <= 2.6 for tick in narrow)


def test_ascii_keeps_the_shape_of_the_curve() -> None:
    canvas = plot.Canvas(1, 3)
    canvas.curve(np.array([[0x01, 0x80, 0xFF]], dtype=np.int32), 1)
    canvas.to_ascii()
    assert list(canvas.runs(0)) == [("'.:", 1)]
