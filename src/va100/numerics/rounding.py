"""Correctly rounded add, subtract, multiply, fma, divide, square root, in every PTX rounding.

Works on raw bits (:mod:`va100.numerics.formats`).  ``mode`` is ``rn`` (nearest, ties to even),
``rz`` (toward zero), ``rm`` (down), ``rp`` (up) or ``rna`` (nearest, ties away).  Neither
``.ftz`` nor ``.sat`` is applied here: callers flush and clamp.

Method.  Round to nearest in f32 and f64 is the host's own.  Everything narrower than f64 is
computed in f64 *rounded to odd* (the last bit tells whether something was cut off), which can
be rounded again to a narrower format in any mode without error, since f64 has more than two
bits to spare.  Directed f64, and f64 fma outside the range where error-free
transformations hold, go through :mod:`va100.numerics.exact`.

NaN.  f32, f16 and bf16 results are the canonical NaN.  f64 results keep what the host makes:
the first NaN operand made quiet, 0xFFF8000000000000 for a new one.  What an A100 does with f64
payloads is not known; comparisons must take all f64 NaNs as equal.

Callers silence NumPy's floating-point warnings (``np.errstate(all="ignore")``): infinities and
NaNs are values here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from va100.numerics import exact
from va100.numerics.formats import DOUBLE, F32, F64, Bits, FloatFormat, Mask, canonical, to_f64

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


def add(fmt: FloatFormat, mode: str, a: Bits, b: Bits) -> Bits:
    """Add and round once."""
    if mode == "rn" and fmt is DOUBLE:
        return (a.view(np.float64) + b.view(np.float64)).view(np.uint64)
    if mode == "rn" and fmt is F32:
        return canonical(F32, (a.view(np.float32) + b.view(np.float32)).view(np.uint32))
    if fmt is DOUBLE:
        return exact.add(mode, a, b)
    return _sum(fmt, mode, to_f64(fmt, a), to_f64(fmt, b))


def sub(fmt: FloatFormat, mode: str, a: Bits, b: Bits) -> Bits:
    """Subtract and round once."""
    negated = b ^ fmt.dtype.type(fmt.sign_bit)
    if fmt is DOUBLE and mode == "rn":
        return (a.view(np.float64) - b.view(np.float64)).view(np.uint64)
    return add(fmt, mode, a, negated)


def mul(fmt: FloatFormat, mode: str, a: Bits, b: Bits) -> Bits:
    """Multiply and round once."""
    if mode == "rn" and fmt is DOUBLE:
        return (a.view(np.float64) * b.view(np.float64)).view(np.uint64)
    if fmt is DOUBLE:
        return exact.mul(mode, a, b)
    return round_f64(fmt, mode, to_f64(fmt, a) * to_f64(fmt, b))


def fma(fmt: FloatFormat, mode: str, a: Bits, b: Bits, c: Bits) -> Bits:
    """Multiply, add, and round once."""
    if fmt is DOUBLE:
        return _fma_f64(mode, a, b, c)
    return _sum(fmt, mode, to_f64(fmt, a) * to_f64(fmt, b), to_f64(fmt, c))


def div(fmt: FloatFormat, mode: str, a: Bits, b: Bits) -> Bits:
    """Divide and round once; f32 and f64 only."""
    if mode == "rn" and fmt is DOUBLE:
        return (a.view(np.float64) / b.view(np.float64)).view(np.uint64)
    if mode == "rn":
        return canonical(F32, (a.view(np.float32) / b.view(np.float32)).view(np.uint32))
    if fmt is DOUBLE:
        return exact.div(mode, a, b)
    return _divide_f32(mode, a, b)


def rcp(fmt: FloatFormat, mode: str, a: Bits) -> Bits:
    """Divide one by the operand and round once; f32 and f64 only."""
    return div(fmt, mode, np.full_like(a, fmt.one), a)


def sqrt(fmt: FloatFormat, mode: str, a: Bits) -> Bits:
    """Take the square root and round once; f32 and f64 only."""
    if mode == "rn" and fmt is DOUBLE:
        return np.sqrt(a.view(np.float64)).view(np.uint64)
    if mode == "rn":
        return canonical(F32, np.sqrt(a.view(np.float32)).view(np.uint32))
    if fmt is DOUBLE:
        return exact.sqrt(mode, a)
    return _sqrt_f32(mode, a)


def round_f64(fmt: FloatFormat, mode: str, value: F64) -> Bits:
    """Round f64 values to a narrower format; exact when they are rounded to odd or exact."""
    if fmt is DOUBLE:
        return value.view(np.uint64)
    if fmt is F32 and mode == "rn":
        return canonical(F32, value.astype(np.float32).view(np.uint32))
    bits = np.ascontiguousarray(value).view(np.uint64)
    sign = (bits >> np.uint64(63)).astype(np.bool_)
    field = ((bits >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64)
    fraction = bits & np.uint64((1 << 52) - 1)
    significand = np.where(field > 0, fraction | np.uint64(1 << 52), fraction)
    exponent = np.maximum(field, 1) - 1075
    finite = round_significand(fmt, mode, sign, significand, exponent)
    infinite = fmt.dtype.type(fmt.infinity) | np.where(sign, fmt.sign_bit, 0).astype(fmt.dtype)
    special = np.where(np.isnan(value), fmt.dtype.type(fmt.canonical_nan), infinite)
    return np.where(field == 0x7FF, special, finite)


def round_significand(
    fmt: FloatFormat, mode: str, sign: Mask, significand: U64, exponent: I64
) -> Bits:
    """Round ``(-1)**sign * significand * 2**exponent`` to a format.

    Parameters
    ----------
    significand : uint64
        Its last bit may be sticky as long as it has two bits more than ``fmt.precision``.
    exponent : int64
    """
    leading = exponent + _bit_length(significand) - 1
    quantum = np.clip(leading, fmt.emin, fmt.emax + 1) - (fmt.precision - 1)
    dropped = quantum - exponent
    # Past 63 dropped bits only "something is there" matters.
    significand = np.where(dropped > 63, (significand != 0).astype(np.uint64), significand)
    right = np.clip(dropped, 0, 63).astype(np.uint64)
    left = np.clip(-dropped, 0, 63).astype(np.uint64)
    kept = (significand >> right) << left
    rest = significand & ((np.uint64(1) << right) - np.uint64(1))
    half = (np.uint64(1) << right) >> np.uint64(1)
    kept = kept + _rounds_up(mode, sign, kept, rest, half).astype(np.uint64)
    field = (quantum - (fmt.emin - (fmt.precision - 1))).astype(np.uint64)
    size = (field << np.uint64(fmt.precision - 1)) + kept
    over = (size >= np.uint64(fmt.infinity)) | (leading > fmt.emax)
    size = np.where(over, _overflow(fmt, mode, sign), size)
    size = np.where(significand == 0, np.uint64(0), size)
    return (size | np.where(sign, np.uint64(fmt.sign_bit), np.uint64(0))).astype(fmt.dtype)


def _rounds_up(mode: str, sign: Mask, kept: U64, rest: U64, half: U64) -> Mask:
    """Whether the magnitude grows by one unit in the last place."""
    inexact: Mask = rest != 0
    up: Mask = np.zeros_like(sign)
    if mode == "rn":
        odd = (kept & np.uint64(1)) != 0
        up = (rest > half) | ((rest == half) & inexact & odd)
    elif mode == "rna":
        up = (rest >= half) & inexact
    elif mode == "rm":
        up = inexact & sign
    elif mode == "rp":
        up = inexact & ~sign
    return up


def _overflow(fmt: FloatFormat, mode: str, sign: Mask) -> U64:
    """Magnitude of a result too large to represent."""
    infinity, largest = np.uint64(fmt.infinity), np.uint64(fmt.largest)
    if mode in ("rn", "rna"):
        return np.full(sign.shape, infinity)
    if mode == "rz":
        return np.full(sign.shape, largest)
    return np.where(sign == (mode == "rm"), infinity, largest)


def _bit_length(value: U64) -> I64:
    high = value >> np.uint64(32)
    # Below 2**32 the conversion to f64 is exact, so frexp's exponent is the bit length.
    top = np.frexp(high.astype(np.float64))[1] + 32
    low = np.frexp(value.astype(np.uint32).astype(np.float64))[1]
    return np.where(high != 0, top, low).astype(np.int64)


def _sum(fmt: FloatFormat, mode: str, x: F64, y: F64) -> Bits:
    """Round the exact sum of two f64 values that came from a narrower format."""
    total = _add_to_odd(x, y)
    if mode == "rm":
        # An exact zero from unlike signs is -0 when rounding down.
        unlike = np.signbit(x) != np.signbit(y)
        total = np.where((total == 0) & unlike, -0.0, total)
    return round_f64(fmt, mode, total)


def _add_to_odd(x: F64, y: F64) -> F64:
    """Add in f64, rounded to odd; x and y must be far from overflow, or not finite."""
    total, error = _two_sum(x, y)
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(error) & ((bits & 1) == 0)
    # Toward the error: away from zero when it has the sum's sign, toward zero otherwise.
    step = np.where(np.signbit(error) == np.signbit(total), 1, -1)
    return np.where(inexact, bits + step, bits).view(np.float64)


def _two_sum(x: F64, y: F64) -> tuple[F64, F64]:
    total = x + y
    shadow = total - x
    return total, (x - (total - shadow)) + (y - shadow)


def _two_product(x: F64, y: F64) -> tuple[F64, F64]:
    product = x * y
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, error


def _split(x: F64) -> tuple[F64, F64]:
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def _fma_f64(mode: str, a: Bits, b: Bits, c: Bits) -> Bits:
    """Fuse by Boldo and Melquiond's sum with a part rounded to odd; else by exact integers."""
    if mode != "rn":
        return exact.fma(mode, a, b, c)
    x, y, z = a.view(np.float64), b.view(np.float64), c.view(np.float64)
    high, low = _two_product(x, y)
    sum_high, sum_low = _two_sum(z, low)
    total, rest = _two_sum(high, sum_high)
    result = total + _add_to_odd(rest, sum_low)
    safe = _in_range(x) & _in_range(y) & (_in_range(z) | (z == 0))
    # An infinity, a NaN or a zero product: nothing is rounded before the sum.
    plain = ~(np.isfinite(x) & np.isfinite(y) & np.isfinite(z)) | (x == 0) | (y == 0)
    bits = np.where(plain, exact.unrounded_fma(x, y, z), result).view(np.uint64)
    hard = ~safe & ~plain
    if hard.any():
        bits[hard] = exact.fma(mode, a[hard], b[hard], c[hard])
    return bits


