"""`run.toml` is complete: what is read is what was frozen, and a variant differs from the control in its change alone."""

from __future__ import annotations

from pathlib import Path

import tomli_w

from ftui.plan.load import parse_plan, plan_hash
from ftui.plan.settings import DataVersion, RunSettings, dump_settings, read_settings, run_settings
from ftui.plan.variants import PlannedRun, planned_runs
from tests.builders.tiny import tiny_plan

DATA = DataVersion(hash="d", train_examples=96, validation_examples=3, test_examples=3, labels=["none", "예", "żółty"])


def settings(variant: str, **changes: object) -> RunSettings:
    plan = parse_plan(tomli_w.dumps(tiny_plan(**changes)))
    run = next(r for r in planned_runs(plan) if r.variant == variant)
    return run_settings(plan, plan_hash(plan), run, DATA, "cpu")


def test_what_is_read_is_what_was_frozen(tmp_path: Path) -> None:
    frozen = settings("slower")
    (tmp_path / "run.toml").write_text(dump_settings(frozen), encoding="utf-8")
    assert read_settings(tmp_path) == frozen
    assert frozen.data.labels[0] == "none"
    assert frozen.training.stop.patience is None


def test_every_field_stands_in_the_file() -> None:
    text = dump_settings(settings("control"))
    for name in ("schedule", "weight_decay", "use_rslora", "nonfinite", "threads", "resamples", "seed"):
        assert f"\n{name} = " in text
    assert '"training.stop.patience"' in text


def test_a_variant_differs_in_its_change_alone() -> None:
    control, slower = settings("control").model_dump(), settings("slower").model_dump()
    differing = {k for k in control if control[k] != slower[k]}
    assert differing == {"run", "variant", "because", "change", "training"}
    assert {k for k in control["training"] if control["training"][k] != slower["training"][k]} == {"learning_rate"}


def test_the_base_takes_no_update() -> None:
    base = settings("base")
    assert (base.purpose, base.updates, base.examples) == ("baseline", 0, 0)


def test_run_identifiers_name_number_variant_and_seed() -> None:
    assert PlannedRun(7, "half-rate", 18, 0).id == "r007-half-rate-s18"


def test_the_queue_holds_base_then_control_then_variants_by_priority_and_every_variant_once_before_any_twice() -> None:
    variants = [
        {"id": "late", "because": "b", "change": {"method.rank": 2}},
        {"id": "early", "because": "b", "change": {"method.rank": 3}, "priority": 5},
        {"id": "late-too", "because": "b", "change": {"method.rank": 5}},
    ]
    plan = parse_plan(tomli_w.dumps(tiny_plan(variants=variants, evaluation__seeds=[1, 2])))
    assert [(r.variant, r.seed) for r in planned_runs(plan)] == [
        ("base", 1), ("base", 2), ("control", 1), ("control", 2), ("early", 1), ("early", 2),
        ("late", 1), ("late-too", 1), ("late", 2), ("late-too", 2),
    ]  # fmt: skip
