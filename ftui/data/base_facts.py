"""What a base model is and what a method would train of it, from its files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ftui.data.base import BaseError, How, find_base, weight_files
from ftui.data.families import FAMILIES, build, misfit
from ftui.data.headers import HeaderError, main_dtype, read_config, read_parameters
from ftui.data.labels import model_labels
from ftui.data.modules import module_rows, modules_of, new_modules, saved_rows, suggested_targets
from ftui.data.template import TEMPLATE_FILE
from ftui.data.trainable import must_save, trainable
from ftui.data.transform import PROCESSOR_FILE
from ftui.plan.schema import Method, Model

Facts = dict[str, Any]

EMPTY: Facts = {
    "how": None,
    "family": None,
    "architectures": [],
    "parameters": None,
    "bytes": None,
    "dtype": None,
    "max_positions": None,
    "has_template": False,
    "labels": None,
    "modules": [],
    "suggested_targets": [],
    "saved": [],
    "new_head": None,
    "new_modules": [],
    "must_save": [],
    "fits_task": None,
}
"""What is said of a base that is not there."""


def locate(model: Model, campaign: Path) -> tuple[Path | None, How | None, str | None]:
    """The folder of the base and how it was found, or why it was not. The hub is not asked, and no weight is hashed."""
    try:
        found = find_base(model, campaign, weights=False, fetch=False)
    except (BaseError, OSError, ValueError, ImportError) as problem:
        return None, None, str(problem)
    return found.directory, found.how, None


def base_facts(
    folder: Path, how: How | None, task: str, labels: int | None, method: Method | None
) -> tuple[Facts, Facts | None]:
    """The base in `folder` for `task` with so many categories (None: not known yet), and what `method` trains of it, if there is one.

    Whatever cannot be read is the `problem`; the rest is there all the same.
    """
    config = read_config(folder)
    family = FAMILIES.get(str(config.get("model_type")))
    facts: Facts = {"problem": None, **EMPTY, "how": how, "family": config.get("model_type")}
    architectures = config.get("architectures")
    facts["architectures"] = [str(name) for name in architectures] if isinstance(architectures, list) else []
    facts["max_positions"] = _positions(config, 0 if family is None else family.spare_positions)
    facts["has_template"] = _has_template(folder)
    facts["fits_task"] = misfit(task, config)
    try:
        files = weight_files(folder)
        parameters = read_parameters(files)
        facts["bytes"] = sum(file.stat().st_size for file in files)
    except (BaseError, HeaderError, OSError) as problem:
        facts["problem"] = str(problem)
        return facts, None
    facts["parameters"] = sum(tensor.size for tensor in parameters.values())
    facts["dtype"] = main_dtype(parameters.values())
    if facts["fits_task"] is not None:
        return facts, None
    if task == "image-classification" and not (folder / PROCESSOR_FILE).is_file():
        facts["fits_task"] = (
            f"{folder}: holds no {PROCESSOR_FILE}, so the size and the colours this model expects are unknown; "
            "take the file from where the model came from"
        )
    built = build(task, config, parameters, labels)
    modules = modules_of(built)
    facts["modules"] = module_rows(modules)
    facts["suggested_targets"] = suggested_targets([m for m in modules if m.name != built.output])
    facts["saved"] = saved_rows(built)
    facts["new_modules"] = new_modules(built)
    facts["must_save"] = must_save(built, task)
    facts["new_head"] = facts["new_modules"][-1] if facts["new_modules"] else None
    facts["labels"] = (model_labels(folder) or None) if _has_head(built.output, parameters) else None
    if method is None:
        return facts, None
    channels = config.get("num_channels", 3)
    return facts, trainable(built, method, task, channels if isinstance(channels, int) else 3)


def _has_head(output: str | None, parameters: dict[str, Any]) -> bool:
    return output is None or f"{output}.weight" in parameters


def _positions(config: dict[str, Any], spare: int) -> int | None:
    for name in ("max_position_embeddings", "n_positions"):
        if isinstance(found := config.get(name), int) and not isinstance(found, bool):
            return found - spare
    return None


def _has_template(folder: Path) -> bool:
    if (folder / TEMPLATE_FILE).is_file():
        return True
    try:
        return '"chat_template"' in (folder / "tokenizer_config.json").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
