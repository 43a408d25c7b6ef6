"""Image classification: one picture, one category, prepared as the base model's own processor says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import nn
from transformers import AutoImageProcessor, AutoModelForImageClassification

from ftui.data.encode import Example
from ftui.data.transform import PROCESSOR_FILE
from ftui.train.categories import CategoryTask
from ftui.train.pretrained import empty_classifier, load_classifier
from ftui.train.quantised import FourBit
from ftui.train.task import Batch


class ImageError(Exception):
    """A picture or the model's processor cannot be used; the message names the file."""


class ImageClassification(CategoryTask):
    """The task on `labels`, with pictures below `root` (the campaign) and the processor in the folder `base`.

    A picture is turned as its camera's mark says, made RGB (grey is repeated, transparency left out), then resized, cropped,
    rescaled and normalised by transformers' Pillow processor with the settings of `preprocessor_config.json`. Nothing is
    drawn at random, so an example is the same tensor whenever it is seen.
    """

    adapter_type: str | None = None
    """peft's name of the task: none, so that the head is trained where the plan names it and nowhere else."""

    def __init__(self, labels: Sequence[str], root: Path, base: Path) -> None:
        super().__init__(labels)
        self.root = root
        if not (base / PROCESSOR_FILE).is_file():
            raise ImageError(
                f"{base}: holds no {PROCESSOR_FILE}, so the size and the colours this model expects are unknown; "
                "take the file from where the model came from"
            )
        self.processor = AutoImageProcessor.from_pretrained(  # type: ignore[no-untyped-call]
            base, backend="pil", local_files_only=True, trust_remote_code=False
        )

    def load_base(self, directory: str, four_bit: FourBit | None = None) -> tuple[nn.Module, list[str]]:
        return load_classifier(AutoModelForImageClassification, directory, self.labels, four_bit)

    def empty_base(self, directory: str) -> nn.Module:
        return empty_classifier(AutoModelForImageClassification, directory, self.labels)

    def collate(self, examples: Sequence[Example]) -> Batch:
        pictures = [self.picture(example.path) for example in examples]
        pixels = self.processor(pictures, return_tensors="pt")["pixel_values"]
        labels = torch.tensor([example.label for example in examples])
        return Batch(examples, {"pixel_values": pixels}, labels)

    def picture(self, path: str) -> Image.Image:
        """The picture at `path`, relative to the campaign, upright and in RGB. Raises `ImageError`."""
        return open_picture(self.root / path)

    def control_outputs(self, model: nn.Module, inputs: Sequence[str]) -> list[list[float]]:
        device = next(model.parameters()).device
        outputs = []
        with torch.no_grad():
            for path in inputs:
                batch = self.collate([Example("control", "", 0, [], path=path)]).to(device)
                outputs.append([float(x) for x in self.logits(model, batch)[0]])
        return outputs

    def facts(self) -> dict[str, Any]:
        """What every picture goes through, and the size the model gets."""
        settings = self.processor.to_dict()
        kept = {name: _plain(value) for name, value in sorted(settings.items()) if value is not None}
        blank = self.processor([Image.new("RGB", (64, 48))], return_tensors="pt")["pixel_values"]
        return {"input": list(blank.shape[1:]), "processor": kept}


def open_picture(path: Path) -> Image.Image:
    """The picture in `path`, upright and in RGB. Raises `ImageError` when it is none, is cut off, or has no 8-bit colours."""
    try:
        with Image.open(path) as file:
            picture = ImageOps.exif_transpose(file)
            if picture.mode.startswith("I;16"):
                # Pillow would cut every value above 255 to white.
                picture = Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
            elif picture.mode in ("I", "F"):
                raise ImageError(
                    f"{path}: holds 32-bit values, of which nobody knows what is white; save it with 8 or 16 bits"
                )
            return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as problem:
        raise ImageError(f"{path}: cannot be read as a picture: {problem}") from None


def _plain(value: Any) -> Any:
    """`value` as JSON holds it; the processor's sizes are mappings of their own, some with empty fields."""
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return {k: v for k, v in dict(value).items() if v is not None}
