"""Preparing, launching, counting, refusing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import HEADER, SAXPY, kernel, run_case
from va100 import errors
from va100.gpu.arena import Arena
from va100.reference.engine import ReferenceEngine
from va100.work import Dim3, LaunchConfig, Pipe


class TestPrepare:
    def test_resources_are_the_kernels(self, engine: ReferenceEngine, arena: Arena) -> None:
        body = "    .shared .align 8 .b8 box[200];\n    .local .align 8 .b8 own[40];\n    ret;\n"
        loaded = load(kernel("k", "u64", body), arena)
        resources = engine.prepare(loaded.module, "k", Dim3(64))
        assert resources.static_shared_bytes == 200
        assert resources.local_bytes == 48
        loaded.close()

    def test_refuses_what_it_does_not_execute(self, engine: ReferenceEngine, arena: Arena) -> None:
        body = "    suq.width.b32 %r1, [%d1+4];\n    ret;\n"
        loaded = load(kernel("k", "u64", body), arena)
        with pytest.raises(errors.UnsupportedInstruction) as caught:
            engine.prepare(loaded.module, "k", Dim3(64))
        assert caught.value.source_line.strip() == "suq.width.b32 %r1, [%d1+4];"
        assert caught.value.column == 5
        loaded.close()

    def test_refuses_in_a_called_function_too(self, engine: ReferenceEngine, arena: Arena) -> None:
        body = ".reg .b32 %r1; .reg .b64 %d1; suq.width.b32 %r1, [%d1+4]; ret;"
        before = f".func f() {{ {body} }}\n"
        loaded = load(kernel("k", "u64", "    call f;\n    ret;\n", before=before), arena)
        with pytest.raises(errors.UnsupportedInstruction):
            engine.prepare(loaded.module, "k", Dim3(64))
        loaded.close()

    def test_refuses_a_function_nobody_has(self, engine: ReferenceEngine, arena: Arena) -> None:
        before = ".extern .func elsewhere;\n"
        loaded = load(kernel("k", "u64", "    call elsewhere;\n    ret;\n", before=before), arena)
        with pytest.raises(errors.UnsupportedInstruction, match="elsewhere"):
            engine.prepare(loaded.module, "k", Dim3(64))
        loaded.close()

    @pytest.mark.parametrize("block", [Dim3(1025), Dim3(32, 33)])
    def test_block_too_large(self, block: Dim3, engine: ReferenceEngine, arena: Arena) -> None:
        loaded = load(kernel("k", "u64", "    ret;\n"), arena)
        with pytest.raises(errors.OutOfResources):
            engine.prepare(loaded.module, "k", block)
        loaded.close()

    def test_required_block(self, engine: ReferenceEngine, arena: Arena) -> None:
        text = kernel("k", "u64", "    ret;\n").replace("\n)\n{", "\n)\n.reqntid 64\n{")
        loaded = load(text, arena)
        engine.prepare(loaded.module, "k", Dim3(64))
        with pytest.raises(errors.LaunchError, match="requires"):
            engine.prepare(loaded.module, "k", Dim3(32, 2))
        loaded.close()

    def test_no_such_kernel(self, engine: ReferenceEngine, arena: Arena) -> None:
        loaded = load(kernel("k", "u64", "    ret;\n"), arena)
        with pytest.raises(errors.LaunchError):
            engine.prepare(loaded.module, "other", Dim3(1))
        loaded.close()


class TestLaunch:
    def test_too_few_parameter_bytes(self, engine: ReferenceEngine, arena: Arena) -> None:
        loaded = load(kernel("k", "u64 u64", "    ret;\n"), arena)
        config = LaunchConfig(grid=Dim3(1), block=Dim3(32))
        with pytest.raises(errors.LaunchError, match="takes 16"):
            engine.launch(loaded.module, "k", config, bytes(8))
        loaded.close()

    def test_counts(self, engine: ReferenceEngine, arena: Arena) -> None:
        _, outcome = run_case(SAXPY, engine, arena)
        counters = outcome.counters
        assert counters.cta_count == 9
        assert counters.warp_count == 36
        assert counters.global_load_bytes == 1100 * 8
        assert counters.global_store_bytes == 1100 * 4
        assert counters.opcode_instructions["fma.rn.f32"] == 35
        assert counters.warp_instructions[Pipe.FMA] >= 35
        assert counters.branches == 36
        assert counters.divergent_branches == 1
        assert counters.footprint_bytes == 2 * 138 * 32

    def test_bank_conflicts_are_counted(self, engine: ReferenceEngine, arena: Arena) -> None:
        body = """
    .shared .align 4 .b8 box[4096];
    mov.u32 %r4, box;
    shl.b32 %r5, %r3, 2;
    add.u32 %r6, %r4, %r5;
    st.shared.u32 [%r6], %r3;
    shl.b32 %r5, %r3, 7;
    add.u32 %r6, %r4, %r5;
    st.shared.u32 [%r6], %r3;
    ret;
