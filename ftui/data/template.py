"""The base model's own chat template, rendered as transformers renders it, and where in the text the assistant speaks.

A template is a program by strangers: it runs in Jinja's sandbox, sees messages and special tokens and nothing else.
Follows `transformers.utils.chat_template_utils` (environment, filters, the `{% generation %}` tag), so that the text is the same
to the last character; a test compares them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

Messages = Sequence[Mapping[str, str]]
"""A chat: `role` and `content` of every message."""

Spans = list[tuple[int, int]]
"""Half-open ranges `[start, end)`, in order."""

TEMPLATE_FILE = "chat_template.jinja"

ASSISTANT = "assistant"


class TemplateError(Exception):
    """The template cannot render a chat, or not in a way that tells who wrote what; the message is a sentence about it."""


class ChatTemplate:
    """A template with the special tokens it may write."""

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        self.source = source
        self._tokens = dict(tokens)
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
        )
        environment.filters["tojson"] = _tojson
        environment.globals |= {"raise_exception": _raise, "strftime_now": _strftime_now}
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as problem:
            raise TemplateError(f"the chat template is not valid Jinja: {problem}") from None
        self.marks_assistant = "generation" in environment.ftui_tags  # type: ignore[attr-defined]
        """Whether the template itself says which text is the assistant's, with `{% generation %}`."""
        self.tells_time = "strftime_now" in source
        """Whether what it writes depends on the day."""

    def render(self, messages: Messages, *, ask: bool = False) -> str:
        """The chat as text; with `ask`, up to where the assistant is to begin. Raises `TemplateError`."""
        return self._render(messages, ask)[0]

    def render_spans(self, messages: Messages) -> tuple[str, Spans]:
        """The chat as text and the characters the assistant writes in it, its end-of-turn token included.

        By the template's own `{% generation %}` tags where it has them. Else an assistant's turn is what stands between the
        text that asks for it and the text that ends with it, found by rendering both: never by searching for words or ids.
        Raises `TemplateError` when a turn reads differently once others follow, for then no position is certain.
        """
        if self.marks_assistant:
            return self._render(messages, False)
        text = self.render(messages)
        spans: Spans = []
        for index, message in enumerate(messages):
            if message["role"] != ASSISTANT:
                continue
            before, after = self.render(messages[:index], ask=True), self.render(messages[: index + 1])
            if not (after.startswith(before) and text.startswith(after)):
                raise TemplateError(
                    f"the chat template writes message {index + 1} differently when others follow or answers are asked for, so "
                    "which tokens are the assistant's is uncertain; use a template with {% generation %} tags, or chats of one turn"
                )
            spans.append((len(before), len(after)))
        return text, spans

    def _render(self, messages: Messages, ask: bool) -> tuple[str, Spans]:
        spans: Spans = []
        blocks: list[str] = []

        def spoken(text: str) -> str:
            start = len("".join(blocks))
            spans.append((start, start + len(text)))
            return text

        chat = [dict(message) for message in messages]
        values = {"messages": chat, "tools": None, "documents": None, "add_generation_prompt": ask, **self._tokens}
        try:
            for block in self._template.generate(**values, **{_SPOKEN: spoken}):
                blocks.append(block)
        except (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError, IndexError) as problem:
            raise TemplateError(f"the chat template refuses this chat: {problem}") from None
        return "".join(blocks), spans


def read_template(model_dir: Path, config: Mapping[str, Any]) -> str | None:
    """The template's text: `chat_template.jinja`, else `chat_template` of `config` (tokenizer_config.json), else None."""
    path = model_dir / TEMPLATE_FILE
    if path.is_file():
        return path.read_text(encoding="utf-8")
    stored = config.get("chat_template")
    if isinstance(stored, list):
        stored = next((item["template"] for item in stored if item.get("name") == "default"), None)
    return stored if isinstance(stored, str) else None


_SPOKEN = "_ftui_spoken"


class _GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}`: what the assistant writes."""

    tags = {"generation"}  # noqa: RUF012  # Jinja's own declaration

    def __init__(self, environment: jinja2.Environment) -> None:
        super().__init__(environment)
        environment.extend(ftui_tags=set())

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        self.environment.ftui_tags.add("generation")  # type: ignore[attr-defined]
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = self.call_method("_speak", [jinja2.nodes.ContextReference()])
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _speak(self, context: jinja2.runtime.Context, caller: Callable[[], str]) -> str:
        spoken: Callable[[str], str] = context[_SPOKEN]
        return spoken(caller())


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter escapes HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)  # noqa: DTZ005  # as transformers: the local day
