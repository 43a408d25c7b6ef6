"""The circumstances: gates, rental, model, environment, artefacts. Optional files may be absent or broken; that is no error."""

from __future__ import annotations

import json
import math
from typing import Any

from ftui.plan.budget import phase_use
from ftui.plan.schema import Plan
from ftui.plan.settings import own_batches
from ftui.plan.variants import CONTROL, apply_change, variant_plan
from ftui.record.files import read_json
from ftui.record.journal import stamp
from ftui.record.layout import CampaignFiles
from ftui.record.rows import read_gates
from ftui.record.state import Campaign
from ftui.report.model import (
    ArtefactPart,
    BatchArithmetic,
    Changed,
    CopiesPart,
    DataPart,
    EnvironmentPart,
    GatesPass,
    ModelPart,
    PhaseRow,
    RentalPart,
)

MOVING = ("at", "attempt", "pid", "started_at", "host_pid")
"""Fields of an environment that differ between runs on the same machine."""


def gates_passes(files: CampaignFiles, state: Campaign) -> list[GatesPass]:
    return [
        GatesPass(
            id=gates.id,
            started_at=stamp(gates.started_at),
            ended_at=stamp(gates.ended_at) if gates.ended_at else None,
            passed=gates.passed,
            cause=gates.cause,
            key=gates.key,
            rows=read_gates(files.gates(gates.id).rows),
        )
        for gates in state.gates
    ]


def changed_variants(plan: Plan) -> list[Changed]:
    return [
        Changed(
            id=variant.id,
            because=variant.because,
            together=variant.together,
            changes=[str(change) for change in apply_change(plan, variant).changes],
        )
        for variant in plan.variants
    ]


def batch_arithmetic(plan: Plan, state: Campaign) -> list[BatchArithmetic]:
    """Sentences per group of systems with the same arithmetic; [] before the data is prepared."""
    if state.data is None:
        return []
    groups: dict[tuple[str, ...], list[str]] = {}
    for system in (CONTROL, *(variant.id for variant in plan.variants)):
        sentences = tuple(own_batches(variant_plan(plan, system), state.data).sentences())
        groups.setdefault(sentences, []).append(system)
    return [BatchArithmetic(systems=names, sentences=list(sentences)) for sentences, names in groups.items()]


def rental_part(plan: Plan, state: Campaign) -> RentalPart:
    """Hours planned and spent. Of a phase that is going on, the time up to the supervisor's newest event counts."""
    spent = state.spent_now(state.worked_until) if state.worked_until else {}
    uses = phase_use(plan.rental, spent)
    return RentalPart(
        days=plan.rental.days,
        starts_at=stamp(state.clock.starts_at) if state.clock else None,
        ends_at=stamp(state.clock.ends_at) if state.clock else None,
        price_per_hour=plan.rental.price_per_hour,
        currency=plan.rental.currency,
        phases=[PhaseRow(phase=u.phase, planned_hours=u.planned_hours, spent_hours=u.spent_hours) for u in uses],
    )


def data_part(files: CampaignFiles, state: Campaign) -> DataPart | None:
    if state.data is None:
        return None
    manifest = optional_json(files, files.manifest(state.data.hash).relative_to(files.root).as_posix())
    return DataPart(**state.data.model_dump(), findings=state.data_findings, manifest=manifest)


def model_part(plan: Plan, gates: list[GatesPass]) -> ModelPart:
    loads = [row for done in gates for row in done.rows if row.gate == "load" and row.verdict == "passed"]
    return ModelPart(
        base=plan.model.base,
        revision=plan.model.revision,
        source=plan.model.source,
        expected_sha256=plan.model.sha256,
        method=plan.method.model_dump(mode="json"),
        found=plain(loads[-1].facts) if loads else {},
    )


def copies_part(plan: Plan, state: Campaign) -> CopiesPart | None:
    """From the plan and the journal alone: `backup.json` speaks of one machine, and the report is read on others."""
    if plan.backup is None:
        return None
    said = state.copied or {}
    by_program = plan.backup.command is not None
    return CopiesPart(
        target=plan.backup.target,
        what=list(plan.backup.what),
        read_back=not by_program,
        at=said.get("at"),
        cause=said.get("cause"),
    )


def environments(files: CampaignFiles, state: Campaign) -> list[EnvironmentPart]:
    """Distinct environments, each with its runs in queue order."""
    groups: dict[str, EnvironmentPart] = {}
    for run in state.runs:
        content = optional_json(files, files.run(run).environment.relative_to(files.root).as_posix())
        if not isinstance(content, dict):
            continue
        versions = {name: value for name, value in content.items() if name not in MOVING}
        key = json.dumps(versions, sort_keys=True)
        known = groups.get(key) or EnvironmentPart(runs=[], versions=versions)
        groups[key] = EnvironmentPart(runs=[*known.runs, run], versions=versions)
    return list(groups.values())


def artefacts(files: CampaignFiles, state: Campaign) -> list[ArtefactPart]:
    return [
        ArtefactPart(
            name=export.name,
            run=export.run,
            variant=state.runs[export.run].variant if export.run in state.runs else None,
            verified=export.verified,
            cause=export.cause,
            path=f"{files.exports.name}/{export.name}",
            manifest=optional_json(files, f"{files.exports.name}/{export.name}/manifest.json"),
        )
        for export in state.exports
    ]


def optional_json(files: CampaignFiles, name: str) -> Any:
    """A JSON file of the record by its relative name, None when it is absent or cannot be read."""
    path = files.root / name
    try:
        if not path.resolve().is_relative_to(files.root.resolve()):
            return None
        return plain(read_json(path))
    except (OSError, ValueError):
        return None


def plain(value: Any) -> Any:
    """The value with non-finite numbers as words, as JSON has none for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value
