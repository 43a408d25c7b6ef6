"""What the base model's own processor does to every picture, in words, read from its settings without running it (D5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROCESSOR_FILE = "preprocessor_config.json"


def transform_words(model_dir: Path) -> list[str]:
    """The steps in the order they are done; what the settings leave open is said to be the processor's default."""
    path = model_dir / PROCESSOR_FILE
    if not path.is_file():
        return [f"unknown: the model has no {PROCESSOR_FILE}; take the file from where the model came from"]
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        return [f"unknown: {PROCESSOR_FILE} is not valid JSON: {problem}"]
    steps = ["turned as its camera's mark says, made RGB"]
    if settings.get("do_resize", True):
        steps.append(f"resized to {_size(settings.get('size'))}")
    if settings.get("do_center_crop"):
        steps.append(f"cut to the middle {_size(settings.get('crop_size'))}")
    if settings.get("do_rescale", True):
        steps.append(f"values multiplied by {_number(settings.get('rescale_factor', 1 / 255))}")
    if settings.get("do_normalize", True):
        mean, deviation = settings.get("image_mean"), settings.get("image_std")
        steps.append(
            f"minus {_numbers(mean)}, divided by {_numbers(deviation)} per channel"
            if mean and deviation
            else "normalised by the processor's default"
        )
    return steps


def _size(size: Any) -> str:
    if isinstance(size, int):
        return f"{size} × {size}"
    if isinstance(size, dict):
        if "height" in size and "width" in size:
            return f"{size['width']} × {size['height']}"
        if "shortest_edge" in size:
            return f"a shorter side of {size['shortest_edge']}"
    return "the processor's default size"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _numbers(values: Any) -> str:
    return "/".join(map(_number, values)) if isinstance(values, list) else _number(values)
