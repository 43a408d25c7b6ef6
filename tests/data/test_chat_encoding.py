"""What the assistant writes carries loss, and nothing else: found by characters, for any template, at any length."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import processors

from ftui.data.chat import ChatEncoder
from ftui.data.encode import EncodedSplit, Example, encode_splits
from ftui.data.encoders import make_encoder
from ftui.data.findings import DataError
from ftui.data.form import FormError
from ftui.data.prepare import check_data, prepare
from ftui.data.tokenizer import TokenizerError, load_tokenizer
from ftui.plan.load import load_plan
from ftui.plan.schema import Training
from ftui.record.layout import CampaignFiles
from tests.builders.processes import ENVIRONMENT
from tests.builders.writing import CHATML, MARKED, SCHEMA, chats, orders, tiny_tokenizer, writing_campaign

LLAMA_3 = (
    "{{ bos_token }}{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n\n' + message['content'] | trim "
    "+ eos_token }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n\n' }}{% endif %}"
)

SPREAD_OUT = """
{%- set system = 'none' %}
{% for message in messages %}
    {% if message['role'] == 'system' %}
        {% set system = message['content'] %}
        {% continue %}
    {% endif %}
    {# as people write templates: over many lines, with blanks that must not count #}
  <|im_start|>{{ message | tojson }} {{ loop.index }}
    {%- if message['role'] == 'assistant' %}
 {{ message['content'] }}<|im_end|>
    {% endif %}
{% endfor %}
{{ system }}{% if add_generation_prompt %}<|im_start|>{% endif %}
"""
"""What the library's environment sets shows here: trimmed blocks, loop controls, its own `tojson`."""

ODD = [
    {"role": "user", "content": "내 예약은 żółty? 🙂 e\u0301\n\n"},
    {"role": "assistant", "content": '\n- 예, "żółty" 🙂\n\n'},
    {"role": "user", "content": "<b>&</b> {{ 7 * 7 }}"},
    {"role": "assistant", "content": "49"},
]


@pytest.fixture
def writer(tmp_path: Path) -> Callable[..., Path]:
    """`writer(template, bos=False, **config)`: a model's folder without weights."""

    def make(template: str | None = CHATML, *, bos: bool = False, **config: Any) -> Path:
        folder = tmp_path / f"writer{len(list(tmp_path.glob('writer*')))}"
        folder.mkdir()
        tokenizer = tiny_tokenizer([json.dumps(row) for row in orders(32)] + ["\n\n", ".\n\n\n- "] * 50)
        if bos:
            tokenizer.post_processor = processors.TemplateProcessing(
                single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
            )
        tokenizer.save(str(folder / "tokenizer.json"))
        named = {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>"}
        content = {"tokenizer_class": "PreTrainedTokenizerFast", **named, **config}
        (folder / "tokenizer_config.json").write_text(json.dumps(content))
        if template is not None:
            (folder / "chat_template.jinja").write_text(template)
        return folder

    return make


def encoder(folder: Path, *, stop: tuple[str, ...] = (), **training: Any) -> ChatEncoder:
    about = Training.model_validate({"micro_batch": 1, "amount": 1, "learning_rate": 1, **training})
    return ChatEncoder(load_tokenizer(folder, writes=True), about, stop)


def by_transformers(folder: Path, conversations: list[Any]) -> list[dict[str, list[int]]]:
    """Ids and assistant mask of each conversation, from the library's own `apply_chat_template`, in its own process."""
    script = (
        "import sys, json; from transformers import AutoTokenizer; t = AutoTokenizer.from_pretrained(sys.argv[1]);"
        "print(json.dumps([dict(t.apply_chat_template(c, return_dict=True, return_assistant_tokens_mask=True))"
        " for c in json.load(sys.stdin)]))"
    )
    command = [sys.executable, "-c", script, str(folder)]
    done = subprocess.run(
        command, input=json.dumps(conversations), capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: list[dict[str, list[int]]] = json.loads(done.stdout.splitlines()[-1])
    return answer


def mask(length: int, spans: list[tuple[int, int]]) -> list[int]:
    return [int(any(start <= i < end for start, end in spans)) for i in range(length)]


CONVERSATIONS = [row["messages"] for row in chats(40)] + [ODD]


def test_ids_and_masks_equal_those_of_transformers(writer: Callable[..., Path]) -> None:
    """The library gives a mask only for templates that mark what the assistant writes."""
    folder = writer(MARKED)
    ours = [encoder(folder).whole(chat) for chat in CONVERSATIONS]
    theirs = by_transformers(folder, CONVERSATIONS)
    assert [whole.ids for whole in ours] == [t["input_ids"] for t in theirs]
    assert [mask(len(whole.ids), whole.spans) for whole in ours] == [t["assistant_masks"] for t in theirs]
    assert sum(map(sum, (t["assistant_masks"] for t in theirs))) > 100


def test_text_equals_that_of_transformers_for_a_template_spread_over_lines(writer: Callable[..., Path]) -> None:
    folder = writer(SPREAD_OUT)
    tokenizer = load_tokenizer(folder, writes=True)
    assert tokenizer.template is not None
    ours = [tokenizer.encode_with_offsets(tokenizer.template.render(c), special=False)[0] for c in CONVERSATIONS]
    assert ours == [t["input_ids"] for t in by_transformers(folder, CONVERSATIONS)]


@pytest.mark.parametrize("template", [CHATML, LLAMA_3])
def test_unmarked_templates_give_the_same_ids_and_find_every_turn_by_rendering(
    writer: Callable[..., Path], template: str
) -> None:
    """K03: `\\n\\n` before the answer may join with what follows; no row is lost and no search for ids is made."""
    folder = writer(template)
    own, tokenizer = encoder(folder), load_tokenizer(folder, writes=True)
    theirs = by_transformers(folder, CONVERSATIONS)
    for chat, reference in zip(CONVERSATIONS, theirs, strict=True):
        whole = own.whole(chat)
        ids, spans = whole.ids, whole.spans
        assert ids == reference["input_ids"]
        said = [m["content"] for m in chat if m["role"] == "assistant"]
        assert len(spans) == len(said)
        for (start, end), text in zip(spans, said, strict=True):
            assert tokenizer.decode(ids[start:end]).strip() == text.strip()
            assert tokenizer.ends[0] in ids[start:end]


def test_a_token_that_joins_prompt_and_answer_carries_loss_and_is_reported(
    writer: Callable[..., Path], tmp_path: Path
) -> None:
    folder = writer(
        "{% for m in messages %}{{ m['content'] }}{% if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
    )
    whole = encoder(folder).whole([{"role": "user", "content": "hi\n"}, {"role": "assistant", "content": "\n\n- a"}])
    tokens, spans = load_tokenizer(folder, writes=True).tokens(whole.ids), whole.spans
    assert whole.joined and tokens[spans[0][0]] == "ĊĊ" and "Ċ" not in tokens[: spans[0][0]]
    apart = encoder(folder).whole([{"role": "user", "content": "hi\n"}, {"role": "assistant", "content": "a"}])
    assert not apart.joined


def test_bos_is_never_doubled(writer: Callable[..., Path]) -> None:
    """K25: template and tokenizer both begin a text with it."""
    folder = writer(LLAMA_3, bos=True)
    ids = encoder(folder).whole(ODD).ids
    assert ids[0] == 0 and ids.count(0) == 1
    assert encoder(folder).prompt(ODD[:1])[:2] != [0, 0]
    assert ids == by_transformers(folder, [ODD])[0]["input_ids"]
    plain = writer(None, bos=True)
    assert encoder(plain).whole(ODD[:2]).ids.count(0) == 1


def test_without_a_template_the_answer_follows_the_prompt_and_ends(writer: Callable[..., Path]) -> None:
    folder = writer(None)
    chat = [{"role": "user", "content": "a small tea"}, {"role": "assistant", "content": "please"}]
    whole = encoder(folder).whole(chat)
    ids, spans = whole.ids, whole.spans
    tokenizer = load_tokenizer(folder, writes=True)
    assert tokenizer.decode(ids) == "a small teaplease"
    assert ids[-1] == tokenizer.ends[0] and spans[0][1] == len(ids)
    assert encoder(folder).prompt(chat[:1]) == ids[: spans[0][0]]


def problems(folder: Path, row: dict[str, Any], tmp_path: Path, **training: Any) -> list[str]:
    """Messages of the errors that preparing one such training row gives."""
    files = writing_campaign(tmp_path / "c", folder, "generation")
    (files.data / "train.jsonl").write_text(json.dumps(row) + "\n")
    plan = load_plan(files.root)
    plan = plan.model_copy(update={"training": plan.training.model_copy(update=training)})
    with pytest.raises(DataError) as raised:
        prepare(plan, files, folder)
    return [str(f) for f in raised.value.findings if f.severity == "error"]


def test_an_end_token_behind_the_mask_is_an_error(writer: Callable[..., Path], tmp_path: Path) -> None:
    """K04: it would carry no loss, and generation would never end."""
    outside = MARKED.replace(
        "{{ message['content'] + '<|im_end|>' }}{% endgeneration %}",
        "{{ message['content'] }}{% endgeneration %}<|im_end|>",
    )
    assert outside != MARKED
    (first, *_) = problems(writer(outside), chats(1)[0], tmp_path)
    assert first.startswith(
        "data/train.jsonl:1: messages: the end token <|im_end|> stands behind what the template marks"
    )


def test_a_turn_that_ends_in_no_end_token_is_an_error_until_the_plan_names_it(
    writer: Callable[..., Path], tmp_path: Path
) -> None:
    """K04, as base models with a chat template of another model have it."""
    folder = writer(CHATML, eos_token="<|endoftext|>")
    (first, *_) = problems(folder, chats(1)[0], tmp_path)
    assert "holds no token that ends an answer (<|endoftext|>)" in first and "evaluation.generation.stop" in first
    own = encoder(folder, stop=("<|im_end|>",))
    assert own.ends == [0, 2]
    with pytest.raises(TokenizerError, match=r"'<\|eot\|>' is no token of the model"):
        encoder(folder, stop=("<|eot|>",))


def test_end_tokens_of_the_generation_settings_count(writer: Callable[..., Path]) -> None:
    folder = writer(CHATML, eos_token="<|endoftext|>")
    (folder / "generation_config.json").write_text('{"eos_token_id": [0, 2]}')
    assert load_tokenizer(folder, writes=True).ends == [0, 2]


def test_a_template_that_rewrites_earlier_turns_is_refused(writer: Callable[..., Path], tmp_path: Path) -> None:
    """As templates do that drop the thinking of all but the last turn: no position would be certain."""
    forgets = (
        "{% for m in messages %}{% if m['role'] == 'assistant' and not loop.last %}…{% else %}{{ m['content'] }}{% endif %}"
        "{{ eos_token }}{% endfor %}"
    )
    (first, *_) = problems(writer(forgets), chats(2)[1], tmp_path)
    assert "differently when others follow" in first and "{% generation %}" in first


def test_a_template_that_refuses_is_quoted(writer: Callable[..., Path], tmp_path: Path) -> None:
    refuses = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system here') }}{% endif %}" + CHATML
    (first, *_) = problems(writer(refuses), chats(1)[0], tmp_path)
    assert first.endswith("the chat template refuses this chat: no system here")


def test_a_template_cannot_leave_its_sandbox(writer: Callable[..., Path], tmp_path: Path) -> None:
    breaks_out = "{{ messages.__class__.__mro__[-1].__subclasses__() }}" + CHATML
    (first, *_) = problems(writer(breaks_out), chats(1)[0], tmp_path)
    assert "is unsafe" in first


def encoded(folder: Path, tmp_path: Path, **training: Any) -> tuple[dict[str, EncodedSplit], list[str]]:
    files = writing_campaign(tmp_path / "c", folder, "generation")
    plan = load_plan(files.root)
    own = Training.model_validate(plan.training.model_dump() | training)
    version = prepare(plan.model_copy(update={"training": own}), files, folder)
    maker = make_encoder("generation", version.labels, own, plan.evaluation, folder)
    answer = encode_splits(files.data_version(version.hash), maker)
    return answer.splits, [str(f) for f in answer.findings]


def test_a_length_below_every_prompt_is_refused_with_counts_per_split(
    writer: Callable[..., Path], tmp_path: Path
) -> None:
    """K01: never a run that trains nothing and logs a loss of 0."""
    folder = writer()
    for policy, each in (("cut", "the prompt alone has"), ("keep-target", "the answer alone has")):
        with pytest.raises(DataError) as raised:
            encoded(folder, tmp_path / policy, max_length=4, truncation=policy)
        said = [str(f) for f in raised.value.findings]
        for split, count in (("train", 96), ("validation", 12), ("test", 12)):
            assert any(f"{split}.jsonl: training.max_length: {count} of {count} rows keep no target" in s for s in said)
        assert any(each in s for s in said)
    assert not list(tmp_path.glob("*/c/data/*/encoded/*"))


def test_truncation_decides_what_is_lost_and_counts_it(writer: Callable[..., Path], tmp_path: Path) -> None:
    """K05: rows of one to three turns, cut at a length that the first turn of each fits into."""
    folder = writer()
    whole, _ = encoded(folder, tmp_path / "whole", max_length=500)
    limit = int(max(e.spans[0][1] for e in whole["train"])) + 1
    long = [e for e in whole["train"] if len(e.input_ids) > limit]
    assert 10 < len(long) < 96
    cut, said = encoded(folder, tmp_path / "cut", max_length=limit, truncation="cut")
    kept = list(cut["train"])
    lost_tokens = sum(len(e.input_ids) for e in whole["train"]) - sum(len(e.input_ids) for e in kept)
    lost_targets = int(whole["train"].targets.sum() - cut["train"].targets.sum())
    rows = sum(a.targets > b.targets for a, b in zip(whole["train"], kept, strict=True))
    assert lost_targets > 0
    assert said[0].endswith(
        f"{len(long)} of 96 rows have more than {limit} tokens (longest {whole['train'].lengths.max()}); "
        f"{lost_tokens:,} tokens were cut off, {lost_targets} of them targets, of {rows} rows"
    )
    for before, after in zip(whole["train"], kept, strict=True):
        assert after.input_ids == before.input_ids[:limit]
        assert mask(len(after.input_ids), after.spans) == mask(len(before.input_ids), before.spans)[:limit]
    with pytest.raises(DataError, match=r"more than training.max_length"):
        encoded(folder, tmp_path / "error", max_length=limit, truncation="error")


def test_keep_target_cuts_the_left_of_the_prompt_and_keeps_every_target(
    writer: Callable[..., Path], tmp_path: Path
) -> None:
    folder = writer(LLAMA_3)
    whole, _ = encoded(folder, tmp_path / "whole", max_length=500)
    one_turn = [e for e in whole["train"] if len(e.spans) == 1]
    limit = min(len(e.input_ids) for e in one_turn) - 5
    rows = [{"messages": r["messages"]} for i, r in enumerate(chats(96)) if i % 3 == 0]
    files = writing_campaign(
        tmp_path / "kept", folder, "generation", training__max_length=limit, training__truncation="keep-target"
    )
    for name in ("train", "validation", "test"):
        part = rows[:20] if name == "train" else rows[20:26] if name == "validation" else rows[26:]
        (files.data / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in part))
    version = prepare(load_plan(files.root), files, folder)
    (path,) = files.data_version(version.hash).glob("encoded/*/train.arrow")
    for example in EncodedSplit(path):
        before = next(e for e in one_turn if e.target_ids == example.target_ids and e.answer == example.answer)
        assert len(example.input_ids) == limit and example.input_ids[0] == 0, "full, and it still begins as a text does"
        assert example.targets == before.targets
        assert example.input_ids[1:] == before.input_ids[-(limit - 1) :] or example.target_ids == before.target_ids


def test_stored_examples_say_what_carries_loss(writer: Callable[..., Path], tmp_path: Path) -> None:
    folder = writer()
    splits, _ = encoded(folder, tmp_path, max_length=200)
    split, tokenizer = splits["train"], load_tokenizer(folder, writes=True)
    example: Example = split.row(2)
    assert len(example.spans) == 3 and example.answer == "cocoa 2" and example.category == "all"
    assert tokenizer.decode(example.target_ids).split() == ["cocoa", "0", "cocoa", "1", "cocoa", "2"]
    assert split.targets.tolist() == [e.targets for e in split] == [len(e.target_ids) for e in split]


def test_another_template_under_the_same_name_is_another_cache(writer: Callable[..., Path], tmp_path: Path) -> None:
    """K24."""
    folder = writer()
    files = writing_campaign(tmp_path / "c", folder, "generation")
    plan = load_plan(files.root)
    prepare(plan, files, folder)
    (folder / "chat_template.jinja").write_text(CHATML.replace("'\n'}}{% endfor", "'\n\n'}}{% endfor"))
    prepare(plan, files, folder)
    assert len(list(files.data.glob("*/encoded/*/train.arrow"))) == 2


def test_a_template_in_the_configuration_is_found_and_the_file_goes_before_it(writer: Callable[..., Path]) -> None:
    one = writer(None, chat_template=CHATML)
    several = writer(None, chat_template=[{"name": "tool", "template": "x"}, {"name": "default", "template": CHATML}])
    file = writer(CHATML, chat_template="another")
    ids = [encoder(folder).whole(ODD).ids for folder in (one, several, file)]
    assert ids[0] == ids[1] == ids[2]


def test_a_model_without_end_token_cannot_write(writer: Callable[..., Path]) -> None:
    with pytest.raises(TokenizerError, match="names no end token"):
        load_tokenizer(writer(CHATML, eos_token=None), writes=True)
    with pytest.raises(TokenizerError, match="not valid Jinja"):
        load_tokenizer(writer("{% for %}"), writes=True)


def test_a_date_in_the_template_is_mentioned(writer: Callable[..., Path], tmp_path: Path) -> None:
    dated = "{{ strftime_now('%d %b %Y') }}" + CHATML
    _, said = encoded(writer(dated), tmp_path)
    assert any("writes the date" in s for s in said)


def test_an_unreadable_form_is_an_error_of_the_plan(writer: Callable[..., Path], tmp_path: Path) -> None:
    files = writing_campaign(tmp_path / "c", writer())
    for content, message in (
        ('{"type": 7}', "is no JSON schema"),
        ('{"type": "object"}', "`properties`"),
        ("{", "not valid JSON"),
        (json.dumps(SCHEMA | {"required": ["drnik"]}), "requires drnik"),
    ):
        (files.root / "answer.schema.json").write_text(content)
        assert any(message in str(f) for f in check_data(load_plan(files.root), files.root).errors), message
    assert issubclass(FormError, Exception) and isinstance(CampaignFiles(files.root), CampaignFiles)
