"""Floating point by exact rationals: slow, obvious, nothing shared with the library."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np

SHAPES = {"f16": (16, 11, 15), "bf16": (16, 8, 127), "f32": (32, 24, 127), "f64": (64, 53, 1023)}
"""Format to width, precision, largest exponent."""
NAN = "nan"
INFINITE = "inf"


def decode(name: str, bits: int) -> tuple[str, int, Fraction]:
    """Class (``nan``, ``inf`` or ``num``), sign (1 for minus), magnitude."""
    width, precision, emax = SHAPES[name]
    sign = bits >> (width - 1)
    field = (bits >> (precision - 1)) & (2 * emax + 1)
    fraction = bits & ((1 << (precision - 1)) - 1)
    if field == 2 * emax + 1:
        return (NAN if fraction else INFINITE), sign, Fraction(0)
    significand = fraction | (1 << (precision - 1)) if field else fraction
    return (
        "num",
        sign,
        Fraction(significand) * Fraction(2) ** (max(field, 1) - emax - precision + 1),
    )


def signed(name: str, bits: int) -> Fraction:
    """A finite value."""
    _, sign, size = decode(name, bits)
    return -size if sign else size


def encode(name: str, mode: str, value: Fraction, *, zero_sign: int = 0) -> int:
    """Round a rational; ``zero_sign`` is the sign of an exact zero."""
    width, precision, emax = SHAPES[name]
    if value == 0:
        return zero_sign << (width - 1)
    sign = int(value < 0)
    size = abs(value)
    exponent = _floor_log2(size)
    quantum = max(exponent, 1 - emax) - precision + 1
    scaled = size / Fraction(2) ** quantum
    kept = scaled.numerator // scaled.denominator
    rest = scaled - kept
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and kept & 1 == 1),
        "rna": rest >= Fraction(1, 2),
        "rz": False,
        "rm": bool(sign) and rest > 0,
        "rp": not sign and rest > 0,
    }[mode]
    bits = ((quantum - (1 - emax - precision + 1)) << (precision - 1)) + kept + int(up)
    infinity = (2 * emax + 1) << (precision - 1)
    if bits >= infinity:
        away = mode in ("rn", "rna") or mode == ("rm" if sign else "rp")
        bits = infinity if away else infinity - 1
    return bits | sign << (width - 1)


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def sum_zero_sign(mode: str, first: int, second: int) -> int:
    """Sign of an exact zero sum of values with these signs."""
    return first if first == second else int(mode == "rm")


def square_root(name: str, mode: str, value: Fraction) -> int:
    """Round the root of a positive rational: enough digits, and a last one that breaks ties."""
    shift = 1300
    scaled = value * Fraction(4) ** shift
    root = isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(root * root) == scaled
    approximation = Fraction(root) if exact else Fraction(2 * root + 1, 2)
    return encode(name, mode, approximation / Fraction(2) ** shift)


def edges(name: str) -> list[int]:
    """Bit patterns where things go wrong: zeros, subnormals, powers, neighbours, NaNs."""
    width, precision, emax = SHAPES[name]
    top = 1 << (precision - 1)
    one = emax << (precision - 1)
    infinity = (2 * emax + 1) << (precision - 1)
    sizes = [
        0, 1, 2, top - 1, top, top + 1, one - 1, one, one + 1, one + top // 2, one + top,
        infinity - 1, infinity - top, infinity, infinity + 1, infinity + top // 2,
        infinity + top - 1, one - precision * top, one + precision * top,
    ]  # fmt: skip
    return [s | sign << (width - 1) for s in sizes if 0 <= s < 1 << (width - 1) for sign in (0, 1)]


def patterns(name: str, count: int, seed: int) -> np.ndarray:
    """Edge values, then random bits, then random values near one: ``count`` in all."""
    width, precision, emax = SHAPES[name]
    rng = np.random.default_rng(seed)
    kind = np.dtype(f"u{width // 8}")
    some = np.array(edges(name), kind)
    raw = rng.integers(0, 1 << width, count, dtype=np.uint64).astype(kind)
    fields = rng.integers(emax - 6, emax + 7, count, dtype=np.uint64)
    near = (raw & kind.type((1 << (precision - 1)) - 1)) | (
        fields << np.uint64(precision - 1)
    ).astype(kind)
    near |= raw & kind.type(1 << (width - 1))
    mixed = np.where(rng.random(count) < 0.6, near, raw)
    mixed[: min(len(some), count)] = rng.permutation(some)[:count]
    return rng.permutation(mixed)
