"""Multiply-accumulate of matrices as an A100's tensor core does it, to the bit.

One pure function over stacks of matrices, which follows the table in
:mod:`va100.numerics.mma_rules`.  It is plain NumPy and slow; the native code that mirrors it is
``native/exec/mma*.cpp``, and both are tested against exact rationals.  No shapes, no registers.

Method of the floating kinds.  An operand is a signed integer significand, never normalised, times
a power of two; products are exact.  Each term of a block is moved to the largest exponent among
them, what falls below 24 fraction bits is dropped from its magnitude, and the rest is added
exactly.  Infinities and NaNs are followed beside the numbers, by one representative each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from va100.numerics import rounding
from va100.numerics.formats import (
    DOUBLE,
    F16,
    F32,
    Bits,
    FloatFormat,
    canonical,
    magnitude,
    to_f64,
    widen_to_f32,
)
from va100.numerics.mma_rules import MmaRule, Procedure, rule

I64 = npt.NDArray[np.int64]


def mma(a: Bits, b: Bits, c: Bits, *, kind: str, mode: str = "rn", satfinite: bool = False) -> Bits:
    """Multiply and accumulate, any K, in blocks of ascending k as the hardware takes them.

    Where K is no multiple of the block, the missing elements are +0.

    Parameters
    ----------
    a : (..., M, K)
        Raw bits of the operand's width (tf32: uint32), integer values, or zeros and ones for b1.
    b : (..., K, N)
    c : (..., M, N)
        Raw bits of the accumulator's width, or integers of 32 bits.
    mode : ``rn``, ``rz``, ``rm``, ``rp``
        f64 only.
    satfinite : bool
        Integer kinds only: clamp instead of wrap, after every ``step`` of k.

    Returns
    -------
    (..., M, N) raw bits, int32 for integer kinds

    Raises
    ------
    ValueError
        There is no such kind, it has no such modifier, or shapes do not fit.
    """
    row = rule(kind)
    _check(row, a, b, mode, satfinite=satfinite)
    if row.accumulator is not None:
        c = np.broadcast_to(c, _shape(a, b)).astype(row.accumulator.dtype)
        a, b = _padded(a, b, row.block)
        with np.errstate(all="ignore"):
            for start in range(0, a.shape[-1], row.block):
                stop = start + row.block
                c = _block(row, a[..., start:stop], b[..., start:stop, :], c, mode)
        return c
    total = np.broadcast_to(c, _shape(a, b)).astype(np.int64)
    for start in range(0, a.shape[-1], row.step):
        stop = start + row.step
        part = _count(row, a[..., start:stop].astype(np.int64), b[..., start:stop, :])
        total = _to_32_bits(total + part, satfinite=satfinite)
    return total.astype(np.int32)


def _check(row: MmaRule, a: Bits, b: Bits, mode: str, *, satfinite: bool) -> None:
    if satfinite and row.procedure is not Procedure.INTEGER:
        raise ValueError(f"{row.kind} has no .satfinite")
    if mode != "rn" and row.procedure is not Procedure.CHAIN:
        raise ValueError(f"{row.kind} has no rounding mode .{mode}")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"no product of {a.shape} and {b.shape}")


def _shape(a: Bits, b: Bits) -> tuple[int, ...]:
    return (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])


def _padded(a: Bits, b: Bits, block: int) -> tuple[Bits, Bits]:
    """Zeros up to a whole number of blocks."""
    more = -a.shape[-1] % block
    if not more:
        return a, b
    columns = [(0, 0)] * (a.ndim - 1) + [(0, more)]
    rows = [(0, 0)] * (b.ndim - 2) + [(0, more), (0, 0)]
    return np.pad(a, columns), np.pad(b, rows)


def _block(row: MmaRule, a: Bits, b: Bits, c: Bits, mode: str) -> Bits:
    if row.procedure is Procedure.CHAIN:
        return _chain(a, b, c, mode)
    if row.procedure is Procedure.SEQUENCE:
        return _sequence(row, a, b, c)
    return _aligned(row, a, b, c)


# ------------------------------------------------------------------ aligned sums


@dataclass(frozen=True, slots=True)
class _Terms:
    """``significand * 2**exponent``; ``special`` is a number of the same sort.

    NaN, an infinity, zero, or one where the value is an ordinary number.
    """

    significand: I64
    exponent: I64
    special: npt.NDArray[np.float32]


def _aligned(row: MmaRule, a: Bits, b: Bits, c: Bits) -> Bits:
    if row.operand is None or row.accumulator is None:
        raise AssertionError(row)
    kept = row.operand.dtype.type((1 << row.operand.bits) - (1 << row.dropped_bits))
    x = _terms(row.operand, (a & kept)[..., :, None, :])
    y = _terms(row.operand, (b & kept).swapaxes(-1, -2)[..., None, :, :])
    z = _terms(row.accumulator, c)
    products, low = x.significand * y.significand, x.exponent + y.exponent
    point = row.operand.precision - 1
    own = row.accumulator.precision - 1
    empty = row.least_exponent
    largest = np.where(products != 0, low + 2 * point, empty).max(axis=-1)
    largest = np.maximum(largest, np.where(z.significand != 0, z.exponent + own, empty))
    unit = largest - row.alignment_bits
    total = _cut(products, low - unit[..., None]).sum(axis=-1) + _cut(
        z.significand, z.exponent - unit
    )
    special = (x.special * y.special).sum(axis=-1) + z.special
    return _rounded(row, total, unit, special)


def _terms(fmt: FloatFormat, bits: Bits) -> _Terms:
    """Take values apart; infinities and NaNs get some significand that nobody looks at."""
    size = magnitude(fmt, bits).astype(np.int64)
    field = size >> (fmt.precision - 1)
    fraction = size & ((1 << (fmt.precision - 1)) - 1)
    significand = np.where(field > 0, fraction | 1 << (fmt.precision - 1), fraction)
    negative = (bits & fmt.dtype.type(fmt.sign_bit)) != 0
    exponent = np.maximum(field, 1) - (fmt.emax + fmt.precision - 1)
    kind = np.where(size > 0, np.float32(1), np.float32(0))
    kind = np.where(size >= fmt.infinity, np.float32(np.inf), kind)
    kind = np.where(size > fmt.infinity, np.float32(np.nan), kind)
    return _Terms(
        np.where(negative, -significand, significand), exponent, np.where(negative, -kind, kind)
    )


def _cut(significand: I64, shift: I64) -> I64:
    """Move a term to the common unit; what falls off its magnitude is lost."""
    left, right = np.clip(shift, 0, 40), np.clip(-shift, 0, 63)
    moved: I64 = np.sign(significand) * ((np.abs(significand) << left) >> right)
    return moved


def _rounded(row: MmaRule, total: I64, unit: I64, special: npt.NDArray[np.float32]) -> Bits:
    """Round a sum of units; a zero is +0, and too large is infinite in either rounding."""
    fmt = row.accumulator
    if fmt is None:
        raise AssertionError(row)
    negative = total < 0
    size = np.abs(total).astype(np.uint64)
    result = rounding.round_significand(fmt, row.rounding, negative, size, unit)
    sign = np.where(negative, fmt.dtype.type(fmt.sign_bit), fmt.dtype.type(0))
    over = (size != 0) & (np.frexp(size.astype(np.float64))[1] + unit - 1 > fmt.emax)
    infinity = fmt.dtype.type(fmt.infinity)
    result = np.where(over, infinity | sign, result)
    result = np.where(magnitude(fmt, result) == 0, fmt.dtype.type(0), result)
    beyond = np.where(special < 0, infinity | fmt.dtype.type(fmt.sign_bit), infinity)
    result = np.where(np.isinf(special), beyond, result)
    return np.where(np.isnan(special), fmt.dtype.type(fmt.canonical_nan), result)


# ------------------------------------------------------------------ other procedures


def _chain(a: Bits, b: Bits, c: Bits, mode: str) -> Bits:
    """IEEE fused multiply-adds in ascending k; what an A100's f64 NaN holds is not known."""
    for k in range(a.shape[-1]):
        terms = np.broadcast_arrays(a[..., :, k, None], b[..., k, None, :], c)
        flat = rounding.fma(DOUBLE, mode, *(np.ascontiguousarray(v).ravel() for v in terms))
        c = flat.reshape(c.shape)
    return canonical(DOUBLE, c)