"""
        loaded = load(kernel("k", "u64", body), arena)
        outcome = loaded.run(engine, "k", (1,), (32,), pack(0))
        assert outcome.counters.shared_requests == 2
        assert outcome.counters.shared_wavefronts == 1 + 32
        loaded.close()

    def test_memory_is_given_back(self, engine: ReferenceEngine, arena: Arena) -> None:
        before = arena.free_bytes(17)
        run_case(SAXPY, engine, arena)
        loaded = load(kernel("k", "u64", "    trap;\n"), arena)
        with pytest.raises(errors.TrapExecuted):
            loaded.run(engine, "k", (1,), (32,), pack(0))
        loaded.close()
        assert arena.free_bytes(17) == before

    def test_endless_loop_meets_the_step_limit(self, arena: Arena) -> None:
        loaded = load(kernel("k", "u64", "SPIN:\n    bra SPIN;\n"), arena)
        with pytest.raises(errors.Deadlock, match="no end"):
            loaded.run(ReferenceEngine(step_limit=5000), "k", (1,), (32,), pack(0))
        loaded.close()


class TestIndependentLanes:
    def test_lanes_wait_for_each_other(self, engine: ReferenceEngine, arena: Arena) -> None:
        """Lane 0 spins on what lane 31 of the same warp stores: needs fairness among lanes."""
        body = """
    setp.eq.u32 %p1, %r3, 0;
    @!%p1 bra OTHER;
SPIN:
    ld.volatile.global.u32 %r4, [%d60];
    setp.eq.u32 %p2, %r4, 0;
    @%p2 bra SPIN;
    st.global.u32 [%d60+4], %r4;
    ret;
OTHER:
    setp.eq.u32 %p3, %r3, 31;
    @%p3 st.volatile.global.u32 [%d60], 7;
    ret;
"""
        loaded = load(kernel("k", "u64", body), arena)
        place = loaded.buffer(np.zeros(2, np.uint32))
        loaded.run(engine, "k", (1,), (32,), pack(place))
        assert loaded.read(place, np.uint32, 2).tolist() == [7, 7]
        loaded.close()

    def test_ctas_wait_for_later_ones(self, engine: ReferenceEngine, arena: Arena) -> None:
        """CTA 0 spins on CTA 3 in an ordinary launch: later CTAs are let in beside it."""
        body = """
    setp.ne.u32 %p0, %r3, 0;
    @%p0 ret;
    setp.eq.u32 %p1, %r1, 3;
    @%p1 bra SIGNAL;
SPIN:
    ld.volatile.global.u32 %r4, [%d60];
    setp.eq.u32 %p2, %r4, 0;
    @%p2 bra SPIN;
    ret;
SIGNAL:
    st.volatile.global.u32 [%d60], 1;
    ret;
"""
        loaded = load(kernel("k", "u64", body), arena)
        place = loaded.buffer(np.zeros(1, np.uint32))
        loaded.run(engine, "k", (4,), (32,), pack(place))
        loaded.close()

    def test_diverged_lanes_run_apart_and_meet(self, engine: ReferenceEngine, arena: Arena) -> None:
        body = """
    and.b32 %r4, %r3, 1;
    setp.eq.u32 %p1, %r4, 0;
    activemask.b32 %r5;
    @%p1 bra EVEN;
    activemask.b32 %r6;
    bra JOIN;
EVEN:
    activemask.b32 %r6;
JOIN:
    activemask.b32 %r7;
    mul.wide.u32 %d1, %r3, 16;
    add.s64 %d1, %d1, %d60;
    st.global.v4.u32 [%d1], {%r5, %r6, %r7, %r4};
    ret;
