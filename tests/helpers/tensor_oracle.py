"""One output element of a tensor core's product in exact rationals, from the published rules.

It shares no code with the library: values are fractions, and a block is added as the rules are
told in docs/tensor-cores.md.  Slow; for comparing bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tests.helpers import rationals

NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "f64": 0x7FF8000000000000}
INFINITY = {"f32": 0x7F800000, "f16": 0x7C00}


@dataclass(frozen=True)
class Layout:
    """Fields of a format: width of exponent and fraction, bias."""

    exponent_bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1


LAYOUTS = {
    "f16": Layout(5, 10),
    "bf16": Layout(8, 7),
    "tf32": Layout(8, 23),
    "f32": Layout(8, 23),
}
BLOCKS = {"f16": 8, "bf16": 8, "tf32": 4}


@dataclass(frozen=True)
class Number:
    """A value with the exponent it is stored under; ``kind`` is finite, inf or nan."""

    kind: str
    value: Fraction
    exponent: int
    negative: bool


def take_apart(name: str, bits: int) -> Number:
    """Read raw bits; a subnormal has the exponent of the smallest normal number."""
    if name == "tf32":
        bits &= ~0x1FFF
    layout = LAYOUTS[name]
    fraction = bits & ((1 << layout.fraction_bits) - 1)
    field = bits >> layout.fraction_bits & ((1 << layout.exponent_bits) - 1)
    negative = bool(bits >> (layout.fraction_bits + layout.exponent_bits) & 1)
    if field == (1 << layout.exponent_bits) - 1:
        return Number("nan" if fraction else "inf", Fraction(0), 0, negative)
    exponent = max(field, 1) - layout.bias
    significand = Fraction(fraction, 1 << layout.fraction_bits) + (1 if field else 0)
    value = significand * Fraction(2) ** exponent
    return Number("finite", -value if negative else value, exponent, negative)


def block(operand: str, accumulator: str, a: Sequence[int], b: Sequence[int], c: int) -> int:
    """Add the products of one block to an accumulator."""
    pairs = [(take_apart(operand, x), take_apart(operand, y)) for x, y in zip(a, b, strict=True)]
    start = take_apart(accumulator, c)
    beyond = _beyond(accumulator, pairs, start)
    if beyond is not None:
        return beyond
    terms = [(x.value * y.value, x.exponent + y.exponent) for x, y in pairs]
    terms.append((start.value, start.exponent))
    least = -132 if accumulator == "f32" else -20
    top = max(exponent if value else least for value, exponent in terms)
    unit = Fraction(2) ** (top - 24)
    total = sum(_toward_zero(value / unit) for value, _ in terms) * unit
    return _finish(accumulator, total)


def _beyond(accumulator: str, pairs: Sequence[tuple[Number, Number]], start: Number) -> int | None:
    """A NaN or infinity, when one takes part."""
    signs = {start.negative} if start.kind == "inf" else set()
    nan = start.kind == "nan"
    for x, y in pairs:
        kinds = {x.kind, y.kind}
        if "nan" in kinds:
            nan = True
        elif "inf" in kinds:
            other = y if x.kind == "inf" else x
            if other.kind == "finite" and other.value == 0:
                nan = True
            signs.add(x.negative != y.negative)
    if nan or len(signs) == 2:
        return NAN[accumulator]
    if signs:
        sign = 31 if accumulator == "f32" else 15
        return INFINITY[accumulator] | signs.pop() << sign
    return None


def _toward_zero(x: Fraction) -> int:
    return math.trunc(x)


def _finish(accumulator: str, total: Fraction) -> int:
    if total == 0:
        return 0
    if accumulator == "f32":
        if abs(total) >= Fraction(2) ** 128:
            return INFINITY["f32"] | (total < 0) << 31
        bits = rationals.encode("f32", "rz", total)
        return 0 if bits & 0x7FFFFFFF == 0 else bits
    bits = rationals.encode("f16", "rn", total)
    return 0 if bits & 0x7FFF == 0 else bits


def element(kind: str, a: Sequence[int], b: Sequence[int], c: int) -> int:
    """Result of one output element of an aligned kind: any number of products."""
    operand, accumulator = kind.split(".")
    size = BLOCKS[operand]
    for start in range(0, len(a), size):
        x, y = list(a[start : start + size]), list(b[start : start + size])
        x += [0] * (size - len(x))
        y += [0] * (size - len(y))
        c = block(operand, accumulator, x, y, c)
    return c


def fma(name: str, mode: str, x: int, y: int, z: int) -> int:
    """Multiply, add and round once, as IEEE 754 has it; every NaN is the canonical one."""
    (kx, sx, vx), (ky, sy, vy), (kz, sz, vz) = (rationals.decode(name, v) for v in (x, y, z))
    sign, kinds = sx ^ sy, {kx, ky}
    product_infinite = "inf" in kinds
    zero_times_infinity = product_infinite and ((kx, vx) == ("num", 0) or (ky, vy) == ("num", 0))
    if "nan" in kinds or kz == "nan" or zero_times_infinity:
        return NAN[name]
    width, precision, emax = rationals.SHAPES[name]
    infinity = (2 * emax + 1) << (precision - 1)
    if product_infinite:
        return NAN[name] if kz == "inf" and sz != sign else infinity | sign << (width - 1)
    if kz == "inf":
        return z
    product = -vx * vy if sign else vx * vy
    total = product + (-vz if sz else vz)
    zero_sign = rationals.sum_zero_sign(mode, sign, sz)
    return rationals.encode(name, mode, total, zero_sign=zero_sign)


def chain(mode: str, a: Sequence[int], b: Sequence[int], c: int) -> int:
    """f64: fused multiply-adds in ascending k."""
    for x, y in zip(a, b, strict=True):
        c = fma("f64", mode, x, y, c)
    return c


def volta(accumulator: str, a: Sequence[int], b: Sequence[int], c: int) -> int:
    """The f32 instructions that stand for one m8n8k4 on f16."""
    x, y = ([_widened(v) for v in side] for side in (a, b))

    def fused(k: int, z: int) -> int:
        return fma("f32", "rn", x[k], y[k], z)

    if accumulator == "f32":
        return _add(c, fused(3, fused(2, fused(1, fused(0, 0)))))
    p = fused(1, _multiply(x[0], y[0]))
    q = fused(3, _multiply(x[2], y[2]))
    return _narrowed(_add(_add(_widened(c), p), q))


def _add(x: int, y: int) -> int:
    return fma("f32", "rn", x, 0x3F800000, y)


def _multiply(x: int, y: int) -> int:
    """A zero of the product's sign added changes nothing, not even a zero."""
    return fma("f32", "rn", x, y, (x ^ y) & 0x80000000)


def _widened(bits: int) -> int:
    number = np.array([bits], np.uint16).view(np.float16)
    return NAN["f32"] if np.isnan(number[0]) else int(number.astype(np.float32).view(np.uint32)[0])


def _narrowed(bits: int) -> int:
    value = np.array([bits], np.uint32).view(np.float32)[0]
    if np.isnan(value):
        return NAN["f16"]
    if np.isinf(value):
        return INFINITY["f16"] | int(value < 0) << 15
    if value == 0:
        return bits >> 31 << 15
    return rationals.encode("f16", "rn", Fraction(float(value)))