def _sequence(row: MmaRule, a: Bits, b: Bits, c: Bits) -> Bits:
    """FFMA and FADD as compilers emit them for the Volta shape; f16 is widened first."""
    x = [np.ascontiguousarray(widen_to_f32(F16, a[..., :, k, None])) for k in range(4)]
    y = [np.ascontiguousarray(widen_to_f32(F16, b[..., k, None, :])) for k in range(4)]

    def fused(k: int, z: Any) -> Bits:
        p, q, r = np.broadcast_arrays(x[k], y[k], z)
        return rounding.fma(F32, "rn", *(np.ascontiguousarray(v) for v in (p, q, r)))

    if row.accumulator is F16:
        wide = np.ascontiguousarray(widen_to_f32(F16, c))
        p = fused(1, rounding.mul(F32, "rn", x[0], y[0]))
        q = fused(3, rounding.mul(F32, "rn", x[2], y[2]))
        total = rounding.add(F32, "rn", rounding.add(F32, "rn", wide, p), q)
        return rounding.round_f64(F16, "rn", to_f64(F32, total))
    t = np.zeros((), np.uint32)
    for k in range(4):
        t = fused(k, t)
    return rounding.add(F32, "rn", np.ascontiguousarray(c), t)


def _count(row: MmaRule, a: I64, b: Bits) -> I64:
    """Exact sum of one instruction's products."""
    y = b.astype(np.int64)
    both: I64 = a @ y
    if row.procedure is Procedure.INTEGER or row.conjunction:
        return both
    ones: I64 = a.sum(axis=-1)[..., :, None] + y.sum(axis=-2)[..., None, :] - 2 * both
    return ones


def _to_32_bits(total: I64, *, satfinite: bool) -> I64:
    if satfinite:
        return np.clip(total, -(1 << 31), (1 << 31) - 1)
    return (total + (1 << 31)) % (1 << 32) - (1 << 31)
