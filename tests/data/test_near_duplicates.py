"""Almost equal texts within and across splits (D4), against a comparison of all with all that shares no code with the search."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import re
import time
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftui.data.minhash import LONGEST, MISSED, bands_for, signatures
from ftui.data.near import NearPair, differing, find_near
from ftui.data.prepare import check_data, prepare
from ftui.data.rows import Row
from ftui.data.shingles import jaccard, plain
from ftui.data.sources import SPLITS
from ftui.data.split import Splits
from ftui.plan.schema import Plan
from ftui.record.files import read_json
from ftui.record.layout import CampaignFiles
from tests.builders.tiny import tiny_plan

SEED = Path(__file__).parents[2] / "campaigns" / "three-learning-rates" / "data"
SIMILARITY = 0.85

Found = dict[tuple[str, str], set[str]]
"""Per pair of splits, in both orders: texts of the first with a partner in the second."""


def row(text: str, name: str = "f", line: int = 1) -> Row:
    return Row(f"{name}:{line}", text, "a", None, name, line, text)


def seed_splits(train: int = 1200, other: int = 500) -> Splits:
    """Real sentences, a part of each split."""
    counts = {"train": train, "validation": other, "test": other}
    return {
        name: [
            row(json.loads(line)["text"], name, number)
            for number, line in enumerate((SEED / f"{name}.jsonl").read_text("utf-8").splitlines()[:count], 1)
        ]
        for name, count in counts.items()
    }


def grams(text: str) -> set[str]:
    """Trigrams, by the words of the documentation."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    spaced = (" " if unicodedata.category(c)[0] in "PZ" or c in "\t\n" else c for c in folded)
    joined = f" {' '.join(''.join(spaced).split())} "
    return {joined[i : i + 3] for i in range(len(joined) - 2)}


def brute_force(splits: Splits, similarity: float = SIMILARITY) -> Found:
    """All texts against all: shared trigrams of each two as a product of 0/1 vectors."""
    texts = sorted({row.text for rows in splits.values() for row in rows})
    sets = [grams(text) for text in texts]
    columns = {gram: i for i, gram in enumerate(set().union(*sets))}
    vectors = np.zeros((len(texts), len(columns)), np.float32)
    for vector, own in zip(vectors, sets, strict=True):
        vector[[columns[gram] for gram in own]] = 1
    shared = (vectors @ vectors.T).astype(np.float64)
    sizes = np.array([len(own) for own in sets])
    near = shared / (sizes[:, None] + sizes - shared) >= similarity
    np.fill_diagonal(near, False)
    there = {name: np.isin(texts, [row.text for row in rows]) for name, rows in splits.items()}
    return {
        (first, second): {texts[i] for i in np.flatnonzero(there[first] & near[:, there[second]].any(axis=1))}
        for first, second in itertools.product(SPLITS, repeat=2)
    }


def searched(pairs: list[NearPair]) -> Found:
    found: Found = {}
    for pair in pairs:
        found[pair.first, pair.second] = {m.row.text for m in pair.matches}
        if pair.first != pair.second:
            found[pair.second, pair.first] = {m.row.text for m in pair.reverse}
    return found


def matched(pairs: list[NearPair]) -> set[tuple[str, str, str, str, float]]:
    return {
        (pair.first, pair.second, m.row.text, m.other.text, m.similarity)
        for pair in pairs
        for m in (*pair.matches, *pair.reverse)
    }


@pytest.fixture(scope="module")
def real() -> Splits:
    return seed_splits()


@pytest.mark.parametrize("similarity", [0.6, 0.75, 0.85, 0.95])
def test_rows_with_a_partner_are_those_that_comparing_all_with_all_finds(real: Splits, similarity: float) -> None:
    expected = brute_force(real, similarity)
    assert any(expected.values())
    assert searched(find_near(real, similarity)) == expected


