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


def test_guarded_vote_takes_only_lanes_whose_guard_holds(run: Run) -> None:
    body = """
    setp.lt.u32 %p0, %r3, 9;
    setp.lt.u32 %p2, %r3, 5;
    vote.sync.ballot.b32 %r9, %p0, 0xffffffff;
    mov.u32 %r6, 0;
    setp.lt.u32 %p1, %r3, 20;
    @!%p1 bra OUT;
    mov.u32 %r6, 77;
    @%p0 vote.sync.ballot.b32 %r6, %p2, %r9;
    add.u32 %r6, %r6, 1;
OUT:
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r6;
    ret;
"""
    (got,) = run("u64", body, [np.zeros(32, np.uint32)])
    np.testing.assert_array_equal(got, [32] * 9 + [78] * 11 + [0] * 12)


def test_lanes_that_left_have_no_vote_at_a_barrier(run: Run) -> None:
    body = """
    setp.ge.u32 %p0, %r3, 3;
    @!%p0 ret;
    bar.red.and.pred %p3, 0, %p0;
    bar.red.popc.u32 %r9, 0, %p0;
    bar.red.or.pred %p4, 0, !%p0;
    selp.u32 %r7, 2, 0, %p3;
    selp.u32 %r8, 4, 0, %p4;
    add.u32 %r6, %r7, %r8;
    mad.lo.u32 %r6, %r9, 100, %r6;
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r6;
    ret;
"""
    (got,) = run("u64", body, [np.zeros(64, np.uint32)], block=(64,))
    np.testing.assert_array_equal(got, [0] * 3 + [6102] * 61)


def test_guarded_barrier_is_passed_by_warps_whose_guard_is_false(run: Run) -> None:
    # Warp 0 and 1 meet at barrier 1; warp 2 has exited lanes, so it runs masked, and passes.
    body = """
    mov.u32 %r4, %tid.x;
    shr.u32 %r5, %r4, 5;
    setp.lt.u32 %p0, %r5, 2;
    setp.eq.u32 %p1, %r4, 64;
    @%p1 ret;
    mov.u32 %r8, 5;
    @%p0 bar.sync 1, 64;
    @%p0 bar.red.popc.u32 %r8, 2, 64, %p0;
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r8;
    ret;
"""
    (got,) = run("u64", body, [np.zeros(96, np.uint32)], block=(96,))
    np.testing.assert_array_equal(got, [64] * 64 + [0] + [5] * 31)


@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("negated", ["", "!"])
def test_a_comparison_asked_for_under_a_branch_and_after_it(
    run: Run, taken: int, negated: str
) -> None:
    """Its lanes are only compared where somebody wants them, each time anew."""
    body = f"""
    setp.lt.u32 %p1, %r3, %r61;
    setp.eq.u32 %p2, %r62, 1;
    not.pred %p3, %p1;
    mov.u32 %r10, 7;
    @%p2 selp.u32 %r10, 1, 2, {negated}%p1;
    selp.u32 %r11, 30, 40, {negated}%p1;
    @%p2 selp.u32 %r12, 100, 200, %p3;
    selp.u32 %r13, 1000, 2000, %p3;
    selp.u32 %r12, %r12, 0, %p2;
    add.u32 %r10, %r10, %r11;
    add.u32 %r10, %r10, %r12;
    add.u32 %r10, %r10, %r13;
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r10;
    ret;
"""
    (got,) = run("u64 u32 u32", body, [np.zeros(32, np.uint32), np.uint32(11), np.uint32(taken)])
    below = np.arange(32) < 11
    holds = ~below if negated else below
    want = np.where(holds, 1, 2) if taken else 7
    want = want + np.where(holds, 30, 40) + np.where(below, 2000, 1000)
    np.testing.assert_array_equal(got, want + (np.where(below, 200, 100) if taken else 0))
