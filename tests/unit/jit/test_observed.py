"""Counters of observed CTAs: against the oracle's own, and against caches worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import CASES, KernelCase, kernel, run_case
from va100.gpu.arena import Arena
from va100.jit.engine import JitEngine
from va100.reference.engine import ReferenceEngine
from va100.work import Counters, Dim3, LaunchConfig, Sampling

EVERY = 1 << 20
COUNTED = (
    "global_requests", "global_sectors", "global_store_requests", "global_store_sectors",
    "shared_requests", "shared_wavefronts", "shared_store_requests", "shared_store_wavefronts",
)  # fmt: skip
PARTED = {
    "collatz", "lane_lock", "last_block", "local_array", "recursion", "histogram", "dynamic",
    "waiting",
}  # fmt: skip
"""Their warps part and meet again at other places than the oracle's, or they spin."""


@pytest.fixture
def arena() -> Arena:
    return Arena()


def _counts(counters: Counters) -> dict[str, float]:
    return {name: pytest.approx(getattr(counters, name)) for name in COUNTED}


def _run(
    text: str, arrays: list[np.ndarray], engine: JitEngine | ReferenceEngine, **launch: object
) -> Counters:
    loaded = load(text, Arena())
    try:
        places = [loaded.buffer(a) for a in arrays]
        grid, block = launch.pop("grid", (1,)), launch.pop("block", (32,))
        return loaded.run(engine, "test", grid, block, pack(*places), **launch).counters
    finally:
        loaded.close()


@pytest.mark.parametrize("chunks", [False, True], ids=["whole", "chunks"])
@pytest.mark.parametrize(
    "case", [c for c in CASES if c.name not in PARTED], ids=lambda case: case.name
)
def test_kernels_count_as_the_oracle_does(case: KernelCase, chunks: bool, arena: Arena) -> None:
    _, want = run_case(case, ReferenceEngine(), arena)
    _, got = run_case(case, JitEngine(observe_ctas=EVERY, chunks=chunks), arena)
    assert _counts(want.counters) == {n: getattr(got.counters, n) for n in COUNTED}
    assert got.counters.observed_cta_count == case.grid[0] * np.prod(case.grid[1:], dtype=int)


GATHER = """
    mul.wide.u32 %d3, %r0, 4;
    add.s64 %d4, %d60, %d3;
    ld.global.u32 %r4, [%d4];
    cvt.u64.u32 %d5, %r4;
    {access}
    ret;
"""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["u8", "u16", "u32", "u64", "v2.u64"])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_any_pattern_of_addresses(space: str, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "v2.u64": 16}[kind]
    spread = (4, 40, 400, 1 << 11)[seed]
    places = rng.integers(0, spread, 256).astype(np.uint32) * np.uint32(size)
    target = "{%d10, %d11}" if kind.startswith("v2") else "%d10" if kind == "u64" else "%r10"
    if space == "global":
        access = f"add.s64 %d6, %d61, %d5; ld.global.{kind} {target}, [%d6];"
    else:
        access = f"mov.u64 %d6, tile; add.s64 %d6, %d6, %d5; st.shared.{kind} [%d6], {target};"
    text = kernel(
        "test", "u64 u64", GATHER.format(access=access),
        before=".shared .align 16 .b8 tile[32768];" if space == "shared" else "",
    )  # fmt: skip
    arrays = [places, np.zeros(1 << 15, np.uint8)]
    shape = {"grid": (4,), "block": (64,)}
    want = _run(text, arrays, ReferenceEngine(), **shape)
    got = _run(text, arrays, JitEngine(observe_ctas=EVERY), **shape)
    assert _counts(want) == {n: getattr(got, n) for n in COUNTED}
    assert got.sampled_fraction == 1.0


TWICE = """
    mul.wide.u32 %d3, %r0, 4;
    add.s64 %d4, %d60, %d3;
    ld.global{how}.u32 %r4, [%d4];
    {between}
    ld.global{how}.u32 %r5, [%d4];
    add.u32 %r4, %r4, %r5;
    add.s64 %d5, %d61, %d3;
    st.global.u32 [%d5], %r4;
    ret;
"""


@pytest.mark.parametrize(("how", "hits"), [("", 4), (".nc", 4), (".cg", 0), (".volatile", 0)])
def test_a_second_load_hits_l1_unless_it_passes_it(how: str, hits: int) -> None:
    text = kernel("test", "u64 u64", TWICE.format(how=how, between=""))
    how_many = 64
    counters = _run(
        text, [np.zeros(how_many * 256, np.uint32)] * 2, JitEngine(observe_ctas=EVERY),
        grid=(how_many,), block=(256,),
    )  # fmt: skip
    warps = how_many * 8
    assert counters.l1_load_sectors == 8 * warps
    assert counters.l1_hit_sectors == hits * warps
    assert counters.l2_sectors == (8 - hits + 4) * warps
    assert counters.l2_store_sectors == 4 * warps
    assert counters.dram_read_sectors == 4 * warps
    assert counters.dram_write_sectors == 4 * warps


def test_l1_forgets_what_is_used_longest_ago() -> None:
    # Each of 8 warps walks 64 lines of its own twice: 64 KB a CTA, more than its share of L1.
    body = """
    mov.u32 %r5, 0;
    shr.u32 %r6, %r0, 5;
    mul.wide.u32 %d3, %r6, 8192;
    add.s64 %d4, %d60, %d3;
    and.b32 %r7, %r0, 31;
    mul.wide.u32 %d5, %r7, 4;
    add.s64 %d4, %d4, %d5;
AGAIN:
    and.b32 %r8, %r5, {mask};
    mul.wide.u32 %d6, %r8, 128;
    add.s64 %d7, %d4, %d6;
    ld.global.u32 %r9, [%d7];
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p0, %r5, 128;
    @%p0 bra AGAIN;
    ret;
"""
    array = [np.zeros(8 * 2048, np.uint32)]
    engine = JitEngine(observe_ctas=EVERY)
    large = _run(kernel("test", "u64", body.format(mask=63)), array, engine, block=(256,))
    small = _run(kernel("test", "u64", body.format(mask=15)), array, engine, block=(256,))
    assert large.l1_hit_sectors == 0
    assert small.l1_hit_sectors == 8 * (128 - 16) * 4
    assert large.dram_read_sectors == 8 * 64 * 4


