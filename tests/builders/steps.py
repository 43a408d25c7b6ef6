"""Models of tens of megabytes, the campaigns they are trained in, and what one real step of them takes from the allocator.

Random weights: memory does not depend on what they are.
"""

from __future__ import annotations

import gc
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ftui.data.base import find_base
from ftui.data.encode import EncodedSplit, encode_splits
from ftui.data.encoders import make_encoder
from ftui.plan.settings import RunSettings
from ftui.record.layout import CampaignFiles
from ftui.train.loop import set_up
from tests.builders.tiny import tiny_model
from tests.builders.writing import tiny_writer


def bert(folder: Path, *, dropout: float = 0.1) -> Path:
    """A classifier's base of 14 million parameters with the tiny model's tokenizer."""
    from transformers import BertConfig, BertModel

    tiny_model(folder)
    config = BertConfig(
        vocab_size=4_000, hidden_size=384, num_hidden_layers=7, num_attention_heads=6, intermediate_size=1536,
        max_position_embeddings=64, pad_token_id=0, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    return folder


def llama(folder: Path) -> Path:
    """A writer of 19 million parameters with the tiny writer's tokenizer and a vocabulary that makes logits weigh."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tiny_writer(folder)
    config = LlamaConfig(
        vocab_size=8_000, hidden_size=384, intermediate_size=1152, num_hidden_layers=8, num_attention_heads=6,
        num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, pad_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def vit(folder: Path) -> Path:
    """An image classifier's base of 11 million parameters for pictures of 64 × 64."""
    from transformers import ViTConfig, ViTModel
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    config = ViTConfig(
        image_size=64, patch_size=8, hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536
    )
    ViTModel(config, add_pooling_layer=False).save_pretrained(folder)
    ViTImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)
    return folder


def efficientnet(folder: Path) -> Path:
    """A convolutional net of 5 million parameters for pictures of 96 × 96, its batch norms trained."""
    from transformers import EfficientNetConfig, EfficientNetForImageClassification
    from transformers.models.efficientnet.image_processing_pil_efficientnet import EfficientNetImageProcessorPil

    config = EfficientNetConfig(
        image_size=96,
        width_coefficient=1.0,
        depth_coefficient=1.0,
        hidden_dim=1280,
        num_labels=3,
        batch_norm_momentum=0.1,
    )
    EfficientNetForImageClassification(config).save_pretrained(folder)
    EfficientNetImageProcessorPil(size={"height": 96, "width": 96}, include_top=False).save_pretrained(folder)
    return folder


def measured_peak(settings: RunSettings, campaign: CampaignFiles, examples: list[int], updates: int = 2) -> int:
    """Bytes at the highest moment of real updates on `examples`."""
    shop = set_up(settings, campaign)
    shop.model.train()
    with heard(shop.model) as peak:
        for _ in range(updates):
            shop.update(examples)
    return peak[0]


def measured_evaluation(settings: RunSettings, campaign: CampaignFiles) -> int:
    """Bytes at the highest moment of the real evaluation of the validation rows that are longest, before any training."""
    shop = set_up(settings, campaign)
    shop.model.eval()
    split = shop.splits["validation"]
    longest = np.argsort(-split.lengths, kind="stable")[: settings.evaluation.batch_size]
    batch = shop.task.collate([split.row(int(i)) for i in longest])
    with heard(shop.model) as peak, torch.no_grad(), shop.accelerator.autocast():
        shop.task.predict(shop.model, batch)
    return peak[0]


@contextmanager
def heard(model: torch.nn.Module) -> Iterator[list[int]]:
    """Afterwards, the list holds the bytes of the highest moment within: the model that lay there before, and every allocation and
    release on the CPU as torch's profiler hears of them from the allocator itself."""
    peak: list[int] = []
    before: dict[int, int] = {}
    for tensor in (*model.parameters(), *model.buffers()):
        storage = tensor.untyped_storage()
        before[storage.data_ptr()] = storage.nbytes()
    gc.collect()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        yield peak
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    told = [e["args"] for e in sorted(events, key=lambda e: e.get("ts", 0)) if e["name"] == "[memory]"]
    told = [e for e in told if e["Device Type"] == 0]
    # The allocator's own total; it goes on from what earlier profiles of this process have left.
    start = told[0]["Total Allocated"] - told[0]["Bytes"]
    peak.append(sum(before.values()) + max(e["Total Allocated"] for e in told) - start)


def longest_update(settings: RunSettings, campaign: CampaignFiles) -> list[int]:
    """Examples of an update of nothing but the first epoch's longest micro-batch, found apart from what predicts it."""
    lengths = encoded(settings, campaign)["train"].lengths
    packed = settings.training.batching == "packed"

    def positions(batch: list[int]) -> int:
        return int(lengths[batch].sum() if packed else lengths[batch].max() * len(batch))

    order = [int(i) for i in np.random.default_rng([settings.seed, 0]).permutation(len(lengths))]
    size = settings.training.micro_batch
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    return max(batches, key=positions) * settings.training.accumulation


def encoded(settings: RunSettings, campaign: CampaignFiles) -> dict[str, EncodedSplit]:
    folder = find_base(settings.model, campaign.root, weights=False).directory
    task, labels = settings.hypothesis.task, settings.data.labels
    encoder = make_encoder(task, labels, settings.training, settings.evaluation, folder)
    return encode_splits(campaign.data_version(settings.data.hash), encoder).splits
