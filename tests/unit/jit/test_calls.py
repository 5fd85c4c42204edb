"""Calls: how deep they may go, and what comes back."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.jit.conftest import Run
from va100.errors import StackOverflow

DEEP = """
.func (.param .b32 r) deep(.param .b32 a)
{
    .reg .b32 %r<8>; .reg .pred %p<3>;
    ld.param.b32 %r0, [a];
    setp.eq.u32 %p0, %r0, 0;
    mov.u32 %r4, 0;
    @%p0 bra LAST;
    sub.u32 %r2, %r0, 1;
    {
    .param .b32 pa; .param .b32 pr;
    st.param.b32 [pa], %r2;
    call (pr), deep, (pa);
    ld.param.b32 %r4, [pr];
    }
LAST:
    add.u32 %r4, %r4, %r0;
    st.param.b32 [r], %r4;
    ret;
}
"""


def _body(first: str, depth: str) -> str:
    return f"""
    {first}
    add.u32 %r5, {depth}, %r3;
    {{
    .param .b32 pa; .param .b32 pr;
    st.param.b32 [pa], %r5;
    call (pr), deep, (pa);
    ld.param.b32 %r6, [pr];
    }}
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r6;
    ret;
"""


@pytest.mark.parametrize("first", ["", "bar.sync 0;"], ids=["direct", "fiber"])
def test_endless_recursion_is_a_fault_and_the_process_lives(run: Run, first: str) -> None:
    result = np.zeros(32, np.uint32)
    with pytest.raises(StackOverflow, match="nested too deeply"):
        run("u64 u32", _body(first, "%r61"), [result, np.uint32(100_000_000)], before=DEEP)
    (got,) = run("u64 u32", _body(first, "%r61"), [result, np.uint32(60)], before=DEEP)
    n = np.arange(32) + 60
    np.testing.assert_array_equal(got, n * (n + 1) // 2)
