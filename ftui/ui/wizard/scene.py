"""Everything the wizard knows at a moment: the draft, what its data and base model are, the machine, what the plan comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ftui.machine.nvidia import GpuAnswer
from ftui.plan.draft import MISSING, Draft
from ftui.plan.load import Problem
from ftui.plan.power import Power
from ftui.plan.settings import DataVersion
from ftui.ui.wizard.questions import Step


@dataclass(frozen=True)
class Scene:
    """Facts are None until they are known; `looking` says that they are being looked for."""

    draft: Draft
    facts: dict[str, Any] | None = None
    """What `python -m ftui.data scout` says."""
    facts_problem: str = ""
    looking: bool = False
    power: Power | None = None
    """What the evaluation can show, None while the plan has problems or its data is unknown."""
    gpus: GpuAnswer | None = None
    described: dict[str, Any] | None = None
    """What `ftui plan` says of the draft as it is."""
    described_problem: str = ""
    describing: bool = False
    device: str = ""
    """The device memory and time are predicted for, "" for none."""
    launched: bool = False
    """Whether the plan was launched before; what changes now is an amendment."""

    @property
    def columns(self) -> list[dict[str, Any]]:
        return list((self.facts or {}).get("columns") or [])

    @property
    def categories(self) -> dict[str, dict[str, int]]:
        """Rows of each category by split; for extraction, of each field."""
        return dict((self.facts or {}).get("counts") or {})

    @property
    def base(self) -> dict[str, Any]:
        """What the base model is, {} while unknown."""
        return dict((self.facts or {}).get("base") or {})

    @property
    def sizes(self) -> dict[str, int] | None:
        """Rows by split, None while unknown or where there are none to train on."""
        splits = (self.facts or {}).get("splits")
        return splits if splits and splits.get("train") else None

    @property
    def version(self) -> DataVersion | None:
        """The data as the arithmetic needs it, None while unknown."""
        if self.sizes is None or self.facts is None:
            return None
        sizes = {f"{name}_examples": count for name, count in self.sizes.items()}
        return DataVersion(
            hash="", labels=self.facts.get("labels") or [], train_targets=self.facts.get("train_targets"), **sizes
        )

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What is wrong with the data, errors first."""
        return list((self.facts or {}).get("findings") or [])

    @property
    def errors(self) -> list[dict[str, Any]]:
        return [finding for finding in self.findings if finding["severity"] == "error"]


def problems_of(step: Step, draft: Draft) -> list[Problem]:
    """The problems that belong to a step: by the field's section, and for `machine` and the like by the field itself."""
    names = {question.name.replace("[]", "") for question in step.questions}
    found = []
    for problem in draft.problems:
        plain = "".join(part.partition("[")[0] + "." for part in problem.field.split(".")).rstrip(".")
        own = any(name == plain or name.startswith(f"{plain}.") or plain.startswith(f"{name}.") for name in names)
        if own or (step.items and plain == step.items):
            found.append(problem)
    return found


def begun(step: Step, draft: Draft) -> bool:
    """Whether a person has answered anything on this page."""
    if step.items:
        return bool(draft.items(step.items))
    return any(draft.given(question.steps()) is not MISSING for question in step.questions)
