"""Pictures reach the model as its own processor says, and a net with batch normalisation is trained and resumed exactly."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from transformers import AutoModel

from ftui.data.encode import Example
from ftui.record.layout import RunFiles
from ftui.record.rows import read_outcome, read_predictions
from ftui.record.series import CLOCK_FIELDS, read_series
from ftui.train.images import ImageClassification, ImageError, open_picture
from ftui.train.pretrained import HeadError
from tests.builders.pictures import KINDS, SIDE, picture_campaign, tiny_net, tiny_pictures, tiny_vit
from tests.builders.processes import module, start_module, until
from tests.builders.tiny import frozen_run


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_net(tmp_path_factory.mktemp("net"))


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_vit(tmp_path_factory.mktemp("vit"))


def examples(root: Path, count: int) -> list[Example]:
    paths = tiny_pictures(root, count, seed=9)
    kinds = [path.parent.name for path in paths]
    return [
        Example(path.stem, kind, KINDS.index(kind), [], path=str(path.relative_to(root)))
        for path, kind in zip(paths, kinds, strict=True)
    ]


# Reading a picture


def test_grey_becomes_three_equal_channels_and_sixteen_bits_become_eight(tmp_path: Path) -> None:
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    Image.fromarray(grey).save(tmp_path / "8.png")
    Image.fromarray(grey.astype(np.uint16) * 256 + 17).save(tmp_path / "16.png")
    for name in ("8.png", "16.png"):
        pixels = np.asarray(open_picture(tmp_path / name))
        assert pixels.shape == (8, 8, 3)
        assert all((pixels[..., channel] == grey).all() for channel in range(3)), name


def test_a_camera_that_was_held_sideways_is_turned_upright(tmp_path: Path) -> None:
    lying = np.zeros((4, 8, 3), np.uint8)
    lying[:, 0] = 255  # white at the left edge, which is the top once it is turned
    exif = Image.Exif()
    exif[0x0112] = 6  # EXIF 2.3, orientation: turn by 90 degrees clockwise
    Image.fromarray(lying).save(tmp_path / "photo.png", exif=exif)
    pixels = np.asarray(open_picture(tmp_path / "photo.png"))
    assert pixels.shape == (8, 4, 3)
    assert (pixels[0] == 255).all() and (pixels[1:] == 0).all()


def test_what_is_no_picture_is_refused_by_name(tmp_path: Path) -> None:
    whole = tiny_pictures(tmp_path, 1, seed=1)[0]
    (tmp_path / "half.png").write_bytes(whole.read_bytes()[:300])
    (tmp_path / "text.png").write_text("hello")
    Image.fromarray(np.ones((4, 4), np.float32)).save(tmp_path / "float.tiff")
    for name in ("half.png", "text.png", "float.tiff", "absent.png"):
        with pytest.raises(ImageError, match=name):
            open_picture(tmp_path / name)


# What the model gets


def test_pixels_are_resized_rescaled_and_normalised_as_the_models_file_says(net: Path, tmp_path: Path) -> None:
    """Against the arithmetic itself: Pillow's bicubic resize, a division by 255, mean and deviation of each channel."""
    task = ImageClassification(KINDS, tmp_path, net)
    given = examples(tmp_path, 6)
    batch = task.collate(given)
    settings = json.loads((net / "preprocessor_config.json").read_text())
    mean, deviation = (np.array(settings[name]).reshape(3, 1, 1) for name in ("image_mean", "image_std"))
    for example, got in zip(given, batch.inputs["pixel_values"], strict=True):
        with Image.open(tmp_path / example.path) as file:
            small = file.resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        expected = (np.asarray(small).transpose(2, 0, 1) / 255 - mean) / deviation
        assert np.allclose(got.numpy(), expected, atol=1e-5)
    assert batch.labels.tolist() == [0, 1, 2, 0, 1, 2]