def test_every_reported_pair_is_as_similar_as_it_says(real: Splits) -> None:
    matches = [m for pair in find_near(real, 0.6) for m in (*pair.matches, *pair.reverse)]
    assert len(matches) > 50
    for match in matches:
        one, two = grams(match.row.text), grams(match.other.text)
        assert match.row.text != match.other.text
        assert match.similarity == len(one & two) / len(one | two) >= 0.6


def test_no_alarm_where_comparing_all_with_all_finds_none(real: Splits) -> None:
    gone = set().union(*brute_force(real).values())
    left = {name: [r for r in rows if r.text not in gone] for name, rows in real.items()}
    assert not any(pair.matches or pair.reverse for pair in find_near(left, SIMILARITY))


def test_order_and_repetition_of_rows_make_no_difference(real: Splits) -> None:
    chance = random.Random(3)
    form = "transfer {} dollars from my savings account to the account of my landlord please"
    filled = {
        name: [
            row(form.format(number), name, 10_000 + i)
            for i, number in enumerate(chance.sample(range(1000, 10_000), 200))
        ]
        for name in SPLITS
    }
    given = {name: rows + filled[name] for name, rows in real.items()}
    expected = matched(find_near(given, 0.7))
    assert expected and matched(find_near(given, 0.7)) == expected
    shuffled = {name: chance.sample(rows, len(rows)) for name, rows in given.items()}
    assert matched(find_near(shuffled, 0.7)) == expected
    repeated = {name: rows + [dataclasses.replace(r) for r in rows[::3]] for name, rows in given.items()}
    assert matched(find_near(repeated, 0.7)) == expected


PLANTED = [
    (
        "i would like to move my appointment with the dentist to thursday",
        "I would like to move my appointment with the dentist to Thursday!",
    ),
    (
        "can you please tell me how much money is left on my account today",
        "can you please tell me how much money is left in my account today",
    ),
    (
        "remind me to water the tomatoes on the balcony tomorrow morning",
        "remind me to water the tomatos on the balcony tomorrow morning",
    ),
    (
        "pay 100 dollars from my savings account to the electricity company",
        "pay 200 dollars from my savings account to the electricity company",
    ),
    (
        "Czy mógłby pan przełożyć moją wizytę u dentysty na przyszły czwartek?",
        "Czy mogłby pan przełożyć moją wizytę u dentysty na przyszły czwartek",
    ),
    (
        "내일 아침 여덟 시에 강남역 근처 식당에 네 명 자리를 예약해 주세요",
        "내일 아침 여덟 시에 강남역 근처 식당에 세 명 자리를 예약해 주세요",
    ),
    (
        "tolong pesankan meja untuk dua orang di restoran dekat stasiun besok malam",
        "tolong pesankan meja untuk tiga orang di restoran dekat stasiun besok malam",
    ),
    (
        "cafe\u0301 creme for the table in the corner of the terrace",
        "caf\u00e9 creme for the table in the corner of the terrace",
    ),
]
"""Case and punctuation, a word, a typing error, a number, a Polish mark, a Korean and an Indonesian word, a composed letter."""


def planted(real: Splits) -> dict[str, list[dict[str, Any]]]:
    """The seed's sentences without near duplicates of their own, and in train and test one half each of `PLANTED`."""
    gone = set().union(*brute_force(real).values())
    texts = {name: [r.text for r in rows if r.text not in gone] for name, rows in real.items()}
    seen: set[str] = set()
    for name in texts:
        texts[name] = [t for t in texts[name] if t not in seen]
        seen |= set(texts[name])
    texts["train"][10:10] = [a for a, _ in PLANTED]
    texts["test"][20:20] = [b for _, b in PLANTED]
    return {
        f"{name}.jsonl": [{"text": t, "label": "ab"[i % 2]} for i, t in enumerate(given)]
        for name, given in texts.items()
    }


@pytest.fixture(scope="module")
def files(real: Splits) -> dict[str, list[dict[str, Any]]]:
    return planted(real)


