"""Where the monitor's panels stand at a given size of the terminal. Pure arithmetic; the monitor applies it."""

from __future__ import annotations

from dataclasses import dataclass, field

PANELS = ("runs", "chart", "machine", "gates", "clock", "log")
"""Panels in the order of their numbers, 1 to 6."""

LOWER = PANELS[1:]
"""Panels that share the place below the runs on a small terminal."""

SIDE_BY_SIDE = (100, 32)
"""Columns and rows from which all panels are shown at once."""

BORDER = 2
GATES_HEIGHT = BORDER + 1 + 7
"""With the line of titles; the panel scrolls to the gate that matters."""
CLOCK_HEIGHT = 12
SECOND_CHART_FROM = 30
"""Rows of the left column from which loss and validation are drawn in two charts."""


@dataclass(frozen=True)
class Arrangement:
    """Names of what is shown, heights in rows (`"1fr"`: the rest), and the width of the right column."""

    shown: frozenset[str]
    heights: dict[str, int | str] = field(default_factory=dict)
    right_width: int | str = "1fr"


def arrange(width: int, height: int, *, lower: str, full: str | None, runs: int, machine: int) -> Arrangement:
    """Place the panels. `lower` is the one shown below the runs when there is no room for all, `full` one shown alone;
    `runs` and `machine` are the lines these panels have to show."""
    column_of = {name: "right" if name in ("machine", "gates", "clock") else "left" for name in LOWER}
    if full is not None:
        around = {"below", column_of[full]} if full in LOWER else set()
        return Arrangement(frozenset({full} | around), {full: "1fr"})
    runs_wanted = max(1, runs) + 1 + BORDER
    if width < SIDE_BY_SIDE[0] or height < SIDE_BY_SIDE[1]:
        room = height - 3  # status, tabs and keys
        runs_height = min(runs_wanted, max(5, room * 9 // 20))
        shown = {"runs", "tabs", "below", lower, column_of[lower]}
        return Arrangement(frozenset(shown), {"runs": runs_height, lower: "1fr"})
    below = height - 2 - min(runs_wanted, max(5, (height - 2) * 3 // 10))
    clock = CLOCK_HEIGHT if below >= CLOCK_HEIGHT + GATES_HEIGHT + 4 else max(4, below - GATES_HEIGHT - 4)
    heights: dict[str, int | str] = {
        "runs": height - 2 - below,
        "gates": GATES_HEIGHT,
        "clock": clock,
        "machine": "1fr" if below - clock - GATES_HEIGHT < machine + BORDER + 6 else machine + BORDER + 2,
        "chart": "2fr",
        "log": 7 if below < 40 else 12,
    }
    if heights["machine"] != "1fr":
        heights["clock"] = "1fr"
    shown = {*PANELS, "left", "right", "below"}
    left = below - (7 if below < 40 else 12)
    if left >= SECOND_CHART_FROM:
        shown.add("second")
        heights["second"] = "1fr"
    return Arrangement(frozenset(shown), heights, 46 if width < 150 else 72)
