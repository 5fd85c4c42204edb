"""f64 arithmetic in Python integers: slow, exact, every rounding.

The fallback of :mod:`va100.numerics.rounding` where vectors of f64 cannot hold the exact value.
Lanes with an infinity or a NaN take the host's result, which no rounding mode changes; so do
exact zeros, but for their sign.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Final

import numpy as np

from va100.numerics.formats import DOUBLE, F64, Bits

_PRECISION: Final = DOUBLE.precision
_LOWEST: Final = DOUBLE.emin - (_PRECISION - 1)
"""Exponent of the smallest subnormal."""
_INFINITY: Final = DOUBLE.infinity
_SIGN: Final = DOUBLE.sign_bit
_EXTRA_BITS: Final = 110
"""Bits of a quotient kept before the sticky one."""

Number = tuple[int, int]
"""Signed significand and exponent of two; -0 cannot be told from +0."""


def add(mode: str, a: Bits, b: Bits) -> Bits:
    """Add."""
    host = a.view(np.float64) + b.view(np.float64)
    return _each(_add_lane, mode, host.view(np.uint64), a, b)


def mul(mode: str, a: Bits, b: Bits) -> Bits:
    """Multiply."""
    host = a.view(np.float64) * b.view(np.float64)
    return _each(_mul_lane, mode, host.view(np.uint64), a, b)


def fma(mode: str, a: Bits, b: Bits, c: Bits) -> Bits:
    """Multiply and add, rounded once."""
    host = unrounded_fma(a.view(np.float64), b.view(np.float64), c.view(np.float64))
    return _each(_fma_lane, mode, host.view(np.uint64), a, b, c)


def unrounded_fma(x: F64, y: F64, z: F64) -> F64:
    """Multiply and add where no product is rounded: zeros, infinities and NaNs.

    A finite product that overflows must not meet an infinite addend as an infinity.
    """
    alone = np.isinf(z) & np.isfinite(x) & np.isfinite(y)
    return np.where(alone, z, x * y + z)


def div(mode: str, a: Bits, b: Bits) -> Bits:
    """Divide."""
    host = a.view(np.float64) / b.view(np.float64)
    return _each(_div_lane, mode, host.view(np.uint64), a, b)


def sqrt(mode: str, a: Bits) -> Bits:
    """Take the square root."""
    return _each(_sqrt_lane, mode, np.sqrt(a.view(np.float64)).view(np.uint64), a)


def round_number(mode: str, *, negative: bool, significand: int, exponent: int) -> int:
    """Round ``significand * 2**exponent`` (magnitude) to f64 bits.

    The significand is exact, or its last bit is sticky and it has at least 55 bits.
    """
    leading = exponent + significand.bit_length() - 1
    quantum = max(leading - (_PRECISION - 1), _LOWEST)
    dropped = quantum - exponent
    if dropped <= 0:
        kept = significand << -dropped
    else:
        kept = significand >> dropped
        rest = significand & ((1 << dropped) - 1)
        kept += _rounds_up(mode, negative=negative, kept=kept, rest=rest, half=1 << (dropped - 1))
    size = ((quantum - _LOWEST) << (_PRECISION - 1)) + kept
    if size >= _INFINITY:
        away = mode == "rn" or (mode == "rm" and negative) or (mode == "rp" and not negative)
        size = _INFINITY if away else _INFINITY - 1
    return size | (_SIGN if negative else 0)


def _rounds_up(mode: str, *, negative: bool, kept: int, rest: int, half: int) -> bool:
    if mode == "rn":
        return rest > half or (rest == half and bool(kept & 1))
    if mode == "rm":
        return negative and rest != 0
    if mode == "rp":
        return not negative and rest != 0
    return False


def _each(lane: Callable[..., int | None], mode: str, host: Bits, *operands: Bits) -> Bits:
    """Apply ``lane`` where all operands and the exact result are finite; keep the host's else."""
    result = host.copy()
    columns = [operand.tolist() for operand in operands]
    for index, values in enumerate(zip(*columns, strict=True)):
        if all((value & ~_SIGN) < _INFINITY for value in values):
            exact = lane(mode, *values)
            if exact is not None:
                result[index] = exact
    return result


def _unpack(bits: int) -> Number:
    field = (bits >> 52) & 0x7FF
    fraction = bits & ((1 << 52) - 1)
    significand = fraction | (1 << 52) if field else fraction
    return (-significand if bits >> 63 else significand), max(field, 1) - 1075


def _round_signed(mode: str, significand: int, exponent: int) -> int:
    return round_number(
        mode, negative=significand < 0, significand=abs(significand), exponent=exponent
    )


def _sum(mode: str, x: Number, y: Number, *, same_sign: bool) -> int | None:
    low = min(x[1], y[1])
    total = (x[0] << (x[1] - low)) + (y[0] << (y[1] - low))
    if total == 0:
        return _SIGN if mode == "rm" and not same_sign else (None if same_sign else 0)
    return _round_signed(mode, total, low)


def _add_lane(mode: str, a: int, b: int) -> int | None:
    return _sum(mode, _unpack(a), _unpack(b), same_sign=(a ^ b) < _SIGN)


def _fma_lane(mode: str, a: int, b: int, c: int) -> int | None:
    (x, x_exponent), (y, y_exponent) = _unpack(a), _unpack(b)
    product = (x * y, x_exponent + y_exponent)
    if product[0] == 0 and c & ~_SIGN:
        return c
    return _sum(mode, product, _unpack(c), same_sign=(a ^ b ^ c) < _SIGN)


def _mul_lane(mode: str, a: int, b: int) -> int | None:
    (x, x_exponent), (y, y_exponent) = _unpack(a), _unpack(b)
    return _round_signed(mode, x * y, x_exponent + y_exponent) if x * y else None


def _div_lane(mode: str, a: int, b: int) -> int | None:
    (x, x_exponent), (y, y_exponent) = _unpack(a), _unpack(b)
    if not x or not y:
        return None
    quotient, rest = divmod(abs(x) << _EXTRA_BITS, abs(y))
    significand = quotient << 1 | (rest != 0)
    return round_number(
        mode,
        negative=(x < 0) != (y < 0),
        significand=significand,
        exponent=x_exponent - y_exponent - _EXTRA_BITS - 1,
    )


def _sqrt_lane(mode: str, a: int) -> int | None:
    x, exponent = _unpack(a)
    if x <= 0:
        return None
    shift = _EXTRA_BITS + (exponent & 1)
    square = x << shift
    root = isqrt(square)
    significand = root << 1 | (root * root != square)
    return round_number(
        mode, negative=False, significand=significand, exponent=(exponent - shift) // 2 - 1
    )
