"""How far an operator's predicted time may be from a measured one, by family.

``docs/operators.md`` shows the errors these come from; a test keeps the two equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Family:
    """Operators that were measured together."""

    name: str
    within_ratio: float
    """Error, relative to the measured time, that nine of ten rows not used for fitting stay
    within."""
    measured: bool = True


GEMM: Final = Family("products", 0.23)
GEMM_PACKED: Final = Family("products with packed weights", 0.3)
GEMM_SPARSE: Final = Family("sparse products", 0.35, measured=False)
PREFILL: Final = Family("attention, prefill", 0.3)
DECODE: Final = Family("attention, decode", 0.3)
MOE: Final = Family("experts", 0.3)
CONV: Final = Family("convolutions", 0.3)
VECTOR: Final = Family("element-wise and rows", 0.2)
SPMV: Final = Family("sparse matrix times vector", 0.5)
STENCIL: Final = Family("stencils", 0.2)
UNMEASURED: Final = Family("not measured", 0.5, measured=False)

OTHER_CHIP_RATIO: Final = 0.35
"""Least error allowed for on GPUs of which only headlines are known.  Assumed."""


def band_s(time_s: float, family: Family, *, calibrated: bool) -> tuple[float, float]:
    """Least and most seconds, nine times of ten; an error is relative to the measured time."""
    ratio = family.within_ratio if calibrated else max(family.within_ratio, OTHER_CHIP_RATIO)
    return time_s / (1.0 + ratio), time_s / (1.0 - ratio)
