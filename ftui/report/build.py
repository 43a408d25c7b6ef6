"""From a campaign's directory to a `Report`: reads the record, writes nothing, imports no model."""

from __future__ import annotations

from collections.abc import Iterable

from ftui.plan.load import PlanError, load_plan, plan_hash
from ftui.plan.schema import Plan
from ftui.record.files import read_json
from ftui.record.journal import read_journal
from ftui.record.layout import CampaignFiles
from ftui.record.lines import NewerSchema, Row
from ftui.record.notebook import NoteError, notes_among, read_notes
from ftui.record.state import Campaign, fold
from ftui.report.delivery import delivery
from ftui.report.facts import (
    artefacts,
    batch_arithmetic,
    changed_variants,
    copies_part,
    data_part,
    environments,
    gates_passes,
    model_part,
    rental_part,
)
from ftui.report.limits import limits
from ftui.report.model import REPORT_SCHEMA, Amendment, Fault, Note, Opening, Report
from ftui.report.runs import run_rows
from ftui.report.systems import confusion_rows, slice_rows, system_metrics
from ftui.verdict.evidence import Evidence, gather
from ftui.verdict.stage import reach_verdict
from ftui.verdict.tasks import measures_of


class ReportError(Exception):
    """There is nothing a report could be built from, or it cannot be read; the message is one sentence."""


def build_report(files: CampaignFiles) -> Report:
    """The report on what `files` hold, at any stage of the campaign. Raises `ReportError`.

    The same record gives an equal report: times come from the journal, resampling is seeded by the plan.
    """
    try:
        state = fold(read_journal(files.journal))
        plan = state.plan or load_plan(files.root)
    except (NewerSchema, PlanError, OSError) as error:
        raise ReportError(f"no report can be built: {' '.join(str(error).split())}") from None
    except (KeyError, ValueError, StopIteration) as error:
        raise ReportError(f"{files.journal}: is damaged ({type(error).__name__}: {error})") from None
    try:
        return _built(files, state, plan)
    except NewerSchema as error:
        raise ReportError(str(error)) from None


def current_report(files: CampaignFiles) -> Report:
    """The report as it was written, or one built from the record: where none was written, or by a version that cannot be read.

    Writes nothing. Raises `ReportError` when there is no record either.
    """
    try:
        written = load_report(files)
    except ReportError:
        return build_report(files)
    return build_report(files) if written is None else _with_newest_notes(files, written)


def _with_newest_notes(files: CampaignFiles, report: Report) -> Report:
    """The report with the notebook as it is now: people go on noting when everything else has ended."""
    try:
        notes = _notes(read_notes(files))
    except NoteError:
        return report
    return report.model_copy(update={"notes": notes}) if len(notes) > len(report.notes) else report


def load_report(files: CampaignFiles) -> Report | None:
    """The report as it was written, None when there is none. Raises `ReportError` when it cannot be read."""
    try:
        content = read_json(files.report_json)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ReportError(f"{files.report_json}: cannot be read: {error}") from None
    schema = content.get("report_schema") if isinstance(content, dict) else None
    if isinstance(schema, int) and schema > REPORT_SCHEMA:
        raise ReportError(
            f"{files.report_json}: schema {schema} is newer than this ftui, which reads up to {REPORT_SCHEMA}; update ftui"
        )
    try:
        return Report.model_validate(content)
    except ValueError as error:
        raise ReportError(f"{files.report_json}: is no report of ftui: {' '.join(str(error).split())}") from None


def _built(files: CampaignFiles, state: Campaign, plan: Plan) -> Report:
    runs = run_rows(files, state)
    gates = gates_passes(files, state)
    tested = state.data is not None and bool(state.test_openings)
    evidence = gather(files, state) if tested else Evidence(measures_of(plan, []), {})
    verdict = reach_verdict(files, state, plan)
    deliver, deliver_because = delivery(plan, state, verdict, runs)
    report = Report(
        campaign=files.name,
        state=state.phase or ("launched" if state.launched_at else "never launched"),
        as_of=state.events[-1]["at"] if state.events else None,
        launched_at=_first(state, "launched"),
        statement=plan.hypothesis.statement,
        hypothesis=plan.hypothesis,
        guardrails=plan.guardrails,
        plan_hash=state.plan_hash or plan_hash(plan),
        plan=plan.content(),
        amendments=_amendments(state),
        verdict=verdict,
        deliver=deliver,
        deliver_because=deliver_because,
        variants=changed_variants(plan),
        systems=system_metrics(plan, state, runs),
        slice_word=evidence.measures.slice_word,
        slices=slice_rows(evidence),
        confusions=confusion_rows(evidence),
        runs=runs,
        gates=gates,
        batches=batch_arithmetic(plan, state),
        rental=rental_part(plan, state),
        data=data_part(files, state),
        test_openings=[
            Opening(opening=row["opening"], at=row["at"], candidates=row["candidates"], reason=row.get("reason"))
            for row in state.test_openings
        ],
        model=model_part(plan, gates),
        environments=environments(files, state),
        copies=copies_part(plan, state),
        artefacts=artefacts(files, state),
        notes=_notes(notes_among(state.events)),
        faults=[
            Fault(at=row["at"], where=str(row.get("where", "")), cause=str(row.get("cause", "")))
            for row in state.faults
        ],
        limits=[],
    )
    return report.model_copy(update={"limits": limits(report)})


def _amendments(state: Campaign) -> list[Amendment]:
    found, begun = [], False
    for row in state.events:
        begun = begun or row["event"] == "queued"
        if row["event"] == "amended":
            changed, because = [str(name) for name in row.get("changed", [])], row.get("because")
            amendment = Amendment(
                at=row["at"], plan_hash=row["plan_hash"], changed=changed, because=because, begun=begun
            )
            found.append(amendment)
    return found


def _notes(rows: Iterable[Row]) -> list[Note]:
    return [Note(at=row["at"], by=row["by"], text=str(row["text"])) for row in rows]


def _first(state: Campaign, event: str) -> str | None:
    return next((row["at"] for row in state.events if row["event"] == event), None)
