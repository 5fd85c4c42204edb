"""How far a predicted time may be from a measured one.

One table: what bounds a kernel to the error that nine of ten measured kernels bounded so stayed
within (``docs/accuracy.md``).  Where nothing was measured the time is an order of magnitude, and
the band says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from va100.perf.kernel import Bound


@dataclass(frozen=True, slots=True)
class Family:
    """Measured kernels that are alike."""

    name: str
    """As ``docs/accuracy.md`` has it."""
    within_ratio: float
    """Error, relative to the measured time, that nine of ten of them stay within."""


STREAMS: Final = Family("one double a thread, by occupancy", 0.136)
SMALL: Final = Family("small kernels in streams and graphs", 0.167)
CONVOLUTION: Final = Family("convolution of 4096 x 4096 by 15 x 15", 0.322)
CONVERSION: Final = Family("dedispersion", 0.047)

FAMILIES: Final[Mapping[Bound, Family]] = {
    Bound.DRAM: STREAMS,
    Bound.LAUNCH: SMALL,
    Bound.LATENCY: CONVOLUTION,
    Bound.L2: SMALL,
    Bound.FMA: CONVOLUTION,
    Bound.XU: CONVERSION,
    Bound.SHARED: CONVOLUTION,
    Bound.L1: CONVOLUTION,
    Bound.LSU: CONVOLUTION,
    Bound.ALU: CONVOLUTION,
    Bound.ISSUE: CONVOLUTION,
}
"""The widest family whose kernels are held back so; others were not measured."""
UNMEASURED_FACTOR: Final = 10**0.5
"""Up and down from a time that is right to an order of magnitude."""


def band_s(duration_s: float, bound: Bound | None) -> tuple[float, float]:
    """Least and most that the launch would take on the chip, nine times of ten.

    An error is relative to the measured time, so the band is not symmetrical.
    """
    family = FAMILIES.get(bound) if bound else None
    if family is None:
        return duration_s / UNMEASURED_FACTOR, duration_s * UNMEASURED_FACTOR
    return duration_s / (1 + family.within_ratio), duration_s / (1 - family.within_ratio)


def band_source(bound: Bound | None) -> str:
    """Where the band comes from, for people."""
    family = FAMILIES.get(bound) if bound else None
    if family is None:
        return "nothing of the kind was measured: an order of magnitude"
    return f"nine of ten measured: {family.name}"
