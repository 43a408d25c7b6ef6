"""The hours kept for the end are set beside what the pilot measured for it (R3, R5)."""

from __future__ import annotations

import tomli_w

from ftui.plan.budget import Spread
from ftui.plan.describe import describe_plan, plan_text
from ftui.plan.load import parse_plan
from ftui.plan.settings import DataVersion
from tests.builders.tiny import tiny_plan

DATA = DataVersion(hash="d" * 16, train_examples=96, validation_examples=30, test_examples=30, labels=["a", "b", "c"])


def test_too_few_hours_for_the_end_are_told() -> None:
    plan = parse_plan(tomli_w.dumps(tiny_plan()))  # evaluation = 2 h, export = 1 h; three runs
    closing = {"evaluation": Spread(3600, 3000, 4500), "export": Spread(900, 800, 1000)}
    described = describe_plan(plan, DATA, {}, 2, closing)
    # Three runs on two places are two rounds: 2 × 4,500 s at most.
    assert described["closing"]["evaluation"] == {"hours": 2.0, "hours_high": 2.5, "planned": 2.0, "enough": False}
    assert described["closing"]["export"]["enough"]
    text = plan_text(described)
    assert "evaluation needs about 2.00 h, at most 2.50; the plan keeps 2 h: too few" in text
    assert "export needs about 0.25 h" in text and text.count("too few") == 1
