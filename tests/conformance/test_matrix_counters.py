"""What matrix instructions are counted as, by both engines, and the time that makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.perf.kernel import Bound, estimate
from va100.spec.a100 import A100_SXM4_40GB
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, Pipe


@pytest.fixture(scope="module", params=["reference", "jit", "observed"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn, and the one that looks at what is really accessed."""
    if request.param != "observed":
        return request.getfixturevalue(request.param)
    from va100.jit.engine import JitEngine  # the oracle is testable without LLVM

    return JitEngine(observe_ctas=1 << 20)


def _count(body: str, engine: Engine, arena: Arena, *, ctas: int = 1) -> Counters:
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry counted(.param .u64 buffer)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<32>;
    .reg .b64 %d<8>;
    .reg .f32 %f<32>;
    .shared .align 128 .b8 box[8192];
    mov.u32 %r0, %tid.x;
    ld.param.u64 %d0, [buffer];
    mov.u32 %r1, box;
{body}
    ret;
}}
"""
    loaded = load(text, arena, "counted.ptx")
    try:
        place = loaded.buffer(np.zeros(4096, np.uint32))
        return loaded.run(engine, "counted", (ctas,), (32,), pack(place)).counters
    finally:
        loaded.close()


@pytest.mark.parametrize(("pitch", "turns"), [(16, 4), (32, 8), (48, 4), (64, 16), (128, 32)])
def test_ldmatrix(pitch: int, turns: int, engine: Engine, arena: Arena) -> None:
    """Eight rows of four banks: neighbours fill all 32 once; two apart meet half of them twice."""
    counters = _count(
        f"""
    mad.lo.u32 %r2, %r0, {pitch}, %r1;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r2];""",
        engine,
        arena,
    )
    assert (counters.shared_requests, counters.shared_wavefronts) == (1, turns)
    assert counters.sampled_fraction == 1
    assert counters.warp_instructions[Pipe.LSU] == 2


@pytest.mark.parametrize(
    ("text", "sectors", "words", "loaded", "stored"),
    [
        # 16 rows of 32 bytes, read as four words and copied: half a row a word.
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {R8}, [%d0], 64;", 64, 8, 1024, 0),
        ("wmma.load.a.sync.aligned.col.m16n16k16.global.f16 {R8}, [%d0], 64;", 64, 16, 1024, 0),
        ("wmma.load.b.sync.aligned.col.m8n8k32.global.s4 {R1}, [%d0];", 4, 1, 128, 0),
        ("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%d0], {F8}, 32;", 64, 8, 0, 1024),
    ],
)
def test_tiles(
    text: str, sectors: int, words: int, loaded: int, stored: int, engine: Engine, arena: Arena
) -> None:
    registers = ", ".join(f"%r{4 + i}" for i in range(8))
    floats = ", ".join(f"%f{i}" for i in range(8))
    body = text.replace("R8", registers).replace("F8", floats).replace("R1", "%r4")
    counters = _count("    " + body, engine, arena)
    assert counters.global_requests == words
    assert counters.global_sectors == sectors
    assert (counters.global_load_bytes, counters.global_store_bytes) == (loaded, stored)


def test_tiles_in_shared_memory(engine: Engine, arena: Arena) -> None:
    """Rows 32 words apart all begin at bank 0; four words of padding spread them over the banks."""
    for stride, turns in ((64, 8), (72, 1)):
        counters = _count(
            f"""
    wmma.load.a.sync.aligned.row.m16n16k16.shared.f16
        {{%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}}, [%r1], {stride};""",
            engine,
            arena,
        )
        assert counters.shared_requests == 8
        assert counters.shared_wavefronts == 8 * turns


MMA = {
    "f16": ("m16n8k16.row.col.f32.f16.f16.f32", "%r4, %r5, %r6, %r7", "%r8, %r9", 2048, 1024),
    "tf32": ("m16n8k8.row.col.f32.tf32.tf32.f32", "%r4, %r5, %r6, %r7", "%r8, %r9", 1024, 512),
    "f64": ("m8n8k4.row.col.f64.f64.f64.f64", "%d1", "%d2", 256, 64),
    "volta": ("m8n8k4.row.col.f32.f16.f16.f32", "%r4, %r5", "%r6, %r7", 0, 0),
}
"""Operands, multiply-adds of an instruction, multiply-adds an SM does in a cycle."""


@pytest.mark.parametrize("kind", MMA)
def test_products(kind: str, engine: Engine, arena: Arena) -> None:
    """A grid of products takes as long as the tensor cores' rate for their kind says."""
    shape, a, b, work, rate = MMA[kind]
    sums = {"f64": "%d3, %d4", "volta": ", ".join(f"%f{i}" for i in range(8))}.get(
        kind, "%f0, %f1, %f2, %f3"
    )
    text = f"    mma.sync.aligned.{shape} {{{sums}}}, {{{a}}}, {{{b}}}, {{{sums}}};\n"
    repeats, ctas = 64, 4
    counters = _count(text * repeats, engine, arena, ctas=ctas)
    issued = repeats * ctas
    pipe = Pipe.FMA if kind == "volta" else Pipe.TENSOR
    assert counters.warp_instructions[pipe] >= issued
    predicted = estimate(
        counters,
        LaunchConfig(grid=Dim3(ctas), block=Dim3(32)),
        KernelResources(registers_per_thread=64),
        A100_SXM4_40GB,
    )
    tensor_s = sum(p.duration_s for p in predicted.parts if p.bound is Bound.TENSOR)
    if not rate:
        assert tensor_s == 0
        return
    cycles = tensor_s * A100_SXM4_40GB.boost_clock_hz
    assert cycles == pytest.approx(repeats * work / rate)
