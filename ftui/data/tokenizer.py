"""The base model's tokenizer from its `tokenizer.json`, by the same library transformers uses, without transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ftui.record.files import sha256_file, sha256_json

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


class TokenizerError(Exception):
    """The folder holds no tokenizer that can be used; the message says what to do."""


class TextTokenizer:
    """Texts to token ids with the model's special tokens. `load_tokenizer` makes one."""

    def __init__(self, whole: Tokenizer, cutting: Tokenizer, pad_id: int, sha256: str) -> None:
        self._whole, self._cutting = whole, cutting
        self.pad_id = pad_id
        """Id that fills shorter examples of a batch."""
        self.sha256 = sha256
        """Hash over the content of the tokenizer's files."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, special tokens included, neither padded nor cut."""
        return [encoding.ids for encoding in self._whole.encode_batch_fast(list(texts))]

    def encode_cut(self, texts: Sequence[str], max_length: int) -> list[list[int]]:
        """The same, at most `max_length` ids: the text is cut at its end and keeps the special tokens around it."""
        self._cutting.enable_truncation(max_length)
        return [encoding.ids for encoding in self._cutting.encode_batch_fast(list(texts))]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The tokens' written form, for people."""
        return [self._whole.id_to_token(i) or f"<{i}>" for i in ids]


def load_tokenizer(model_dir: Path) -> TextTokenizer:
    """The tokenizer of the model in `model_dir`. Raises `TokenizerError` with a way out."""
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
    present = [name for name in TOKENIZER_FILES if (model_dir / name).is_file()]
    identity = sha256_json({name: sha256_file(model_dir / name) for name in present})
    return TextTokenizer(whole, cutting, _pad_id(model_dir, whole), identity)


def _pad_id(model_dir: Path, tokenizer: Tokenizer) -> int:
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
    raise TokenizerError(f"{model_dir}: names no padding token; add pad_token to tokenizer_config.json")


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise TokenizerError(f"{path}: is not valid JSON: {problem}; fetch the file again") from None
    return content if isinstance(content, dict) else {}