def test_a_sample_tells_of_the_whole_grid_and_of_its_error() -> None:
    # CTA k touches 1 + k % 8 sectors a warp.
    body = """
    mov.u32 %r4, %ctaid.x;
    and.b32 %r4, %r4, 7;
    add.u32 %r4, %r4, 1;
    rem.u32 %r5, %r0, %r4;
    mul.wide.u32 %d3, %r5, 32;
    add.s64 %d3, %d60, %d3;
    ld.global.u32 %r6, [%d3];
    ret;
"""
    text = kernel("test", "u64", body)
    grid = 4096
    arrays = [np.zeros(64, np.uint32)]
    whole = _run(text, arrays, JitEngine(observe_ctas=EVERY), grid=(grid,))
    assert whole.global_sectors == grid * 4.5
    assert whole.sector_error == 0.0
    part = _run(text, arrays, JitEngine(observe_ctas=128), grid=(grid,))
    assert part.observed_cta_count == 128
    assert part.sampled_fraction == 128 / grid
    assert 0.02 < part.sector_error < 0.08
    assert part.global_sectors == pytest.approx(whole.global_sectors, rel=4 * part.sector_error)
    assert part.global_requests == whole.global_requests


@pytest.mark.parametrize("workers", [1, 2])
def test_observed_kernels_leave_the_same_memory(workers: int, arena: Arena) -> None:
    for case in CASES:
        got, _ = run_case(case, JitEngine(observe_ctas=3, workers=workers), arena)
        want, _ = run_case(case, JitEngine(workers=1), arena)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_only_observed_ctas_run_and_stand_for_all(barrier: str) -> None:
    text = kernel("test", "u64 u64", barrier + TWICE.format(how="", between=""))
    grid, block = 500, 96
    loaded = load(text, Arena())
    try:
        places = [loaded.buffer(np.ones(grid * block, np.uint32)) for _ in range(2)]
        engine = JitEngine(observe_ctas=EVERY, workers=2)
        shape = {"grid": Dim3(grid), "block": Dim3(block)}
        want = engine.launch(loaded.module, "test", LaunchConfig(**shape), pack(*places)).counters
        loaded.module.arena.view(places[1], grid * block * 4)[:] = 0
        few = LaunchConfig(**shape, sampling=Sampling(cta_count=7, alone=True))
        got = engine.launch(loaded.module, "test", few, pack(*places)).counters
        written = loaded.read(places[1], np.uint32, grid * block).reshape(grid, block)
    finally:
        loaded.close()
    assert sorted(np.count_nonzero(written, axis=1)) == [0] * (grid - 7) + [block] * 7
    assert got.observed_cta_count == 7
    assert got.warp_count == want.warp_count
    assert got.thread_instructions == pytest.approx(want.thread_instructions)
    assert {n: pytest.approx(v) for n, v in want.opcode_instructions.items()} == dict(
        got.opcode_instructions
    )
    assert got.l1_hit_sectors == pytest.approx(want.l1_hit_sectors)
    assert got.dram_write_sectors == pytest.approx(want.dram_write_sectors)


def test_long_ctas_are_replayed_before_their_end() -> None:
    # 9,000 turns of 32 lines each: more than is kept of a CTA.
    body = """
    mov.u32 %r5, 0;
    mul.wide.u32 %d3, %r0, 128;
    add.s64 %d4, %d60, %d3;
AGAIN:
    ld.global.u32 %r9, [%d4];
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p0, %r5, 9000;
    @%p0 bra AGAIN;
    ret;
"""
    counters = _run(
        kernel("test", "u64", body), [np.zeros(32 * 32, np.uint32)], JitEngine(observe_ctas=EVERY)
    )
    assert counters.l1_load_sectors == 9000 * 32
    assert counters.l1_hit_sectors == 8999 * 32
    assert counters.dram_read_sectors == 32


COPY = """
    mul.wide.u32 %d3, %r0, 16;
    add.s64 %d4, %d60, %d3;
    and.b32 %r5, %r0, 31;
    mul.lo.u32 %r5, %r5, {pitch};
    mov.u32 %r6, tile;
    add.u32 %r5, %r5, %r6;
    cp.async.{how}.shared.global [%r5], [%d4], 16;
    cp.async.wait_all;
    ret;
"""


@pytest.mark.parametrize(("pitch", "turns"), [(16, 4), (32, 8), (128, 32)])
@pytest.mark.parametrize("how", ["ca", "cg"])
def test_asynchronous_copies_read_and_write(how: str, pitch: int, turns: int) -> None:
    text = kernel(
        "test", "u64", COPY.format(pitch=pitch, how=how),
        before=".shared .align 16 .b8 tile[4096];",
    )  # fmt: skip
    counters = _run(text, [np.zeros(4 * 64, np.uint32)], JitEngine(observe_ctas=EVERY), block=(64,))
    assert (counters.global_requests, counters.global_sectors) == (2, 32)
    assert (counters.shared_store_requests, counters.shared_store_wavefronts) == (2, 2 * turns)
    assert counters.l2_sectors == counters.dram_read_sectors == 32
    assert counters.l2_store_sectors == 0
