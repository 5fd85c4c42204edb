"""Where the names of a kernel lie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.engines import load
from tests.helpers.kernels import HEADER
from va100.gpu.arena import Arena
from va100.jit.engine import JitEngine
from va100.reference.engine import ReferenceEngine
from va100.work import Dim3

BODY = """
    .shared .align 4 .b8 mine[128];
    mov.u32 %r41, %tid.x;
    shl.b32 %r42, %r41, 2;
    mov.u32 %r43, mine;
    add.u32 %r43, %r43, %r42;
    st.shared.u32 [%r43], %r41;
    mov.u32 %r44, %reserved_smem_offset_1;
    add.u32 %r44, %r44, %r42;
    st.shared.u32 [%r44], 77;
    st.shared.u32 [%r44 + 896], 78;
    bar.sync 0;
    ld.shared.u32 %r45, [%r43];
    mad.wide.u32 %d41, %r41, 4, %d60;
    st.global.u32 [%d41], %r45;
    ret;
"""


@pytest.mark.parametrize("engine", [None, ReferenceEngine()], ids=["jit", "reference"])
def test_reserved_shared_memory_is_nobody_elses(
    run: Callable[..., list[np.ndarray]], engine: ReferenceEngine | None
) -> None:
    (got,) = run("u64", BODY, [np.zeros(32, np.uint32)], engine=engine)
    np.testing.assert_array_equal(got, np.arange(32))


@pytest.mark.parametrize("make", [JitEngine, ReferenceEngine], ids=["jit", "reference"])
def test_reserved_shared_memory_is_not_counted_as_the_kernels(
    make: Callable[[], JitEngine | ReferenceEngine], arena: Arena
) -> None:
    text = HEADER + ".visible .entry k() { .reg .b32 %r<50>; .reg .b64 %d<64>;" + BODY + "}"
    loaded = load(text, arena)
    resources = make().prepare(loaded.module, "k", Dim3(32, 1, 1))
    loaded.close()
    assert resources.static_shared_bytes == 128
