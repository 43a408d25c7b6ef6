"""What follows from the answers so far, step by step: the arithmetic of `ftui/plan` on what was found, as lines with a style role."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ftui.plan.budget import rental_clock
from ftui.plan.describe_rental import cost_line, fit_lines
from ftui.plan.draft import MISSING
from ftui.plan.rental import timeline, timeline_text
from ftui.plan.schema import Plan
from ftui.plan.settings import own_batches
from ftui.plan.variants import CONTROL, apply_change, planned_runs
from ftui.record.text import safe, size_words
from ftui.ui.widgets.follows import Line
from ftui.ui.wizard.questions import value_of, writes
from ftui.ui.wizard.scene import Scene
from ftui.ui.words import money, pad

MOST_CATEGORIES, NAME = 12, 20
"""Categories listed, and cells of their names."""


def what_follows(key: str, scene: Scene, width: int, *, ascii_only: bool = False) -> list[Line]:
    """Lines for step `key`, at a width of so many cells."""
    return list(_OF_STEP[key](scene, width, ascii_only))


def _waiting(scene: Scene) -> Iterator[Line]:
    """Why there are no facts yet."""
    if scene.looking:
        yield "looking at data and model", "muted"
    elif scene.facts_problem:
        yield scene.facts_problem, "bad"


def _hypothesis(scene: Scene, width: int, ascii_only: bool) -> Iterator[Line]:
    aim = scene.draft.content.get("hypothesis", {})
    metric, least = value_of(scene.draft, "hypothesis.metric"), aim.get("min_improvement", "…")
    reference = value_of(scene.draft, "hypothesis.reference")
    better = "lower" if value_of(scene.draft, "hypothesis.direction") == "lower" else "higher"
    yield (
        f"Supported means: on the sealed test set, a variant's {metric} is {better} than the {reference}'s, the gain is at least {least},"
        f" and no guardrail breaks. The chance that luck alone says so is {value_of(scene.draft, 'hypothesis.alpha')} at most.",
        "text",
    )
    yield "If no variant does, the control is best: that is a full answer, too.", "muted"
    yield from _power_lines(scene)


def _power_lines(scene: Scene) -> Iterator[Line]:
    yield "", "text"
    found = scene.power
    if found is None:
        yield "What the evaluation can show is told once the plan and its data are complete.", "muted"
        yield from _waiting(scene)
        return
    yield from ((f"! {safe(flag)}", "warn") for flag in found.flags)
    yield from ((f"- {safe(sentence)}", "text") for sentence in found.sentences)


def _guardrails(scene: Scene, width: int, ascii_only: bool) -> Iterator[Line]:
    if not scene.draft.items("guardrails"):
        yield (
            "Without a guardrail, a gain in the metric may be paid for by a category nobody looks at. a adds one.",
            "warn",
        )
    found = scene.power
    if found is None:
        yield from _power_lines(scene)
        return
    yield f"{pad('slice', NAME)}{'rows':>6}{'settles':>8}{'allowed':>8}", "busy"
    for row in found.guardrails:
        rows = "–" if row.examples is None else f"{row.examples:,}"
        settles = "–" if row.smallest is None else f"{row.smallest:.3f}"
        mark = " !" if row.enough is False else ""
        yield f"{pad(row.slice, NAME)}{rows:>6}{settles:>8}{row.tolerance:>8g}{mark}", "warn" if mark else "text"
    yield "", "text"
    yield "Settles: the tolerance with which an equal candidate passes in 8 of 10 campaigns.", "muted"
    if found.too_small:
        names = ", ".join(safe(name) for name in found.too_small)
        yield (
            f"! Too small for what is allowed: {names}. More test rows, more seeds or a wider tolerance would do.",
            "warn",
        )


def _data(scene: Scene, width: int, ascii_only: bool) -> Iterator[Line]:
    facts = scene.facts
    if facts is None:
        yield from _waiting(scene)
        return
    if not facts.get("files"):
        candidates = facts.get("candidates") or []
        yield (
            (
                f"Found beside the plan: {', '.join(candidates[:8])}"
                if candidates
                else "No data file lies beside the plan yet."
            ),
            "text",
        )
    for file in facts.get("files") or []:
        yield f"{safe(file['name'])}: {file['rows']:,} rows, {size_words(file['bytes'])}", "text"
    yield from _split_lines(scene)
    if scene.columns:
        yield "", "text"
        yield f"{len(scene.columns)} columns", "busy"
        for column in scene.columns:
            example = f"  {safe(str(column['example']))}" if column.get("example") else ""
            yield f"{pad(column['name'], 12)}  {pad(column['kind'], 6)}{example}", "text"
    yield from _troubles(scene, "data", "columns", "lengths")
    yield from _findings(scene, 3)


def _troubles(scene: Scene, *parts: str) -> Iterator[Line]:
    """Why a part of the facts is missing."""
    told = (scene.facts or {}).get("problems") or {}
    yield from ((safe(told[part]), "bad") for part in parts if told.get(part))


def _split_lines(scene: Scene) -> Iterator[Line]:
    if scene.sizes is None:
        return
    by = (scene.facts or {}).get("split_by")
    sizes = ", ".join(f"{count:,} {name}" for name, count in scene.sizes.items())
    yield f"{sizes}; cut by {by}" if by else sizes, "text"
    if scene.categories:
        what = "fields" if value_of(scene.draft, "hypothesis.task") == "extraction" else "categories"
        heads = "".join(f"{name.replace('validation', 'valid.'):>7}" for name in scene.sizes)
        yield "", "text"
        yield f"{pad(f'{len(scene.categories)} {what}', NAME)}{heads}", "busy"
        ordered = sorted(scene.categories.items(), key=lambda item: -item[1].get("train", 0))
        for label, counts in ordered[:MOST_CATEGORIES]:
            yield pad(label, NAME) + "".join(f"{counts.get(name, 0):>7,}" for name in scene.sizes), "text"
        if len(ordered) > MOST_CATEGORIES:
            yield f"and {len(ordered) - MOST_CATEGORIES} more", "muted"


def _findings(scene: Scene, most: int | None = None) -> Iterator[Line]:
    if not scene.findings:
        return
    yield "", "text"
    for finding in scene.findings[:most]:
        role = "bad" if finding["severity"] == "error" else "warn"
        yield f"{finding['severity']}: {safe(finding_words(finding))}", role
    if most is not None and len(scene.findings) > most:
        yield f"and {len(scene.findings) - most} more; step 4 lists them", "muted"


def finding_words(finding: dict[str, object]) -> str:
    """A finding with its place: file and line, field, message."""
    return ": ".join(str(finding[name]) for name in ("place", "field", "message") if finding.get(name))


def _inspect(scene: Scene, width: int, ascii_only: bool) -> Iterator[Line]:
    yield (
        "Enter or i shows every example token by token: what the model reads, and what carries loss. The test stays sealed.",
        "muted",
    )
    if scene.facts is None:
        yield from _waiting(scene)
        return
    yield "", "text"
    if not scene.findings:
        yield "Nothing stands out.", "good"
    yield from _findings(scene)


def _model(scene: Scene, width: int, ascii_only: bool) -> Iterator[Line]:
    base = scene.base
    if not base:
        yield from _waiting(scene)
        yield from _troubles(scene, "base", "trainable")
        return
    if base.get("problem"):
        unnamed = "model.base" in (scene.facts or {}).get("filled", ())
        yield safe(base["problem"]), "muted" if unnamed else "bad"
        return
    yield (
        f"{base['family']}: {base['parameters']:,} parameters, {size_words(base['bytes'])} of {base['dtype']}, found in the {base['how']}",
        "text",
    )
    if base.get("fits_task"):
        yield safe(base["fits_task"]), "bad"
    trainable = (scene.facts or {}).get("trainable")
    if trainable and trainable.get("problem"):
        yield safe(trainable["problem"]), "bad"
    elif trainable:
        about = "" if trainable["exact"] else "about "
        yield (
            f"{about}{trainable['parameters']:,} of {trainable['of']:,} parameters train: {trainable['share']:.2%}",
            "bright",
        )
        if trainable.get("note"):
            yield trainable["note"], "muted"
    yield from memory(scene)
    modules = base.get("modules") or []
    if modules:
        yield "", "text"
        yield "Modules", "busy"
    for module in sorted(modules, key=lambda m: m["kind"] not in ("linear", "convolution")):
        size = f"{module['inputs']} → {module['outputs']}" if module.get("inputs") else module["kind"]
        yield f"{pad(module['name'], 26)}  {module['count']:>3} × {size}", "text"


def memory(scene: Scene) -> Iterator[Line]:
    """Memory predicted, or how to have it predicted."""
    yield "", "text"
    if scene.describing and scene.device:
        yield f"following one step as on {scene.device}", "muted"
        return
    told = (scene.described or {}).get("forecast")
    if told is None:
        yield "m predicts memory and time on a device that nobody has rented yet.", "muted"
        if scene.device and scene.described_problem:
            yield scene.described_problem, "bad"
        return
    from ftui.machine.devices import GIB

    yield f"On {told['device']['name']} ({told['device']['memory'] / GIB:.0f} GiB), predicted", "busy"
    for method in told["methods"]:
        names = ", ".join(method["variants"])
        if method["problem"]:
            yield f"{names}: not predicted: {method['problem']}", "warn"
            continue
        for row in method["rows"]:
            on = "with" if row["activation_checkpointing"] else "without"
            fits = "fits" if row["fits"] else "does not fit"
            time = row["seconds_per_update"]
            seconds = "" if time is None or time[1] is None else f", {time[0]:.2g} to {time[1]:.2g} s per update"
            planned = " (planned)" if row["planned"] else ""
            said = f"{names}, {on} checkpointing{planned}: {row['needed'] / GIB:.2f} GiB needed, {fits}{seconds}"
            yield said, "text" if row["fits"] else "bad" if row["planned"] else "warn"


def _training(scene: Scene, width: int, ascii_only: bool) -> Iterator[Line]:
    plan, version = scene.draft.plan, scene.version
    micro, accumulation = value_of(scene.draft, "training.micro_batch"), value_of(scene.draft, "training.accumulation")
    replicas = value_of(scene.draft, "machine.processes")
    if plan is not None and version is not None:
        try:
            yield from ((sentence, "bright" if first else "text") for first, sentence in _arithmetic(plan, scene))
        except ValueError as problem:
            yield str(problem), "warn"
    elif isinstance(micro, int) and isinstance(accumulation, int) and isinstance(replicas, int):
        product = micro * accumulation * replicas
        yield (
            f"{micro} × {accumulation} × {replicas} = {product} examples per update (micro-batch × accumulation × replicas)",
            "bright",
        )
        yield from _waiting(scene)
    yield from lengths(scene)
    yield from memory(scene)


def _arithmetic(plan: Plan, scene: Scene) -> Iterator[tuple[bool, str]]:
    assert scene.version is not None
    for index, sentence in enumerate(own_batches(plan, scene.version).sentences()):
        yield index == 0, sentence


def lengths(scene: Scene) -> Iterator[Line]:
    """How long examples are, and what the limit cuts."""
    told = (scene.facts or {}).get("lengths")
    if not told:
        return
    limit = value_of(scene.draft, "training.max_length")
    seen = "" if told["all"] else f" (of {told['rows']:,} looked at)"
    yield "", "text"
    yield (
        f"Longest example {told['longest']:,} tokens, 95 % have {told['p95']:,} or fewer{seen}; the limit is {limit:,}",
        "text",
    )
    if told["over"]:
        lost = f", {told['targets_lost']:,} target tokens lost" if told.get("targets_lost") else ""
        role = "bad" if value_of(scene.draft, "training.truncation") == "error" else "warn"
        yield f"{told['over']:,} examples are longer{lost}", role


def _evaluation(scene: Scene, width: int, ascii_only: bool) -> Iterator[Line]:
    plan = scene.draft.plan
    if plan is not None:
        runs = planned_runs(plan)
        trained = [run for run in runs if run.variant != "base"]
        seeds = len(plan.evaluation.seeds)
        yield (
            f"{seeds} seed{'s' if seeds != 1 else ''} × {1 + len(plan.variants)} settings = {len(trained)} trainings,"
            f" and the base is evaluated first: {len(runs)} runs",
            "bright",
        )
    yield "The test set is opened once, for all of them together, after the last training.", "muted"
    if writes(scene.draft):
        yield "Answers are written greedily: a sampled one would make runs differ by chance.", "muted"
    yield from _power_lines(scene)


def _rental(scene: Scene, width: int, ascii_only: bool) -> Iterator[Line]:
    plan = scene.draft.plan
    rental = None if plan is None else plan.rental
    if rental is None:
        given = scene.draft.content.get("rental", {})
        from pydantic import ValidationError

        from ftui.plan.schema import Rental

        try:
            rental = Rental.model_validate(given)
        except ValidationError:
            yield "The hours are drawn once days and hours are numbers that fit.", "muted"
            return
    clock = rental_clock(rental, datetime.now(UTC))
    yield from ((line, "text") for line in timeline_text(timeline(rental, clock), width, ascii_only))
    if rental.price_per_hour is not None:
        yield f"The whole rental costs {money(rental.price_per_hour * rental.days * 24, rental.currency)}.", "text"
    yield from _copies(scene)
    yield from fit(scene)


def _copies(scene: Scene) -> Iterator[Line]:
    """What of this machine outlives the rental."""
    if scene.draft.given(("backup",)) is MISSING:
        yield "Nothing is copied: what is on this machine ends with the rental.", "warn"
    elif scene.draft.plan is not None and (backup := scene.draft.plan.backup) is not None:
        proof = "read back and compared" if backup.command is None else "by the program's word; nothing is read back"
        yield f"Copied every {backup.every} min and at each checkpoint: {', '.join(backup.what)}; {proof}.", "text"


def fit(scene: Scene) -> Iterator[Line]:
    """Which runs fit, what is left out, and what could be cut."""
    described = scene.described
    yield "", "text"
    if described is None or described.get("fit") is None:
        if scene.describing:
            yield "working out what fits", "muted"
        elif scene.draft.plan is None:
            yield "What fits is told once the plan has no problems.", "muted"
        elif scene.described_problem:
            yield scene.described_problem, "bad"
        else:
            yield "What fits is known after the pilot; m predicts it for a device.", "muted"
        return
    yield from ((line.removeprefix("  "), "text") for line in fit_lines(described))
    if described["cuts"]:
        yield "c takes one of them.", "muted"


def _variants(scene: Scene, width: int, ascii_only: bool) -> Iterator[Line]:
    plan = scene.draft.plan
    if not scene.draft.items("variants"):
        yield (
            "Without variants the control alone is trained and compared with the base. a adds one, g writes a grid.",
            "muted",
        )
    if plan is None:
        yield "The differences are shown once the plan has no problems.", "muted"
        return
    costs = {v["id"]: v for v in (scene.described or {}).get("variants") or []}
    control = _length(scene, plan)
    yield f"{CONTROL}: the plan as written", "bright"
    yield from _cost(costs.get(CONTROL), plan)
    yield f"  {control}" if control else "", "text"
    for variant in plan.variants:
        applied = apply_change(plan, variant)
        yield f"{variant.id}: {'; '.join(map(str, applied.changes))}", "bright"
        yield from _cost(costs.get(variant.id), plan)
        if applied.plan is not None and control:
            held = _length(scene, applied.plan)
            same = held == control
            yield f"  {'as' if same else 'NOT as'} the control: {held}", "text" if same else "warn"
    for flag in (scene.described or {}).get("flags") or []:
        yield f"! {flag}", "warn"
    runs = planned_runs(plan)
    yield "", "text"
    order = ", ".join(dict.fromkeys(run.variant for run in runs))
    yield f"{len(runs)} runs with {len(plan.evaluation.seeds)} seeds, in this order: {order}", "text"
    yield from fit(scene)


def _length(scene: Scene, plan: Plan) -> str:
    if scene.version is None:
        return ""
    try:
        counted = own_batches(plan, scene.version)
    except ValueError:
        return ""
    return f"{counted.updates:,} updates, {counted.examples:,} examples seen"


def _cost(variant: Mapping[str, Any] | None, plan: Plan) -> Iterator[Line]:
    if variant and (said := cost_line(variant, len(plan.evaluation.seeds), plan.rental.currency)):
        yield f"  {said}", "text"


def _review(scene: Scene, width: int, ascii_only: bool) -> Iterator[Line]:
    problems = scene.draft.problems
    if problems:
        yield f"{len(problems)} problem{'s' if len(problems) != 1 else ''} to solve before the launch", "bad"
        yield from ((f"! {safe(str(problem))}", "bad") for problem in problems)
    for error in scene.errors:
        yield f"! {safe(finding_words(error))}", "bad"
    if scene.base.get("problem"):
        yield f"! {safe(scene.base['problem'])}", "bad"
    plan = scene.draft.plan
    if plan is not None:
        yield from _written_beforehand(plan, scene)
    warnings = [finding for finding in scene.findings if finding["severity"] != "error"]
    if warnings:
        yield "", "text"
        yield f"{len(warnings)} warning{'s' if len(warnings) != 1 else ''}", "warn"
        yield from ((f"  {safe(finding_words(finding))}", "warn") for finding in warnings)
    yield "", "text"
    if scene.described is not None:
        from ftui.plan.describe import plan_text

        yield from (
            (line, "warn" if line.startswith("  !") else "text")
            for line in plan_text(scene.described, width).splitlines()
        )
        if scene.device:
            yield from memory(scene)
    elif scene.describing:
        yield "working the plan out", "muted"
    elif scene.described_problem:
        yield scene.described_problem, "bad"


def _written_beforehand(plan: Plan, scene: Scene) -> Iterator[Line]:
    """What the launch freezes (H5)."""
    stop = plan.training.stop
    causes = [f"a loss that is no number: {stop.nonfinite}"]
    causes += [f"a loss above {stop.divergence:g} times its best"] if stop.divergence else []
    causes += [f"{stop.patience} validations without a new best"] if stop.patience else []
    causes += [f"{stop.max_hours:g} hours"] if stop.max_hours else []
    seeds = ", ".join(map(str, plan.evaluation.seeds))
    word = "amends the launched plan by what was changed; the report shows it" if scene.launched else "freezes"
    yield f"L {word}:" if not scene.launched else f"L {word}.", "bright"
    yield f"  hypothesis: {plan.hypothesis.statement}", "text"
    yield f"  baseline: the base model is evaluated first, on the same examples, seeds {seeds}", "text"
    yield f"  a run stops before its end for: {'; '.join(causes)}", "text"


_OF_STEP: dict[str, Callable[[Scene, int, bool], Iterator[Line]]] = {
    "hypothesis": _hypothesis,
    "guardrails": _guardrails,
    "data": _data,
    "inspect": _inspect,
    "model": _model,
    "training": _training,
    "evaluation": _evaluation,
    "rental": _rental,
    "variants": _variants,
    "review": _review,
}
