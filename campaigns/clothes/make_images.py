"""Unpack `data/fashion_mnist_small.npz` into a folder per split and class of PNG files: `data/train/coat/coat-0001.png`.

    python campaigns/clothes/make_images.py

The first 240 training pictures of each class become `train`, the next 60 `validation`; the 100 test pictures stay `test`. Pixels
are copied as they are. Equal input gives equal files; what is there already is left alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(__file__).parent
CLASSES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot")
"""In the order of the original's class numbers."""
TRAIN = 240
"""Training pictures of each class; the rest of upstream's training part validates."""


def main() -> None:
    with np.load(HERE / "data" / "fashion_mnist_small.npz", allow_pickle=False) as arrays:
        pictures = {part: (arrays[f"x_{part}"], arrays[f"y_{part}"]) for part in ("train", "test")}
    written = 0
    for number, name in enumerate(CLASSES):
        learned, tested = (x[y == number] for x, y in pictures.values())
        for split, chosen in (("train", learned[:TRAIN]), ("validation", learned[TRAIN:]), ("test", tested)):
            folder = HERE / "data" / split / name
            folder.mkdir(parents=True, exist_ok=True)
            for index, picture in enumerate(chosen):
                path = folder / f"{name}-{index:04d}.png"
                if not path.exists():
                    Image.fromarray(picture).save(path)
                written += 1
    print(f"{HERE / 'data'}: {written:,} pictures of {len(CLASSES)} classes")


if __name__ == "__main__":
    main()
