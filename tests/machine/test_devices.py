"""Devices by name or by size, and the time that their data sheets allow."""

from __future__ import annotations

import pytest

from ftui.machine.devices import BUSY, CATALOGUE, GIB, IDLE, Device, UnknownDevice, find_device, update_seconds


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("h100", "h100"), ("H200", "h200"), ("NVIDIA A10", "a10"), ("rtx 4090", "4090"), ("GeForce RTX 3090", "3090"),
        ("a100", "a100-80"), ("A100-40GB", "a100-40"), ("Tesla T4", "t4"), ("nvidia_l40s", "l40s"),
    ],
)  # fmt: skip
def test_a_name_is_found_however_it_is_written(words: str, name: str) -> None:
    assert find_device(words).name == name


@pytest.mark.parametrize(
    ("words", "size"), [("24GB", 24 * 10**9), ("24 GiB", 24 * GIB), ("0.5gb", 5 * 10**8), ("900MiB", 900 * 2**20)]
)
def test_a_size_says_nothing_but_memory(words: str, size: int) -> None:
    device = find_device(words)
    assert device.memory == size and device.bandwidth is None and device.rate("bf16") is None
    assert update_seconds(device, "bf16", 1e12, 1e9) is None


@pytest.mark.parametrize(("words", "near"), [("h1000", "h100"), ("l40x", "l40s"), ("a100-81", "a100-80")])
def test_an_unknown_name_gives_the_nearest(words: str, near: str) -> None:
    with pytest.raises(UnknownDevice, match=f"did you mean .*{near}"):
        find_device(words)


@pytest.mark.parametrize("words", ["", "0GB", "GB", "xyzzy", "24TB"])
def test_what_is_no_device_is_refused_with_what_works(words: str) -> None:
    with pytest.raises(UnknownDevice, match="24GB"):
        find_device(words)


def test_the_catalogue_is_plausible() -> None:
    for name, device in CATALOGUE.items():
        assert device.name == name and 14 * GIB < device.memory < 150 * GIB
        assert device.bandwidth and device.fp32 and device.half and device.half > device.fp32
        assert device.tf32 is None or device.fp32 <= device.tf32 < device.half
    assert CATALOGUE["t4"].rate("bf16") is None and CATALOGUE["t4"].rate("fp16")


def test_a_step_takes_as_long_as_arithmetic_or_memory_whichever_is_slower() -> None:
    device = Device("d", GIB, bandwidth=1e9, fp32=1e12, half=1e13)
    assert update_seconds(device, "fp32", 3e12, 1) == pytest.approx((3 / BUSY, 3 / IDLE))
    assert update_seconds(device, "bf16", 3e12, 1) == pytest.approx((0.3 / BUSY, 0.3 / IDLE))
    low, high = update_seconds(device, "bf16", 1e9, 5e9) or (0.0, 0.0)
    assert (low, high) == (5, None), "by memory traffic alone there is no upper bound"
    low, high = update_seconds(device, "fp32", 1e12, 2e9) or (0.0, 0.0)
    assert low == 2 and high == pytest.approx(1 / IDLE)
