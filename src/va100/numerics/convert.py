"""Conversions between integers and floating-point formats, and between formats.

Rounding and saturation rules only; which PTX ``cvt`` uses which is the engines' business.
Float to integer saturates always.  A NaN becomes 0, except that it becomes the most negative
bit pattern (0x8000...) when the source is f64 or the destination has 64 bits (PTX ISA, ``cvt``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from va100.numerics.formats import (
    BF16,
    DOUBLE,
    F16,
    F32,
    F64,
    Bits,
    FloatFormat,
    is_nan,
    to_f64,
    widen_to_f32,
)
from va100.numerics.rounding import round_f64, round_significand


def float_to_float(source: FloatFormat, target: FloatFormat, mode: str, bits: Bits) -> Bits:
    """Convert between formats; ``mode`` is empty where the conversion is exact."""
    if source is target:
        return bits
    if target is F32 and source in (F16, BF16):
        return widen_to_f32(source, bits)
    if source in (F16, BF16) and target is DOUBLE:
        return widen_to_f32(source, bits).view(np.float32).astype(np.float64).view(np.uint64)
    return round_f64(target, mode or "rn", to_f64(source, bits))


def round_to_integral(fmt: FloatFormat, mode: str, bits: Bits) -> Bits:
    """Round to an integral value of the same format (``rni rzi rmi rpi``)."""
    value = INTEGRAL[mode](to_f64(fmt, bits))
    return round_f64(fmt, "rn", value)


INTEGRAL: Final[Mapping[str, Callable[[F64], F64]]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
"""Integer rounding modifier to the function on f64."""


def float_to_integer(
    fmt: FloatFormat, mode: str, bits: Bits, target: npt.DTypeLike
) -> npt.NDArray[Any]:
    """Round and saturate to an integer type.

    Parameters
    ----------
    mode : str
        ``rni``, ``rzi``, ``rmi`` or ``rpi``.
    target : integer NumPy type
        Signed or unsigned, 8 to 64 bits.
    """
    limits = np.iinfo(target)
    value = INTEGRAL[mode](to_f64(fmt, bits))
    above = value >= float(limits.max) + (0.0 if limits.bits == 64 else 1.0)
    below = value < float(limits.min)
    nan = is_nan(fmt, bits)
    inside = np.where(above | below | nan, 0.0, value)
    result = inside.astype(target)
    result = np.where(above, result.dtype.type(limits.max), result)
    result = np.where(below, result.dtype.type(limits.min), result)
    return np.where(nan, _nan_integer(fmt, result.dtype), result)


def _nan_integer(fmt: FloatFormat, target: np.dtype[Any]) -> Any:
    if fmt is not DOUBLE and target.itemsize < 8:
        return target.type(0)
    unsigned = np.dtype(f"u{target.itemsize}")
    return np.array(1 << (8 * target.itemsize - 1), unsigned).view(target)[()]


def integer_to_float(fmt: FloatFormat, mode: str, value: npt.NDArray[Any]) -> Bits:
    """Convert signed or unsigned integers, rounded once."""
    sign = value < 0
    magnitude = np.where(sign, -value.astype(np.int64), value.astype(np.int64)).view(np.uint64)
    if value.dtype == np.uint64:
        magnitude = value
    exponent = np.zeros(value.shape, np.int64)
    return round_significand(fmt, mode, sign, magnitude, exponent)


def saturate_integer(value: npt.NDArray[Any], target: npt.DTypeLike) -> npt.NDArray[Any]:
    """Clamp integers to the range of another integer type."""
    limits = np.iinfo(target)
    low = max(limits.min, int(np.iinfo(value.dtype).min))
    high = min(limits.max, int(np.iinfo(value.dtype).max))
    clamped: npt.NDArray[Any] = np.clip(value, low, high).astype(target)
    return clamped
