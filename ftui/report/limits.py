"""What this report does not show, in sentences that follow from the facts. Nothing here is boilerplate: no fact, no sentence."""

from __future__ import annotations

from ftui.plan.variants import BASE
from ftui.report.model import Across, Report
from ftui.verdict.model import VariantVerdict

FEW_SEEDS = 5
"""Below this, a spread over seeds is a guess."""

SMALL_SLICE = 30
"""Below this, one example moves the recall of a category or field by more than 0.03."""

FEW_DRAWS = 20
"""Fewer resamples than this behind an interval's end make the end itself uncertain."""


NOTHING = {
    "exact_match": "no output equals its target",
    "valid_json": "no output is JSON of the given form",
    "required_fields": "no output has all required fields",
}
"""What a value of 0 says, for metrics that a text can fail altogether."""


def limits(report: Report) -> list[str]:
    """Sentences about `report`, whose own `limits` are not looked at."""
    return [
        *_about_seeds(report),
        *_about_runs(report),
        *_about_slices(report),
        *_about_answers(report),
        *_about_guardrails(report),
        *_about_test(report),
        *_about_plan(report),
        *_about_artefacts(report),
        *_about_machine(report),
        *_about_copies(report),
    ]


def _about_seeds(report: Report) -> list[str]:
    judged = [v for v in report.verdict.variants if v.difference is not None]
    if not judged:
        return []
    found = []
    fewest = min(len(v.seeds) for v in judged)
    if fewest == 1:
        found.append("One seed only: how much of a difference is the luck of one training run is not known.")
    elif fewest < FEW_SEEDS:
        found.append(
            f"{fewest} seeds show the spread between training runs only roughly; the interval's seed part rests on {fewest} numbers."
        )
    verdict = report.verdict
    behind = verdict.resamples * verdict.alpha / max(1, verdict.comparisons)
    if behind < FEW_DRAWS:
        found.append(
            f"Only {behind:.0f} of {verdict.resamples:,} resamples lie behind each end of an interval; raise evaluation.resamples."
        )
    return found


def _about_runs(report: Report) -> list[str]:
    found = []
    missing = [*report.verdict.missing, *(m for v in report.verdict.variants for m in v.missing)]
    if missing:
        found.append(f"Planned runs without a comparable result: {'; '.join(map(str, missing))}.")
    for run in report.runs:
        if run.follows:
            found.append(
                f"{run.run} follows {run.follows} with other settings; it is reported but takes no part in the comparison."
            )
    return found


def _about_slices(report: Report) -> list[str]:
    rows = [row for row in report.slices if row.system != BASE]
    found = []
    for name in dict.fromkeys(row.slice for row in rows):
        of = [row for row in rows if row.slice == name]
        if of[0].examples == 0:
            found.append(
                f"{name}: the test set has no example of this {report.slice_word}, so nothing is known about it."
            )
            continue
        metric = of[0].lead
        if _is_nothing([row.metrics[metric] for row in of]):
            what = {"category": "recognises", "field": "finds"}[report.slice_word]
            found.append(f"{name}: {metric} is 0 in every trained run; no system here {what} this {report.slice_word}.")
        if of[0].examples < SMALL_SLICE:
            moved = "" if metric == "loss" else f"; one of them moves {metric} by {1 / of[0].examples:.2f}"
            found.append(f"{name}: only {of[0].examples} test examples{moved}.")
    return found


def _about_answers(report: Report) -> list[str]:
    """Metrics of written answers that no trained run gets off the ground."""
    tested = [system.metrics for system in report.systems if system.split == "test" and system.system != BASE]
    return [
        f"{metric} is 0 in every trained run: {meaning}."
        for metric, meaning in NOTHING.items()
        if (values := [metrics[metric] for metrics in tested if metric in metrics]) and _is_nothing(values)
    ]


def _is_nothing(values: list[Across]) -> bool:
    return all(max(value.by_seed.values()) == 0 for value in values)


def _about_guardrails(report: Report) -> list[str]:
    rows = [row for v in report.verdict.variants for row in v.guardrails]
    empty = {(row.name, row.slice) for row in rows if row.cannot_fail}
    found = [
        f"The guardrail {name!r} on {part} holds because its reference has so little that nothing beyond the tolerance can be lost."
        for name, part in sorted(empty)
    ]
    if not report.guardrails:
        found.append("The plan has no guardrail: what got worse elsewhere was not asked.")
    return found


def _about_test(report: Report) -> list[str]:
    found = []
    if len(report.test_openings) > 1:
        found.append(
            f"The test set was opened {len(report.test_openings)} times; each opening after the first weakens the verdict."
        )
    if not report.test_openings and any(run.validation for run in report.runs):
        found.append(
            "Validation figures guided no verdict here, but settings may be chosen on them; they are not the test."
        )
    return found


def _about_plan(report: Report) -> list[str]:
    return [
        f"The plan was amended after the launch ({amendment.at}): {', '.join(amendment.changed) or 'no field named'};"
        f" {amendment.why.rstrip('.')}."
        for amendment in report.amendments
    ]


def _about_artefacts(report: Report) -> list[str]:
    found = []
    for artefact in report.artefacts:
        if artefact.verified is not True:
            state = "failed its check" if artefact.verified is False else "was not checked"
            found.append(
                f"The artefact {artefact.name} {state} in a new process: {artefact.cause or 'no cause was recorded'}."
            )
        word = _word_of(report.verdict.variants, artefact.variant)
        if report.verdict.choice is not None and artefact.variant != report.verdict.choice:
            found.append(
                f"The artefact {artefact.name} is {artefact.variant or 'of an unknown variant'}"
                f"{f' ({word})' if word else ''}, while the rules name {report.verdict.choice}."
            )
    if report.state == "closed" and not report.artefacts:
        found.append("No artefact was exported.")
    return found


def _word_of(variants: list[VariantVerdict], name: str | None) -> str | None:
    return next((v.word for v in variants if v.variant == name), None)


def _about_machine(report: Report) -> list[str]:
    found = []
    if len(report.environments) > 1:
        found.append(f"Runs were made in {len(report.environments)} different environments; see their versions.")
    if report.faults:
        found.append(f"Faults of the host or of ftui: {len(report.faults)}; they are listed.")
    return found


def _about_copies(report: Report) -> list[str]:
    copies = report.copies
    if copies is None:
        return ["The plan names no place for copies: what is on the rented machine ends with the rental."]
    if copies.at is None:
        return [f"Nothing had been copied to {copies.target} when this was written."]
    if copies.cause is not None:
        return [f"Copies to {copies.target} had failed since {copies.at}: {copies.cause.rstrip('.')}."]
    return []
