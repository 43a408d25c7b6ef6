"""A chat to token ids and the positions that carry loss: what the assistant writes, its end token included, and nothing else.

With the model's chat template the ids are those of transformers' `apply_chat_template(tokenize=True)`: the whole chat as one
text, no special token added, so none is doubled (K25). Without one, prompt and answer follow each other as written and the end
token follows the answer. Positions come from characters (K03); a token that reaches from the prompt into the answer carries loss,
as in transformers and TRL, and is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ftui.data.coded import Coded, too_long
from ftui.data.explain import Explained, pieces_of
from ftui.data.findings import Finding, error, warning
from ftui.data.rows import Row
from ftui.data.template import ASSISTANT, Messages, Spans, TemplateError
from ftui.data.tokenizer import TextTokenizer, TokenizerError
from ftui.plan.load import PLAN_FILE
from ftui.plan.schema import Training
from ftui.record.text import safe


@dataclass(frozen=True)
class Written:
    """A whole chat as text and tokens."""

    text: str
    ids: list[int]
    offsets: list[tuple[int, int]]
    """Characters `[start, end)` of the text that each token stands for; (0, 0) for one that stands for none."""
    spans: Spans
    """Positions that carry loss."""
    joined: bool
    """A token reaches from the prompt into the answer."""


class ChatEncoder:
    """Encodes chats for a model that writes. `stop` are tokens that end an answer besides the model's own.

    `gap` stands between prompt and answer where the model has no chat template. Raises `TokenizerError` for an unknown token.
    """

    has_targets = True

    def __init__(self, tokenizer: TextTokenizer, training: Training, stop: Sequence[str] = (), gap: str = "") -> None:
        self.tokenizer, self._gap = tokenizer, gap
        self.limit, self._policy = training.max_length, training.truncation
        self.ends = stop_ids(tokenizer, stop)
        self.identity = {
            "tokenizer": tokenizer.sha256,
            "max_length": training.max_length,
            "truncation": training.truncation,
            "stop": list(stop),
            "gap": gap,
        }

    def findings(self) -> list[Finding]:
        template = self.tokenizer.template
        if template is None or not template.tells_time:
            return []
        message = "the model's chat template writes the date; examples carry that of the day they were encoded"
        return [warning(PLAN_FILE, "model.base", message, "template with a date")]

    def encode(self, rows: Sequence[Row]) -> list[Coded]:
        return [self._encode(row) for row in rows]

    def prompt(self, messages: Messages) -> list[int]:
        """Ids of a chat up to where the assistant is to begin. Raises `TemplateError`."""
        if self.tokenizer.template is None:
            ids, _ = self.tokenizer.encode_with_offsets(self._plain_prompt(messages), special=True)
            return ids[:-1] if ids[-1:] == self.ends[:1] else ids
        return self.tokenizer.encode_with_offsets(self.tokenizer.template.render(messages, ask=True), special=False)[0]

    def whole(self, messages: Messages) -> Written:
        """A chat as tokens, nothing cut. Raises `TemplateError`."""
        template = self.tokenizer.template
        if template is not None:
            text, spoken = template.render_spans(messages)
            ids, offsets = self.tokenizer.encode_with_offsets(text, special=False)
            return Written(text, ids, offsets, token_spans(offsets, spoken), _is_joined(offsets, spoken))
        *before, last = messages
        if last["role"] != ASSISTANT or any(m["role"] == ASSISTANT for m in before):
            raise TemplateError(
                "the model has no chat template, so only one question and its answer can be written; take a model with one"
            )
        prompt = self._plain_prompt(before)
        text = prompt + last["content"]
        ids, offsets = self.tokenizer.encode_with_offsets(text, special=True)
        spoken = [(len(prompt), len(text))]
        spans = token_spans(offsets, spoken)
        if spans and ids[-1] != self.ends[0]:
            ids, offsets = [*ids, self.ends[0]], [*offsets, (0, 0)]
        spans = [(spans[0][0], len(ids))] if spans else []
        return Written(text, ids, offsets, spans, _is_joined(offsets, spoken))

    def explain(self, row: Row) -> Explained:
        """The tokens of a row as the loss will see them, those that are cut off included."""
        try:
            whole = self.whole(row.messages)
        except TemplateError as problem:
            return Explained(problem=error(row.place, "messages", str(problem), "chat template"))
        coded = self._encode(row)
        start, end = coded.cut
        if coded.problem is not None and len(whole.ids) > self.limit:
            start, end = self.limit, len(whole.ids)
        return Explained(
            pieces_of(
                whole.text,
                whole.ids,
                whole.offsets,
                self.tokenizer.tokens(whole.ids),
                special=self.tokenizer.special_ids,
                spans=whole.spans,
                cut=(start, end),
            ),
            tokens=len(whole.ids),
            kept=len(whole.ids) - (end - start),
            targets=sum(b - a for a, b in coded.spans) if coded.problem is None else 0,
            targets_lost=coded.lost_targets,
            problem=coded.problem,
            joined=coded.joined,
        )

    def _plain_prompt(self, messages: Messages) -> str:
        return "\n\n".join(m["content"] for m in messages) + self._gap

    def _encode(self, row: Row) -> Coded:
        try:
            whole = self.whole(row.messages)
        except TemplateError as problem:
            return Coded([], 0, problem=error(row.place, "messages", str(problem), "chat template"))
        coded = Coded(whole.ids, len(whole.ids), spans=whole.spans, joined=whole.joined)
        coded.problem = self._check(row, whole.ids, whole.spans)
        if coded.problem is None and len(whole.ids) > self.limit:
            self._shorten(row, coded)
        return coded

    def _check(self, row: Row, ids: list[int], spans: Spans) -> Finding | None:
        """What is wrong with the template's text for this row, however long it may be."""
        if not spans:
            message = "the chat template marks nothing as the assistant's, so nothing would carry loss"
            return error(row.place, "messages", message, "no target")
        if spans[0][0] == 0:
            return error(
                row.place, "messages", "the answer begins with the first token, so nothing predicts it", "no prompt"
            )
        for start, end in spans:
            if not any(token in self.ends for token in ids[start:end]):
                return error(row.place, "messages", self._no_end(ids, end), "no stop token")
        return None

    def _no_end(self, ids: list[int], end: int) -> str:
        """K04: the end of a turn must carry loss, or the model never learns to stop."""
        known = ", ".join(self.tokenizer.tokens(self.ends))
        if end < len(ids) and ids[end] in self.ends:
            name = self.tokenizer.tokens([ids[end]])[0]
            return (
                f"the end token {name} stands behind what the template marks as the assistant's and would carry no loss, so answers "
                "would never end; move {% endgeneration %} behind it in the chat template"
            )
        last = safe("".join(self.tokenizer.tokens(ids[max(0, end - 3) : end])), 60)
        return (
            f"the assistant's turn ends in {last!r} and holds no token that ends an answer ({known}); "
            "name its last token in evaluation.generation.stop, or take the chat template that belongs to the model"
        )

    def _shorten(self, row: Row, coded: Coded) -> None:
        """Apply the plan's truncation to a row that is too long (K05)."""
        ids, spans, limit = coded.ids, coded.spans, self.limit
        wanted = sum(end - start for start, end in spans)
        if self._policy == "keep-target":
            # Room for the target and at least the token before it, which predicts its first one.
            drop = len(ids) - limit
            if drop < spans[0][0]:
                keep_first = int(drop + 1 < spans[0][0] and ids[0] == self._first_id)
                coded.ids, coded.cut = ids[:keep_first] + ids[drop + keep_first :], (keep_first, drop + keep_first)
                coded.spans = [(start - drop, end - drop) for start, end in spans]
                return
        elif self._policy == "cut":
            kept = [(start, min(end, limit)) for start, end in spans if start < limit]
            if kept:
                coded.ids, coded.spans, coded.cut = ids[:limit], kept, (limit, len(ids))
                coded.lost_targets = wanted - sum(end - start for start, end in kept)
                return
        if spans[0][0] >= limit or self._policy == "keep-target":
            what = (
                f"the answer alone has {wanted}"
                if self._policy == "keep-target"
                else f"the prompt alone has {spans[0][0]}"
            )
            message = (
                f"has {len(ids)} tokens, {what}, training.max_length is {limit} ({safe(row.text, 40)!r}); "
                "raise max_length or shorten the text"
            )
            coded.problem = error(row.place, "messages", message, "no target left")
        else:
            coded.problem = too_long(row, len(ids), limit)

    @property
    def _first_id(self) -> int | None:
        """The token that begins every text, kept when the left of a prompt is cut."""
        begin = self.tokenizer.special.get("bos_token")
        return None if begin is None else self.tokenizer.id_of(begin)


def stop_ids(tokenizer: TextTokenizer, stop: Sequence[str]) -> list[int]:
    """Ids that end an answer: the model's own and those of the plan. Raises `TokenizerError`."""
    ids = list(tokenizer.ends)
    for token in stop:
        if (found := tokenizer.id_of(token)) is None:
            raise TokenizerError(f"{PLAN_FILE}: evaluation.generation.stop: {token!r} is no token of the model")
        ids.append(found)
    return list(dict.fromkeys(ids))


def token_spans(offsets: Sequence[tuple[int, int]], spoken: Spans) -> Spans:
    """Positions of the tokens that share a character with each of the ranges `spoken`; ranges without a token are left out."""
    spans: Spans = []
    position = 0
    for start, end in spoken:
        while position < len(offsets) and offsets[position][1] <= start:
            position += 1
        first = position
        while position < len(offsets) and (offsets[position][0] < end and offsets[position] != (0, 0)):
            position += 1
        if position > first:
            spans.append((first, position))
    return spans


def _is_joined(offsets: Sequence[tuple[int, int]], spoken: Spans) -> bool:
    return any(first < start < last for start, _ in spoken for first, last in offsets)
