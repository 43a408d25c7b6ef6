"""Named, versioned rules applied to every text (D2). A rule never changes its meaning: a better one gets the next number."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ftui.data.findings import Finding, error, nearest
from ftui.plan.load import PLAN_FILE


@dataclass(frozen=True)
class Rule:
    """One pure function on a text."""

    name: str
    """`name@version`, as the plan calls it."""
    meaning: str
    apply: Callable[[str], str]


def _drop_control(text: str) -> str:
    return "".join(c for c in text if c in "\t\n\r" or unicodedata.category(c) != "Cc")


def _collapse(text: str) -> str:
    words = text.split()
    if not words:
        return " " if text else ""
    return (" " if text[0].isspace() else "") + " ".join(words) + (" " if text[-1].isspace() else "")


RULES = {
    rule.name: rule
    for rule in (
        Rule("nfc@1", "canonical composition (Unicode NFC)", lambda text: unicodedata.normalize("NFC", text)),
        Rule("strip@1", "no white space at either end", str.strip),
        Rule("collapse-spaces@1", "each run of white space is one space", _collapse),
        Rule("lower@1", "lower case", str.lower),
        Rule("drop-control@1", "no control characters but tab and line ends", _drop_control),
    )
}
"""Every rule a plan may name."""


def find_rules(names: Iterable[str]) -> tuple[list[Rule], list[Finding]]:
    """The rules of a plan in order, and an error for each name that is none."""
    rules, findings = [], []
    for index, name in enumerate(names):
        if name in RULES:
            rules.append(RULES[name])
        else:
            message = f"no cleaning rule {name!r}; {nearest(name, RULES)}"
            findings.append(error(PLAN_FILE, f"data.cleaning[{index}]", message, "unknown rule"))
    return rules, findings


def clean(text: str, rules: Iterable[Rule]) -> str:
    """`text` after all rules, in order."""
    for rule in rules:
        text = rule.apply(text)
    return text
