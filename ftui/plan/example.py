"""The commented plan that `ftui new` writes."""

from __future__ import annotations

from importlib.resources import files

EXAMPLE = files("ftui.plan").joinpath("example.toml").read_text(encoding="utf-8")
"""A whole plan for text classification, valid as it stands but for the data and model it names."""
