"""Operands that reach every corner of a tensor core: raw bits, extremes, cancellation, specials."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from va100.numerics.formats import FloatFormat
from va100.numerics.mma_rules import MmaRule

Array = npt.NDArray[Any]
STYLES = ("raw", "near", "middle", "tiny", "huge", "zeros", "special")


def random_bits(
    fmt: FloatFormat, shape: tuple[int, ...], rng: np.random.Generator, style: str
) -> Array:
    """Raw bits of a format, of one of the styles."""
    raw = rng.integers(0, 1 << 63, shape, dtype=np.uint64) * np.uint64(2)
    raw |= rng.integers(0, 2, shape, dtype=np.uint64)
    if fmt.bits < 64:
        raw &= np.uint64((1 << fmt.bits) - 1)
    point = fmt.precision - 1
    kept = np.uint64((1 << point) - 1 | fmt.sign_bit)
    top = 2 * fmt.emax + 1

    def fields(low: int, high: int) -> Array:
        exponents = rng.integers(max(low, 0), min(high, top - 1) + 1, shape).astype(np.uint64)
        return (raw & kept) | exponents << np.uint64(point)

    near = fields(fmt.emax - 4, fmt.emax + 4)
    if style == "near":
        bits = near
    elif style == "middle":
        bits = fields(fmt.emax - 52, fmt.emax + 51)
    elif style == "tiny":
        bits = fields(0, 3)
    elif style == "huge":
        bits = fields(top - 3, top)
    elif style == "zeros":
        bits = np.where(rng.random(shape) < 0.6, raw & np.uint64(fmt.sign_bit), near)
    elif style == "special":
        chance = rng.random(shape)
        signed = raw & np.uint64(fmt.sign_bit)
        bits = np.where(chance < 0.05, signed | np.uint64(fmt.infinity), near)
        bits = np.where((chance > 0.05) & (chance < 0.07), raw | np.uint64(fmt.infinity), bits)
        bits = np.where((chance > 0.07) & (chance < 0.2), signed, bits)
    else:
        bits = raw
    return bits.astype(fmt.dtype)


def random_operands(
    row: MmaRule, batch: int, m: int, n: int, k: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """A, B and C of a kind as the library's functions take them; each matrix has a style."""
    shapes = ((batch, m, k), (batch, k, n), (batch, m, n))
    if row.operand is not None and row.accumulator is not None:
        formats = (row.operand, row.operand, row.accumulator)
        styles = rng.choice(STYLES, 3)
        a, b, c = (
            random_bits(fmt, shape, rng, str(style))
            for fmt, shape, style in zip(formats, shapes, styles, strict=True)
        )
        return a, b, c
    a, b = (
        random_integers(row, side, shape, rng)
        for side, shape in (("a", shapes[0]), ("b", shapes[1]))
    )
    c = rng.integers(-(1 << 31), 1 << 31, shapes[2])
    edge = np.where(c < 0, -(1 << 31), (1 << 31) - 1) - c // 2000
    return a, b, np.where(rng.random(shapes[2]) < 0.5, edge, c).astype(np.int32)


def random_integers(
    row: MmaRule, side: str, shape: tuple[int, ...], rng: np.random.Generator
) -> Array:
    """Elements of an integer kind in a byte each, their extremes among them."""
    low, high = row.integer_range(side)
    values = rng.integers(low, high + 1, shape)
    values = np.where(rng.random(shape) < 0.2, low, values)
    return values.astype(np.int8 if low < 0 else np.uint8)
