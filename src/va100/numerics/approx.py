"""The approximate functions, by one definition that both engines follow to the bit.

What an A100's special function unit returns is not public.  The scaling that sm_80 code does
around it is, and so are the error bounds; the unit itself is taken as correctly rounded.

**Core.**  ``core_f(x)`` of an f32: a subnormal ``x`` counts as zero of its sign; the function is
evaluated in f64 and rounded to nearest f32; a subnormal result becomes zero of its sign; NaN
becomes 0x7FFFFFFF.

========== =====================================================================
ex2        2**x
lg2        log2 x; NaN below zero, -inf at zero
rcp        1/x
rsqrt      1/sqrt x, computed as ``1.0 / sqrt(x)`` in f64
sqrt       sqrt x
sin, cos   of ``2 pi t``, t in turns: ``k = rint(4 t)``, ``r = t - k/4`` (exact),
           then sin or cos of ``6.283185307179586 * r`` with the quadrant's sign; a zero
           result is +0 unless t is zero; infinite t gives NaN
tanh       tanh x; this core alone keeps subnormals
========== =====================================================================

**Instructions** (all products and sums are f32, rounded to nearest, subnormals kept):

============================ =================================================
``f.approx.ftz``             ``core_f(x)``; for ``div`` see below
``ex2.approx``               x < -126: y = core(x * 0.5), result y * y; else core(x)
``lg2.approx``               abs(x) < 2**-126: core(x * 2**24) - 24; else core(x)
``rcp.approx``               s = 2**24 if abs(x) < 2**-126, 0.25 if abs(x) > 2**126, else 1:
                             core(x * s) * s
``rsqrt.approx``             abs(x) < 2**-126: core(x * 2**24) * 4096; else core(x)
``sqrt.approx``              abs(x) < 2**-126: core(x * 2**24) * 2**-12; else core(x)
``sin.approx, cos.approx``   core(t), t = x * 0x3E22F983 rounded toward zero
``sin.approx.2pi, …``         core(x): x is in turns
``div.approx``               abs(b) < 2**-126: a and b times 2**24; then core_rcp(b) * a
``div.full``                 abs(b) > 2**126: a and b times 0.25; abs(b) < 2**-126: times 2**24;
                             then core_rcp(b) * a
``tanh.approx``              core(x); f16: tanh in f64 rounded to f16
``ex2.approx.f16``           2**x in f64 rounded to f16
``rcp.approx.ftz.f64``       low word of x cleared, subnormal x is zero; 1/x in f64; subnormal
                             result is zero; low word cleared; NaN is 0x7FFFFFFF00000000
``rsqrt.approx.ftz.f64``     the same with ``1.0 / sqrt(x)``
============================ =================================================

With ``.ftz`` operands and results of every step are flushed, and the scaling of tiny operands
is left out (``div``, ``div.full``: only the 0.25 remains).

The f64 functions are the host's; two hosts may differ in their last bit, which shows in an f32
about once in 2**28 values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.numerics.formats import DOUBLE, F16, F32, F64, Bits, canonical, flush, is_nan, to_f64
from va100.numerics.rounding import mul, round_f64

_TURN: Final = np.uint32(0x3E22F983)
"""1 / 2 pi in f32."""
_TINY: Final = np.float32(2.0**-126)
_HUGE: Final = np.float32(2.0**126)
_UP: Final = np.float32(2.0**24)
_ONE: Final = np.float32(1.0)
_QUARTER: Final = np.float32(0.25)


def ex2(x: Bits, *, ftz: bool) -> Bits:
    """Two to the power x."""
    if ftz:
        return _core(np.exp2, x)
    far = x.view(np.float32) < np.float32(-126.0)
    y = _core(np.exp2, _scale(x, np.where(far, np.float32(0.5), _ONE)))
    return np.where(far, mul(F32, "rn", y, y), y)


def lg2(x: Bits, *, ftz: bool) -> Bits:
    """Logarithm to base two."""
    if ftz:
        return _core(np.log2, x)
    tiny = _is_tiny(x)
    y = _core(np.log2, _scale(x, np.where(tiny, _UP, _ONE))).view(np.float32)
    return canonical(F32, np.where(tiny, y - np.float32(24.0), y).view(np.uint32))


def rcp(x: Bits, *, ftz: bool) -> Bits:
    """One over x."""
    if ftz:
        return _core(np.reciprocal, x)
    huge = np.abs(x.view(np.float32)) > _HUGE
    by = np.where(_is_tiny(x), _UP, np.where(huge, _QUARTER, _ONE))
    return _scale(_core(np.reciprocal, _scale(x, by)), by)


def rsqrt(x: Bits, *, ftz: bool) -> Bits:
    """One over the square root of x."""
    if ftz:
        return _core(_reciprocal_root, x)
    tiny = _is_tiny(x)
    y = _core(_reciprocal_root, _scale(x, np.where(tiny, _UP, _ONE)))
    return _scale(y, np.where(tiny, np.float32(4096.0), _ONE))


def sqrt(x: Bits, *, ftz: bool) -> Bits:
    """Square root of x."""
    if ftz:
        return _core(np.sqrt, x)
    tiny = _is_tiny(x)
    y = _core(np.sqrt, _scale(x, np.where(tiny, _UP, _ONE)))
    return _scale(y, np.where(tiny, np.float32(2.0**-12), _ONE))


def sin(x: Bits, *, ftz: bool) -> Bits:
    """Sine of x in radians."""
    return _core(_sine_of_turns, _turns(x, ftz=ftz))


def cos(x: Bits, *, ftz: bool) -> Bits:
    """Cosine of x in radians."""
    return _core(_cosine_of_turns, _turns(x, ftz=ftz))


def sin_turns(x: Bits) -> Bits:
    """``sin.approx.2pi.ftz``: sine of 2 pi x."""
    return _core(_sine_of_turns, x)


def cos_turns(x: Bits) -> Bits:
    """``cos.approx.2pi.ftz``: cosine of 2 pi x."""
    return _core(_cosine_of_turns, x)


def tanh(x: Bits, *, ftz: bool) -> Bits:
    """Hyperbolic tangent of x; there is no ``.ftz`` form."""
    return _flush_if(round_f64(F32, "rn", np.tanh(to_f64(F32, x))), ftz=ftz)


UNARY: Final[Mapping[str, Callable[..., Bits]]] = {
    "ex2": ex2,
    "lg2": lg2,
    "rcp": rcp,
    "rsqrt": rsqrt,
    "sqrt": sqrt,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
}
"""Opcode to its f32 function."""


def div(a: Bits, b: Bits, *, ftz: bool) -> Bits:
    """``div.approx.f32``: a times the reciprocal of b."""
    return _quotient(a, b, np.where(_is_tiny(b), _UP, _ONE) if not ftz else None, ftz=ftz)


def div_full(a: Bits, b: Bits, *, ftz: bool) -> Bits:
    """``div.full.f32``: the same over the full range of b."""
    huge = np.where(np.abs(b.view(np.float32)) > _HUGE, _QUARTER, _ONE)
    return _quotient(a, b, huge if ftz else np.where(_is_tiny(b), _UP, huge), ftz=ftz)


def ex2_f16(x: Bits) -> Bits:
    """``ex2.approx.f16``."""
    return round_f64(F16, "rn", np.exp2(to_f64(F16, x)))


def tanh_f16(x: Bits) -> Bits:
    """``tanh.approx.f16``."""
    return round_f64(F16, "rn", np.tanh(to_f64(F16, x)))


def rcp_f64(x: Bits) -> Bits:
    """``rcp.approx.ftz.f64``."""
    return _upper_word(np.reciprocal, x)


def rsqrt_f64(x: Bits) -> Bits:
    """``rsqrt.approx.ftz.f64``."""
    return _upper_word(_reciprocal_root, x)


def _core(function: Callable[[F64], F64], x: Bits) -> Bits:
    return flush(F32, round_f64(F32, "rn", function(to_f64(F32, flush(F32, x)))))


def _is_tiny(x: Bits) -> Bits:
    return np.abs(x.view(np.float32)) < _TINY


def _scale(x: Bits, by: Bits) -> Bits:
    return canonical(F32, (x.view(np.float32) * by).view(np.uint32))


def _turns(x: Bits, *, ftz: bool) -> Bits:
    return mul(F32, "rz", _flush_if(x, ftz=ftz), np.full_like(x, _TURN))


def _quotient(a: Bits, b: Bits, by: Bits | None, *, ftz: bool) -> Bits:
    if ftz:
        a, b = flush(F32, a), flush(F32, b)
    if by is not None:
        a, b = _flush_if(_scale(a, by), ftz=ftz), _flush_if(_scale(b, by), ftz=ftz)
    return _flush_if(mul(F32, "rn", _core(np.reciprocal, b), a), ftz=ftz)


def _flush_if(x: Bits, *, ftz: bool) -> Bits:
    return flush(F32, x) if ftz else x


def _reciprocal_root(x: F64) -> F64:
    return 1.0 / np.sqrt(x)


def _sine_of_turns(t: F64) -> F64:
    quadrant, angle = _quadrant(t)
    value = np.where(quadrant & 1, np.cos(angle), np.sin(angle))
    return np.where(t == 0, t, _signed(value, quadrant & 2))


def _cosine_of_turns(t: F64) -> F64:
    quadrant, angle = _quadrant(t)
    value = np.where(quadrant & 1, np.sin(angle), np.cos(angle))
    return _signed(value, (quadrant + 1) & 2)


def _quadrant(t: F64) -> tuple[Bits, F64]:
    nearest = np.rint(4.0 * t)
    angle = 6.283185307179586 * (t - 0.25 * nearest)
    return np.where(np.isfinite(t), np.fmod(nearest, 4.0), 0.0).astype(np.int64) & 3, angle


def _signed(value: F64, negative: Bits) -> F64:
    signed = np.where(negative != 0, -value, value)
    return np.where(signed == 0, 0.0, signed)


def _upper_word(function: Callable[[F64], F64], x: Bits) -> Bits:
    upper = np.uint64(0xFFFFFFFF00000000)
    bits = flush(DOUBLE, x & upper)
    result = np.asarray(function(bits.view(np.float64))).view(np.uint64)
    result = flush(DOUBLE, result) & upper
    nan = is_nan(DOUBLE, x) | is_nan(DOUBLE, result)
    return np.where(nan, np.uint64(0x7FFFFFFF00000000), result)