def test_what_is_planted_between_train_and_test_is_found_and_nothing_else(build, files) -> None:
    plan, root = build(files)
    report = check_data(plan, root)
    assert not report.errors
    near = {pair.name: pair for pair in report.near if pair.matches or pair.reverse}
    assert list(near) == ["train and test"]
    assert {(m.row.text, m.other.text) for m in near["train and test"].matches} == set(PLANTED)
    assert {(m.other.text, m.row.text) for m in near["train and test"].reverse} == set(PLANTED)
    (finding,) = [f for f in report.warnings if f.kind == "near duplicates train and test"]
    assert finding.place == "data/train.jsonl:11" and finding.field == "text"
    assert "8 rows of train" in finding.message and "data/test.jsonl:21" in finding.message
    assert "[thursday|Thursday!]" in finding.message and "(1.00)" in finding.message
    assert '"drop-from-train"' in finding.message


def test_dropping_leaves_the_training_rows_out_and_says_why(build, files) -> None:
    plan, root = build(files, data={"duplicates": {"near": "drop-from-train"}})
    version = prepare(plan, campaign := CampaignFiles(root))
    assert version.train_examples == len(files["train.jsonl"]) - len(PLANTED)
    lines = (campaign.data_version(version.hash) / "dropped.jsonl").read_text("utf-8").splitlines()[1:]
    dropped = [json.loads(line) for line in lines]
    assert [d["text"] for d in dropped] == [a for a, _ in PLANTED]
    assert [d["at"] for d in dropped] == [f"data/test.jsonl:{21 + i}" for i in range(len(PLANTED))]
    assert dropped[0]["reason"] == "1.00 similar to a row of test"
    assert all(re.fullmatch(r"(0\.\d\d|1\.00) similar to a row of test", d["reason"]) for d in dropped)
    kept = (campaign.data_version(version.hash) / "train.jsonl").read_text("utf-8")
    assert not any(json.dumps(a, ensure_ascii=False) in kept for a, _ in PLANTED)


def test_leakage_names_places_similarity_and_difference(build, files) -> None:
    plan, root = build(files)
    version = prepare(plan, campaign := CampaignFiles(root))
    near = read_json(campaign.leakage(version.hash))["near"]
    pair = next(p for p in near["pairs"] if p["splits"] == ["train", "test"])
    assert near["similarity"] == SIMILARITY and pair["rows"] == [len(PLANTED), len(PLANTED)]
    example = pair["examples"][3]
    assert [(r["split"], r["file"], r["line"]) for r in example["rows"]] == [
        ("train", "data/train.jsonl", 14),
        ("test", "data/test.jsonl", 24),
    ]
    assert example["difference"].startswith("pay [100|200] dollars from my")
    one, two = grams(PLANTED[3][0]), grams(PLANTED[3][1])
    assert example["similarity"] == round(len(one & two) / len(one | two), 4)


@pytest.mark.parametrize(
    ("policy", "errors", "found"),
    [("off", 0, False), ("warn", 0, True), ("stop", 1, True), ("drop-from-train", 0, True)],
)
def test_policy_decides_what_happens_to_almost_equal_texts(build, files, policy: str, errors: int, found: bool) -> None:
    plan, root = build(files, data={"duplicates": {"near": policy}})
    report = check_data(plan, root)
    assert len(report.errors) == errors
    assert any(f.kind == "near duplicates train and test" for f in report.findings) is found
    assert bool(report.near) is found
    left = len(files["train.jsonl"]) - (len(PLANTED) if policy == "drop-from-train" else 0)
    assert len(report.splits["train"]) == left


@pytest.mark.parametrize("policy", ["warn", "stop", "drop-from-train"])
def test_almost_equal_texts_within_train_are_pointed_out_and_kept(build, policy: str) -> None:
    train = [{"text": text, "label": "ab"[i % 2]} for i, text in enumerate(itertools.chain(*PLANTED[:3]))]
    plan, root = build({"train.jsonl": train}, data={"duplicates": {"near": policy}})
    report = check_data(plan, root)
    assert not report.errors and not report.dropped and len(report.splits["train"]) == 6
    (finding,) = [f for f in report.warnings if f.kind == "near duplicates within train"]
    assert "6 rows of train" in finding.message and "kept" in finding.message


