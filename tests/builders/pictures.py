"""Tiny pictures, tiny random nets for them, and a campaign over both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from PIL import Image

from ftui.record.layout import CampaignFiles
from tests.builders.tiny import tiny_plan

KINDS = ("blue", "green", "red")
SIDE = 16


def tiny_pictures(folder: Path, count: int, seed: int) -> list[Path]:
    """`count` PNG files below `folder/KIND/`: noise with more of one colour, no two equal."""
    draw = np.random.default_rng(seed)
    paths = []
    for index in range(count):
        kind = KINDS[index % len(KINDS)]
        pixels = draw.integers(0, 160, (SIDE, SIDE + index % 5, 3), dtype=np.uint8)
        pixels[..., ("red", "green", "blue").index(kind)] += 90
        path = folder / kind / f"{index:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
        paths.append(path)
    return paths


def tiny_net(folder: Path, *, labels: int = 1000, dropout: float = 0.2) -> Path:
    """A two-block EfficientNet with random weights (seed 0), a head for `labels` categories, and its processor's file."""
    import torch
    from transformers import EfficientNetConfig, EfficientNetForImageClassification
    from transformers.models.efficientnet.image_processing_pil_efficientnet import EfficientNetImageProcessorPil

    torch.manual_seed(0)
    config = EfficientNetConfig(
        image_size=SIDE, width_coefficient=0.25, depth_coefficient=1.0, hidden_dim=320, in_channels=[32, 16],
        out_channels=[16, 24], kernel_sizes=[3, 3], strides=[1, 2], num_block_repeats=[1, 1], expand_ratios=[1, 4],
        depthwise_padding=[], num_labels=labels, batch_norm_momentum=0.1, batch_norm_eps=1e-5,
        initializer_range=0.2, dropout_rate=dropout, drop_connect_rate=dropout,
    )  # fmt: skip
    EfficientNetForImageClassification(config).save_pretrained(folder)
    size = {"height": SIDE, "width": SIDE}
    EfficientNetImageProcessorPil(size=size, include_top=False).save_pretrained(folder)
    return folder


def tiny_vit(folder: Path) -> Path:
    """A two-layer ViT without a head, and its processor's file."""
    import torch
    from transformers import ViTConfig, ViTModel
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    torch.manual_seed(0)
    config = ViTConfig(
        image_size=SIDE, patch_size=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    ViTModel(config, add_pooling_layer=False).save_pretrained(folder)
    ViTImageProcessorPil(size={"height": SIDE, "width": SIDE}).save_pretrained(folder)
    return folder


def picture_campaign(folder: Path, model: Path, **changes: Any) -> CampaignFiles:
    """A campaign of folders of pictures, fully fine-tuned unless `changes` say otherwise (dotted fields, `__` for the dot)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model").symlink_to(model)
    for seed, (split, count) in enumerate({"train": 60, "validation": 30, "test": 30}.items()):
        tiny_pictures(folder / "data" / split, count, seed)
    own: dict[str, Any] = {
        "hypothesis__task": "image-classification",
        "data": {name: f"data/{name}" for name in ("train", "validation", "test")},
        "method": {"kind": "full"},
        "evaluation__control_inputs": [f"data/validation/{kind}/{i:03d}.png" for i, kind in enumerate(KINDS)],
    }
    (folder / "campaign.toml").write_text(tomli_w.dumps(tiny_plan(**own | changes)), encoding="utf-8")
    return CampaignFiles(folder.resolve())
