"""What a name in `method.targets`, `method.save_modules` or `method.frozen` means among a model's modules."""

from __future__ import annotations

import re

from ftui.plan.schema import PATTERN


def matches(module: str, name: str) -> bool:
    """Whether `name` of the plan means `module`: the whole name, its end at a dot, or a pattern over all of it."""
    if name.startswith(PATTERN):
        return re.fullmatch(name.removeprefix(PATTERN), module) is not None
    return module == name or module.endswith("." + name)
