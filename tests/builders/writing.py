"""A tiny random model that writes, with a real tokenizer and chat template, and campaigns of generation and extraction over it.

Mechanism only: nobody expects it to write well, but twenty updates are enough to see it learn.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tomli_w
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from ftui.record.layout import CampaignFiles
from tests.builders.tiny import tiny_plan

CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""As SmolLM2 and Qwen 2.5 have it."""

MARKED = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{% else %}{{ message['content'] + '<|im_end|>' }}"
    "{% endif %}{{ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""The same text; the template itself says what the assistant writes."""

DRINKS, SIZES, NAMES = ("tea", "coffee", "cocoa", "juice"), ("small", "large"), ("Ada", "Żaneta", "민준", "Budi")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"drink": {"enum": list(DRINKS)}, "size": {"type": "string"}, "name": {"type": ["string", "null"]}},
    "required": ["drink", "name"],
    "additionalProperties": False,
}


def tiny_tokenizer(texts: list[str] | None = None) -> Tokenizer:
    """A byte-level BPE like those of Llama 3 and SmolLM2: any text goes in and comes out whole."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts or [json.dumps(row) for row in orders(64)] * 2, trainer)
    return tokenizer


def tiny_writer(folder: Path, *, template: str | None = CHATML, config: dict[str, Any] | None = None) -> Path:
    """A two-layer Llama with random weights (seed 0). Its end token is its padding token, as in many models."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tiny_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|im_end|>",
        "unk_token": "<|endoftext|>",
    }
    about = {"tokenizer_class": "PreTrainedTokenizerFast", **named, **(config or {})}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=tokenizer.get_vocab_size(), hidden_size=48, intermediate_size=96, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=True,
            bos_token_id=1, eos_token_id=2, pad_token_id=2,
        )
    )  # fmt: skip
    model.save_pretrained(folder)
    return folder


def orders(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Orders at a counter: a text and the fields it gives. All texts differ; some give no name."""
    rows = []
    for i in range(start, start + count):
        drink, size = DRINKS[i % 4], SIZES[i // 4 % 2]
        name = NAMES[i // 8 % 4] if i % 3 else None
        text = f"order {i}: a {size} {drink} please" + (f", for {name}" if name else "")
        rows.append({"text": text, "fields": {"size": size, "drink": drink} | ({"name": name} if name else {})})
    return rows


def chats(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Chats of one to three turns, some with a system message."""
    rows = []
    for i, order in enumerate(orders(count, start), start):
        messages = [{"role": "system", "content": "Be brief."}] if i % 4 == 0 else []
        for turn in range(1 + i % 3):
            messages.append({"role": "user", "content": order["text"] if turn == 0 else f"and {turn}?"})
            messages.append({"role": "assistant", "content": f"{order['fields']['drink']} {turn}"})
        rows.append({"messages": messages})
    return rows


def writing_campaign(folder: Path, model: Path, task: str = "extraction", **changes: Any) -> CampaignFiles:
    """A campaign of `task` ("generation", "extraction") over orders, with the model linked into it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model").symlink_to(model)
    make = orders if task == "extraction" else chats
    for name, start, count in (("train", 0, 96), ("validation", 96, 12), ("test", 108, 12)):
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in make(count, start)]
        path = folder / "data" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")
    (folder / "answer.schema.json").write_text(json.dumps(SCHEMA))
    plan = tiny_plan()
    plan["method"] = {"kind": "lora", "rank": 8, "targets": ["q_proj", "v_proj", "down_proj"]}
    plan["training"] |= {"max_length": 160, "learning_rate": 1e-2}
    if task == "extraction":
        plan["hypothesis"] |= {"task": task, "metric": "field_f1"}
        plan["guardrails"] = [
            {"name": "readable", "metric": "valid_json", "tolerance": 0.1},
            {"name": "each field", "metric": "recall", "slice": "each category", "tolerance": 0.2},
        ]
        plan["data"]["instruction"] = "Answer in JSON."
        plan["evaluation"] |= {"format": "answer.schema.json", "generation": {"max_new_tokens": 40}}
    else:
        plan["hypothesis"] |= {"task": task, "metric": "loss", "direction": "lower"}
        plan["guardrails"] = []
        plan["data"]["columns"] = {"messages": "messages"}
    for name, value in changes.items():
        *sections, field = name.split("__")
        table = plan
        for section in sections:
            table = table[section]
        table[field] = value
    (folder / "campaign.toml").write_text(tomli_w.dumps(plan), encoding="utf-8")
    return CampaignFiles(folder.resolve())