def _in_range(x: F64) -> Mask:
    """Magnitudes for which no partial result over- or underflows."""
    size = np.abs(x)
    return (size > 2.0**-400) & (size < 2.0**400)


def _divide_f32(mode: str, a: Bits, b: Bits) -> Bits:
    sign = ((a ^ b) >> np.uint32(31)).astype(np.bool_)
    top, top_exponent = _normalised(a)
    bottom, bottom_exponent = _normalised(b)
    special = (top == 0) | (bottom == 0) | ~_finite(a) | ~_finite(b)
    divisor = np.where(bottom == 0, np.uint64(1), bottom)
    scaled = top << np.uint64(30)
    quotient = scaled // divisor
    quotient |= (scaled % divisor != 0).astype(np.uint64)
    exponent = top_exponent - bottom_exponent - 30
    rounded = round_significand(F32, mode, sign, quotient, exponent)
    return np.where(special, div(F32, "rn", a, b), rounded)


def _sqrt_f32(mode: str, a: Bits) -> Bits:
    significand, exponent = _normalised(a)
    odd = (exponent & 1) != 0
    square = np.where(odd, significand << np.uint64(27), significand << np.uint64(26))
    exponent = np.where(odd, exponent - 27, exponent - 26) // 2
    root = np.sqrt(square.astype(np.float64)).astype(np.uint64)
    root -= (root * root > square).astype(np.uint64)
    sticky = (root * root != square).astype(np.uint64)
    root = (root << np.uint64(1)) | sticky
    rounded = round_significand(F32, mode, np.zeros(a.shape, np.bool_), root, exponent - 1)
    special = (significand == 0) | ~_finite(a) | ((a >> np.uint32(31)) != 0)
    return np.where(special, sqrt(F32, "rn", a), rounded)


def _normalised(bits: Bits) -> tuple[U64, I64]:
    """Significand in [2**23, 2**24) and exponent of f32 values; zero stays zero."""
    field = ((bits >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int64)
    fraction = (bits & np.uint32(0x7FFFFF)).astype(np.uint64)
    significand = np.where(field > 0, fraction | np.uint64(1 << 23), fraction)
    shift = np.clip(24 - _bit_length(significand), 0, 23)
    moved = np.left_shift(significand, shift.astype(np.uint64))
    exponent: I64 = np.maximum(field, 1) - 150 - shift
    return moved, exponent


def _finite(bits: Bits) -> Mask:
    finite: Mask = (bits & np.uint32(0x7F800000)) != np.uint32(0x7F800000)
    return finite
