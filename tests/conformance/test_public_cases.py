"""Small cases that people reported of other tools, on both engines: TF32, active lanes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import HEADER
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine

PRODUCT = """
.visible .entry product(.param .u64 values, .param .u64 out)
{
    .reg .b32 %r<8>;
    .reg .f32 %f<8>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [values];
    ld.param.u64 %d2, [out];
    ld.global.f32 %f1, [%d1];
    ld.global.f32 %f2, [%d1+4];
    CONVERT
    mov.b32 %r3, 0;
    mov.u32 %r4, %tid.x;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 mov.b32 %r1, 0;
    @%p1 mov.b32 %r2, 0;
    mov.f32 %f3, 0f00000000;
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
        {%f4, %f5, %f6, %f7}, {%r1, %r3, %r3, %r3}, {%r2, %r3}, {%f3, %f3, %f3, %f3};
    @%p1 bra OUT;
    st.global.f32 [%d2], %f4;
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%d2+4], %f4;
OUT:
    ret;
}
""".replace(".reg .f32", ".reg .pred %p<2>;\n    .reg .f32")
ROUNDED = "cvt.rna.tf32.f32 %r1, %f1;\n    cvt.rna.tf32.f32 %r2, %f2;"
CUT = "mov.b32 %r1, %f1;\n    mov.b32 %r2, %f2;"


@pytest.mark.parametrize(
    ("convert", "values", "wanted"),
    [
        (ROUNDED, (1.0, 1024.5), (1025.0, 1024.5)),
        (CUT, (1.0, 1024.5), (1024.0, 1024.5)),
        (ROUNDED, (1.0, 3.14), (3.140625, 3.14)),
        (ROUNDED, (-1.0, 1024.5), (-1025.0, -1024.5)),
    ],
)
def test_tf32_rounds_half_away(
    convert: str,
    values: tuple[float, float],
    wanted: tuple[float, float],
    engine: Engine,
    arena: Arena,
) -> None:
    """A product of one element: by the tensor cores with and without ``cvt.rna``, and in FP32."""
    loaded = load(HEADER + PRODUCT.replace("CONVERT", convert), arena)
    source = loaded.buffer(np.array(values, np.float32))
    out = loaded.buffer(np.zeros(2, np.float32))
    loaded.run(engine, "product", (1,), (32,), pack(source, out))
    got = loaded.read(out, np.float32, 2)
    loaded.close()
    np.testing.assert_array_equal(got, np.array(wanted, np.float32))


def test_the_active_lanes_of_each_arm(engine: Engine, arena: Arena) -> None:
    text = f"""{HEADER}
.visible .entry arms(.param .u64 out)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d1, %d1, %d2;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 1;
    @%p1 bra ODD;
    activemask.b32 %r3;
    bra.uni DONE;
ODD:
    activemask.b32 %r3;
DONE:
    st.global.u32 [%d1], %r3;
    ret;
}}
"""
    loaded = load(text, arena)
    out = loaded.buffer(np.zeros(32, np.uint32))
    loaded.run(engine, "arms", (1,), (32,), pack(out))
    got = loaded.read(out, np.uint32, 32)
    loaded.close()
    np.testing.assert_array_equal(got, np.tile([0x55555555, 0xAAAAAAAA], 16))
