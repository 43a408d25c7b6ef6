"""Which part of the curves is looked at, and how: window, smoothing, axes. Pure; the chart draws what this says."""

from __future__ import annotations

from dataclasses import dataclass, replace

SMOOTHING = (0.0, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Shares of the past in the moving average, in the order `s` walks through them."""

X_AXES = ("updates", "tokens", "time")

SMALLEST_SHARE = 1e-5
"""Smallest part of the curve that can be zoomed to."""


@dataclass(frozen=True)
class View:
    """How the chart is looked at. The window is a share of the whole extent, so that it keeps its place while curves grow."""

    left: float = 0.0
    right: float = 1.0
    smoothing: int = 2
    """Index into `SMOOTHING`."""
    log_y: bool = False
    x_axis: int = 0
    """Index into `X_AXES`."""
    follow: bool = True
    """A zoomed window stays at the newest points."""

    @property
    def zoomed(self) -> bool:
        return self.right - self.left < 1 - 1e-9

    @property
    def weight(self) -> float:
        return SMOOTHING[self.smoothing]

    @property
    def axis(self) -> str:
        return X_AXES[self.x_axis]

    def window(self, low: float, high: float) -> tuple[float, float]:
        """The part of the extent [low, high] that is shown."""
        return low + self.left * (high - low), low + self.right * (high - low)

    def zoom(self, direction: int) -> View:
        """Half (1) or double (-1) the window, around its middle or, following, its right end; 0 shows everything."""
        if direction == 0:
            return replace(self, left=0.0, right=1.0)
        width = min(1.0, max(SMALLEST_SHARE, (self.right - self.left) * (0.5 if direction > 0 else 2.0)))
        at_end = self.follow and self.right >= 1 - 1e-9
        left = self.right - width if at_end else (self.left + self.right - width) / 2
        return self._moved_to(left, width)

    def pan(self, direction: int) -> View:
        """Move the window by a quarter of its width. Moving away from the right end stops following it."""
        if not self.zoomed:
            return self
        width = self.right - self.left
        moved = self._moved_to(self.left + direction * width / 4, width)
        return replace(moved, follow=moved.right >= 1 - 1e-9)

    def grown(self, ratio: float) -> View:
        """The view after the extent grew by `ratio` (new / old): the window stays on its points, or at the new end."""
        if not self.zoomed or ratio <= 1:
            return self
        width = (self.right - self.left) / ratio
        return self._moved_to(1.0 - width if self.follow else self.left / ratio, width)

    def smoother(self, step: int) -> View:
        return replace(self, smoothing=max(0, min(len(SMOOTHING) - 1, self.smoothing + step)))

    def next_axis(self) -> View:
        """The next x axis, shown whole: a window in updates means nothing in seconds."""
        return replace(self, x_axis=(self.x_axis + 1) % len(X_AXES), left=0.0, right=1.0)

    def toggled_log(self) -> View:
        return replace(self, log_y=not self.log_y)

    def toggled_follow(self) -> View:
        if self.follow:
            return replace(self, follow=False)
        width = self.right - self.left
        return replace(self, follow=True, left=1.0 - width, right=1.0)

    def _moved_to(self, left: float, width: float) -> View:
        left = max(0.0, min(left, 1.0 - width))
        return replace(self, left=left, right=left + width)
