"""Numbers as a person writes them."""

from __future__ import annotations


def number_text(value: float) -> str:
    """A number as it would be typed, exactly: `2e-4`, `0.05`, `3.0`, `16`. It is valid TOML."""
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    if e:
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    if 0 < abs(value) < 0.001:  # 0.0002
        mantissa, _, exponent = f"{value:.17e}".partition("e")
        for digits in range(18):
            written = f"{float(mantissa):.{digits}f}e{int(exponent)}"
            if float(written) == value:
                return written
    return text
