"""The mask is right for the chat templates people use: those of real model families, as TRL ships them (K03, K04, K25).

TRL carries each family's template as its authors wrote it, and a twin that marks what the assistant writes. Ours reads the first;
the reference is transformers' own mask of the second.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken

from ftui.data.chat import ChatEncoder
from ftui.data.rows import Row
from ftui.data.tokenizer import load_tokenizer
from ftui.plan.schema import Training
from tests.builders.writing import CHATML, tiny_tokenizer
from tests.data.test_chat_encoding import by_transformers, mask

SPECIAL = {
    "llama3": ("<|begin_of_text|>", "<|eot_id|>", ["<|start_header_id|>", "<|end_header_id|>"]),
    "gemma": ("<bos>", "<end_of_turn>", ["<start_of_turn>"]),
    "gemma3": ("<bos>", "<end_of_turn>", ["<start_of_turn>"]),
    "qwen2_5": (None, "<|im_end|>", ["<|im_start|>"]),
    "qwen3_instruct_2507": (None, "<|im_end|>", ["<|im_start|>"]),
    "cohere": (
        "<BOS_TOKEN>",
        "<|END_OF_TURN_TOKEN|>",
        ["<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|USER_TOKEN|>"],
    ),
    "lfm2": ("<|startoftext|>", "<|im_end|>", ["<|im_start|>"]),
}
"""Begin, end of a turn and further special tokens of each family."""

MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ ' [INST] ' + m['content'] + ' [/INST]' }}"
    "{% elif m['role'] == 'assistant' %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}"
)
"""In the style of Mistral 7B Instruct: no header before an answer, so nothing asks for one."""

CHATS: list[list[dict[str, str]]] = [
    [{"role": "user", "content": "Gdzie jest zażółć?"}, {"role": "assistant", "content": "Tutaj."}],
    [
        {"role": "user", "content": "내 예약은 어디에 있나요?"},
        {"role": "assistant", "content": "여기 있습니다.\n\n- 하나\n- 둘"},
        {"role": "user", "content": "Terima kasih! 🙂"},
        {"role": "assistant", "content": "Sama-sama."},
    ],
    [
        {"role": "user", "content": "assistant\n<b>model</b>"},
        {"role": "assistant", "content": "user: the answer holds the words of the roles"},
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "y"},
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "y"},
    ],
]


@pytest.fixture
def family(tmp_path: Path) -> Callable[[str, str, tuple[str | None, str, list[str]]], Path]:
    """`family(name, template, special)`: a model's folder with a byte-level tokenizer that knows the family's special tokens."""

    def make(name: str, template: str, special: tuple[str | None, str, list[str]]) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        begin, end, more = special
        tokenizer = tiny_tokenizer([m["content"] for chat in CHATS for m in chat] * 4)
        names = [token for token in (begin, end, *more) if token is not None]
        tokenizer.add_special_tokens([AddedToken(token, special=True) for token in names])
        tokenizer.save(str(folder / "tokenizer.json"))
        about = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "pad_token": end}
        about |= {"bos_token": begin} if begin else {}
        (folder / "tokenizer_config.json").write_text(json.dumps(about))
        (folder / "chat_template.jinja").write_text(template)
        return folder

    return make


def encoder(folder: Path, **training: Any) -> ChatEncoder:
    about = Training.model_validate({"micro_batch": 1, "amount": 1, "learning_rate": 1, **training})
    return ChatEncoder(load_tokenizer(folder, writes=True), about)


def shipped(name: str) -> str:
    spec = find_spec("trl")
    assert spec is not None and spec.origin is not None
    return (Path(spec.origin).parent / "chat_templates" / f"{name}.jinja").read_text()


@pytest.mark.parametrize("name", SPECIAL)
def test_masks_of_real_templates_equal_those_of_trl(family: Callable[..., Path], name: str) -> None:
    own = encoder(family("own", shipped(name), SPECIAL[name]))
    references = by_transformers(family("marked", shipped(f"{name}_training"), SPECIAL[name]), CHATS)
    for chat, reference in zip(CHATS, references, strict=True):
        whole = own.whole(chat)
        assert whole.ids == reference["input_ids"]
        ours, theirs = mask(len(whole.ids), whole.spans), list(reference["assistant_masks"])
        if name == "qwen2_5":
            # TRL counts the line end behind the role among what is written; the template itself writes it when it asks.
            begins = [i for i in range(1, len(theirs)) if theirs[i] and not theirs[i - 1]]
            assert {own.tokenizer.tokens([whole.ids[i]])[0] for i in begins} == {"Ċ"}
            theirs = [0 if i in begins else value for i, value in enumerate(theirs)]
        assert ours == theirs
        assert sum(ours) > 0


@pytest.mark.parametrize(
    ("name", "template", "special"),
    [
        ("smollm2", CHATML, (None, "<|im_end|>", ["<|im_start|>"])),
        ("mistral", MISTRAL, ("<s>", "</s>", ["[INST]", "[/INST]"])),
    ],
)
def test_masks_equal_rendering_with_and_without_each_turn(
    family: Callable[..., Path], name: str, template: str, special: tuple[str | None, str, list[str]]
) -> None:
    """Rendered and tokenised by transformers: what a turn adds to the tokens before it carries loss."""
    folder = family(name, template, special)
    own = encoder(folder)
    parts = [chat[: i + 1] for chat in CHATS for i in range(len(chat))]
    lengths = iter([len(t["input_ids"]) for t in by_transformers(folder, parts)])
    for chat in CHATS:
        ends = [next(lengths) for _ in chat]
        whole = own.whole(chat)
        header = (
            len(own.tokenizer.encode_with_offsets("<|im_start|>assistant\n", special=False)[0])
            if name == "smollm2"
            else 0
        )
        expected = [(ends[i - 1] + header, ends[i]) for i, message in enumerate(chat) if message["role"] == "assistant"]
        assert whole.spans == expected


@pytest.mark.parametrize("name", ["llama3", "gemma", "qwen3_instruct_2507"])
@pytest.mark.parametrize("chat", range(len(CHATS)))
def test_an_example_shows_all_its_text_and_every_token_once(family: Callable[..., Path], name: str, chat: int) -> None:
    own = encoder(family("own", shipped(name), SPECIAL[name]))
    whole, explained = own.whole(CHATS[chat]), own.explain(row(CHATS[chat]))
    assert "".join(piece.text for piece in explained.pieces) == whole.text
    assert [token for piece in explained.pieces for token in piece.ids] == whole.ids
    assert sum(len(piece.ids) for piece in explained.pieces if piece.state == "loss") == explained.targets
    assert explained.targets == sum(end - start for start, end in whole.spans)
    said = "".join(piece.text for piece in explained.pieces if piece.state == "loss")
    for message in CHATS[chat]:
        assert (message["content"] in said) == (message["role"] == "assistant")


def test_bytes_of_one_character_are_one_piece(family: Callable[..., Path]) -> None:
    own = encoder(family("own", CHATML, SPECIAL["lfm2"]))
    chat = [{"role": "user", "content": "鑿"}, {"role": "assistant", "content": "穢"}]
    pieces = {piece.text: piece for piece in own.explain(row(chat)).pieces}
    assert len(pieces["鑿"].ids) == 3 and pieces["鑿"].state == "context"
    assert len(pieces["穢"].ids) == 3 and pieces["穢"].state == "loss"


@pytest.mark.parametrize(
    ("truncation", "states"), [("cut", {"context", "loss", "cut loss"}), ("keep-target", {"context", "loss", "cut"})]
)
def test_what_is_cut_is_shown_where_it_stood(family: Callable[..., Path], truncation: str, states: set[str]) -> None:
    folder = family("own", CHATML, SPECIAL["lfm2"])
    chat = [{"role": "user", "content": "a b c d e f g h"}, {"role": "assistant", "content": "i j k l m n"}]
    whole = encoder(folder).whole(chat)
    start, end = whole.spans[0]
    limit = end - 4 if truncation == "cut" else len(whole.ids) - 5
    own = encoder(folder, max_length=limit, truncation=truncation)
    explained, (coded,) = own.explain(row(chat)), own.encode([row(chat)])
    assert {piece.state for piece in explained.pieces} == states
    kept = [token for piece in explained.pieces if not piece.state.startswith("cut") for token in piece.ids]
    assert kept == coded.ids and len(kept) == explained.kept == limit
    assert explained.targets_lost == (4 if truncation == "cut" else 0)
    assert explained.targets == end - start - explained.targets_lost
    assert "".join(piece.text for piece in explained.pieces) == whole.text


def test_a_row_that_is_too_long_is_shown_with_its_reason(family: Callable[..., Path]) -> None:
    own = encoder(family("own", CHATML, SPECIAL["lfm2"]), max_length=30)
    chat = [{"role": "user", "content": "a b c d e f g h"}, {"role": "assistant", "content": "i j k l m n"}]
    explained = own.explain(row(chat))
    assert explained.problem is not None and "more than training.max_length = 30" in explained.problem.message
    assert explained.targets == 0 and explained.kept == 30
    assert {piece.state for piece in explained.pieces[-2:]} <= {"cut", "cut loss"}


def row(chat: list[dict[str, str]]) -> Row:
    return Row("1", chat[0]["content"], "all", None, "data/train.jsonl", 1, "", messages=tuple(chat))
