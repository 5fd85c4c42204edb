"""Counters by source line: they add up to the launch's, and each line has what it wrote."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import HEADER
from va100.gpu.arena import Arena
from va100.jit.compiler import JitCompiler
from va100.jit.engine import JitEngine
from va100.jit.native import Launch
from va100.reference.engine import ReferenceEngine
from va100.work import Counters, Dim3, LaunchConfig, SourceLine

BODY = """
.visible .entry walk(.param .u64 data)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %d<4>;
    .shared .align 4 .b8 box[4096];
    .loc 1 10 1
    ld.param.u64 %d0, [data];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d1, %d0, %d1;
    mov.u32 %r5, box;
    shl.b32 %r6, %r0, 3;
    add.u32 %r5, %r5, %r6;
    mov.u32 %r2, 0;
LOOP:
    .loc 1 20 1
    ld.global.u32 %r1, [%d1];
    add.u32 %r2, %r2, %r1;
    .loc 1 21 1
    st.shared.u32 [%r5], %r2;
    sub.u32 %r0, %r0, 1;
    setp.gt.s32 %p0, %r0, 40;
    @%p0 bra LOOP;
    .loc 2 5 1
    ld.shared.u32 %r2, [%r5];
    st.global.u32 [%d1], %r2;
    ret;
}
.file 1 "walk.cu"
.file 2 "tail.cuh"
"""
PLAIN = "\n".join(line for line in BODY.splitlines() if ".loc" not in line and ".file" not in line)
ADDITIVE = (
    "thread_instructions", "global_load_bytes", "global_store_bytes", "global_requests",
    "global_sectors", "global_store_requests", "global_store_sectors", "shared_requests",
    "shared_wavefronts", "shared_store_requests", "shared_store_wavefronts", "branches",
)  # fmt: skip
CONFIG = LaunchConfig(grid=Dim3(3), block=Dim3(64))


@pytest.fixture(scope="module")
def arena() -> Arena:
    return Arena()


def launched(text: str, arena: Arena) -> tuple[Counters, dict[SourceLine, Counters]]:
    """Counters of a launch, whole and by line."""
    engine = JitEngine(workers=1)
    loaded = load(HEADER + text, arena, "walk.ptx")
    try:
        params = pack(loaded.buffer(np.arange(64, dtype=np.uint32)))
        variant = JitCompiler(engine).variant(loaded.module, "walk", CONFIG.block)
        counts = (ctypes.c_uint64 * variant.compiled.variant.counter_count)()
        buffer = ctypes.create_string_buffer(params, len(params))
        launch = Launch(
            variant=ctypes.pointer(variant.compiled.variant),
            params=ctypes.cast(buffer, ctypes.c_void_p),
            grid=(ctypes.c_uint32 * 3)(*CONFIG.grid),
            block=(ctypes.c_uint32 * 3)(*CONFIG.block),
            workers=1,
            sm_count=108,
            counters=counts,
        )
        engine._lib.va_exec_launch(ctypes.byref(launch))
        assert not launch.fault.kind
        return variant.counters(counts, CONFIG), dict(variant.lines(counts, CONFIG))
    finally:
        loaded.close()


def test_lines_add_up_to_the_launch(arena):
    whole, lines = launched(BODY, arena)
    for name in ADDITIVE:
        assert sum(getattr(c, name) for c in lines.values()) == pytest.approx(getattr(whole, name))
    by_pipe: dict = {}
    for counters in lines.values():
        for pipe, count in counters.warp_instructions.items():
            by_pipe[pipe] = by_pipe.get(pipe, 0) + count
    assert by_pipe == whole.warp_instructions


def test_a_line_has_what_it_wrote(arena):
    _, lines = launched(BODY, arena)
    assert set(lines) == {
        SourceLine("walk.cu", 10), SourceLine("walk.cu", 20), SourceLine("walk.cu", 21),
        SourceLine("tail.cuh", 5),
    }  # fmt: skip
    loop = lines[SourceLine("walk.cu", 20)]
    # The first warp of a CTA takes one turn; lanes of the second as many as they are past 40.
    turns = [max(tid - 40, 1) for tid in range(64)]
    assert loop.global_load_bytes == 3 * 4 * sum(turns)
    assert loop.global_requests == 3 * (1 + max(turns))
    assert loop.thread_instructions == 3 * 2 * sum(turns)
    last = lines[SourceLine("tail.cuh", 5)]
    assert (last.global_store_requests, last.global_store_bytes) == (3 * 2, 3 * 64 * 4)
    assert (last.shared_requests, last.shared_store_requests) == (3 * 2, 0)


def test_without_line_information_the_lines_of_the_ptx_count(arena):
    whole, lines = launched(PLAIN, arena)
    assert {line.file for line in lines} == {""}
    texts = {line.text: counters for line, counters in lines.items()}
    assert texts["ld.global.u32 %r1, [%d1];"].global_load_bytes == whole.global_load_bytes
    assert len(texts) == len(lines)


def test_stores_are_told_from_loads_as_the_other_engine_does(arena):
    loaded = load(HEADER + BODY, arena, "walk.ptx")
    try:
        place = loaded.buffer(np.arange(64, dtype=np.uint32))
        shape = ("walk", (3,), (64,), pack(place))
        mine, oracle = (
            loaded.run(engine, *shape).counters
            for engine in (JitEngine(workers=1), ReferenceEngine())
        )
    finally:
        loaded.close()
    for name in ("global_store_requests", "shared_store_requests"):
        assert getattr(mine, name) == getattr(oracle, name) > 0
    assert mine.global_store_sectors == oracle.global_store_sectors
    for opcode in ("ld.global.u32", "st.shared.u32", "st.global.u32", "ret"):
        assert mine.opcode_threads[opcode] == oracle.opcode_threads[opcode] > 0
