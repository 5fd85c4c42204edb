"""Two PTX texts that need each other: kernel ``k`` writes 4 through the function it lacks."""

from __future__ import annotations

CALLER = """
.extern .func (.param .b32 r) twice (.param .b32 x);
.extern .global .align 4 .b8 table[8];
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<3>;
    mov.u64 %d1, table;
    ld.global.u32 %r1, [%d1+4];
    {
    .param .b32 p0;
    st.param.b32 [p0], %r1;
    .param .b32 q0;
    call.uni (q0), twice, (p0);
    ld.param.b32 %r2, [q0];
    }
    ld.param.u64 %d2, [out];
    st.global.u32 [%d2], %r2;
    ret;
}
"""
CALLEE = """
.visible .global .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};
.visible .func (.param .b32 r) twice (.param .b32 x)
{
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [x];
    shl.b32 %r2, %r1, 1;
    st.param.b32 [r], %r2;
    ret;
}
"""
