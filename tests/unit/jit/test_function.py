"""Going between the converged and the masked world."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.jit.conftest import Run
from va100.errors import IllegalAddress

DIVERGE = """
    setp.lt.u32 %p0, %r3, 9;
    @%p0 bra Z;
    mov.u32 %r12, 2;
Z:
"""
"""Part, and meet again at a label whose first instruction is the one under test."""


def test_wrapping_index_where_lanes_meet(run: Run) -> None:
    # The guard of an affine product fails at the very place where the warp comes back together.
    body = f"""
    add.u32 %r6, %r3, %r61;
    {DIVERGE}
    mul.wide.u32 %d6, %r6, 4;
    shl.b64 %d5, %d0, 1;
    add.s64 %d1, %d60, %d5;
    st.global.u64 [%d1], %d6;
    ret;
"""
    start = np.uint32(0xFFFFFFF0)
    (got,) = run("u64 u32", body, [np.zeros(32, np.uint64), start])
    with np.errstate(over="ignore"):
        index = np.arange(32, dtype=np.uint32) + start
    np.testing.assert_array_equal(got, index.astype(np.uint64) * 4)


def test_fault_of_a_group_where_lanes_meet(run: Run) -> None:
    body = f"""
    mul.wide.u32 %d7, %r61, 4;
    add.s64 %d9, %d60, %d7;
    add.s64 %d8, %d9, %d0;
    {DIVERGE}
    ld.global.u32 %r7, [%d8];
    ld.global.u32 %r8, [%d8+128];
    add.u32 %r7, %r7, %r8;
    st.global.u32 [%d60], %r7;
    ret;
"""
    with pytest.raises(IllegalAddress) as caught:
        run("u64 u32", body, [np.zeros(32, np.uint32), np.uint32(0x70000000)])
    assert "[%d8]" in caught.value.instruction
    assert caught.value.thread == (0, 0, 0)