def test_size_and_transform_are_facts_of_the_record(net: Path, tmp_path: Path) -> None:
    facts = ImageClassification(KINDS, tmp_path, net).facts()
    assert facts["input"] == [3, SIDE, SIDE]
    assert facts["processor"]["size"] == {"height": SIDE, "width": SIDE}
    assert facts["processor"]["resample"] == 3, "bicubic"
    assert json.loads(json.dumps(facts)) == facts


def test_a_model_that_says_no_picture_size_is_refused(vit: Path, tmp_path: Path) -> None:
    shutil.copytree(vit, tmp_path / "m")
    (tmp_path / "m" / "preprocessor_config.json").unlink()
    with pytest.raises(ImageError, match=r"holds no preprocessor_config\.json"):
        ImageClassification(KINDS, tmp_path, tmp_path / "m")


# The head


def test_a_head_for_other_categories_is_new_and_nothing_else_is(net: Path, vit: Path, tmp_path: Path) -> None:
    for folder in (net, vit):
        model, new = ImageClassification(KINDS, tmp_path, folder).load_base(str(folder))
        assert new == ["classifier.bias", "classifier.weight"]
        assert model.config.id2label == dict(enumerate(KINDS))
        reference = AutoModel.from_pretrained(folder).state_dict()
        own = model.base_model.state_dict()
        assert len(own) > 20 and all(torch.equal(own[name], reference[name]) for name in own)


def test_a_head_of_the_right_size_is_kept(tmp_path: Path) -> None:
    folder = tiny_net(tmp_path / "three", labels=3)
    model, new = ImageClassification(KINDS, tmp_path, folder).load_base(str(folder))
    assert new == []
    assert torch.equal(model.classifier.weight, load_file(folder / "model.safetensors")["classifier.weight"])


