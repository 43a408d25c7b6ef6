"""Token ids are those of the base model's own tokenizer, and a cache never outlives what it was made from (K24)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ftui.data.base import find_base
from ftui.data.encode import EncodedSplit, encode_splits
from ftui.data.encoders import TextEncoder
from ftui.data.findings import DataError
from ftui.data.prepare import prepare, trainings
from ftui.data.tokenizer import TokenizerError, load_tokenizer
from ftui.plan.schema import Plan, Training
from ftui.record.layout import CampaignFiles

ELSEWHERE = [
    "",
    " ",
    "내 카드가 로마에서 분실된 뒤에도 아직 정지되어 있나요?",
    "Zażółć gęślą jaźń – czy mój przelew już wyszedł?",
    "Berapa kalori dalam semangkuk nasi putih?",
    "mixed 한국어 and polski ŻÓŁW\tand\nlines",
    "\u200bzero width, emoji 🙂, surrogate pair 𝔘, combining e\u0301",
    "[SEP] written out [PAD]",
    "x" * 400,
]


def test_ids_equal_those_of_transformers_on_the_seed_campaign_and_other_languages(
    seed_campaign: tuple[Plan, Path],
) -> None:
    plan, root = seed_campaign
    texts = [json.loads(line)["text"] for p in sorted((root / "data").glob("*.jsonl")) for line in p.open()]
    assert len(texts) == 5950
    texts += ELSEWHERE
    model = find_base(plan.model).directory
    tokenizer = load_tokenizer(model)
    script = (
        "import sys, json; from transformers import AutoTokenizer; t = AutoTokenizer.from_pretrained(sys.argv[1]);"
        "texts = json.load(sys.stdin);"
        "print(json.dumps([t(texts)['input_ids'], t(texts, truncation=True, max_length=12)['input_ids'], t.pad_token_id]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(model)], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    whole, cut, pad = json.loads(done.stdout)
    assert tokenizer.encode(texts) == whole
    assert tokenizer.encode_cut(texts, 12) == cut
    assert tokenizer.pad_id == pad
    assert tokenizer.encode(texts[:3]) == whole[:3]


def test_encoded_examples_come_back_as_written(build, tiny_model: Path, words: list[str]) -> None:
    plan, root = build(data={"unit": "u"})
    for name in ("train", "validation", "test"):
        given = [{"text": f"{name} {i} hello", "label": "ab"[i % 2], "u": f"{name}{i}"} for i in range(9)]
        (root / "data" / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in given))
    files = CampaignFiles(root)
    version = prepare(plan, files, tiny_model)
    encoded = encode_splits(
        files.data_version(version.hash), TextEncoder(version.labels, load_tokenizer(tiny_model), plan.training)
    )
    for name, split in encoded.splits.items():
        assert len(split) == 9 and split.lengths.tolist() == [5] * 9
        example = split.row(3)
        ids = [2, words.index(name), words.index("3"), words.index("hello"), 3]
        assert (example.id, example.category, example.label) == (f"data/{name}.jsonl:4", "b", 1)
        assert example.input_ids == ids
        assert split.labels.tolist() == [0, 1] * 4 + [0]
        assert [e.id for e in split] == [f"data/{name}.jsonl:{i}" for i in range(1, 10)]
    with pytest.raises(IndexError):
        split.row(9)


def test_rows_are_found_across_record_batches(build, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftui.data.encode.BATCH", 3)
    plan, root = build()
    files = CampaignFiles(root)
    version = prepare(plan, files, tiny_model)
    (path,) = files.data_version(version.hash).glob("encoded/*/train.arrow")
    split = EncodedSplit(path)
    assert [split.row(i).id for i in range(8)] == [f"data/train.jsonl:{i}" for i in range(1, 9)]
    assert len(split.lengths) == 8


def caches(files: CampaignFiles) -> list[Path]:
    return list(files.data.glob("*/encoded/*/train.arrow"))


def test_cache_is_reused_for_the_same_content_and_for_nothing_else(build, tiny_model: Path, words: list[str]) -> None:
    """K24."""
    plan, root = build()
    files = CampaignFiles(root)
    prepare(plan, files, tiny_model)
    (first,) = files.data.glob("*/encoded")
    written = first.stat().st_mtime_ns
    prepare(plan, files, tiny_model)
    assert first.stat().st_mtime_ns == written and len(caches(files)) == 1
    # Another tokenizer under the same name: same words, other ids.
    path = tiny_model / "tokenizer.json"
    text = path.read_text()
    path.write_text(text.replace('"hello": 7', '"hello": 99'))
    assert path.read_text() != text
    prepare(plan, files, tiny_model)
    assert len(caches(files)) == 2
    # Another length.
    longer = plan.model_copy(update={"training": plan.training.model_copy(update={"max_length": 100})})
    prepare(longer, files, tiny_model)
    assert len(caches(files)) == 3
    # Another byte in the data under the same name, same size and time.
    train = root / "data" / "train.jsonl"
    times = train.stat()
    train.write_bytes(train.read_bytes().replace(b"train 0", b"train 9"))
    os.utime(train, ns=(times.st_atime_ns, times.st_mtime_ns))
    version = prepare(plan, files, tiny_model)
    assert len(caches(files)) == 4
    (path,) = files.data_version(version.hash).glob("encoded/*/train.arrow")
    assert EncodedSplit(path).row(0).input_ids[2] == words.index("9")


def test_too_long_examples_are_all_errors_by_default(build, tiny_model: Path) -> None:
    given = [{"text": "hello " * n, "label": "ab"[n % 2]} for n in (1, 2, 3, 4, 5)]
    plan, root = build({"train.jsonl": given}, training={"max_length": 5})
    files = CampaignFiles(root)
    with pytest.raises(DataError) as raised:
        prepare(plan, files, tiny_model)
    errors = [f for f in raised.value.findings if f.severity == "error"]
    assert [f.place for f in errors] == ["data/train.jsonl:4", "data/train.jsonl:5"]
    assert "has 6 tokens, more than training.max_length = 5" in errors[0].message
    assert not files.data_current.exists()
    assert not list(files.data.glob("*/encoded/*"))


def test_cut_examples_keep_their_special_tokens_and_the_loss_is_counted(
    build, tiny_model: Path, words: list[str]
) -> None:
    texts = ["a", "a b", "a b c d e", "a b c d e f", "b"]
    given = [{"text": text, "label": "ab"[i % 2]} for i, text in enumerate(texts)]
    plan, root = build({"train.jsonl": given}, training={"max_length": 5, "truncation": "cut"})
    files = CampaignFiles(root)
    version = prepare(plan, files, tiny_model)
    encoded = encode_splits(
        files.data_version(version.hash), TextEncoder(version.labels, load_tokenizer(tiny_model), plan.training)
    )
    a, b, c = (words.index(w) for w in "abc")
    assert encoded.splits["train"].row(3).input_ids == [2, a, b, c, 3]
    assert encoded.splits["train"].lengths.max() == 5
    assert encoded.over_length == {"train": 2, "validation": 0, "test": 0}
    (finding,) = encoded.findings
    assert "2 of 5 rows have more than 5 tokens (longest 8); 5 tokens were cut off" in finding.message


def test_every_length_a_variant_asks_for_is_encoded(build, tiny_model: Path) -> None:
    variant = {"id": "shorter", "because": "x", "change": {"training.max_length": 64}}
    rate = {"id": "rate", "because": "x", "change": {"training.learning_rate": 1.0}}
    plan, root = build(variants=[variant, rate])
    assert [t.max_length for t in trainings(plan)] == [512, 64]
    files = CampaignFiles(root)
    prepare(plan, files, tiny_model)
    assert len(caches(files)) == 2


def test_killed_writer_leaves_no_half_cache(build, tiny_model: Path) -> None:
    plan, root = build()
    files = CampaignFiles(root)
    script = (
        "import os, sys; from pathlib import Path; import ftui.data.encode as e; from ftui.data.encoders import TextEncoder;"
        "from ftui.data.tokenizer import load_tokenizer; from ftui.plan.schema import Training;"
        "e.replace_json = lambda *_: os.kill(os.getpid(), 9);"
        "e.encode_splits(Path(sys.argv[1]), TextEncoder(['a', 'b'], load_tokenizer(Path(sys.argv[2])),"
        " Training(micro_batch=1, amount=1, learning_rate=1)))"
    )
    version = prepare(plan, files)
    folder = files.data_version(version.hash)
    done = subprocess.run([sys.executable, "-c", script, str(folder), str(tiny_model)], check=False)
    assert done.returncode == -9
    assert [p.suffix for p in (folder / "encoded").iterdir()] == [".tmp"]
    training = Training(micro_batch=1, amount=1, learning_rate=1)
    encoder = TextEncoder(version.labels, load_tokenizer(tiny_model), training)
    assert len(encode_splits(folder, encoder).splits["train"]) == 8
    assert len(list((folder / "encoded").iterdir())) == 1


def test_folder_without_a_usable_tokenizer_says_what_to_do(tiny_model: Path) -> None:
    path = tiny_model / "tokenizer.json"
    path.write_text("{")
    with pytest.raises(TokenizerError, match="cannot be read as a tokenizer"):
        load_tokenizer(tiny_model)
    path.unlink()
    with pytest.raises(TokenizerError, match="save_pretrained"):
        load_tokenizer(tiny_model)
