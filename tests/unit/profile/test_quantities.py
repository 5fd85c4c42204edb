"""Numbers of a launch by name, against sums done by hand."""

from __future__ import annotations

import pytest

from tests.helpers.launches import CHIP, COUNTERS, launch
from va100.perf.kernel import Bound
from va100.profile.quantities import counters_of, opcode_sum, peak_of, quantities
from va100.work import Pipe


def found(**changes):
    return quantities(launch(**changes), CHIP)


def counted(**changes):
    return found(counters=COUNTERS | changes)


class TestQuantities:
    def test_loads_are_what_is_left_of_stores(self):
        known = found()
        assert known["global_load_sectors"] == 393216 - 131072
        assert known["global_load_requests"] == 98304 - 32768
        assert known["shared_load_wavefronts"] == 12000

    def test_instructions_are_summed_over_pipes(self):
        known = found()
        assert known["warp_instructions"] == 60000 + 32768 + 98304 + 6912
        assert known["warp_instructions.fma"] == 32768
        assert known["warp_instructions.tensor"] == 0

    def test_time_in_cycles_and_peaks(self):
        known = found()
        assert known["cycles"] == pytest.approx(8.0e-6 * 1410e6)
        assert known["sm_cycles"] == pytest.approx(known["cycles"] * 108)
        assert known["peak_memory_bytes"] == pytest.approx(8.0e-6 * 2039e9, rel=1e-3)
        assert known["memory_busy_s"] == 6.6e-6
        assert known["sm_busy_s"] == 1.0e-6
        assert {f"busy_s.{bound.value}" for bound in Bound} <= set(known)

    def test_bytes_at_each_level(self):
        known = found()
        assert known["l2_bytes"] == 393216 * 32
        assert known["dram_read_bytes"] + known["dram_write_bytes"] == known["dram_bytes"]
        assert known["dram_write_bytes"] == 4194304
        assert known["l2_sectors"] == 393216

    def test_conflicts_are_turns_beyond_what_the_width_needs(self):
        known = found()
        assert known["load_conflicts"] == 12000 - 4 * 1000
        assert known["store_conflicts"] == 0
        assert known["conflicts"] == 8000

    def test_asynchronous_copies_of_unknown_width_leave_stores_without_an_answer(self):
        opcodes = COUNTERS["opcode_instructions"] | {"cp.async.ca.shared.global": 10.0}
        known = counted(opcode_instructions=opcodes)
        assert known["load_conflicts"] == 8000
        assert "store_conflicts" not in known

    def test_tiles_need_a_turn_a_request(self):
        opcodes = {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16": 10.0}
        known = counted(
            opcode_instructions=opcodes, shared_requests=80.0, shared_wavefronts=100.0,
            shared_store_requests=0.0, shared_store_wavefronts=0.0,
        )  # fmt: skip
        assert known["load_conflicts"] == 20

    def test_turns_of_observed_atomics_cannot_be_told_from_those_of_loads(self):
        opcodes = {"atom.shared.add.u32": 100.0, "ld.shared.u32": 50.0}
        facts = {
            "opcode_instructions": opcodes, "shared_requests": 50.0, "shared_wavefronts": 450.0,
            "shared_store_requests": 0.0, "shared_store_wavefronts": 0.0,
        }  # fmt: skip
        known = counted(**facts)
        assert "load_conflicts" not in known
        assert known["conflicts"] == 300
        assert counted(**facts, observed_cta_count=0)["load_conflicts"] == 400

    def test_matrix_loads_need_a_turn_a_matrix(self):
        opcodes = {"ldmatrix.sync.aligned.m8n8.x4.shared.b16": 100.0}
        known = counted(
            opcode_instructions=opcodes, shared_requests=100.0, shared_wavefronts=450.0,
            shared_store_requests=0.0, shared_store_wavefronts=0.0,
        )  # fmt: skip
        assert known["load_conflicts"] == 50

    def test_what_was_a_best_case_only_is_absent(self):
        known = counted(sampled_fraction=0.0)
        absent = {"global_sectors", "global_load_sectors", "shared_wavefronts", "conflicts"}
        assert not absent & set(known)
        assert "global_requests" in known

    def test_caches_are_known_where_ctas_were_observed(self):
        caches = {"l1_hit_sectors", "l1_load_sectors", "local_sectors"}
        whole = {"l2_hit_sectors", "dram_read_sectors", "dram_write_sectors"}
        assert caches | whole <= set(found())
        assert "l2_hit_sectors" not in counted(observed_cta_count=64)
        assert not caches & set(counted(observed_cta_count=0))

    def test_what_is_written_was_counted_where_all_ctas_were_observed(self):
        assert counted(dram_write_sectors=100.0)["dram_write_bytes"] == 3200
        assert counted(dram_write_sectors=100.0, observed_cta_count=64)["dram_write_bytes"] > 3200

    def test_a_later_counter_comes_by_its_name(self):
        known = counted(l1_hits=12.0, sectors_by_space={"global": 1.0, "local": 2.0})
        assert known["l1_hits"] == 12
        assert known["sectors_by_space"] == 3
        assert known["sectors_by_space.local"] == 2

    def test_operations(self):
        lanes = {
            "fma.rn.f32": 10.0, "add.f32": 3.0, "sub.f32": 1.0, "mul.rn.f64": 5.0,
            "fma.rn.f16x2": 4.0, "mad.lo.u32": 100.0, "add.s32": 100.0,
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 64.0,
        }  # fmt: skip
        known = counted(opcode_threads=lanes)
        assert known["lanes.ffma"] == 10
        assert known["lanes.fadd"] == 4
        assert known["flop.f"] == 24
        assert known["flop.d"] == 5
        assert known["flop.h"] == 16
        assert known["flop.tensor"] == 2 * 2 * 16 * 8 * 16
        assert known["flop"] == 24 + 5 + 16 + 8192
        assert peak_of(known, CHIP)[0] == "FP16 tensor"


def test_counters_of_takes_what_the_model_knows():
    counters = counters_of(COUNTERS | {"from_a_later_version": 3.0})
    assert counters.warp_instructions[Pipe.FMA] == 32768
    assert counters.global_sectors == 393216


def test_opcode_sum():
    opcodes = {"ld.global.f32": 1.0, "ld.global.nc.v4.f32": 2.0, "ld.shared.f32": 4.0}
    assert opcode_sum(opcodes, "ld.global") == 3
    assert opcode_sum(opcodes, "ld.", within=".v4") == 2
