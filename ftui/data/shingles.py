"""Texts as sets of character trigrams, and how much two such sets share.

A text is first made plain: compatibility forms taken apart (Unicode NFKD), case folded, runs of punctuation and spaces made one
space. Taken apart, an accented letter becomes its base and a mark and a Korean syllable its letters, so that one typing error
changes about as many trigrams in every script. A plain text has a space before and behind it: words at its ends count like others,
and the shortest text has one trigram. Three code points fit into 63 bits, so a trigram is its own number and never collides.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.uint64]

SIZE = 3
"""Characters of one shingle."""

BLOCK = 4_000_000
"""Characters that are held as numbers at once (8 bytes each, several copies)."""

_NO_TRIGRAM = np.uint64(2**64 - 1)
"""Fills rows of unequal length; no three code points give it."""


@functools.cache
def _separators() -> re.Pattern[str]:
    spans: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] in "PZ" or unicodedata.category(chr(code)) == "Cc":
            if spans and spans[-1][1] == code - 1:
                spans[-1][1] = code
            else:
                spans.append([code, code])
    return re.compile("[" + "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in spans) + "]+")


def plain(text: str) -> str:
    """`text` without what near duplicates may differ in freely: case, punctuation, spaces, compatibility forms.

    A text of nothing but punctuation keeps it. Symbols (currencies, mathematics, pictures) are kept as letters are.
    """
    folded = unicodedata.normalize("NFKD", text).casefold()
    return _separators().sub(" ", folded).strip() or "".join(folded.split())


def trigrams(texts: Sequence[str]) -> tuple[Numbers, NDArray[np.int64]]:
    """Trigrams of plain texts one after another, repetitions included, and where each text's begin (one more than texts)."""
    joined = "".join(f" {text} " for text in texts).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, np.uint32).astype(np.uint64)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts)) + 2
    grams = np.zeros_like(codes)
    grams[:-2] = codes[:-2] << np.uint64(42) | codes[1:-1] << np.uint64(21) | codes[2:]
    ends = np.cumsum(lengths)
    inside = np.ones(len(codes), bool)
    inside[ends - 1] = inside[ends - 2] = False
    return grams[inside], np.concatenate(([0], np.cumsum(lengths - (SIZE - 1))))


def jaccard(texts: Sequence[str], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each pair `texts[first[i]]`, `texts[second[i]]` of plain texts: shared distinct trigrams over all distinct ones, exactly."""
    lengths = np.fromiter(
        (len(texts[i]) + len(texts[j]) for i, j in zip(first, second, strict=True)), np.int64, len(first)
    )
    order = np.argsort(lengths, kind="stable")
    found = np.empty(len(first))
    begin = 0
    while begin < len(order):
        end = min(len(order), begin + max(1, BLOCK // int(lengths[order[begin]] + 2)))
        while end > begin + 1 and (end - begin) * lengths[order[end - 1]] > BLOCK:
            end = begin + max(1, (end - begin) // 2)
        chosen = order[begin:end]
        found[chosen] = _jaccard([texts[i] for i in first[chosen]], [texts[i] for i in second[chosen]])
        begin = end
    return found


def _jaccard(first: list[str], second: list[str]) -> NDArray[np.float64]:
    """As `jaccard`, in one block: one row per pair holds both texts' trigrams, marked by side in their lowest bit, sorted."""
    sides = [trigrams(first), trigrams(second)]
    counts = [np.diff(starts) for _, starts in sides]
    table = np.full((len(first), int((counts[0] + counts[1]).max())), _NO_TRIGRAM)
    for side, (grams, starts) in enumerate(sides):
        row = np.repeat(np.arange(len(first)), counts[side])
        column = np.arange(len(grams)) - np.repeat(starts[:-1], counts[side])
        if side:
            column += np.repeat(counts[0], counts[1])
        table[row, column] = grams << np.uint64(1) | np.uint64(side)
    table.sort(axis=1)
    real = table != _NO_TRIGRAM
    fresh, apart = real.copy(), real.copy()
    fresh[:, 1:] &= table[:, 1:] != table[:, :-1]
    apart[:, 1:] &= table[:, 1:] >> np.uint64(1) != table[:, :-1] >> np.uint64(1)
    both, either = fresh.sum(axis=1), apart.sum(axis=1)  # |A| + |B| and |A ∪ B|
    return np.asarray((both - either) / either, np.float64)
