"""What a campaign is about: its question, its limits, its variants, its answer. Read from the plan and the journal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.text import Text

from ftui.plan.load import Problem
from ftui.plan.schema import Plan
from ftui.record.layout import CampaignFiles
from ftui.record.notebook import note_lines, notes_among
from ftui.record.state import Campaign
from ftui.record.summary import LAST_NOTES
from ftui.record.text import safe
from ftui.ui.summary import ROLE_OF_VERDICT, first_trouble
from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import pad

LABEL = 12


@dataclass(frozen=True)
class Found:
    """A campaign on the list; `problem` says why it could not be read, `problems` what its draft of a plan lacks."""

    files: CampaignFiles
    state: Campaign
    alive: bool
    plan: Plan | None = None
    """The launched plan, or the one in the directory as long as none was."""
    problem: str | None = None
    problems: Sequence[Problem] = ()


class AboutPanel(Panel):
    """The campaign under the cursor, in sentences."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("About", id=id)
        self.found: Found | None = None

    def show(self, found: Found | None) -> None:
        self.found = found
        self.changed()

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        lines: list[Text] = []
        for label, sentence, role in _sentences(self.found) if self.found else ():
            text = Text(safe(sentence), STYLES[role])
            for part in text.wrap(self.app.console, max(20, width - LABEL - 1)):
                part.rstrip()
                lines.append(Text.assemble((pad(label, LABEL), STYLES["muted"]), " ", part, no_wrap=True, end=""))
                label = ""
        return None, lines


def _sentences(found: Found) -> Iterator[tuple[str, str, str]]:
    """Label, sentence and style role, in reading order."""
    if found.problem:
        yield "problem", found.problem, "bad"
    for index, lacking in enumerate(found.problems):
        yield "to mend" if index == 0 else "", problem_line(lacking), "warn"
    if trouble := first_trouble(found.state):
        yield "trouble", trouble, "bad"
    if found.state.verdict:
        role = ROLE_OF_VERDICT.get(found.state.verdict, "text")
        yield "verdict", found.state.verdict, role
        yield "", found.state.verdict_sentence or "", "text"
    if plan := found.plan:
        aim = plan.hypothesis
        yield "hypothesis", aim.statement, "bright"
        wanted = (
            f"{aim.metric}, {aim.direction} is better, by at least {aim.min_improvement:g} against the {aim.reference}"
        )
        yield "metric", wanted, "text"
        for index, guard in enumerate(plan.guardrails):
            limit = f"{guard.name}: {guard.metric}, {guard.slice}, at most {guard.tolerance:g} worse than the {guard.reference}"
            yield "guardrails" if index == 0 else "", limit, "text"
        for index, variant in enumerate(plan.variants):
            change = ", ".join(f"{name} = {value}" for name, value in variant.change.items())
            yield "variants" if index == 0 else "", f"{variant.id}: {change}. {variant.because}", "text"
        seeds = ", ".join(map(str, plan.evaluation.seeds))
        yield "model", f"{plan.model.base}, {plan.method.kind}, seeds {seeds}", "text"
        rate = plan.rental.price_per_hour
        yield (
            "rental",
            f"{plan.rental.days:g} days" + (f" at {rate:g} {plan.rental.currency} per hour" if rate else ""),
            "text",
        )
    for index, note in enumerate(notes_among(found.state.events)[-LAST_NOTES:]):
        yield "notebook" if index == 0 else "", " / ".join(map(str.strip, note_lines(note))), "text"
    yield "directory", _from_home(found.files.root), "muted"


def problem_line(problem: Problem) -> str:
    """A problem with its place in the plan, without the folder, which stands below."""
    return str(replace(problem, file=Path(problem.file).name))


def _from_home(folder: Path) -> str:
    """A folder as its owner would type it."""
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)
