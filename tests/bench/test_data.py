"""What a million short rows cost: reading, cleaning, hashing, equal and almost equal texts, tokens.

    python -m pytest -m bench -s tests/bench/test_data.py          FTUI_BENCH_ROWS=20000 tries it small

Each measurement is a process of its own and prints seconds of the clock and of the processor, rows per second and the largest
resident memory of that process, rows included.
The goal of the design: equal and almost equal texts of 1,000,000 rows of ten words in less than 3 minutes and 4 GB on two cores.
"""

from __future__ import annotations

import bisect
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROWS = int(os.environ.get("FTUI_BENCH_ROWS", "1000000"))
WORDS, LABELS = 20_000, 50
COPIES, CHANGED, TEMPLATE = 0.02, 0.02, 0.05
"""Shares of rows that repeat an earlier one, change a word of one, or fill one template with a number."""


def sentences(count: int, seed: int = 1) -> Iterator[str]:
    """Sentences of 6 to 14 words, frequent words more often (Zipf), with planted equal and almost equal ones."""
    chance = random.Random(seed)
    starts, ends = [*"bcdfghklmnprstvwz", "ch", "st", "tr"], ["", *"nrstl", "nd"]
    words = ["".join(chance.choice(starts) + chance.choice("aeiou") for _ in range(n)) + chance.choice(ends)
             for n in chance.choices((1, 2, 3, 4), (1, 4, 4, 1), k=WORDS)]  # fmt: skip
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(WORDS)))
    recent: list[str] = []
    for _ in range(count):
        kind = chance.random()
        if recent and kind < COPIES:
            text = chance.choice(recent)
        elif recent and kind < COPIES + CHANGED:
            own = chance.choice(recent).split()
            own[chance.randrange(len(own))] = chance.choice(words)
            text = " ".join(own)
        elif kind < COPIES + CHANGED + TEMPLATE:
            text = f"transfer {chance.randrange(1_000_000)} dollars from my savings to checking please"
        else:
            drawn = (bisect.bisect(weights, chance.random() * weights[-1]) for _ in range(chance.randint(6, 14)))
            text = " ".join(words[i] for i in drawn)
            recent.append(text)
            if len(recent) > 50_000:
                recent[chance.randrange(50_000)] = recent.pop()
        yield text


def write(folder: Path, count: int) -> None:
    """`rows.jsonl`, and a model's folder with a WordPiece tokenizer learnt from its first rows."""
    from tokenizers import BertWordPieceTokenizer

    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for i, text in enumerate(sentences(count)):
            file.write(json.dumps({"id": f"r{i}", "text": text, "label": f"l{i % LABELS}"}) + "\n")
    tokenizer = BertWordPieceTokenizer()
    tokenizer.train_from_iterator(sentences(5_000), vocab_size=4_000, show_progress=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"pad_token": "[PAD]"}')


def measure(step: str, folder: Path) -> dict[str, float]:
    """Do one step, what comes before it unmeasured; seconds, processor seconds of all threads, largest resident memory in GB."""
    from ftui.data.clean import clean, find_rules
    from ftui.data.duplicates import duplicate_findings, find_pairs, without
    from ftui.data.encode import encode_splits
    from ftui.data.encoders import TextEncoder
    from ftui.data.near import find_near, near_findings
    from ftui.data.records import read_records
    from ftui.data.rows import Row, class_row
    from ftui.data.split import split_by_hash
    from ftui.data.store import write_rows
    from ftui.data.tokenizer import load_tokenizer
    from ftui.plan.schema import Columns, Duplicates, Split, Training
    from ftui.record.files import sha256_file

    path = folder / "rows.jsonl"

    def read() -> list[Row]:
        found = (class_row(path.name, *record, Columns(id="id"), None) for record in read_records(path, path.name))  # type: ignore[misc]
        return [row for items in found for row in items if isinstance(row, Row)]

    def cleaned() -> list[str]:
        return [clean(row.text, rules) for row in rows]

    def hashed() -> object:
        return sha256_file(path), split_by_hash(rows, Split())

    def equal() -> object:
        return list(duplicate_findings(find_pairs(splits), policy, "text"))

    def near() -> object:
        pairs = find_near(splits, policy.similarity)
        print(*near_findings(pairs, policy, "text"), sep="\n", file=sys.stderr)
        return pairs

    def equal_and_near() -> object:
        pairs = find_pairs(splits)
        return pairs, find_near(without(splits, []), policy.similarity)

    def encoded() -> object:
        return encode_splits(version, TextEncoder([f"l{i}" for i in range(LABELS)], load_tokenizer(folder), training))

    steps: dict[str, Callable[[], object]] = {
        "read": read, "clean": cleaned, "hash": hashed, "equal": equal, "near": near, "equal + near": equal_and_near,
        "encode": encoded,
    }  # fmt: skip
    rules, _ = find_rules(["nfc@1", "strip@1", "collapse-spaces@1"])
    policy, training = Duplicates(), Training(micro_batch=1, amount=1, learning_rate=1)
    rows = read() if step not in ("read", "encode") else []
    # Cut in order, not by text: equal texts then cross the splits.
    cut = [len(rows) * 8 // 10, len(rows) * 9 // 10]
    splits = {"train": rows[: cut[0]], "validation": rows[cut[0] : cut[1]], "test": rows[cut[1] :]}
    version = folder / "version"
    if step == "encode" and not version.exists():
        version.mkdir()
        everything = read()
        for name in splits:
            write_rows(version / f"{name}.jsonl", everything if name == "train" else [])
        del everything
    begun, worked = time.perf_counter(), time.process_time()
    kept = steps[step]()
    spent, worked = time.perf_counter() - begun, time.process_time() - worked
    del kept
    return {"seconds": spent, "cpu": worked, "gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9}


@pytest.mark.bench
@pytest.mark.timeout(7200)
def test_what_a_million_rows_cost(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    print(f"\n{ROWS:,} rows, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'step':14}{'seconds':>10}{'CPU s':>10}{'rows/s':>12}{'peak GB':>10}")
    for step in ("read", "clean", "hash", "equal", "near", "equal + near", "encode"):
        child = subprocess.run(
            [sys.executable, __file__, step, str(tmp_path)], capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TOKENIZERS_PARALLELISM": "true"},
        )  # fmt: skip
        assert child.returncode == 0, child.stderr
        found = json.loads(child.stdout)
        rate = ROWS / found["seconds"]
        print(f"{step:14}{found['seconds']:10.1f}{found['cpu']:10.1f}{rate:12,.0f}{found['gb']:10.2f}", flush=True)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
