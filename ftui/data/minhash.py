"""Which of many texts may be similar, without comparing all with all: MinHash signatures cut into bands.

Of two sets with Jaccard similarity s, one value of their signatures is equal with chance s. A band of r values is equal with chance
s^r, and at least one of b bands with chance 1 - (1 - s^r)^b (Leskovec, Rajaraman, Ullman: Mining of Massive Datasets, chapter 3.4).

The signatures are rensa's: measured on this project's sentences they come seven times as fast as from datasketch, as one matrix
from numbers we hash ourselves, and with integer arithmetic alone, so that they are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rensa import RMinHash

from ftui.data.shingles import BLOCK, Numbers, trigrams

ALGORITHM: int = RMinHash.ALGORITHM_VERSION
"""Version of the library's permutations; another one may miss other pairs."""

SEED = 20
MISSED = 0.005
"""Largest chance that a pair exactly at the similarity asked for is in no band together."""

LONGEST = 128
"""Values of a signature at most; more would find the same pairs among fewer candidates."""

ROWS = 20_000
"""Signatures held at once as Python numbers, which is the only way out of the library's matrix."""

PAIRS = 100_000
"""Pairs of signatures compared at once."""


def bands_for(similarity: float) -> tuple[int, int]:
    """Number of bands b and values in each r: the longest bands that keep (1 - s^r)^b at or under `MISSED` within `LONGEST`."""
    fitting = [(1, 1)]
    for r in range(1, LONGEST + 1):
        equal = similarity**r
        b = 1 if equal >= 1 else math.ceil(math.log(MISSED) / math.log1p(-equal))
        if b * r > LONGEST:
            break
        fitting.append((b, r))
    # A similarity of 1 makes equal sets alone candidates, for which eight values in one band are plenty.
    return fitting[-1] if similarity < 1 else (1, 8)


@dataclass(frozen=True)
class Signatures:
    """What is known of many plain texts without their trigrams."""

    keys: Numbers
    """One number per band (rows) and text (columns): texts with an equal one in the same row may be similar."""
    low: NDArray[np.uint8]
    """The lowest 8 bits of each value of each text's signature (texts are rows)."""
    similarity: float

    def plausible(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which pairs agree in so many values that they may be similar enough: a far cheaper question than the exact one.

        Agreeing values of a pair at the similarity s asked for are binomial with mean n s; four standard deviations below that
        fewer than one such pair in ten thousand is lost. Equal low bits of unequal values only let more pairs through.
        """
        n, s = self.low.shape[1], self.similarity
        least = n * s - 4 * math.sqrt(n * s * (1 - s))
        found = np.empty(len(first), bool)
        for begin in range(0, len(first), PAIRS):
            part = slice(begin, begin + PAIRS)
            found[part] = (self.low[first[part]] == self.low[second[part]]).sum(axis=1) >= least
        return found


def signatures(texts: Sequence[str], similarity: float) -> Signatures:
    """Signatures of plain texts, made to find pairs of this similarity or more."""
    bands, width = bands_for(similarity)
    keys = np.empty((bands, len(texts)), np.uint64)
    low = np.empty((len(texts), bands * width), np.uint8)
    for begin, end in _blocks(texts):
        grams, starts = trigrams(texts[begin:end])
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(
            _mixed(grams), starts.astype(np.uint64), bands * width, SEED
        )
        values = np.array(matrix.to_rows(), np.uint64)
        low[begin:end] = values.astype(np.uint8)
        for band in range(bands):
            key = np.full(end - begin, band, np.uint64)
            for value in range(band * width, (band + 1) * width):
                key = _mixed(key ^ values[:, value])
            keys[band, begin:end] = key
    return Signatures(keys, low, similarity)


def _blocks(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    begin = characters = 0
    for i, text in enumerate(texts):
        if i > begin and (i - begin >= ROWS or characters + len(text) > BLOCK):
            yield begin, i
            begin, characters = i, 0
        characters += len(text)
    if texts:
        yield begin, len(texts)


def _mixed(numbers: Numbers) -> Numbers:
    """Numbers whose every bit depends on every bit given (the finaliser of SplitMix64, Steele et al. 2014)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return mixed ^ mixed >> np.uint64(31)
