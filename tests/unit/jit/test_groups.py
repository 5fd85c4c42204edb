"""Accesses that are checked together blame the right one, after exactly what precedes it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.jit.conftest import Run
from va100.errors import IllegalAddress, MisalignedAddress
from va100.gpu.arena import Arena


@pytest.mark.parametrize("space", ["shared", "global"])
def test_barrier_ends_a_group(run: Run, space: str) -> None:
    # Lanes that part before the barrier are together after it, where nothing was checked yet.
    base = "mov.u32 %r10, win;" if space == "shared" else "mov.u64 %d8, %d60;"
    register = "%r10" if space == "shared" else "%d8"
    body = f"""
    {base}
    ld.{space}.u32 %r7, [{register}];
    bar.sync 0;
    ld.{space}.u32 %r8, [{register}+1000000000];
    add.u32 %r7, %r7, %r8;
    st.global.u32 [%d60], %r7;
    ret;
"""
    before = ".shared .align 4 .b8 win[256];"
    with pytest.raises(IllegalAddress) as caught:
        run("u64", body, [np.zeros(32, np.uint32)], before=before)
    assert caught.value.size == 4
    assert "1000000000" in caught.value.instruction


@pytest.mark.parametrize("bad", range(4))
def test_store_out_of_bounds_inside_a_group(arena: Arena, bad: int, register_mode: int) -> None:
    from tests.helpers.engines import load, pack
    from tests.helpers.kernels import kernel
    from va100.jit.engine import JitEngine

    offsets = [0, 256, 512, 768]
    offsets[bad] = 1 << 30
    stores = "\n".join(
        f"st.global.u32 [%d1+{offset}], {k + 1};" for k, offset in enumerate(offsets)
    )
    text = kernel("test", "u64", f"add.s64 %d1, %d60, %d0;\n{stores}\nret;")
    loaded = load(text, arena)
    try:
        place = loaded.buffer(np.zeros(256, np.uint32))
        with pytest.raises(IllegalAddress) as caught:
            loaded.run(JitEngine(workers=1), "test", (1,), (32,), pack(place))
        got = loaded.read(place, np.uint32, 256).reshape(4, 64)[:, :32]
    finally:
        loaded.close()
    want = np.zeros((4, 32), np.uint32)
    for k in range(bad):
        want[k] = k + 1
    np.testing.assert_array_equal(got, want)
    assert caught.value.thread == (0, 0, 0)
    assert caught.value.address == place + (1 << 30)
    assert f"{1 << 30}" in caught.value.instruction


def test_edge_inside_the_lanes_blames_the_first_lane_beyond(run: Run) -> None:
    # 40 words: lanes 8 to 31 of the second access lie past the last granule.
    body = """
    add.s64 %d1, %d60, %d0;
    ld.global.u32 %r5, [%d1];
    ld.global.u32 %r6, [%d1+224];
    add.u32 %r5, %r5, %r6;
    st.global.u32 [%d60], %r5;
    ret;
"""
    with pytest.raises(IllegalAddress) as caught:
        run("u64", body, [np.zeros(64, np.uint32)])
    assert caught.value.thread == (8, 0, 0)


def test_misaligned_base_of_a_group(run: Run) -> None:
    body = """
    add.s64 %d1, %d60, 2;
    ld.global.u32 %r5, [%d1];
    ld.global.u32 %r6, [%d1+4];
    add.u32 %r5, %r5, %r6;
    st.global.u32 [%d60], %r5;
    ret;
"""
    with pytest.raises(MisalignedAddress):
        run("u64", body, [np.zeros(64, np.uint32)])
