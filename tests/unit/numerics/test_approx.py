"""Approximate functions: documented bounds, scaling, special values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from va100.numerics import approx
from va100.numerics.formats import F16

NAN = 0x7FFFFFFF
INF = 0x7F800000
NEGATIVE = 0x80000000


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def _bits(*values: float) -> np.ndarray:
    return np.array(values, np.float32).view(np.uint32)


def _random(low: float, high: float, count: int = 2000) -> np.ndarray:
    return np.random.default_rng(7).uniform(low, high, count).astype(np.float32).view(np.uint32)


def _relative(function: Callable[..., np.ndarray], exact: Callable, bits: np.ndarray) -> float:
    want = exact(bits.view(np.float32).astype(np.float64))
    got = function(bits, ftz=False).view(np.float32).astype(np.float64)
    return float(np.abs((got - want) / want).max())


# Bounds: PTX ISA, the section of each instruction.
@pytest.mark.parametrize(("name", "exact", "low", "high", "bound"), [
    ("ex2", np.exp2, -149.0, 127.0, 2.0**-22),
    ("rcp", np.reciprocal, 1e-30, 1e30, 2.0**-23),
    ("rsqrt", lambda x: 1 / np.sqrt(x), 1e-30, 1e30, 2.0**-22.9),
    ("sqrt", np.sqrt, 1e-30, 1e30, 2.0**-23),
    ("tanh", np.tanh, -10.0, 10.0, 2.0**-11),
    ("lg2", np.log2, 2.0, 1e30, 2.0**-22),
])  # fmt: skip
def test_relative_bound(name: str, exact: Callable, low: float, high: float, bound: float) -> None:
    bits = _random(low, high)
    if name == "ex2":
        bits = bits[bits.view(np.float32) > -126]  # below, the result is subnormal
    assert _relative(approx.UNARY[name], exact, bits) <= bound


@pytest.mark.parametrize(
    ("function", "exact"), [(approx.sin_turns, np.sin), (approx.cos_turns, np.cos)]
)
def test_functions_of_turns(function, exact):
    turns = np.linspace(-3, 3, 1001, dtype=np.float32)
    got = function(turns.view(np.uint32)).view(np.float32)
    want = exact(2 * np.pi * turns.astype(np.float64))
    assert np.abs(got - want).max() < 2.0**-23


@pytest.mark.parametrize(("name", "exact"), [("sin", np.sin), ("cos", np.cos)])
def test_trigonometric_bound(name: str, exact: Callable) -> None:
    bits = _random(-2 * np.pi, 2 * np.pi)
    got = approx.UNARY[name](bits, ftz=False).view(np.float32)
    assert np.abs(got - exact(bits.view(np.float32).astype(np.float64))).max() <= 2.0**-20.5


@pytest.mark.parametrize(("name", "given", "want"), [
    ("ex2", [0, NEGATIVE, INF, INF | NEGATIVE, NAN], [0x3F800000, 0x3F800000, INF, 0, NAN]),
    ("lg2", [0, NEGATIVE, INF, 0xBF800000], [INF | NEGATIVE, INF | NEGATIVE, INF, NAN]),
    ("rcp", [0, NEGATIVE, INF, INF | NEGATIVE], [INF, INF | NEGATIVE, 0, NEGATIVE]),
    ("rsqrt", [0, NEGATIVE, INF, 0xBF800000], [INF, INF | NEGATIVE, 0, NAN]),
    ("sqrt", [0, NEGATIVE, INF, 0xBF800000], [0, NEGATIVE, INF, NAN]),
    ("sin", [0, NEGATIVE, INF, NAN], [0, NEGATIVE, NAN, NAN]),
    ("cos", [0, NEGATIVE, INF, NAN], [0x3F800000, 0x3F800000, NAN, NAN]),
    ("tanh", [0, NEGATIVE, INF, INF | NEGATIVE], [0, NEGATIVE, 0x3F800000, 0xBF800000]),
])  # fmt: skip
@pytest.mark.parametrize("ftz", [False, True])
def test_special_values(name: str, given: list[int], want: list[int], ftz: bool) -> None:
    bits = np.array(given, np.uint32)
    assert approx.UNARY[name](bits, ftz=ftz).tolist() == want


class TestSubnormals:
    def test_flushed_with_ftz(self) -> None:
        tiny = np.array([1, NEGATIVE | 1], np.uint32)
        assert approx.rcp(tiny, ftz=True).tolist() == [INF, INF | NEGATIVE]
        assert approx.sqrt(tiny, ftz=True).tolist() == [0, NEGATIVE]
        assert approx.lg2(tiny[:1], ftz=True).tolist() == [INF | NEGATIVE]
        assert approx.ex2(_bits(-130.0), ftz=True).tolist() == [0]

    def test_kept_without(self) -> None:
        assert approx.lg2(np.array([1], np.uint32), ftz=False).tolist() == _bits(-149.0).tolist()
        assert approx.ex2(_bits(-130.0), ftz=False).tolist() == _bits(2.0**-130).tolist()
        assert (
            approx.rsqrt(np.array([4], np.uint32), ftz=False).tolist() == _bits(2.0**73.5).tolist()
        )
        assert approx.rcp(_bits(2.0**127), ftz=False).tolist() == _bits(2.0**-127).tolist()


class TestDivision:
    def test_large_divisors(self) -> None:
        """``div.approx`` gives zero past 2**126 as documented; ``div.full`` does not."""
        a, b = _bits(2.0**20), _bits(2.0**127)
        assert approx.div(a, b, ftz=False).tolist() == [0]
        assert approx.div_full(a, b, ftz=False).tolist() == _bits(2.0**-107).tolist()

    def test_within_two_ulp(self) -> None:
        a, b = _random(1, 2), _random(1e-3, 1e3)
        exact = a.view(np.float32).astype(np.float64) / b.view(np.float32)
        for function in (approx.div, approx.div_full):
            got = function(a, b, ftz=False).view(np.float32).astype(np.float64)
            assert np.abs(got / exact - 1).max() <= 2.0**-22

    def test_by_subnormal(self) -> None:
        a, b = _bits(2.0**-140), _bits(2.0**-141)
        assert approx.div(a, b, ftz=False).tolist() == _bits(2.0).tolist()
        assert approx.div(a, b, ftz=True).tolist() == [NAN]


def test_quarter_turns_are_exact() -> None:
    """Half a turn of f32 is not half a turn exactly; the core on exact turns is."""
    turns = np.array([0.25, 0.5, 0.75, 1.0, 1e6])
    assert approx._sine_of_turns(turns).tolist() == [1.0, 0.0, -1.0, 0.0, 0.0]
    assert approx._cosine_of_turns(turns).tolist() == [0.0, -1.0, 0.0, 1.0, 1.0]


def test_half_functions() -> None:
    given = np.array([0x3C00, 0xCC00, 0x7C00, 0x7C01], np.uint16)
    assert approx.ex2_f16(given)[[0, 2, 3]].tolist() == [0x4000, 0x7C00, F16.canonical_nan]
    assert approx.tanh_f16(given)[2:].tolist() == [0x3C00, F16.canonical_nan]


def test_upper_word_reciprocals() -> None:
    given = np.array([2.0, 3.0, 0.0, np.inf], np.float64).view(np.uint64)
    got = approx.rcp_f64(given)
    assert got.view(np.float64)[[0, 2, 3]].tolist() == [0.5, np.inf, 0.0]
    assert int(got[1]) & 0xFFFFFFFF == 0
    assert abs(float(got.view(np.float64)[1]) * 3 - 1) < 2.0**-20
    nan = np.array([0x7FF0000000000001], np.uint64)
    assert approx.rsqrt_f64(nan).tolist() == [0x7FFFFFFF00000000]
