"""The path of one warp alone."""

from __future__ import annotations

import pytest

from va100.perf import latency
from va100.perf.memory import Residency
from va100.spec.a100 import A100_SXM4_80GB as CHIP
from va100.work import Counters, Pipe

DRAM_CYCLES = CHIP.measured.dram_latency_cycles


def path(residency=Residency.DRAM, **counts):
    return latency.warp_cycles(Counters(**counts), CHIP, residency) - latency.CTA_CYCLES


def loading(requests, branches, **counts):
    return path(
        warp_count=1,
        global_load_bytes=128.0 * requests,
        global_requests=float(requests),
        branches=float(branches),
        **counts,
    )


class TestWarpCycles:
    def test_nothing_ran(self):
        assert latency.warp_cycles(Counters(), CHIP, Residency.DRAM) == 0.0

    @pytest.mark.parametrize(
        ("requests", "branches", "rounds"),
        [
            (1, 0, 1),
            (4, 1, 1),  # four loads of one block overlap
            (4, 4, 4),  # a loop of one load each time does not
            (4, 100, 4),  # most blocks hold no load
            (32, 1, 4),  # eight at once
        ],
    )
    def test_loads_of_one_block_overlap(self, requests, branches, rounds):
        assert loading(requests, branches) == pytest.approx(rounds * DRAM_CYCLES)

    def test_stores_are_not_waited_for(self):
        counts = {"warp_count": 1, "global_store_bytes": 128.0, "global_requests": 1.0}
        assert path(**counts) == 0.0

    @pytest.mark.parametrize(("copies", "waits", "rounds"), [(32, 4, 4), (4, 32, 4)])
    def test_copies_are_waited_for_by_group(self, copies, waits, rounds):
        """A pipeline of asynchronous copies hides what the same loads would wait for."""
        opcodes = {
            "cp.async.cg.shared.global": float(copies),
            "cp.async.wait_group": float(waits),
            "cp.async.commit_group": float(waits),
        }
        cycles = loading(copies, copies, opcode_instructions=opcodes)
        assert cycles == pytest.approx(rounds / latency.STAGES_IN_FLIGHT * DRAM_CYCLES)
        assert cycles < loading(copies, copies)

    def test_l2_answers_sooner(self):
        counts = {
            "warp_count": 1,
            "global_load_bytes": 128.0,
            "global_requests": 1.0,
            "footprint_bytes": 128.0,
        }
        near, both = latency.l2_cycles(CHIP, 128.0), latency.l2_cycles(CHIP)
        assert path(Residency.L2, **counts) == near < both < DRAM_CYCLES

    @pytest.mark.parametrize(("pipe", "cycles"), [("fma", 4), ("alu", 4), ("fp64", 8), ("xu", 18)])
    def test_arithmetic_waits_for_its_pipe(self, pipe, cycles):
        found = path(warp_count=2, warp_instructions={Pipe(pipe): 20.0})
        assert found == 10 * cycles / latency.INDEPENDENT_INSTRUCTIONS

    def test_barriers_wait(self):
        assert path(warp_count=4, barrier_instructions=8.0) == 2 * latency.BARRIER_CYCLES

    @pytest.mark.parametrize(("size_bytes", "cycles"), [(2112, 75), (2113, 121)])
    def test_constants_wait_for_the_level_that_holds_them(self, size_bytes, cycles):
        found = path(warp_count=2, constant_waits=6.0, constant_bytes=float(size_bytes))
        assert found == 3 * cycles
