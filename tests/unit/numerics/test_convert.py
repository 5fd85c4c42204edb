"""Conversions against exact rationals and Python integers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from tests.helpers import rationals as q
from va100.numerics import convert
from va100.numerics.formats import BF16, DOUBLE, F16, F32

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": DOUBLE}
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
ROUND = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
def test_float_to_integer(name: str, target: str, mode: str) -> None:
    bits = np.concatenate((q.patterns(name, 300, seed=1), _around_limits(name, target)))
    got = convert.float_to_integer(FORMATS[name], mode, bits, target)
    limits = np.iinfo(target)
    for source, result in zip(bits.tolist(), got.tolist(), strict=True):
        kind, sign, _ = q.decode(name, source)
        if kind == q.NAN:
            big = name == "f64" or limits.bits == 64
            want = -(1 << 63) if target == "i8" else (1 << (limits.bits - 1)) if big else 0
            want = want if limits.min == 0 or not big else limits.min
        elif kind == q.INFINITE:
            want = limits.min if sign else limits.max
        else:
            want = min(max(ROUND[mode](q.signed(name, source)), limits.min), limits.max)
        assert result == want, hex(source)


def _around_limits(name: str, target: str) -> np.ndarray:
    limits = np.iinfo(target)
    values = [Fraction(limits.max) + d for d in (-1, 0, 1)] + [
        Fraction(limits.min) - Fraction(d, 2) for d in (0, 1, 2)
    ]
    return np.array([q.encode(name, "rz", v) for v in values], FORMATS[name].dtype)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("name", FORMATS)
def test_integer_to_float(name: str, source: str, mode: str) -> None:
    limits = np.iinfo(source)
    rng = np.random.default_rng(2)
    values = rng.integers(limits.min, limits.max, 200, dtype=source, endpoint=True)
    values[:6] = [limits.min, limits.max, 0, 1, limits.max - 1, limits.min // 2 + 1]
    got = convert.integer_to_float(FORMATS[name], mode, values)
    want = [q.encode(name, mode, Fraction(v)) for v in values.tolist()]
    assert got.tolist() == want


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize(("source", "target"), [
    ("f32", "f16"), ("f64", "f16"), ("f64", "f32"), ("f32", "bf16"), ("f64", "bf16"),
])  # fmt: skip
def test_narrowing(source: str, target: str, mode: str) -> None:
    bits = q.patterns(source, 600, seed=4)
    got = convert.float_to_float(FORMATS[source], FORMATS[target], mode, bits)
    for before, after in zip(bits.tolist(), got.tolist(), strict=True):
        kind, sign, size = q.decode(source, before)
        if kind == "num":
            want = q.encode(target, mode, -size if sign else size, zero_sign=sign)
        elif kind == q.NAN:
            want = FORMATS[target].canonical_nan
        else:
            want = FORMATS[target].infinity | sign * FORMATS[target].sign_bit
        assert after == want, hex(before)


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
def test_rounding_to_integral(name: str, mode: str) -> None:
    bits = q.patterns(name, 400, seed=5)
    got = convert.round_to_integral(FORMATS[name], mode, bits)
    for before, after in zip(bits.tolist(), got.tolist(), strict=True):
        kind, sign, _ = q.decode(name, before)
        if kind == "num":
            whole = Fraction(ROUND[mode](q.signed(name, before)))
            assert after == q.encode(name, "rn", whole, zero_sign=sign)


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_saturating_integers(source: str, target: str) -> None:
    wide, limits = np.iinfo(source), np.iinfo(target)
    values = np.array([wide.min, wide.max, 0, wide.max // 2, wide.min // 2], source)
    got = convert.saturate_integer(values, target).tolist()
    assert got == [min(max(v, limits.min), limits.max) for v in values.tolist()]
