"""How far an operator's predicted time may be from a measured one, by family.

``docs/operators.md`` shows the errors these come from; a test keeps the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Family:
    """Operators that were measured together."""

    name: str
    """As ``docs/operators.md`` has it."""
    within_ratio: float
    """Error, relative to the measured time, that nine of ten rows not used for fitting stay
    within."""
    measured: bool = True


PRODUCTS: Final = Family("products, bf16: vllm", 0.153)
EIGHT_BIT: Final = Family("products, int8", 0.265)
PACKED8: Final = Family("products, 8-bit weights", 0.207)
PACKED4: Final = Family("products, 4-bit weights", 0.236)
ORDINARY: Final = Family("products, fp32, linear", 0.191)
ORDINARY_BATCHED: Final = Family("products, fp32, batched", 0.073)
CONV: Final = Family("convolutions, fp32", 0.442)
VECTOR: Final = Family("element-wise, fp32", 0.065)
BY_ROW: Final = Family("softmax and layer norm, fp32", 0.252)
SPMV: Final = Family("sparse matrix times vector", 0.279)

PREFILL: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "vllm": Family("attention, prefill: vllm", 0.212),
        "sglang": Family("attention, prefill: sglang", 0.181),
        "trtllm": Family("attention, prefill: trtllm", 0.192),
    }
)
DECODE: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "vllm": Family("attention, decode: vllm", 0.17),
        "sglang": Family("attention, decode: sglang", 0.216),
        "trtllm": Family("attention, decode: trtllm", 0.336),
    }
)
MOE: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "vllm": Family("experts, bf16: vllm", 0.369),
        "sglang": Family("experts, bf16: sglang", 0.248),
        "trtllm": Family("experts, bf16: trtllm", 0.289),
        "marlin": Family("experts, 4-bit weights", 0.29),
    }
)
"""By the library whose kernels they are."""

SPARSE: Final = Family("sparse products", 0.35, measured=False)
STENCIL: Final = Family("stencils", 0.2, measured=False)
UNMEASURED: Final = Family("not measured", 0.5, measured=False)
"""Made of parts that were measured, or held against two or three published figures.  Assumed."""

MEASURED: Final = (
    PRODUCTS,
    EIGHT_BIT,
    PACKED8,
    PACKED4,
    ORDINARY,
    ORDINARY_BATCHED,
    CONV,
    VECTOR,
    BY_ROW,
    SPMV,
    *PREFILL.values(),
    *DECODE.values(),
    *MOE.values(),
)


def band_s(time_s: float, family: Family, least_ratio: float = 0.0) -> tuple[float, float]:
    """Least and most seconds, nine times of ten; an error is relative to the measured time.

    Parameters
    ----------
    least_ratio : float
        Error to allow for at least, on chips that the family was not measured on.
    """
    ratio = max(family.within_ratio, least_ratio)
    return time_s / (1.0 + ratio), time_s / (1.0 - ratio)
