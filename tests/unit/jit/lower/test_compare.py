"""Comparisons with two results."""

from __future__ import annotations

import numpy as np

from tests.unit.jit.conftest import Run


def test_first_result_may_be_the_operand_of_both(run: Run) -> None:
    body = """
    and.b32 %r5, %r3, 1;
    setp.eq.u32 %p0, %r5, 0;
    setp.lt.and.u32 %p0|%p1, %r3, 9, %p0;
    selp.u32 %r6, 1, 0, %p0;
    selp.u32 %r7, 2, 0, %p1;
    add.u32 %r6, %r6, %r7;
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r6;
    ret;
"""
    (got,) = run("u64", body, [np.zeros(32, np.uint32)])
    lane = np.arange(32)
    even = lane % 2 == 0
    np.testing.assert_array_equal(got, (even & (lane < 9)) * 1 + (even & (lane >= 9)) * 2)
