"""The README of an artefact: how to load it and ask it, by the public libraries alone."""

from __future__ import annotations

from ftui.plan.settings import RunSettings

_CLASSES = {
    "text-classification": "AutoModelForSequenceClassification",
    "image-classification": "AutoModelForImageClassification",
    "generation": "AutoModelForCausalLM",
    "extraction": "AutoModelForCausalLM",
}
"""Class of transformers that a task's model is loaded as."""

_CATEGORY = "print(labels[str(int(model(**batch).logits.argmax()))])"


def instructions(settings: RunSettings, base_sha256: str) -> str:
    """The text of `README.md`."""
    adapter = settings.method.has_adapter
    revision = f" at revision `{settings.model.revision}`" if settings.model.revision else ""
    code = "\n".join(f"    {line}".rstrip() for line in [*_loading(settings), "", *_asking(settings)])
    return f"""# {settings.run}

{"An adapter for" if adapter else "A model trained from"} `{settings.model.base}`{revision}
(weights SHA-256 `{base_sha256}`), trained for {settings.updates} updates of {settings.examples_per_update} examples.

{code}

`manifest.json` holds the checksum of every file; `control.json` the answers this artefact must give; `run.toml` every setting.
{_before(settings)}
"""


def _loading(settings: RunSettings) -> list[str]:
    task, model, method = settings.hypothesis.task, settings.model, settings.method
    reader = "AutoImageProcessor" if task == "image-classification" else "AutoTokenizer"
    names = [_CLASSES[task], reader] + (["BitsAndBytesConfig"] if method.kind == "qlora" else [])
    lines = ["import json, torch", *(["from peft import PeftModel"] if method.has_adapter else [])]
    lines += ["from PIL import Image"] if task == "image-classification" else []
    lines += [f"from transformers import {', '.join(sorted(names))}", ""]
    labels = "classification" in task
    lines += ['labels = json.load(open("labels.json"))'] if labels else []
    if not method.has_adapter:
        return [*lines, f'model = {_CLASSES[task]}.from_pretrained(".").eval()']
    options = [f'"{model.base}"', *([f'revision="{model.revision}"'] if model.revision else [])]
    if labels:
        options += ["num_labels=len(labels)", *(["ignore_mismatched_sizes=True"] if task.startswith("image") else [])]
    if method.kind == "qlora":
        whole = "".join(f', r"(?:.*\\.)?{name}"' for name in method.save_modules)
        options.append("quantization_config=packed")
        lines += [
            "packed = BitsAndBytesConfig(",
            '    load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,',
            f'    bnb_4bit_compute_dtype="{_COMPUTE[settings.training.precision]}", llm_int8_skip_modules=["lm_head"{whole}],',
            ")",
        ]
    return [
        *lines,
        f"base = {_CLASSES[task]}.from_pretrained(",
        f"    {', '.join(options)},",
        ")",
        'model = PeftModel.from_pretrained(base, ".").eval()',
    ]


_COMPUTE = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def _asking(settings: RunSettings) -> list[str]:
    match settings.hypothesis.task:
        case "text-classification":
            length = settings.training.max_length
            return [
                'tokenizer = AutoTokenizer.from_pretrained(".")',
                f'batch = tokenizer("your text", return_tensors="pt", truncation=True, max_length={length})',
                _CATEGORY,
            ]
        case "image-classification":
            return [
                'processor = AutoImageProcessor.from_pretrained(".")',
                'batch = processor(Image.open("picture.png").convert("RGB"), return_tensors="pt")',
                _CATEGORY,
            ]
    system = settings.data.instruction
    most = settings.evaluation.generation.max_new_tokens if settings.evaluation.generation else 128
    return [
        'tokenizer = AutoTokenizer.from_pretrained(".")',
        "messages = [" + (f'{{"role": "system", "content": {system!r}}},' if system else ""),
        '    {"role": "user", "content": "your text"}]',
        'batch = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True, return_tensors="pt")',
        f"answer = model.generate(**batch, max_new_tokens={most}, do_sample=False)",
        'print(tokenizer.decode(answer[0, batch["input_ids"].shape[1]:], skip_special_tokens=True))',
    ]


def _before(settings: RunSettings) -> str:
    if settings.hypothesis.task == "image-classification":
        return "Pictures are turned upright and made RGB; `preprocessor_config.json` says what else is done to them."
    return "Texts were cleaned before training by the plan's rules; clean yours the same way."
