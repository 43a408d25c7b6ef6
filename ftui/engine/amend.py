"""Which changes of a launched plan are amendments, and which would make another campaign of it."""

from __future__ import annotations

from typing import Any

from ftui.plan.schema import Plan

AMENDABLE = ("rental", "backup", "machine", "hypothesis.statement")
"""What may change at any time: it decides nothing about a run's result."""

DECIDES = ("machine.processes", "machine.strategy")
"""What may not, although it lies there: the number of processes multiplies the examples of an update (K10)."""


class PlanChanged(Exception):
    """The plan was changed in a way that would mix results of two plans."""


class ReasonMissing(Exception):
    """The plan was amended after runs had begun, and nobody said why. `changed` are the fields."""

    def __init__(self, campaign: str, changed: list[str]) -> None:
        super().__init__(
            f"campaign.toml was changed in {', '.join(changed)}, and runs have begun. Say why, for the report: "
            f'`ftui run {campaign} --because "…"`'
        )
        self.changed = changed


def changed_fields(before: Plan, after: Plan) -> list[str]:
    """Dotted names of the fields that differ; a list counts as one field."""
    return sorted(_differences(before.content(), after.content()))


def check_amendment(before: Plan, after: Plan, *, begun: bool) -> list[str]:
    """Fields changed between the launched plan and the one on the disk, [] for none.

    Until runs have `begun` to be queued, anything may change: that is what the pilot is for. Later, variants may be added. Raises
    `PlanChanged` when anything else that runs depend on is different.
    """
    changed = changed_fields(before, after)
    if not begun:
        return changed
    refused = [n for n in changed if n in DECIDES or not (n == "variants" or n.startswith(AMENDABLE))]
    if "variants" in changed:
        kept = {v.id: v for v in after.variants}
        refused += [f"variants[{v.id}]" for v in before.variants if kept.get(v.id) != v]
    if refused:
        raise PlanChanged(
            f"campaign.toml was changed after the launch in {', '.join(refused)}; runs of two plans cannot be compared. "
            "Take the change back, or copy the folder's campaign.toml and data into a new campaign"
        )
    return changed


def _differences(before: Any, after: Any, prefix: str = "") -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(before.keys() | after.keys())
        return [d for n in names for d in _differences(before.get(n), after.get(n), f"{prefix}{n}.")]
    return [] if before == after else [prefix.removesuffix(".")]
