"""The base model's tokenizer from its `tokenizer.json`, by the same library transformers uses, without transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ftui.data.template import TEMPLATE_FILE, ChatTemplate, TemplateError, read_template
from ftui.record.files import sha256_file, sha256_json

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", TEMPLATE_FILE)
GENERATION_FILE = "generation_config.json"

_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class TokenizerError(Exception):
    """The folder holds no tokenizer that can be used; the message says what to do."""


class TextTokenizer:
    """Texts to token ids with the model's special tokens. `load_tokenizer` makes one."""

    def __init__(
        self,
        whole: Tokenizer,
        cutting: Tokenizer,
        pad_id: int,
        sha256: str,
        *,
        special: dict[str, str],
        ends: list[int],
        template: ChatTemplate | None,
    ) -> None:
        self._whole, self._cutting = whole, cutting
        self.pad_id = pad_id
        """Id that fills shorter examples of a batch."""
        self.sha256 = sha256
        """Hash over the content of the tokenizer's files, the chat template and the end tokens included."""
        self.special = special
        """Named special tokens as written, e.g. `special["eos_token"]`."""
        self.ends = ends
        """Ids that end an answer: the tokenizer's end token first, then those of the model's generation settings."""
        self.template = template
        self.special_ids = frozenset(int(i) for i, t in whole.get_added_tokens_decoder().items() if t.special)
        """Ids of the tokenizer's own tokens, which no text of a person should hold."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, special tokens included, neither padded nor cut."""
        return [encoding.ids for encoding in self._whole.encode_batch_fast(list(texts))]

    def encode_cut(self, texts: Sequence[str], max_length: int) -> list[list[int]]:
        """The same, at most `max_length` ids: the text is cut at its end and keeps the special tokens around it."""
        self._cutting.enable_truncation(max_length)
        return [encoding.ids for encoding in self._cutting.encode_batch_fast(list(texts))]

    def encode_with_offsets(self, text: str, *, special: bool) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids of `text` and the characters `[start, end)` each stands for; (0, 0) for a token that stands for none.

        `special` adds the tokens the tokenizer puts around a text; a rendered chat has its own.
        """
        encoding = self._whole.encode(text, add_special_tokens=special)
        return encoding.ids, encoding.offsets

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens left out."""
        return str(self._whole.decode(list(ids), skip_special_tokens=True))

    def id_of(self, token: str) -> int | None:
        found = self._whole.token_to_id(token)
        return None if found is None else int(found)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The tokens' written form, for people."""
        return [self._whole.id_to_token(i) or f"<{i}>" for i in ids]


def load_tokenizer(model_dir: Path, *, writes: bool = False) -> TextTokenizer:
    """The tokenizer of the model in `model_dir`. Raises `TokenizerError` with a way out.

    A model that `writes` must have an end token, and pads with it where it names no other: padding is told by position.
    """
    path = model_dir / "tokenizer.json"
    if not path.is_file():
        raise TokenizerError(
            f"{model_dir}: holds no tokenizer.json; write one with "
            "`AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)` of transformers"
        )
    try:
        # What is stored in the file about padding and truncation is the author's last use, not the model's need.
        whole, cutting = (Tokenizer.from_file(str(path)) for _ in range(2))
    except Exception as problem:  # the library raises bare exceptions
        raise TokenizerError(f"{path}: cannot be read as a tokenizer: {problem}; fetch the file again") from None
    for tokenizer in (whole, cutting):
        tokenizer.no_padding()
        tokenizer.no_truncation()
    names = (*TOKENIZER_FILES, GENERATION_FILE) if writes else TOKENIZER_FILES
    identity = sha256_json({n: sha256_file(model_dir / n) for n in names if (model_dir / n).is_file()})
    special = _special(model_dir)
    ends = _ends(model_dir, whole, special) if writes else []
    template = _template(model_dir, special) if writes else None
    pad = _pad_id(model_dir, whole, ends[0] if ends else None)
    return TextTokenizer(whole, cutting, pad, identity, special=special, ends=ends, template=template)


def _special(model_dir: Path) -> dict[str, str]:
    """Named special tokens; tokenizer_config.json goes before special_tokens_map.json."""
    found: dict[str, str] = {}
    for file in ("special_tokens_map.json", "tokenizer_config.json"):
        path = model_dir / file
        for name, token in (_read(path) if path.is_file() else {}).items():
            content = token.get("content") if isinstance(token, dict) else token
            if name in _NAMED and isinstance(content, str):
                found[name] = content
    return found


def _ends(model_dir: Path, tokenizer: Tokenizer, special: dict[str, str]) -> list[int]:
    path = model_dir / GENERATION_FILE
    also = _read(path).get("eos_token_id") if path.is_file() else None
    ids = [tokenizer.token_to_id(special["eos_token"])] if "eos_token" in special else []
    ids += also if isinstance(also, list) else [also]
    ends = list(dict.fromkeys(int(i) for i in ids if i is not None))
    if not ends:
        raise TokenizerError(
            f"{model_dir}: names no end token, so no answer would ever end; add eos_token to tokenizer_config.json"
        )
    return ends


def _template(model_dir: Path, special: dict[str, str]) -> ChatTemplate | None:
    path = model_dir / "tokenizer_config.json"
    source = read_template(model_dir, _read(path) if path.is_file() else {})
    try:
        return None if source is None else ChatTemplate(source, special)
    except TemplateError as problem:
        raise TokenizerError(f"{model_dir}: {problem}") from None


def _pad_id(model_dir: Path, tokenizer: Tokenizer, end: int | None) -> int:
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        path = model_dir / name
        token = _read(path).get("pad_token") if path.is_file() else None
        content = token.get("content") if isinstance(token, dict) else token
        if isinstance(content, str) and (found := tokenizer.token_to_id(content)) is not None:
            return int(found)
    stored = _read(model_dir / "tokenizer.json").get("padding")
    if isinstance(stored, dict) and isinstance(stored.get("pad_id"), int):
        return int(stored["pad_id"])
    for content in ("[PAD]", "<pad>", "<|pad|>", "<|endoftext|>"):
        if (found := tokenizer.token_to_id(content)) is not None:
            return int(found)
    if end is not None:
        return end
    raise TokenizerError(f"{model_dir}: names no padding token; add pad_token to tokenizer_config.json")


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise TokenizerError(f"{path}: is not valid JSON: {problem}; fetch the file again") from None
    return content if isinstance(content, dict) else {}