"""
        loaded = load(kernel("k", "u64", body), arena)
        place = loaded.buffer(np.zeros(128, np.uint32))
        loaded.run(engine, "k", (1,), (32,), pack(place))
        rows = loaded.read(place, np.uint32, 128).reshape(32, 4)
        assert set(rows[:, 0]) == {0xFFFFFFFF}
        assert rows[:2, 1].tolist() == [0x55555555, 0xAAAAAAAA]
        assert set(rows[:, 2]) == {0xFFFFFFFF}
        loaded.close()

    def test_mask_that_leaves_the_lane_out(self, engine: ReferenceEngine, arena: Arena) -> None:
        """Undefined in PTX; this engine says so."""
        body = "    vote.sync.ballot.b32 %r4, %p1, 0xff;\n    ret;\n"
        loaded = load(kernel("k", "u64", body), arena)
        with pytest.raises(errors.IllegalInstruction, match="leaves it out"):
            loaded.run(engine, "k", (1,), (32,), pack(0))
        loaded.close()

    def test_deadlock_names_the_lanes(self, engine: ReferenceEngine, arena: Arena) -> None:
        body = """
    setp.eq.u32 %p1, %r3, 3;
    @%p1 bra APART;
    bar.warp.sync -1;
    ret;
APART:
    bar.sync 0;
    ret;
"""
        loaded = load(kernel("k", "u64", body), arena)
        with pytest.raises(errors.Deadlock, match="0x00000008") as caught:
            loaded.run(engine, "k", (1,), (32,), pack(0))
        assert "bar.warp.sync" in caught.value.what
        loaded.close()


SPECIALS = [
    ("%tid.x", lambda t, c: t % 8), ("%tid.y", lambda t, c: t // 8 % 3),
    ("%tid.z", lambda t, c: t // 24), ("%ntid.x", lambda t, c: 8), ("%ntid.y", lambda t, c: 3),
    ("%ntid.z", lambda t, c: 2), ("%ctaid.x", lambda t, c: c % 2),
    ("%ctaid.y", lambda t, c: c // 2),
    ("%ctaid.z", lambda t, c: 0), ("%nctaid.x", lambda t, c: 2), ("%nctaid.y", lambda t, c: 3),
    ("%laneid", lambda t, c: t % 32), ("%warpid", lambda t, c: t // 32),
    ("%nwarpid", lambda t, c: 64), ("%smid", lambda t, c: c % 4), ("%nsmid", lambda t, c: 4),
    ("%lanemask_eq", lambda t, c: 1 << t % 32),
    ("%lanemask_lt", lambda t, c: (1 << t % 32) - 1),
    ("%lanemask_le", lambda t, c: (2 << t % 32) - 1),
    ("%lanemask_gt", lambda t, c: 0xFFFFFFFF & ~((2 << t % 32) - 1)),
    ("%lanemask_ge", lambda t, c: 0xFFFFFFFF & ~((1 << t % 32) - 1)),
    ("%dynamic_smem_size", lambda t, c: 96), ("%total_smem_size", lambda t, c: 128),
    ("%envreg3", lambda t, c: 0), ("%pm0", lambda t, c: 0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), SPECIALS, ids=[s[0] for s in SPECIALS])
def test_special_registers(name: str, value, arena: Arena) -> None:
    text = f"""{HEADER}
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<16>;
    .reg .b64 %d<4>;
    mov.u32 %r0, %tid.z;
    mad.lo.u32 %r0, %r0, 3, %tid.y;
    mad.lo.u32 %r0, %r0, 8, %tid.x;
    mad.lo.u32 %r1, %ctaid.y, 2, %ctaid.x;
    mad.lo.u32 %r1, %r1, 48, %r0;
    mul.wide.u32 %d0, %r1, 4;
    ld.param.u64 %d1, [out];
    add.s64 %d1, %d1, %d0;
    mov.u32 %r2, {name};
    st.global.u32 [%d1], %r2;
    ret;
}}
"""
    loaded = load(text, arena)
    place = loaded.buffer(np.zeros(288, np.uint32))
    engine = ReferenceEngine(sm_count=4)
    loaded.run(engine, "k", (2, 3), (8, 3, 2), pack(place), shared_bytes=96)
    got = loaded.read(place, np.uint32, 288).tolist()
    loaded.close()
    assert got == [value(t, c) for c in range(6) for t in range(48)]


def test_clocks_go_forward(engine: ReferenceEngine, arena: Arena) -> None:
    body = """
    mov.u64 %d1, %clock64;
    mov.u64 %d2, %globaltimer;
    mov.u32 %r4, %clock;
    mov.u64 %d3, %clock64;
    mov.u64 %d4, %globaltimer;
    sub.s64 %d1, %d3, %d1;
    sub.s64 %d2, %d4, %d2;
    st.global.v2.u64 [%d60], {%d1, %d2};
    ret;
"""
    loaded = load(kernel("k", "u64", body), arena)
    place = loaded.buffer(np.zeros(2, np.uint64))
    loaded.run(engine, "k", (1,), (1,), pack(place))
    assert (loaded.read(place, np.uint64, 2) > 0).all()
    loaded.close()
