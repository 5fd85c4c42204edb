"""Every operation in every rounding against exact rationals."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import rationals as q
from va100.numerics import rounding
from va100.numerics.formats import BF16, DOUBLE, F16, F32

MODES = ("rn", "rz", "rm", "rp")
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": DOUBLE}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def _is_nan(name: str, bits: int) -> bool:
    return q.decode(name, bits)[0] == q.NAN


def _all_numbers(name: str, *operands: int) -> bool:
    return all(q.decode(name, bits)[0] == "num" for bits in operands)


def _same(name: str, got: int, want: int) -> bool:
    """Equal bits; two f64 NaNs are equal, others must be the canonical one."""
    if name == "f64" and _is_nan(name, want):
        return _is_nan(name, got)
    return got == want


def expected_add(name: str, mode: str, a: int, b: int) -> int | None:
    if not _all_numbers(name, a, b):
        return None
    zero = q.sum_zero_sign(mode, q.decode(name, a)[1], q.decode(name, b)[1])
    return q.encode(name, mode, q.signed(name, a) + q.signed(name, b), zero_sign=zero)


def expected_mul(name: str, mode: str, a: int, b: int) -> int | None:
    if not _all_numbers(name, a, b):
        return None
    sign = q.decode(name, a)[1] ^ q.decode(name, b)[1]
    return q.encode(name, mode, q.signed(name, a) * q.signed(name, b), zero_sign=sign)


def expected_fma(name: str, mode: str, a: int, b: int, c: int) -> int | None:
    if not _all_numbers(name, a, b, c):
        return None
    sign = q.decode(name, a)[1] ^ q.decode(name, b)[1]
    zero = q.sum_zero_sign(mode, sign, q.decode(name, c)[1])
    exact = q.signed(name, a) * q.signed(name, b) + q.signed(name, c)
    return q.encode(name, mode, exact, zero_sign=zero)


def expected_div(name: str, mode: str, a: int, b: int) -> int | None:
    if not _all_numbers(name, a, b) or q.signed(name, b) == 0:
        return None
    sign = q.decode(name, a)[1] ^ q.decode(name, b)[1]
    return q.encode(name, mode, q.signed(name, a) / q.signed(name, b), zero_sign=sign)


def expected_sqrt(name: str, mode: str, a: int) -> int | None:
    if not _all_numbers(name, a) or q.signed(name, a) <= 0:
        return None
    return q.square_root(name, mode, q.signed(name, a))


CASES = {
    "add": (rounding.add, expected_add, 2),
    "mul": (rounding.mul, expected_mul, 2),
    "fma": (rounding.fma, expected_fma, 3),
    "div": (rounding.div, expected_div, 2),
    "sqrt": (rounding.sqrt, expected_sqrt, 1),
}
GRID = [
    (name, operation, mode)
    for name in FORMATS
    for operation in CASES
    for mode in MODES
    if name in ("f32", "f64") or (operation in ("add", "mul", "fma") and mode == "rn")
]


def check(name: str, operation: str, mode: str, *columns: np.ndarray) -> int:
    """Compare one vector call with the oracle; returns how many lanes it could judge."""
    function, oracle, _ = CASES[operation]
    got = function(FORMATS[name], mode, *columns)
    judged = 0
    for index, operands in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        want = oracle(name, mode, *operands)
        if want is None:
            continue
        judged += 1
        shown = ", ".join(f"{bits:#x}" for bits in operands)
        result = int(got[index])
        assert _same(name, result, want), (
            f"{operation}.{mode}.{name}({shown}): {result:#x} != {want:#x}"
        )
    return judged


@pytest.mark.parametrize(("name", "operation", "mode"), GRID)
def test_random_and_edge_values(name: str, operation: str, mode: str) -> None:
    arity = CASES[operation][2]
    columns = [q.patterns(name, 400, seed=10 * arity + i) for i in range(arity)]
    assert check(name, operation, mode, *columns) > 150


@pytest.mark.parametrize(("name", "operation", "mode"), GRID)
def test_every_pair_of_edge_values(name: str, operation: str, mode: str) -> None:
    values = np.array(q.edges(name), FORMATS[name].dtype)
    arity = CASES[operation][2]
    if arity == 1:
        assert check(name, operation, mode, values)
        return
    a, b = (part.reshape(-1) for part in np.meshgrid(values, values))
    columns = [a, b, np.roll(a, 7)][:arity]
    assert check(name, operation, mode, *columns) > 400


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
def test_cancelling_fma(name: str, mode: str) -> None:
    """``a*b - round(a*b)`` leaves only the error of the product, often subnormal."""
    fmt = FORMATS[name]
    a, b = (q.patterns(name, 300, seed=s) for s in (5, 6))
    product = rounding.mul(fmt, "rn", a, b) ^ fmt.dtype.type(fmt.sign_bit)
    assert check(name, "fma", mode, a, b, product) > 100


class TestSpecialValues:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("name", FORMATS)
    def test_infinities_follow_ieee(self, name: str, mode: str) -> None:
        fmt = FORMATS[name]
        inf, one, zero = (np.array([v], fmt.dtype) for v in (fmt.infinity, fmt.one, 0))
        minus = inf ^ fmt.dtype.type(fmt.sign_bit)
        assert int(rounding.add(fmt, mode, inf, one)[0]) == fmt.infinity
        assert _is_nan(name, int(rounding.add(fmt, mode, inf, minus)[0]))
        assert _is_nan(name, int(rounding.mul(fmt, mode, inf, zero)[0]))
        assert int(rounding.mul(fmt, mode, minus, one)[0]) == int(minus[0])
        assert _is_nan(name, int(rounding.fma(fmt, mode, inf, zero, one)[0]))
        assert int(rounding.fma(fmt, mode, one, one, minus)[0]) == int(minus[0])
        largest = inf - fmt.dtype.type(1)
        assert int(rounding.fma(fmt, mode, largest, largest, minus)[0]) == int(minus[0])

    @pytest.mark.parametrize("name", ["f16", "bf16", "f32"])
    def test_nan_is_canonical(self, name: str) -> None:
        fmt = FORMATS[name]
        nan = np.array([fmt.infinity + 3], fmt.dtype)
        one = np.array([fmt.one], fmt.dtype)
        for mode in MODES:
            results = (
                rounding.add(fmt, mode, nan, one),
                rounding.sub(fmt, mode, one, nan),
                rounding.mul(fmt, mode, nan, one),
                rounding.fma(fmt, mode, one, one, nan),
            )
            assert [int(r[0]) for r in results] == [fmt.canonical_nan] * 4

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("name", ["f32", "f64"])
    def test_division_by_zero_and_roots(self, name: str, mode: str) -> None:
        fmt = FORMATS[name]
        one, zero = (np.array([v], fmt.dtype) for v in (fmt.one, 0))
        minus = np.array([fmt.sign_bit], fmt.dtype)
        assert int(rounding.div(fmt, mode, one, zero)[0]) == fmt.infinity
        assert int(rounding.rcp(fmt, mode, minus)[0]) == fmt.infinity | fmt.sign_bit
        assert _is_nan(name, int(rounding.div(fmt, mode, zero, zero)[0]))
        assert int(rounding.sqrt(fmt, mode, minus)[0]) == fmt.sign_bit
        assert _is_nan(name, int(rounding.sqrt(fmt, mode, one | minus)[0]))


@given(
    st.sampled_from(list(FORMATS)),
    st.sampled_from([*MODES, "rna"]),
    st.booleans(),
    st.integers(0, 2**63),
    st.integers(-1150, 1150),
)
def test_round_significand(
    name: str, mode: str, negative: bool, significand: int, exponent: int
) -> None:
    got = rounding.round_significand(
        FORMATS[name],
        mode,
        np.array([negative]),
        np.array([significand], np.uint64),
        np.array([exponent]),
    )
    value = significand * Fraction(2) ** exponent
    want = q.encode(name, mode, -value if negative else value, zero_sign=int(negative))
    assert int(got[0]) == want


@given(st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3))
def test_fma_f64_random_bits(bits: list[int]) -> None:
    columns = [np.array([b], np.uint64) for b in bits]
    with np.errstate(all="ignore"):
        check("f64", "fma", "rn", *columns)
