"""Texts that are almost equal within and across splits, and the plan's policy for them (D4).

Searched after equal texts were treated by their own policy, in all rows that are then left. Two rows are near duplicates when their
texts differ and share so many trigrams (`shingles.py`) that the Jaccard similarity of the two sets reaches `similarity`; how they
are found, and what a search may miss, is in `partners.py`. Only what crosses splits follows the policy `near`: rows within one split
that say almost the same are legitimate examples and are pointed out, never dropped or refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from ftui.data.duplicates import Dropped, row_place
from ftui.data.findings import Finding, error, warning
from ftui.data.minhash import ALGORITHM
from ftui.data.partners import find_partners
from ftui.data.rows import Row
from ftui.data.shingles import plain
from ftui.data.sources import SPLITS
from ftui.data.split import Splits
from ftui.plan.schema import Duplicates
from ftui.record.text import safe

SEARCH = 1
"""Version of what is called near and how it is found; another one may drop other rows."""

EXAMPLES = 20
"""Pairs of rows written out for each pair of splits."""

CONTEXT = 3
"""Words shown on either side of a difference."""


@dataclass(frozen=True)
class Match:
    """A row and another one that it is almost equal to."""

    row: Row
    other: Row
    similarity: float
    """Jaccard similarity of the two texts' trigrams, at most 1: texts may differ in case and punctuation alone."""


@dataclass(frozen=True)
class NearPair:
    """Near duplicates in two splits; the same split twice means within it."""

    first: str
    second: str
    matches: list[Match]
    """Each row of `first` that has a partner in `second`, in the order of rows, with one partner."""
    reverse: list[Match]
    """The same from `second`; empty within one split, where `matches` says all."""

    @property
    def name(self) -> str:
        return f"within {self.first}" if self.first == self.second else f"{self.first} and {self.second}"

    def content(self) -> dict[str, Any]:
        """For `leakage.json`: how many rows, and the first ones beside their partners."""
        return {
            "splits": [self.first, self.second],
            "rows": [len(self.matches), len(self.reverse)],
            "examples": [
                {
                    "similarity": round(match.similarity, 4),
                    "difference": differing(match.row.text, match.other.text),
                    "rows": [row_place(self.first, match.row), row_place(self.second, match.other)],
                }
                for match in _once(self.matches)[:EXAMPLES]
            ],
        }


def find_near(splits: Splits, similarity: float) -> list[NearPair]:
    """Every pair of splits, the same one twice included, with their near duplicates (none, often)."""
    rows = _Rows(splits)
    partners = find_partners(rows.texts, rows.present, similarity)
    found: list[list[list[Match]]] = [[[] for _ in SPLITS] for _ in SPLITS]
    alone = np.bincount(rows.text, minlength=len(rows.texts)) == 1
    for i in np.flatnonzero(~alone[rows.text] | (partners.index[rows.text] >= 0).any(axis=1)):
        row, own, text = rows.rows[i], int(rows.split[i]), int(rows.text[i])
        for there in range(len(SPLITS)):
            alike = [] if alone[text] else [o for o in rows.of(text, there) if o.text != row.text]
            if alike:
                found[own][there].append(Match(row, alike[0], 1.0))
            elif (partner := int(partners.index[text, there])) >= 0:
                other = rows.of(partner, there)[0]
                found[own][there].append(Match(row, other, float(partners.similarity[text, there])))
    return [
        NearPair(SPLITS[a], SPLITS[b], found[a][b], found[b][a] if a != b else [])
        for a, b in combinations_with_replacement(range(len(SPLITS)), 2)
    ]


class _Rows:
    """All rows by their plain text and split. Plain texts are sorted, so that nothing follows from the order of rows."""

    def __init__(self, splits: Splits) -> None:
        self.rows = [row for name in SPLITS for row in splits[name]]
        self.split = np.repeat(np.arange(len(SPLITS)), [len(splits[name]) for name in SPLITS])
        folded = [plain(row.text) for row in self.rows]
        self.texts = sorted(set(folded))
        numbers = {text: i for i, text in enumerate(self.texts)}
        self.text = np.fromiter((numbers[each] for each in folded), np.int64, len(self.rows))
        self.present = np.zeros((len(self.texts), len(SPLITS)), bool)
        self.present[self.text, self.split] = True
        group = self.text * len(SPLITS) + self.split
        self._order = np.argsort(group, kind="stable")
        self._begin = np.searchsorted(group[self._order], np.arange(len(self.texts) * len(SPLITS) + 1))
        self._known: dict[tuple[int, int], list[Row]] = {}

    def of(self, text: int, split: int) -> list[Row]:
        """Up to two rows of a split with this plain text, of the two first of their different texts, in the order of these."""
        known = self._known.get((text, split))
        if known is None:
            group = text * len(SPLITS) + split
            first: dict[str, Row] = {}
            for i in self._order[self._begin[group] : self._begin[group + 1]]:
                first.setdefault(self.rows[i].text, self.rows[i])
            known = self._known[text, split] = [first[each] for each in sorted(first)[:2]]
        return known


