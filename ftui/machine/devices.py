"""Devices that can be rented, by name: memory, bandwidth and arithmetic from their makers' public data sheets (S7, N3).

Rates are dense (without sparsity) and those of the form in which the device is usually rented. Memory is what the driver gives:
data sheets count in gigabytes of one kind or another, and error correction takes its share of GDDR memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

MIB, GIB = 2**20, 2**30
GB, TERA = 10**9, 10**12

Precision = str
"""`training.precision`: fp32, bf16, fp16."""


class UnknownDevice(Exception):
    """No device of this name is known; the message names those that are near."""


@dataclass(frozen=True)
class Device:
    """One accelerator. `memory` in bytes, `bandwidth` in bytes per second; rates in operations per second, None where unknown."""

    name: str
    memory: int
    bandwidth: float | None = None
    fp32: float | None = None
    """Without tensor cores, which is how torch multiplies fp32 matrices unless it is told otherwise."""
    tf32: float | None = None
    """fp32 on tensor cores with a shortened mantissa. torch uses it for convolutions, and for matrices only where told to."""
    half: float | None = None
    """bf16 and fp16 on tensor cores, sums in fp32."""
    no_bf16: bool = False
    """Has fp16 only."""

    def rate(self, precision: Precision) -> float | None:
        """Peak rate of matrix products under `training.precision`; None where it is unknown or the device cannot."""
        if precision == "fp32":
            return self.fp32
        return None if precision == "bf16" and self.no_bf16 else self.half


def _device(
    name: str, mib: int, gb_per_second: float, fp32: float, tf32: float | None, half: float, *, no_bf16: bool = False
) -> Device:
    tf32_rate = None if tf32 is None else tf32 * TERA
    return Device(name, mib * MIB, gb_per_second * GB, fp32 * TERA, tf32_rate, half * TERA, no_bf16)


# Name, memory in MiB as `nvidia-smi` shows it, GB/s, then dense TFLOP/s: fp32, TF32, bf16/fp16. Data sheets give tensor rates
# "with sparsity" from Ampere on; those are halved here.
CATALOGUE: dict[str, Device] = {
    device.name: device
    for device in (
        # NVIDIA H200 Tensor Core GPU data sheet, H200 SXM: 141 GB, 4.8 TB/s; 67, 989*, 1,979*.
        _device("h200", 143_771, 4_800, 67, 494.5, 989.5),
        # NVIDIA H100 Tensor Core GPU data sheet, H100 SXM: 80 GB, 3.35 TB/s; 67, 989*, 1,979*.
        _device("h100", 81_559, 3_350, 67, 494.5, 989.5),
        # The same data sheet, PCIe: 80 GB, 2 TB/s; 51, 756*, 1,513*.
        _device("h100-pcie", 81_559, 2_000, 51, 378, 756.5),
        # NVIDIA A100 Tensor Core GPU data sheet, 80 GB SXM: 2,039 GB/s; 19.5, 156 dense, 312 dense.
        _device("a100-80", 81_920, 2_039, 19.5, 156, 312),
        # The same data sheet, 40 GB: 1,555 GB/s; same rates.
        _device("a100-40", 40_960, 1_555, 19.5, 156, 312),
        # NVIDIA L40S data sheet: 48 GB with ECC, 864 GB/s; 91.6, 183 dense, 362.05 dense.
        _device("l40s", 46_068, 864, 91.6, 183, 362.05),
        # NVIDIA L40 data sheet: 48 GB with ECC, 864 GB/s; 90.5, 90.5 dense, 181.05 dense.
        _device("l40", 46_068, 864, 90.5, 90.5, 181.05),
        # NVIDIA L4 data sheet: 24 GB, 300 GB/s; 30.3, 120*, 242*.
        _device("l4", 23_034, 300, 30.3, 60, 121),
        # NVIDIA A40 data sheet: 48 GB with ECC, 696 GB/s; 37.4, 74.8 dense, 149.7 dense.
        _device("a40", 46_068, 696, 37.4, 74.8, 149.7),
        # NVIDIA A10 data sheet: 24 GB, 600 GB/s; 31.2, 62.5 dense, 125 dense.
        _device("a10", 23_028, 600, 31.2, 62.5, 125),
        # NVIDIA Blackwell architecture white paper (GeForce RTX 5090): 32 GB, 1,792 GB/s; 104.8, 104.8, 209.5 with fp32 sums.
        _device("5090", 32_607, 1_792, 104.8, 104.8, 209.5),
        # NVIDIA Ada architecture white paper (GeForce RTX 4090): 24 GB, 1,008 GB/s; 82.6, 82.6, 165.2 with fp32 sums.
        _device("4090", 24_564, 1_008, 82.6, 82.6, 165.2),
        # NVIDIA Ampere GA102 architecture white paper (GeForce RTX 3090): 24 GB, 936 GB/s; 35.6, 35.6, 71 with fp32 sums.
        _device("3090", 24_576, 936, 35.6, 35.6, 71),
        # NVIDIA T4 data sheet: 16 GB with ECC, 300 GB/s; 8.1, no TF32, 65 (fp16 only).
        _device("t4", 15_360, 300, 8.1, None, 65, no_bf16=True),
    )
}

_ALIASES = {"a100": "a100-80", "a100-80gb": "a100-80", "a100-40gb": "a100-40", "h100-sxm": "h100", "h100-80": "h100"}

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(gib|gb|mib|mb)")
_UNITS = {"gib": GIB, "gb": GB, "mib": MIB, "mb": 10**6}


def find_device(words: str) -> Device:
    """The device `words` means: a name of the catalogue (`rtx`, `nvidia`, blanks and case do not matter), or a size of memory such
    as `24GB` (10⁹ bytes each) or `24GiB` (2³⁰), of which nothing but the memory is known. Raises `UnknownDevice`.
    """
    plain = re.sub(r"[\s_]+", "-", words.strip().lower())
    if size := _SIZE.fullmatch(plain.replace("-", "")):
        memory = int(float(size[1]) * _UNITS[size[2]])
        if memory <= 0:
            raise UnknownDevice(f"{words!r} is no memory; write a size such as 24GB")
        return Device(words.strip(), memory)
    name = re.sub(r"^(nvidia|geforce|tesla|rtx)-?", "", re.sub(r"^(nvidia|geforce)-", "", plain))
    name = _ALIASES.get(name, name)
    if name in CATALOGUE:
        return CATALOGUE[name]
    near = get_close_matches(name, CATALOGUE, n=3, cutoff=0.4)
    known = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(CATALOGUE)}."
    raise UnknownDevice(f"no device {words!r} is known; {known} A size of memory works for any other, e.g. 24GB")


IDLE, BUSY = 0.25, 0.60
"""Shares of the peak rate that a training step of transformers reaches, assumed for want of a measurement."""


def update_seconds(
    device: Device, precision: Precision, flops: float, bytes_moved: float
) -> tuple[float, float | None] | None:
    """Shortest and longest time of an update of so many operations and at least so much traffic; None where a rate is unknown.

    The roofline of Williams, Waterman and Patterson 2009 (doi:10.1145/1498765.1498785): whichever takes longer, arithmetic at
    `BUSY` or `IDLE` of its peak, or memory at its full bandwidth. Where memory takes longer than even the slow arithmetic, the
    traffic is no more than a lower bound, and the longest time is None.
    """
    rate = device.rate(precision)
    if rate is None or device.bandwidth is None:
        return None
    moving, slow = bytes_moved / device.bandwidth, flops / (rate * IDLE)
    return max(flops / (rate * BUSY), moving), slow if slow > moving else None
