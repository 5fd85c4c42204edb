"""Bit-level rules of the formats."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import rationals as q
from va100.numerics import formats
from va100.numerics.formats import BF16, DOUBLE, F16, F32, FloatFormat

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": DOUBLE}


def _array(fmt: FloatFormat, *bits: int) -> np.ndarray:
    return np.array(bits, fmt.dtype)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_widening_is_exact_for_every_value(name: str) -> None:
    fmt = FORMATS[name]
    bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    with np.errstate(all="ignore"):
        wide = formats.to_f64(fmt, bits)
    for index in range(0, 1 << 16, 37):
        kind, sign, size = q.decode(name, index)
        if kind == "num":
            assert wide[index] == float(-size if sign else size)
            assert np.signbit(wide[index]) == bool(sign)
        else:
            assert np.isnan(wide[index]) if kind == q.NAN else np.isinf(wide[index])


def test_widening_nans_to_f32() -> None:
    assert formats.widen_to_f32(F16, _array(F16, 0x7C01, 0xFE00)).tolist() == [0x7FFFFFFF] * 2
    assert formats.widen_to_f32(BF16, _array(BF16, 0x7F81, 0xFFC1)).tolist() == [
        0x7F810000,
        0xFFC10000,
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_flush_keeps_sign_and_normals(name: str) -> None:
    fmt = FORMATS[name]
    sub, normal = fmt.smallest_normal - 1, fmt.smallest_normal
    got = formats.flush(fmt, _array(fmt, sub, sub | fmt.sign_bit, normal, fmt.infinity + 1, 0))
    assert got.tolist() == [0, fmt.sign_bit, normal, fmt.infinity + 1, 0]


@pytest.mark.parametrize("name", FORMATS)
def test_saturate(name: str) -> None:
    fmt = FORMATS[name]
    given = _array(fmt, fmt.one + 1, fmt.one - 1, fmt.one | fmt.sign_bit, fmt.infinity + 1,
                   fmt.infinity, fmt.sign_bit)  # fmt: skip
    assert formats.saturate(fmt, given).tolist() == [fmt.one, fmt.one - 1, 0, 0, fmt.one, 0]


@pytest.mark.parametrize("name", FORMATS)
def test_extremes_order_zeros_and_drop_nans(name: str) -> None:
    fmt = FORMATS[name]
    nan = fmt.infinity + 1
    a = _array(fmt, 0, fmt.sign_bit, nan, fmt.one, nan, fmt.one)
    b = _array(fmt, fmt.sign_bit, 0, fmt.one, nan, nan, fmt.one | fmt.sign_bit)
    low = [fmt.sign_bit, fmt.sign_bit, fmt.one, fmt.one, fmt.canonical_nan, fmt.one | fmt.sign_bit]
    high = [0, 0, fmt.one, fmt.one, fmt.canonical_nan, fmt.one]
    assert formats.minimum(fmt, a, b).tolist() == low
    assert formats.maximum(fmt, a, b).tolist() == high
    for extreme in (formats.minimum, formats.maximum):
        strict = extreme(fmt, a, b, propagate_nan=True).tolist()
        assert strict[2:5] == [fmt.canonical_nan] * 3


@pytest.mark.parametrize("name", FORMATS)
def test_ordered_key_orders_like_the_values(name: str) -> None:
    fmt = FORMATS[name]
    finite = [b for b in q.edges(name) if q.decode(name, b)[0] == "num"]
    by_key = sorted(finite, key=lambda b: int(formats.ordered_key(fmt, _array(fmt, b))[0]))
    values = [q.signed(name, b) for b in by_key]
    assert values == sorted(values)


def test_tf32_rounds_to_nearest_ties_away() -> None:
    bits = q.patterns("f32", 2000, seed=3)
    got = formats.tf32_nearest_away(bits)
    for before, after in zip(bits.tolist(), got.tolist(), strict=True):
        if q.decode("f32", before)[0] != "num":
            continue
        assert after & 0x1FFF == 0
        step = 0x2000
        low = before & ~(step - 1)
        want = low + step if before - low >= step // 2 else low
        assert after == want


def test_tf32_odd_cases() -> None:
    given = np.array([0x7F7FFFFF, 0x7F800001, 0x7F800000, 0xFF7FFFFF], np.uint32)
    assert formats.tf32_nearest_away(given).tolist() == [
        0x7F800000, 0x7F800000, 0x7F800000, 0xFF800000,
    ]  # fmt: skip
    assert formats.tf32_nearest_away(given, finite=True).tolist() == [
        0x7F7FE000, 0x7F7FE000, 0x7F7FE000, 0xFF7FE000,
    ]  # fmt: skip


def test_relu() -> None:
    given = _array(F16, 0x8001, 0x3C00, 0xFC00, 0x7C01, 0x8000)
    assert formats.relu(F16, given).tolist() == [0, 0x3C00, 0, 0x7FFF, 0]