def test_only_dropping_makes_another_data_version(build, files) -> None:
    def hash_of(**policy: Any) -> str:
        return check_data(*build(files, data={"duplicates": policy})).hash

    plain_hash = hash_of()
    assert hash_of(near="off") == hash_of(near="stop") == hash_of(similarity=0.7) == plain_hash
    dropping = {hash_of(near="drop-from-train"), hash_of(near="drop-from-train", similarity=0.7)}
    assert len(dropping) == 2 and plain_hash not in dropping


def test_equal_texts_are_reported_as_equal_and_not_again_as_almost_equal(build) -> None:
    text = PLANTED[0][0]
    plan, root = build(
        {"train.jsonl": [{"text": t, "label": c} for t, c in ((text, "a"), ("own a", "a"), ("own b", "b"))],
         "test.jsonl": [{"text": text, "label": "a"}, {"text": "other", "label": "b"}]},
        data={"duplicates": {"across": "warn"}},
    )  # fmt: skip
    report = check_data(plan, root)
    assert any(pair.groups for pair in report.pairs)
    assert not any(pair.matches for pair in report.near)


def test_a_template_that_fills_thousands_of_rows_ends_soon_and_finds_a_partner_for_each() -> None:
    def filled(name: str, start: int, count: int) -> list[Row]:
        form = (
            "please transfer {} dollars from my savings account to the electricity company before the end of the month"
        )
        return [row(form.format(start + i), name, i + 1) for i in range(count)]

    splits = {
        "train": filled("train", 10_000, 20_000),
        "validation": filled("validation", 40_000, 300),
        "test": filled("test", 50_000, 3),
    }
    begun = time.process_time()
    pairs = {pair.name: pair for pair in find_near(splits, SIMILARITY)}
    spent = time.process_time() - begun
    for pair in pairs.values():
        assert len(pair.matches) == len(splits[pair.first])
        assert pair.first == pair.second or len(pair.reverse) == len(splits[pair.second])
    assert spent < 60  # all with all would be 200 million comparisons


def test_texts_shorter_than_a_trigram_and_of_punctuation_alone() -> None:
    splits = {
        "train": [row("a"), row("?!"), row("..."), row("👍")],
        "validation": [row("A."), row("b")],
        "test": [row("👎")],
    }
    pairs = {pair.name: pair for pair in find_near(splits, SIMILARITY)}
    assert [(m.row.text, m.other.text) for m in pairs["train and validation"].matches] == [("a", "A.")]
    assert not any(pair.matches for name, pair in pairs.items() if name != "train and validation")


def test_a_split_without_rows_has_no_partners() -> None:
    assert not any(pair.matches for pair in find_near({name: [] for name in SPLITS}, SIMILARITY))
    only = {"train": [row("one text"), row("One text.")], "validation": [], "test": []}
    assert [pair.name for pair in find_near(only, SIMILARITY) if pair.matches] == ["within train"]


def test_plain_keeps_letters_of_all_scripts_and_symbols_that_mean_something() -> None:
    assert plain("  Hello,   WORLD!\t(ok) ") == "hello world ok"
    assert plain("＄５ – Straße") == "$5 strasse"
    assert plain("नमस्ते, दुनिया।") == unicodedata.normalize("NFKD", "नमस्ते दुनिया")
    assert plain("한국어") == unicodedata.normalize("NFKD", "한국어") != "한국어"
    assert plain("?!") == "?!" and plain("...") != plain("!!!")


