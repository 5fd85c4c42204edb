"""Device functions that take the address of their own parameters and results."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import HEADER
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine

CALLER = """
.visible .entry k(.param .u64 data, .param .u64 out)
{
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    .reg .b16 %h<4>;
    .reg .pred %p<2>;
    ld.param.u64 %d1, [data];
    ld.param.u64 %d2, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d1, %d1, %d3;
    mul.wide.u32 %d3, %r1, 8;
    add.s64 %d2, %d2, %d3;
    ld.global.u32 %r2, [%d1];
    and.b32 %r3, %r1, 3;
    setp.eq.u32 %p1, %r3, 3;
    mov.b64 %d4, 99;
    @%p1 bra OUT;
    {
    .param .align 8 .b8 arg0[14];
    .param .b32 arg1;
    .param .b64 ret0;
    cvt.u16.u32 %h1, %r1;
    st.param.b32 [arg0], 100;
    st.param.b32 [arg0+4], %r2;
    st.param.b32 [arg0+8], 300;
    st.param.b16 [arg0+12], %h1;
    st.param.b32 [arg1], %r3;
    call.uni (ret0), chosen, (arg0, arg1);
    ld.param.b64 %d4, [ret0];
    }
OUT:
    st.global.u64 [%d2], %d4;
    ret;
}
"""
CHOSEN = """
.func (.param .b64 ret0) chosen(.param .align 8 .b8 list[14], .param .b32 index)
{
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    .reg .b16 %h<4>;
    .reg .pred %p<2>;
    mov.b64 %d1, list;
    ld.param.u32 %r1, [index];
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d2, %d1, %d2;
    LOAD %r2, [%d2];
    ld.param.b16 %h1, [list+12];
    cvt.u32.u16 %r3, %h1;
    mov.u64 %d3, list+4;
    st.local.b32 [%d3], 7;
    ld.param.b32 %r4, [list+4];
    add.u32 %r4, %r4, %r2;
    mov.u64 %d4, ret0;
    st.local.b32 [%d4+4], %r3;
    setp.lt.u32 %p1, %r1, 1;
    @%p1 st.local.b32 [%d4], %r4;
    @%p1 ret;
    mov.u32 %r5, 1000;
    add.u32 %r5, %r5, %r4;
    st.param.b32 [ret0], %r5;
}
"""


@pytest.mark.parametrize("read", ["ld.local.b32", "ld.param.b32", "ld.param::func.b32"])
def test_addresses_of_parameters_and_results(read: str, engine: Engine, arena: Arena) -> None:
    """Indexing, writing through the address, and a result written both ways on two paths."""
    text = HEADER + CHOSEN.replace("LOAD", read) + CALLER
    loaded = load(text, arena)
    data = np.arange(32, dtype=np.uint32) * 5 + 1
    source, out = loaded.buffer(data), loaded.buffer(np.zeros(32, np.uint64))
    loaded.run(engine, "k", (1,), (32,), pack(source, out))
    got = loaded.read(out, np.uint64, 32)
    loaded.close()
    lane = np.arange(32)
    index = lane % 4
    element = np.choose(index, [np.full(32, 100), data, np.full(32, 300), np.zeros(32)])
    low = element + 7 + np.where(index == 0, 0, 1000)
    expected = np.where(index == 3, 99, (lane << 32) + low)
    np.testing.assert_array_equal(got, expected.astype(np.uint64))


def test_generic_addresses_of_parameters(engine: Engine, arena: Arena) -> None:
    generic = CHOSEN.replace("mov.b64 %d1, list;", "mov.b64 %d1, list; cvta.local.u64 %d1, %d1;")
    loaded = load(HEADER + generic.replace("LOAD", "ld.b32") + CALLER, arena)
    data = np.arange(32, dtype=np.uint32)
    source, out = loaded.buffer(data), loaded.buffer(np.zeros(32, np.uint64))
    loaded.run(engine, "k", (1,), (32,), pack(source, out))
    got = loaded.read(out, np.uint64, 32)
    loaded.close()
    lane = np.arange(32)[1::4]
    np.testing.assert_array_equal(got[1::4], (lane << 32) + lane + 1007)
