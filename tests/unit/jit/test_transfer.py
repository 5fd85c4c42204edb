"""Shapes of special registers against every thread of a block."""

from __future__ import annotations

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
