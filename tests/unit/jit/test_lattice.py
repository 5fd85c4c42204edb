"""Every transfer function's result holds the lanes that the operation really gives."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.jit import lattice
from va100.jit.lattice import Shape, affine, constant, signed_limits, uniform, varying, wrap

LANES = 32
Lanes = list[int]


def contains(shape: Shape, lanes: Lanes) -> bool:
    """Whether lanes are a value of a shape; the last may be missing."""
    if shape.varying:
        return True
    offsets = shape.offsets or (0,) * LANES
    base = wrap(lanes[0] - offsets[0], shape.bits)
    if not shape.low <= base <= shape.high:
        return False
    if shape.align < shape.bits and base % (1 << shape.align):
        return False
    return all(
        wrap(base + offset, shape.bits) == wrap(lane, shape.bits)
        for offset, lane in zip(offsets, lanes, strict=False)
    )


@st.composite
def shaped(draw: st.DrawFn, bits: int) -> tuple[Shape, Lanes]:
    """A shape and lanes it holds."""
    least, most = signed_limits(bits)
    kind = draw(st.sampled_from(["constant", "uniform", "affine", "affine", "varying"]))
    mask = (1 << bits) - 1
    small = st.sampled_from([0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 255, -1, -2, -32, least, most])
    if kind == "constant":
        value = draw(small | st.integers(least, most))
        return constant(bits, value), [value & mask] * LANES
    if kind == "varying":
        return varying(bits), draw(st.lists(st.integers(0, mask), min_size=LANES, max_size=LANES))
    align = draw(st.integers(0, 6))
    low, high = sorted((draw(small | st.integers(least, most)), draw(small)))
    low, high = max(low, least), min(high, most)
    first = (low + (1 << align) - 1) >> align << align
    count = (high - first) >> align
    if count < 0:
        low, high, first, count = 0, 0, 0, 0
    base = first + (draw(st.integers(0, count)) << align)
    if kind == "uniform":
        return uniform(bits, low, high, align), [base & mask] * LANES
    step = draw(st.sampled_from([1, 2, 4, 8, 16, -1, 3, 1 << 20]))
    period = draw(st.sampled_from([1, 2, 4, 8, 16, 32]))
    divide = draw(st.booleans())
    offsets = tuple(step * (k // period if divide else k % period) for k in range(LANES))
    shape = affine(bits, offsets, low, high, align)
    return shape, [(base + offset) & mask for offset in offsets]


def signed(value: int, bits: int) -> int:
    return wrap(value, bits)


def quotient(a: int, b: int) -> int:
    """Towards zero, as PTX divides."""
    return -(-a // b) if (a < 0) != (b < 0) and a % b else a // b


def shift_right(a: int, k: int, bits: int, *, sign: bool) -> int:
    k = min(k & 0xFFFFFFFF, bits)
    return signed(a, bits) >> k if sign else (a & ((1 << bits) - 1)) >> k


Binary = Callable[[Shape, Shape], Shape]
OPERATIONS: dict[str, tuple[Binary, Callable[[int, int, int], int]]] = {
    "add": (lattice.add, lambda a, b, n: a + b),
    "sub": (lambda a, b: lattice.add(a, b, -1), lambda a, b, n: a - b),
    "mul": (lattice.mul, lambda a, b, n: a * b),
    "and": (lattice.bit_and, lambda a, b, n: a & b),
    "or": (lattice.bit_or, lambda a, b, n: a | b),
    "xor": (lambda a, b: lattice.bit_or(a, b, exclusive=True), lambda a, b, n: a ^ b),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("bits", [16, 32, 64])
@given(data=st.data())
def test_binary(name: str, bits: int, data: st.DataObject) -> None:
    rule, compute = OPERATIONS[name]
    (a, x), (b, y) = data.draw(shaped(bits)), data.draw(shaped(bits))
    assert contains(a, x)
    assert contains(b, y)
    lanes = [compute(p, q, bits) for p, q in zip(x, y, strict=True)]
    result = rule(a, b)
    assert result.bits == bits
    assert contains(result, lanes), (a, b, result)


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("sign", [False, True])
@given(data=st.data())
def test_shifts(bits: int, sign: bool, data: st.DataObject) -> None:
    a, x = data.draw(shaped(bits))
    k = data.draw(st.integers(0, bits + 3) | st.sampled_from([2**31, 2**32 - 1]))
    amount = constant(32, k)
    left = lattice.shift_left(a, amount)
    assert contains(left, [(v << k if k < bits else 0) & ((1 << bits) - 1) for v in x]), left
    right = lattice.shift_right(a, amount, signed=sign)
    assert contains(right, [shift_right(v, k, bits, sign=sign) for v in x]), (a, k, right)


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("remainder", [False, True])
@given(data=st.data())
def test_division(bits: int, remainder: bool, data: st.DataObject) -> None:
    a, x = data.draw(shaped(bits))
    b = data.draw(st.sampled_from([1, 2, 3, 4, 8, 16, 32, 1000, 1 << (bits - 2), -1, -4]))
    result = lattice.divide(a, constant(bits, b), remainder=remainder)
    for sign in (True, False):
        divisor = b if sign else b & ((1 << bits) - 1)
        lanes = []
        for value in x:
            number = signed(value, bits) if sign else value
            q = quotient(number, divisor)
            lanes.append(number - q * divisor if remainder else q)
        # The same rule serves div.s and div.u.
        assert contains(result, lanes), (a, b, result, sign)


@pytest.mark.parametrize("widths", [(16, 32), (32, 64), (32, 16), (64, 32), (16, 64), (64, 16)])
@pytest.mark.parametrize("sign", [False, True])
@given(data=st.data())
def test_resize(widths: tuple[int, int], sign: bool, data: st.DataObject) -> None:
    source, target = widths
    a, x = data.draw(shaped(source))
    if target > source and not lattice.extension_is_exact(a, signed=sign):
        return
    lanes = [signed(v, source) if sign else v for v in x]
    result = lattice.resize(a, target, signed=sign)
    assert contains(result, lanes), (a, result)


@given(data=st.data())
def test_join_holds_both(data: st.DataObject) -> None:
    (a, x), (b, y) = data.draw(shaped(32)), data.draw(shaped(32))
    both = lattice.join(a, b)
    assert both is not None
    assert contains(both, x)
    assert contains(both, y)
    assert contains(lattice.widen(both), x)


def test_join_with_nothing_is_the_other() -> None:
    some = uniform(32, 3, 9)
    assert lattice.join(None, some) is some
    assert lattice.join(some, None) is some
    assert lattice.join(None, None) is None


def test_affine_needs_as_many_offsets_as_lanes() -> None:
    with pytest.raises(ValueError, match="32"):
        affine(32, (1, 2, 3))
