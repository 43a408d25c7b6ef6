"""The report in blocks, once for every view: the verdict first, then what it does not show, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from ftui.plan.schema import EACH_CATEGORY, Guardrail
from ftui.plan.variants import BASE
from ftui.report.blocks import NONE, Block, Bullets, Heading, Paragraph, Table, moment
from ftui.report.model import Across, Report, SliceRow, SystemMetrics
from ftui.report.sections import circumstances
from ftui.verdict.model import GuardrailRow, VariantVerdict
from ftui.verdict.words import p_words, signed

LEAD = {
    ("recall", "category"): "of the examples of a category, the share that was recognised",
    ("recall", "field"): "of the values a field should have, the share that was found",
    ("exact_match", "category"): "of the examples of a category, the share whose output is the target",
    ("loss", "category"): "mean over the target tokens of a category, less is better",
}
"""What the metric that is shown for each slice means, by metric and slice."""


def outline(report: Report) -> list[Block]:
    """All blocks of the report, in reading order."""
    return [
        *_verdict(report),
        *_limits(report),
        *_question(report),
        *_comparison(report),
        *_guardrails(report),
        *_whole(report),
        *_slices(report),
        *circumstances(report),
    ]


def numbers_from(first: int, columns: Sequence[str]) -> frozenset[int]:
    """Every column from `first` on holds numbers."""
    return frozenset(range(first, len(columns)))


def _verdict(report: Report) -> list[Block]:
    blocks: list[Block] = [
        Heading(1, f"{report.campaign}: {report.verdict.word}"),
        Paragraph(report.verdict.sentence, strong=True),
        Paragraph(report.deliver_because),
    ]
    as_of = f", as of {moment(report.as_of)}" if report.as_of else ""
    blocks.append(Paragraph(f"State: {report.state}{as_of}. Plan {report.plan_hash[:12]}."))
    return blocks


def _limits(report: Report) -> list[Block]:
    if not report.limits:
        return []
    return [Heading(2, "What this does not show"), Bullets(report.limits)]


def _question(report: Report) -> list[Block]:
    hypothesis = report.hypothesis
    blocks: list[Block] = [
        Heading(2, "The question, written before any compute"),
        Paragraph(report.statement),
        Bullets(
            [
                f"Metric: {hypothesis.metric}, {hypothesis.direction} is better; smallest improvement worth having"
                f" {hypothesis.min_improvement:g}; reference: {hypothesis.reference}; alpha {hypothesis.alpha:g}.",
                f"Plan hash: {report.plan_hash}",
            ]
        ),
    ]
    if report.variants:
        columns = ("variant", "change from the control", "because")
        rows = [
            (v.id, "; ".join(v.changes), v.because if v.together is None else f"{v.because} {v.together}")
            for v in report.variants
        ]
        blocks.append(Table(columns, rows))
    if report.amendments:
        blocks.append(Bullets([f"Amended {moment(a.at)}: {', '.join(a.changed)} — {a.why}" for a in report.amendments]))
    return blocks


def _comparison(report: Report) -> list[Block]:
    verdict = report.verdict
    if not verdict.variants:
        return []
    columns = ("candidate", "word", verdict.metric, verdict.reference, "difference", "interval", "p", "seeds")
    blocks: list[Block] = [
        Heading(2, f"The comparison with the {verdict.reference}"),
        Table(columns, [_comparison_row(v) for v in verdict.variants], frozenset({2, 3, 4, 5, 6})),
        Bullets([v.sentence for v in verdict.variants]),
    ]
    if resolves := [f"To settle {v.variant}: {v.resolve}." for v in verdict.variants if v.resolve]:
        blocks.append(Bullets(resolves))
    examples = f" {verdict.examples:,} test examples." if verdict.examples else ""
    blocks.append(Paragraph(f"How: {verdict.method}{examples}"))
    return blocks


def _comparison_row(judged: VariantVerdict) -> tuple[str, ...]:
    found = judged.difference
    if found is None or judged.adjusted_p is None:
        return (judged.variant, judged.word, NONE, NONE, NONE, NONE, NONE, NONE)
    return (
        judged.variant,
        judged.word,
        f"{found.variant:.3f}",
        f"{found.reference:.3f}",
        signed(found.point),
        f"{signed(found.low)} to {signed(found.high)}",
        p_words(judged.adjusted_p),
        ", ".join(map(str, judged.seeds)),
    )


def _guardrails(report: Report) -> list[Block]:
    judged = [(v.variant, v.guardrails) for v in report.verdict.variants]
    judged.append(("control", report.verdict.control_guardrails))
    rows = [(name, row) for name, rows in judged for row in rows]
    blocks: list[Block] = [Heading(2, "What must not get worse")]
    if not rows:
        terms_asked = [
            f"{g.name}: {g.metric} of {g.slice}, tolerance {g.tolerance:g} against {g.reference}"
            for g in report.guardrails
        ]
        return [*blocks, Paragraph("Not judged."), Bullets(terms_asked)] if terms_asked else []
    counts = {word: sum(row.state == word for _, row in rows) for word in ("holds", "broken", "cannot tell")}
    blocks.append(Paragraph("; ".join(f"{word}: {count}" for word, count in counts.items()) + "."))
    columns = ("slice", "candidate", "value", "reference", "difference", "interval", "state")
    for asked in report.guardrails:
        own = [_guardrail_row(name, row) for name, row in rows if _belongs(row, asked)]
        terms = f"{asked.metric}, tolerance {asked.tolerance:g} against {asked.reference}"
        blocks += [Paragraph(f"{asked.name} ({terms}):"), Table(columns, own, frozenset({2, 3, 4, 5}))]
    if notes := [f"{name}, {row.name!r} on {row.slice}: {row.note}." for name, row in rows if _worth_a_note(row)]:
        blocks.append(Bullets(notes))
    return blocks


def _belongs(row: GuardrailRow, asked: Guardrail) -> bool:
    same = (row.name, row.metric, row.reference) == (asked.name, asked.metric, asked.reference)
    return same and asked.slice in (row.slice, EACH_CATEGORY)


def _worth_a_note(row: GuardrailRow) -> bool:
    return row.state != "holds" or row.cannot_fail


def _guardrail_row(name: str, row: GuardrailRow) -> tuple[str, ...]:
    found = row.difference
    if found is None:
        return (row.slice, name, NONE, NONE, NONE, NONE, row.state)
    return (
        row.slice,
        name,
        f"{found.variant:.3f}",
        f"{found.reference:.3f}",
        signed(found.point),
        f"{signed(found.low)} to {signed(found.high)}",
        row.state,
    )


def _whole(report: Report) -> list[Block]:
    blocks: list[Block] = []
    for split in ("test", "validation"):
        found = [s for s in report.systems if s.split == split]
        if found:
            title = "On the test set" if split == "test" else "On validation data (last validation of each run)"
            blocks += [Heading(2, title), _system_table(found)]
    return blocks


def _system_table(found: list[SystemMetrics]) -> Table:
    columns = ("metric", "system", "mean ± spread", "each seed", "seeds", "difference to base")
    rows = []
    for metric in dict.fromkeys(name for system in found for name in system.metrics):
        for system in found:
            if (values := system.metrics.get(metric)) is not None:
                gain = system.gain_over_base.get(metric)
                cells = (
                    mean_spread(values),
                    each_seed(values),
                    ", ".join(values.by_seed),
                    signed(gain.mean) if gain else NONE,
                )
                rows.append((metric, system.system, *cells))
    return Table(columns, rows, frozenset({2, 3, 5}))


def mean_spread(values: Across | None) -> str:
    """`0.561 ± 0.012`: mean and standard deviation over the seeds."""
    if values is None:
        return NONE
    return f"{values.mean:.3f}" if values.spread is None else f"{values.mean:.3f} ± {values.spread:.3f}"


def each_seed(values: Across | None) -> str:
    return NONE if values is None else " ".join(f"{value:.3f}" for value in values.by_seed.values())


def _slices(report: Report) -> list[Block]:
    if not report.slices:
        return []
    word, lead = report.slice_word, report.slices[0].lead
    names = list(dict.fromkeys(row.slice for row in report.slices))
    systems = list(dict.fromkeys(row.system for row in report.slices))
    by_key = {(row.system, row.slice): row for row in report.slices}
    columns = [word, "examples", *systems]
    rows = [
        [
            name,
            str(by_key[systems[0], name].examples),
            *(mean_spread(by_key[s, name].metrics[lead]) for s in systems),
        ]
        for name in names
    ]
    blocks: list[Block] = [
        Heading(2, f"Per {word}, on the test set"),
        Paragraph(f"{lead.capitalize()}: {LEAD[lead, word]}. Mean ± spread over the seeds."),
        Table(columns, rows, numbers_from(1, columns)),
    ]
    for system in systems:
        of = [row for row in report.slices if row.system == system]
        blocks += [Heading(3, f"{system}: every {word} and seed"), _slice_table(of, word)]
    missed = [row for row in report.confusions if row.wrong and row.system != BASE]
    if missed:
        blocks += [
            Heading(3, "What missed examples are taken for"),
            Table(
                ("system", "category", "missed", "taken for"),
                [
                    (r.system, r.category, f"{r.wrong} of {r.of}", ", ".join(f"{name} {n}" for name, n in r.taken_for))
                    for r in missed
                ],
                frozenset({2}),
            ),
        ]
    return blocks


def _slice_table(rows: list[SliceRow], word: str) -> Table:
    columns = [word]
    for metric in rows[0].metrics:
        columns += [metric.replace("f1", "F1"), "each seed"]
    cells = []
    for row in rows:
        line = [row.slice]
        for values in row.metrics.values():
            line += [mean_spread(values), each_seed(values)]
        cells.append(line)
    return Table(columns, cells, numbers_from(1, columns))