def test_jaccard_is_exact_for_texts_of_any_length() -> None:
    chance = random.Random(5)
    texts = [
        plain("".join(chance.choices("ab żó한 국x🙂", k=chance.choice((1, 2, 5, 60, 3000)))) or "x") or "x"
        for _ in range(200)
    ]
    first, second = (np.array(chance.choices(range(200), k=600)) for _ in range(2))

    def sets(text: str) -> set[str]:
        return {f" {text} "[i : i + 3] for i in range(len(text))}

    expected = [
        len(sets(texts[i]) & sets(texts[j])) / len(sets(texts[i]) | sets(texts[j]))
        for i, j in zip(first, second, strict=True)
    ]
    assert jaccard(texts, first, second).tolist() == expected


@pytest.mark.parametrize("similarity", [0.51, 0.6, 0.75, 0.85, 0.9, 0.99])
def test_bands_miss_fewer_pairs_at_the_threshold_than_promised(similarity: float) -> None:
    bands, width = bands_for(similarity)
    assert (1 - similarity**width) ** bands <= MISSED and bands * width <= LONGEST


def test_pairs_at_the_threshold_meet_in_a_band_as_often_as_the_formula_says() -> None:
    """2,000 pairs with 171 shared trigrams and 14 own ones each: 171 / 199."""
    chance = random.Random(7)
    one, two = [], []
    while len(one) < 2000:
        alphabet = [chr(code) for code in range(0x4E00, 0x9000)]
        letters = chance.sample(alphabet, 200)
        shared, tail = letters[:172], letters[172:]
        a, b = "".join(shared + tail[:13]), "".join(shared + tail[13:26])
        one.append(a)
        two.append(b)
    indices = np.arange(2000)
    values = jaccard([*one, *two], indices, indices + 2000)
    assert values.min() == values.max() and abs(values[0] - SIMILARITY) < 0.01
    known = signatures([*one, *two], SIMILARITY)
    keys = known.keys
    missed = 1 - (keys[:, :2000] == keys[:, 2000:]).any(axis=0).mean()
    bands, width = bands_for(SIMILARITY)
    assert missed < 0.01 and known.plausible(indices, indices + 2000).all()
    assert missed == pytest.approx((1 - values[0] ** width) ** bands, abs=0.006)


def test_band_keys_are_the_same_on_every_machine_and_day() -> None:
    keys = signatures(["transfer 100 dollars", "내일 아침"], SIMILARITY).keys
    assert [hex(number) for number in keys[0]] == ["0xf85d982efc141ca5", "0x3e7133c3ed2e32e"]


@pytest.mark.parametrize(
    ("text", "other", "line"),
    [
        ("transfer 100 dollars", "transfer 200 dollars", "transfer [100|200] dollars"),
        ("go home", "please go home now", "[|please] go home [|now]"),
        ("a b c d e f g h i", "x a b c d e f g h i y", "[|x] a b c … g h i [|y]"),
        ("a b c d e f g h", "x a b c d e f g h", "[|x] a b c …"),
        ("a b c d e f g h i", "a b c d e f g h j", "… f g h [i|j]"),
        ("x b c d e f g h i j", "y b c d e f g h i z", "[x|y] b c d … g h i [j|z]"),
        ("go  home", "go home", "go home (other spaces)"),
        ("a \x1b[31mred\x1b[0m b", "a green b", "a [red|green] b"),
    ],
)
def test_differences_are_shown_side_by_side_and_safe(text: str, other: str, line: str) -> None:
    assert differing(text, other) == line


def test_pictures_are_not_searched(tmp_path: Path) -> None:
    content = tiny_plan(hypothesis__task="image-classification")
    for name in SPLITS:
        for i, label in enumerate("abab"):
            path = tmp_path / "data" / name / label / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f"{name} {i}".encode())
        content["data"][name] = f"data/{name}"
    content["data"]["duplicates"] = {"near": "drop-from-train", "similarity": 0.51}
    report = check_data(Plan.model_validate(content), tmp_path)
    assert not report.errors and report.near == [] and "near" not in report.identity
