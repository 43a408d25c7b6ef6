"""For each text, one that is similar to it in every split that has one: candidates from bands, each confirmed exactly.

What is guaranteed: whatever is found is similar; and a pair exactly at the similarity asked for, in bands of no more than `REACH`
texts of a split, is found with a chance over 99 %. The more similar, the surer.

A template with one word changed puts thousands of texts into one band. Comparing all with all would take their number squared,
so texts of a band are ordered by the bands that follow, which brings the most similar together, and each is compared with the
`REACH` nearest of each split on either side; a text that has a partner in a split looks for no further one there. Every text of
a template then still finds one. Work grows with the number of texts, at worst by 2 `REACH` comparisons per text, split and
band: where all share a long instruction and are not quite similar enough, that is a millisecond or two for each. A text may
miss its only partner where more than `REACH` others that are *not* similar enough to it lie between them, in every band the two
share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ftui.data.minhash import signatures
from ftui.data.shingles import jaccard

REACH = 16
"""Texts of one split, on either side, that a text of a band is compared with."""

FOLLOWING = 3
"""Further bands that order the texts of one band."""

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Partners:
    """Per text and split (rows and columns): another text there that is similar, as its index, -1 for none."""

    index: Indices
    similarity: NDArray[np.float64]
    """0 where there is none."""


def find_partners(texts: Sequence[str], present: NDArray[np.bool_], similarity: float) -> Partners:
    """Partners of distinct plain `texts`, of which `present[i, s]` says whether text i is in split s.

    Sort `texts` first and the result depends on nothing else: not on the order of rows, not on the machine. A partner is the first
    that was met, or a better one met in the same step; not necessarily the most similar.
    """
    found = Partners(np.full(present.shape, -1, np.int64), np.zeros(present.shape))
    known = signatures(texts, similarity)
    for band in range(len(known.keys)):
        members, bucket = _ordered(known.keys, band)
        for split in range(present.shape[1]):
            for first, second in _neighbours(members, bucket, split, present, found):
                plausible = known.plausible(first, second)
                first, second = first[plausible], second[plausible]
                values = jaccard(texts, first, second)
                similar = values >= similarity
                _note(found, first[similar], second[similar], values[similar], present)
                _note(found, second[similar], first[similar], values[similar], present)
    return found


def _ordered(keys: NDArray[np.uint64], band: int) -> tuple[Indices, Indices]:
    """Texts that are not alone in their bucket of `band`, bucket by bucket, most similar beside each other; and their bucket."""
    own = keys[band]
    if not len(own):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(own, kind="stable")
    same = own[order[1:]] == own[order[:-1]]
    members = order[np.concatenate((same, [False])) | np.concatenate(([False], same))]
    following = [keys[(band + step) % len(keys)][members] for step in range(FOLLOWING, -1, -1)]
    members = members[np.lexsort((members, *following))]
    bucket = np.zeros(len(members), np.int64)
    if len(members):
        bucket[1:] = np.cumsum(own[members[1:]] != own[members[:-1]])
    return members, bucket


def _neighbours(
    members: Indices, bucket: Indices, split: int, present: NDArray[np.bool_], found: Partners
) -> Iterator[tuple[Indices, Indices]]:
    """Steps of pairs: each member that still has no partner in `split`, with the next one of its bucket there, ever further away."""
    there = np.flatnonzero(present[members, split])
    everyone = np.arange(len(members))
    after = np.searchsorted(there, everyone, side="right")
    before = np.searchsorted(there, everyone, side="left") - 1
    sides = [(everyone, after, 1), (everyone, before, -1)]
    for _ in range(REACH):
        for side, (here, target, step) in enumerate(sides):
            looking = (found.index[members[here], split] < 0) & (target >= 0) & (target < len(there))
            here, target = here[looking], target[looking]
            other = there[target]
            beside = bucket[other] == bucket[here]
            here, target, other = here[beside], target[beside], other[beside]
            sides[side] = (here, target + step, step)
            # Two that both look for a partner in this split meet from either side; once is enough.
            twice = present[members[here], split] & (found.index[members[other], split] < 0) & (other < here)
            if len(first := members[here[~twice]]):
                yield first, members[other[~twice]]


def _note(
    found: Partners, texts: Indices, others: Indices, values: NDArray[np.float64], present: NDArray[np.bool_]
) -> None:
    """Write `others` down as partners of `texts`, the most similar last, where that is better than what is known."""
    order = np.lexsort((-others, values))
    for split in range(present.shape[1]):
        chosen = order[present[others[order], split]]
        chosen = chosen[values[chosen] > found.similarity[texts[chosen], split]]
        found.index[texts[chosen], split] = others[chosen]
        found.similarity[texts[chosen], split] = values[chosen]
