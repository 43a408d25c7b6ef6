"""Secrets are hidden by the names of their variables, and nothing else is."""

from __future__ import annotations

import pytest

from ftui.record.secrets import redact, secrets_of

SECRET = "hf_abcdefghijklmnop"


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "OPENAI_API_KEY", "WANDB_API_KEY", "MY_SECRET", "PGPASSWORD", "db_password", "AWS_SECRET_ACCESS_KEY"],
)
def test_a_secret_is_hidden_wherever_it_stands(name: str) -> None:
    text = f"401 for https://me:{SECRET}@hub/x?token={SECRET}"
    assert redact(text, {name: SECRET}) == "401 for https://me:[secret]@hub/x?token=[secret]"


def test_a_secret_that_contains_another_is_hidden_whole() -> None:
    assert redact(f"{SECRET}-extra", {"A_TOKEN": SECRET, "B_TOKEN": f"{SECRET}-extra"}) == "[secret]"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOME", "/home/someone"), ("TOKENIZERS_PARALLELISM", "false-value"), ("MAX_TOKEN", "4096"), ("HF_TOKEN", ""),
        ("A_TOKEN", "abc"), ("HUB_TOKEN", "disabled"), ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/keys.json"),
    ],
)  # fmt: skip
def test_settings_and_words_are_no_secrets(name: str, value: str) -> None:
    assert secrets_of({name: value}) == []
