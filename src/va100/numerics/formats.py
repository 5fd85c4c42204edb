"""Floating-point formats and their exact widening; no arithmetic, no rounding.

A value is its raw bits in an unsigned array of the format's width.  Widening to f64 is exact for
every format here, so f64 is the working currency of :mod:`va100.numerics.rounding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[Any]
"""Raw bits: uint16, uint32 or uint64."""
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatFormat:
    """A binary interchange format.

    ``precision`` counts the hidden bit; ``canonical_nan`` is what an operation that makes or
    propagates a NaN returns (f64 keeps the host's, see :mod:`va100.numerics.rounding`).
    """

    name: str
    bits: int
    precision: int
    emax: int
    canonical_nan: int

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal number."""
        return 1 - self.emax

    @property
    def dtype(self) -> np.dtype[Any]:
        """Unsigned array type that holds the raw bits."""
        return np.dtype(f"u{self.bits // 8}")

    @property
    def sign_bit(self) -> int:
        """Mask of the sign."""
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        """Bits of +infinity."""
        return (2 * self.emax + 1) << (self.precision - 1)

    @property
    def largest(self) -> int:
        """Bits of the largest finite number."""
        return self.infinity - 1

    @property
    def smallest_normal(self) -> int:
        """Bits of the smallest normal number."""
        return 1 << (self.precision - 1)

    @property
    def one(self) -> int:
        """Bits of 1.0."""
        return self.emax << (self.precision - 1)


F16: Final = FloatFormat(name="f16", bits=16, precision=11, emax=15, canonical_nan=0x7FFF)
BF16: Final = FloatFormat(name="bf16", bits=16, precision=8, emax=127, canonical_nan=0x7FFF)
F32: Final = FloatFormat(name="f32", bits=32, precision=24, emax=127, canonical_nan=0x7FFFFFFF)
DOUBLE: Final = FloatFormat(
    name="f64", bits=64, precision=53, emax=1023, canonical_nan=0x7FF8000000000000
)


def to_f64(fmt: FloatFormat, bits: Bits) -> F64:
    """Widen exactly; a NaN stays some NaN."""
    if fmt is F32:
        return bits.view(np.float32).astype(np.float64)
    if fmt is F16:
        return bits.view(np.float16).astype(np.float64)
    if fmt is BF16:
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return bits.view(np.float64)


def widen_to_f32(fmt: FloatFormat, bits: Bits) -> Bits:
    """Widen f16 or bf16 to f32 bits: f16 NaN becomes canonical, bf16 keeps its payload.

    A bf16 is the upper half of an f32, and sm_80 shifts; f16 goes through an arithmetic pipe.
    """
    if fmt is BF16:
        return bits.astype(np.uint32) << np.uint32(16)
    wide = bits.view(np.float16).astype(np.float32).view(np.uint32)
    return np.where(is_nan(F16, bits), np.uint32(F32.canonical_nan), wide)


def is_nan(fmt: FloatFormat, bits: Bits) -> Mask:
    """Whether each value is a NaN."""
    result: Mask = magnitude(fmt, bits) > fmt.infinity
    return result


def is_infinite(fmt: FloatFormat, bits: Bits) -> Mask:
    """Whether each value is an infinity."""
    result: Mask = magnitude(fmt, bits) == fmt.infinity
    return result


def is_subnormal(fmt: FloatFormat, bits: Bits) -> Mask:
    """Whether each value is subnormal; zero is not."""
    size = magnitude(fmt, bits)
    result: Mask = (size != 0) & (size < fmt.smallest_normal)
    return result


def magnitude(fmt: FloatFormat, bits: Bits) -> Bits:
    """Bits without the sign."""
    size: Bits = bits & fmt.dtype.type(fmt.sign_bit - 1)
    return size


def flush(fmt: FloatFormat, bits: Bits) -> Bits:
    """Flush subnormals to zero of their sign (``.ftz``)."""
    zero = bits & fmt.dtype.type(fmt.sign_bit)
    return np.where(magnitude(fmt, bits) < fmt.smallest_normal, zero, bits)


def saturate(fmt: FloatFormat, bits: Bits) -> Bits:
    """Clamp to [0, 1]; NaN and negative values, -0 too, become +0 (``.sat``)."""
    one = fmt.dtype.type(fmt.one)
    zero = fmt.dtype.type(0)
    low = is_nan(fmt, bits) | ((bits & fmt.dtype.type(fmt.sign_bit)) != 0)
    clamped: Bits = np.where(low, zero, np.minimum(bits, one))
    return clamped


def canonical(fmt: FloatFormat, bits: Bits) -> Bits:
    """Replace every NaN with the format's canonical one."""
    return np.where(is_nan(fmt, bits), fmt.dtype.type(fmt.canonical_nan), bits)


def relu(fmt: FloatFormat, bits: Bits) -> Bits:
    """Clamp negative values to +0, NaN to the canonical NaN (``.relu``)."""
    negative = (bits & fmt.dtype.type(fmt.sign_bit)) != 0
    clamped = np.where(negative, fmt.dtype.type(0), bits)
    return np.where(is_nan(fmt, bits), fmt.dtype.type(fmt.canonical_nan), clamped)


def minimum(fmt: FloatFormat, a: Bits, b: Bits, *, propagate_nan: bool = False) -> Bits:
    """Smaller value, -0 below +0; a NaN loses to a number unless ``propagate_nan``."""
    return _extreme(fmt, a, b, larger=False, propagate_nan=propagate_nan)


def maximum(fmt: FloatFormat, a: Bits, b: Bits, *, propagate_nan: bool = False) -> Bits:
    """Larger value, +0 above -0; a NaN loses to a number unless ``propagate_nan``."""
    return _extreme(fmt, a, b, larger=True, propagate_nan=propagate_nan)


def _extreme(fmt: FloatFormat, a: Bits, b: Bits, *, larger: bool, propagate_nan: bool) -> Bits:
    ahead = ordered_key(fmt, a) >= ordered_key(fmt, b)
    chosen = np.where(ahead == larger, a, b)
    a_nan, b_nan = is_nan(fmt, a), is_nan(fmt, b)
    nan = fmt.dtype.type(fmt.canonical_nan)
    if propagate_nan:
        return np.where(a_nan | b_nan, nan, chosen)
    chosen = np.where(a_nan, b, np.where(b_nan, a, chosen))
    return np.where(a_nan & b_nan, nan, chosen)


def ordered_key(fmt: FloatFormat, bits: Bits) -> Bits:
    """Unsigned integers in the order of the values, -0 below +0."""
    sign = fmt.dtype.type(fmt.sign_bit)
    return np.where(bits & sign, ~bits, bits | sign)


def tf32_nearest_away(bits: Bits, *, finite: bool = False) -> Bits:
    """Round f32 bits to tf32, ties away from zero, as sm_80's two integer operations do.

    A finite value may become infinity, and a NaN with a small payload does become infinity:
    the add carries.  ``finite`` keeps the result at most the largest finite tf32.
    """
    small = magnitude(F32, bits) < np.uint32(F32.infinity)
    rounded = np.where(small, bits + np.uint32(0x1000), bits) & np.uint32(0xFFFFE000)
    if not finite:
        return rounded
    over = magnitude(F32, rounded) >= np.uint32(F32.infinity)
    return np.where(over, rounded - np.uint32(0x2000), rounded)
