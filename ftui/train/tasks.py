"""Which task a run has: the one place where the plan's word becomes an object."""

from __future__ import annotations

from pathlib import Path

from ftui.data.base import find_base
from ftui.data.encoders import make_chat_encoder
from ftui.data.form import read_form
from ftui.data.store import FORM_FILE
from ftui.data.tokenizer import load_tokenizer
from ftui.plan.settings import RunSettings
from ftui.record.layout import CampaignFiles
from ftui.train.task import Task


def make_task(settings: RunSettings, campaign: CampaignFiles, folder: Path | None = None) -> Task:
    """The task of a run. Tokenizer or image processor come from `folder`, by default the base model's.

    Imports only what the task needs.
    """
    folder = folder or find_base(settings.model, campaign.root).directory
    data, training, evaluation = settings.data, settings.training, settings.evaluation
    match settings.hypothesis.task:
        case "text-classification":
            from ftui.train.classification import TextClassification

            return TextClassification(data.labels, load_tokenizer(folder), training.max_length)
        case "image-classification":
            from ftui.train.images import ImageClassification

            return ImageClassification(data.labels, campaign.root, folder)
        case "generation" as task:
            from ftui.train.generation import Generation

            encoder = make_chat_encoder(task, training, evaluation, folder)
            return Generation(encoder, training.max_length, evaluation.generation, data.instruction)
        case "extraction" as task:
            from ftui.train.extraction import Extraction

            encoder = make_chat_encoder(task, training, evaluation, folder)
            form = read_form(campaign.data_version(data.hash) / FORM_FILE)
            assert evaluation.generation is not None  # the plan was checked
            return Extraction(encoder, training.max_length, evaluation.generation, data.instruction, form)