def near_drops(pairs: list[NearPair], policy: Duplicates) -> list[Dropped]:
    """Training rows that the policy leaves out, each once, for the partner most similar to it."""
    if policy.near != "drop-from-train":
        return []
    closest: dict[int, tuple[Match, str]] = {}
    for pair in pairs:
        if pair.first == "train" != pair.second:
            for match in pair.matches:
                known = closest.get(id(match.row))
                if known is None or known[0].similarity < match.similarity:
                    closest[id(match.row)] = (match, pair.second)
    return [
        Dropped(match.row, f"{match.similarity:.2f} similar to a row of {split}", match.other)
        for match, split in closest.values()
    ]


def near_findings(pairs: list[NearPair], policy: Duplicates, column: str) -> Iterator[Finding]:
    """One finding for each pair of splits with near duplicates, by the policy."""
    for pair in pairs:
        if not pair.matches:
            continue
        first, kind = pair.matches[0], f"near duplicates {pair.name}"
        sealed = pair.first == pair.second == "test"  # what stands in the test alone is not shown (H4)
        said = "this one" if sealed else repr(differing(first.row.text, first.other.text))
        example = f"{said} with {first.other.place} ({first.similarity:.2f})"
        rows = f"{len(pair.matches):,} {'row' if len(pair.matches) == 1 else 'rows'} of {pair.first}"
        which = f"{'another' if pair.first == pair.second else 'one'} of {pair.second}"
        least = f"almost equal to {which} (similarity {policy.similarity:g} or more)"
        found = f"{rows} {least}, first {example}"
        place, across = first.row.place, pair.first != pair.second
        if across and policy.near == "stop":
            way = 'data.duplicates.near = "stop" refuses this: remove them, or choose another policy'
            yield error(place, column, f"{found}; {way}", kind)
        elif not across:
            kept = "they were kept: a paraphrase is an example of its own"
            counted = "what they ask for counts more than once in every evaluation"
            yield warning(place, column, f"{found}; {kept if pair.first == 'train' else counted}", kind)
        elif pair.first == "validation":
            way = "settings chosen on validation have then seen part of the test; remove them from one of the two"
            yield warning(place, column, f"{found}; {way}", kind)
        elif policy.near == "drop-from-train":
            yield warning(place, column, f"{found}; left out of train (dropped.jsonl)", kind)
        else:
            way = 'remove them, or set data.duplicates.near = "drop-from-train"'
            yield warning(
                place, column, f"{found}; what is measured there is partly remembered, not learnt; {way}", kind
            )


def near_identity(policy: Duplicates) -> dict[str, Any]:
    """What the rows of a data version follow from here: nothing, unless near duplicates are dropped."""
    if policy.near != "drop-from-train":
        return {}
    return {"near": policy.near, "similarity": policy.similarity, "search": [SEARCH, ALGORITHM]}


def differing(text: str, other: str, limit: int = 160) -> str:
    """Two texts as one line, safe to show, their differences side by side: `transfer [100|200] dollars`.

    Equal words far from a difference are cut out (…), so that every difference that fits is seen.
    """
    a, b = text.split(), other.split()
    parts: list[str] = []
    steps = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    for number, (kind, i, j, k, m) in enumerate(steps):
        if kind != "equal":
            parts.append(f"[{' '.join(a[i:j])}|{' '.join(b[k:m])}]")
            continue
        head, tail = CONTEXT if number else 0, CONTEXT if number < len(steps) - 1 else 0
        whole = j - i <= 2 * CONTEXT or a == b
        parts += a[i:j] if whole else [*a[i : i + head], "…", *a[j - tail : j]]
    line = safe(" ".join(parts), limit)
    return f"{line} (other spaces)" if a == b and text != other else line


def _once(matches: list[Match]) -> list[Match]:
    """The matches without those that say of two rows what an earlier one says."""
    seen: dict[frozenset[int], Match] = {}
    for match in matches:
        seen.setdefault(frozenset((id(match.row), id(match.other))), match)
    return list(seen.values())
