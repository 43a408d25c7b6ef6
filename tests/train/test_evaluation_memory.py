"""K12: the memory of an evaluation does not grow with the number of its examples, even where every token has a large vocabulary."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.builders.processes import ENVIRONMENT

VOCABULARY, LENGTH, BATCH = 50_000, 24, 4

MEASURE = f"""
import json, resource, sys
from pathlib import Path
import torch
from accelerate import Accelerator
from transformers import LlamaConfig, LlamaForCausalLM
from ftui.data.encode import Example
from ftui.train.evaluate import evaluate
from ftui.train.generation import Generation
import numpy as np

class Split:
    def __init__(self, count):
        self.lengths = np.full(count, {LENGTH}, np.int32)
    def __len__(self):
        return len(self.lengths)
    def row(self, i):
        ids = [(7 * i + k) % {VOCABULARY} for k in range({LENGTH})]
        return Example(str(i), "all", -1, ids, [(2, {LENGTH})], "answer")

class Encoder:
    class tokenizer:
        pad_id = 0

torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(
    vocab_size={VOCABULARY}, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, tie_word_embeddings=True))
task, accelerator = Generation(Encoder(), 64, None, None), Accelerator(cpu=True)
peaks = []
for count in map(int, sys.argv[2:]):
    done = evaluate(accelerator, model, task, Split(count), {BATCH}, Path(sys.argv[1]) / f"{{count}}.jsonl")
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
print(json.dumps({{"peaks": peaks, "loss": done.metrics["loss"]}}))
"""


def test_memory_does_not_grow_with_the_number_of_examples(tmp_path: Path) -> None:
    few, many = 40, 400
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path), str(few), str(many)],
        capture_output=True, text=True, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    first, last = answer["peaks"]
    if_kept = (many - few) * (LENGTH - 2) * VOCABULARY * 4  # the logits of the further examples
    assert if_kept > 1 << 30
    assert last - first < if_kept / 20
    assert len((tmp_path / f"{many}.jsonl").read_text().splitlines()) == many + 1
