"""Shapes of special registers against every thread of a block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from tests.unit.jit.test_lattice import contains
from va100.gpu.arena import Arena
from va100.jit.engine import JitEngine
from va100.jit.lattice import constant
from va100.jit.transfer import LANE_MASKS, special_shape
from va100.work import Dim3

BLOCKS = [
    (1, 1, 1), (5, 1, 1), (31, 1, 1), (32, 1, 1), (33, 1, 1), (48, 2, 1), (64, 1, 1), (100, 1, 1),
    (1024, 1, 1), (16, 16, 1), (8, 8, 1), (8, 8, 8), (4, 4, 4), (7, 3, 2), (2, 50, 1), (32, 3, 1),
    (1, 32, 1), (1, 33, 1), (1, 1, 40), (2, 2, 64), (16, 2, 1), (16, 1, 4), (4, 8, 3), (4, 2, 5),
    (32, 1, 5), (64, 2, 2), (1, 16, 2), (3, 32, 1), (96, 1, 1), (2, 16, 2), (4, 16, 1), (8, 3, 1),
]  # fmt: skip
IDS = ["x".join(map(str, b)) for b in BLOCKS]


def _threads(block: tuple[int, ...]) -> dict[str, np.ndarray]:
    """``tid`` by axis."""
    x, y, z = block
    linear = np.arange(x * y * z)
    return {"x": linear % x, "y": linear // x % y, "z": linear // x // y % z}


@pytest.mark.parametrize("block", BLOCKS, ids=IDS)
@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_thread_index(block: tuple[int, ...], axis: str) -> None:
    shape = special_shape(f"%tid.{axis}", Dim3(*block))
    assert shape is not None
    lanes = [int(v) for v in _threads(block)[axis]]
    for first in range(0, len(lanes), 32):
        warp = lanes[first : first + 32]
        assert contains(shape, warp), (block, axis, shape, warp)


@pytest.mark.parametrize("name", LANE_MASKS)
def test_lane_masks(name: str) -> None:
    shape = special_shape(name, Dim3(64))
    assert shape is not None
    rule = {
        "eq": lambda i, k: i == k, "lt": lambda i, k: i < k, "le": lambda i, k: i <= k,
        "gt": lambda i, k: i > k, "ge": lambda i, k: i >= k,
    }[name[-2:]]  # fmt: skip
    lanes = [sum(1 << i for i in range(32) if rule(i, lane)) for lane in range(32)]
    assert contains(shape, lanes)


def test_extent_is_known_and_others_are_not() -> None:
    assert special_shape("%ntid.y", Dim3(4, 5, 6)) == constant(32, 5)
    assert special_shape("%nosuch", Dim3(32)) is None


@pytest.mark.parametrize("block", BLOCKS, ids=IDS)
def test_thread_index_as_executed(block: tuple[int, ...], arena: Arena) -> None:
    # What machine code reads: all three indices, packed, at the thread's linear place.
    text = kernel(
        "test",
        "u64",
        f"""
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, %tid.y;
    mov.u32 %r6, %tid.z;
    mad.lo.u32 %r7, %r6, {block[1]}, %r5;
    mad.lo.u32 %r7, %r7, {block[0]}, %r4;
    mul.wide.u32 %d1, %r7, 4;
    add.s64 %d1, %d60, %d1;
    shl.b32 %r5, %r5, 10;
    shl.b32 %r6, %r6, 20;
    or.b32 %r4, %r4, %r5;
    or.b32 %r4, %r4, %r6;
    st.global.u32 [%d1], %r4;
    ret;
""",
    )
    count = int(np.prod(block))
    loaded = load(text, arena)
    try:
        place = loaded.buffer(np.zeros(count, np.uint32))
        loaded.run(JitEngine(workers=1), "test", (1,), block, pack(place))
        got = loaded.read(place, np.uint32, count)
    finally:
        loaded.close()
    tid = _threads(block)
    np.testing.assert_array_equal(got, tid["x"] | tid["y"] << 10 | tid["z"] << 20)


# Literals that are negative, or above the signed maximum, where the product is twice as wide.
LITERALS = [-1431655765, -5, -1, 3, 2863311531, 4294967295, 2147483648]


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("added", [None, -7, 4294967295])
@pytest.mark.parametrize("kind", ["u32", "s32", "u16", "s16"])
def test_wide_products_of_lanes_and_literals(
    run: Callable[..., list[np.ndarray]], kind: str, added: int | None, literal: int
) -> None:
    bits = int(kind[1:])
    literal %= 1 << bits
    operation = f"mul.wide.{kind}" if added is None else f"mad.wide.{kind}"
    last = "" if added is None else f", {added}"
    first, product = ("%r41", "%d41") if bits == 32 else ("%h11", "%r42")
    for spelled in (literal, literal - (1 << bits)):
        widened = "" if bits == 32 else f"cvt.u64.u{2 * bits} %d41, {product};"
        (got,) = run(
            "u64",
            f"""
    mov.u32 %r41, %tid.x;
    cvt.u16.u32 %h11, %r41;
    {operation} {product}, {first}, {spelled}{last};
    bra SPREAD;
SPREAD:
    {widened}
    mad.wide.u32 %d42, %r41, 8, %d60;
    st.global.u64 [%d42], %d41;
    ret;
""",
            [np.zeros(64, np.uint64)],
            block=(64,),
        )
        factor = literal - (1 << bits) if kind[0] == "s" and literal >> (bits - 1) else literal
        want = [(i * factor + (added or 0)) % (1 << 2 * bits) for i in range(64)]
        np.testing.assert_array_equal(got, np.array(want, np.uint64))


@pytest.mark.parametrize("start", [0, 5, 31, 100, -1])
@pytest.mark.parametrize(
    "widen", ["cvt.u64.u32 %d41, %r42;", "mul.wide.u32 %d41, %r42, 1;", "cvt.u64.u16 %d41, %h11;"]
)
def test_unsigned_values_that_fall_below_zero_in_some_lanes(
    run: Callable[..., list[np.ndarray]], widen: str, start: int
) -> None:
    bits = 16 if "u16" in widen else 32
    (got,) = run(
        "u64 u32",
        f"""
    mov.u32 %r41, %tid.x;
    sub.u32 %r42, %r61, %r41;
    cvt.u16.u32 %h11, %r42;
    {widen}
    mad.wide.u32 %d42, %r41, 8, %d60;
    st.global.u64 [%d42], %d41;
    ret;
""",
        [np.zeros(64, np.uint64), np.int32(start)],
        block=(64,),
    )
    want = [(start - i) % (1 << bits) for i in range(64)]
    np.testing.assert_array_equal(got, np.array(want, np.uint64))