def test_weights_of_another_model_are_refused(net: Path, tmp_path: Path) -> None:
    shutil.copytree(net, tmp_path / "m")
    config = json.loads((net / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps(config | {"hidden_dim": 640, "width_coefficient": 0.5}))
    with pytest.raises(HeadError, match="weights and configuration are not of one model"):
        ImageClassification(KINDS, tmp_path, tmp_path / "m").load_base(str(tmp_path / "m"))


def test_the_loss_is_that_of_transformers(vit: Path, tmp_path: Path) -> None:
    task = ImageClassification(KINDS, tmp_path, vit)
    model, _ = task.load_base(str(vit))
    batch = task.collate(examples(tmp_path, 6))
    reference = model(**batch.inputs, labels=batch.labels).loss
    assert float(task.loss_sum(model, batch)) / task.targets(batch) == pytest.approx(float(reference), abs=1e-6)


def test_predictions_do_not_depend_on_the_batch_and_score_as_scikit_learn(net: Path, tmp_path: Path) -> None:
    """In evaluation mode batch normalisation uses the running statistics, not those of its neighbours."""
    from sklearn.metrics import classification_report

    task = ImageClassification(KINDS, tmp_path, net)
    model, _ = task.load_base(str(net))
    given = examples(tmp_path, 30)
    model.train()
    model(**task.collate(given).inputs)  # running statistics that are not those of a new net
    model.eval()
    with torch.no_grad():
        together = task.predict(model, task.collate(given))
        alone = [row for example in given for row in task.predict(model, task.collate([example]))]
    for one, other in zip(together, alone, strict=True):
        assert one["output"] == other["output"] and one["loss"] == pytest.approx(other["loss"], abs=1e-5)
    report = classification_report(
        [row["target"] for row in together], [row["output"] for row in together], output_dict=True, zero_division=0
    )
    scores = task.score(together)
    assert scores["accuracy"] == pytest.approx(report["accuracy"])
    assert scores["macro_f1"] == pytest.approx(report["macro avg"]["f1-score"])
    assert scores["categories"]["red"]["recall"] == pytest.approx(report["red"]["recall"])


# Whole runs


def picture_run(folder: Path, model: Path, **changes: object) -> RunFiles:
    own = {
        "training__amount": 40,
        "training__checkpoint_every": 8,
        "training__validate_every": 20,
        "training__warmup": 0,
    }
    return frozen_run(picture_campaign(folder, model, **own | changes))[0]


@pytest.fixture(scope="module")
def reference(net: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """A run of a net with batch normalisation and dropout that was never interrupted."""
    run = picture_run(tmp_path_factory.mktemp("pictures") / "c", net)
    answer = module("ftui.train", "train", run.root)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return run


def curve(run: RunFiles) -> list[dict[str, object]]:
    return [{k: v for k, v in row.items() if k not in (*CLOCK_FIELDS, "bytes")} for row in read_series(run.series)]


def test_a_net_learns_to_tell_pictures_apart(reference: RunFiles) -> None:
    outcome = read_outcome(reference.outcome)
    assert outcome is not None and outcome.metrics["accuracy"] > 0.9, "each kind has more of its colour"


def test_the_run_records_what_was_trained_and_what_was_done_to_its_pictures(reference: RunFiles) -> None:
    content = json.loads(reference.model.read_text())
    assert content["trainable"] == content["parameters"] and "classifier.weight" in content["trainable_names"]
    assert content["inputs"]["input"] == [3, SIDE, SIDE]
    assert content["inputs"]["processor"]["size"] == {"height": SIDE, "width": SIDE}


def test_a_checkpoint_holds_the_running_statistics_and_evaluation_uses_them(reference: RunFiles, net: Path) -> None:
    kept = load_file(reference.checkpoints / "step-00000040" / "model.safetensors")
    before = load_file(net / "model.safetensors")
    statistics = [name for name in kept if name.endswith("running_var")]
    assert statistics and all(not torch.equal(kept[name], before[name]) for name in statistics)
    # 60 pictures in updates of 8: seven of two micro-batches of 4 and one of one, five times over.
    assert kept["efficientnet.embeddings.batchnorm.num_batches_tracked"] == 5 * (7 * 2 + 1)
    # By the libraries alone: the checkpoint in the base, its own statistics in use, gives the run's own predictions.
    root = reference.root.parent.parent
    task = ImageClassification(KINDS, root, net)
    model, _ = task.load_base(str(net))
    model.load_state_dict(kept)
    model.eval()
    rows = read_predictions(reference.predictions / "validation-00000040.jsonl")
    paths = sorted((root / "data" / "validation").rglob("*.png"))
    assert len(rows) == len(paths) == 30
    for row, path in zip(rows, paths, strict=True):
        with torch.no_grad():
            logits = model(**task.collate([Example("", "", 0, [], path=str(path))]).inputs).logits[0]
        loss = -float(logits.log_softmax(-1)[KINDS.index(row["target"])])
        assert row["loss"] == pytest.approx(loss, abs=1e-4), path


def test_a_killed_run_with_batch_normalisation_continues_to_the_bit(reference: RunFiles, tmp_path: Path) -> None:
    campaign = tmp_path / "copy"
    written = shutil.ignore_patterns("checkpoints", "predictions", "series.jsonl", "outcome.json")
    shutil.copytree(reference.root.parent.parent, campaign, symlinks=True, ignore=written)
    again = RunFiles(campaign / "runs" / reference.root.name)
    process = start_module("ftui.train", "train", again.root)
    until((again.checkpoints / "step-00000008" / "manifest.json").exists, "the first checkpoint")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert module("ftui.train", "train", again.root).returncode == 0
    assert curve(again) == curve(reference)
    last = "validation-00000040.jsonl"
    assert read_predictions(again.predictions / last) == read_predictions(reference.predictions / last)
    weights = Path("step-00000040") / "model.safetensors"
    assert (again.checkpoints / weights).read_bytes() == (reference.checkpoints / weights).read_bytes()


def test_the_artefact_of_a_picture_model_loads_as_its_instructions_say(reference: RunFiles) -> None:
    from transformers import AutoImageProcessor, AutoModelForImageClassification

    root = reference.root.parent.parent
    target = root / "exports" / reference.root.name
    answer = module("ftui.train", "export", reference.root, target)
    assert answer.returncode == 0, answer.stdout
    answer = module("ftui.train", "verify", target)
    assert answer.returncode == 0, answer.stdout
    control = json.loads((target / "control.json").read_text())
    model = AutoModelForImageClassification.from_pretrained(str(target)).eval()
    processor = AutoImageProcessor.from_pretrained(str(target))
    assert "AutoModelForImageClassification" in (target / "README.md").read_text()
    for path, expected in zip(control["inputs"], control["outputs"], strict=True):
        with Image.open(root / path) as picture, torch.no_grad():
            logits = model(**processor(picture.convert("RGB"), return_tensors="pt")).logits[0]
        assert torch.allclose(logits, torch.tensor(expected), atol=1e-4)


def test_an_adapter_on_convolutions_leaves_the_statistics_of_the_base_alone(net: Path, tmp_path: Path) -> None:
    """An adapter carries no running statistics: what is delivered must be what was trained."""
    method = {"kind": "lora", "rank": 4, "targets": ["expand_conv", "project_conv"], "save_modules": ["classifier"]}
    run = picture_run(tmp_path / "c", net, method=method, training__amount=20)
    answer = module("ftui.train", "train", run.root)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    kept, before = (
        load_file(run.checkpoints / "step-00000020" / "model.safetensors"),
        load_file(net / "model.safetensors"),
    )
    statistics = [name for name in kept if "running_" in name]
    assert statistics
    for name in statistics:
        assert torch.equal(kept[name], before[name.removeprefix("base_model.model.").replace(".base_layer", "")]), name
    moved = [name for name in kept if "lora_B" in name]
    assert len(moved) == 3 and all(kept[name].abs().max() > 0 for name in moved)
    target = tmp_path / "c" / "exports" / run.root.name
    assert module("ftui.train", "export", run.root, target).returncode == 0
    answer = module("ftui.train", "verify", target)
    assert answer.returncode == 0, answer.stdout


def test_a_vision_transformer_trains_with_an_adapter_and_a_new_head(vit: Path, tmp_path: Path) -> None:
    method = {"kind": "lora", "rank": 4, "targets": ["all-linear"], "save_modules": ["classifier"]}
    run = picture_run(tmp_path / "c", vit, method=method, training__amount=40)
    answer = module("ftui.train", "train", run.root)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    losses = [row["loss"] for row in read_series(run.series) if row["k"] == "update"]
    assert sum(losses[-8:]) < 0.8 * sum(losses[:8])


def test_a_broken_picture_ends_the_run_with_its_name(net: Path, tmp_path: Path) -> None:
    run = picture_run(tmp_path / "c", net)
    broken = tmp_path / "c" / "data" / "train" / "red" / "002.png"
    broken.write_bytes(broken.read_bytes()[:200])
    assert module("ftui.train", "train", run.root).returncode == 70
    outcome = read_outcome(run.outcome)
    assert outcome is not None and f"{broken}: cannot be read as a picture" in str(outcome.cause)


def test_an_update_that_is_skipped_leaves_running_statistics_as_they_were(tmp_path: Path) -> None:
    """Batch normalisation notes what it has seen in the forward pass, before anybody knows that the loss is no number."""
    from accelerate import Accelerator

    from ftui.train.update import take_update

    net = tiny_net(tmp_path / "net", labels=len(KINDS))
    paths = tiny_pictures(tmp_path / "data", 6, 1)
    task = ImageClassification(KINDS, tmp_path, net)
    examples = [
        Example(str(i), path.parent.name, KINDS.index(path.parent.name), [], path=str(path.relative_to(tmp_path)))
        for i, path in enumerate(paths)
    ]
    model, _ = task.load_base(str(net))
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def after_an_update() -> bool:
        """Whether running statistics changed."""
        before = {name: b.clone() for name, b in model.named_buffers()}
        take_update(Accelerator(cpu=True), model, optimizer, task, [task.collate(examples)], 1.0)
        return any(not torch.equal(b, before[name]) for name, b in model.named_buffers())

    assert after_an_update()
    with torch.no_grad():
        model.classifier.bias[0] = float("nan")  # type: ignore[union-attr, index]
    assert not after_an_update()
