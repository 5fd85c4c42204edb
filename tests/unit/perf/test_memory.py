"""Traffic and rates of the memory levels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf import memory
from va100.perf.memory import Residency
from va100.spec.a100 import A100_SXM4_80GB as CHIP
from va100.units import GB, MB
from va100.work import Counters


class TestTraffic:
    def test_reuse_is_charged_to_l2_only(self):
        flow = memory.traffic(
            Counters(global_load_bytes=4000.0, global_sectors=100.0, footprint_bytes=320.0), CHIP
        )
        assert (flow.l2_bytes, flow.dram_bytes) == (3200.0, 320.0)
        assert flow.l1_wavefront_count == 25.0

    def test_uncounted_sectors_are_coalesced(self):
        flow = memory.traffic(Counters(global_load_bytes=96.0, global_store_bytes=32.0), CHIP)
        assert (flow.l2_bytes, flow.dram_bytes, flow.store_fraction) == (128.0, 128.0, 0.25)

    def test_dram_never_sees_more_than_l2(self):
        flow = memory.traffic(
            Counters(global_load_bytes=128.0, global_sectors=4.0, footprint_bytes=4096.0), CHIP
        )
        assert flow.dram_bytes == 128.0

    def test_what_is_updated_in_place_crosses_both_ways(self):
        """Two arrays of 4000 bytes read, one of them written: no byte is used twice."""
        saxpy = Counters(
            global_load_bytes=8000.0,
            global_store_bytes=4000.0,
            global_sectors=375.0,
            footprint_bytes=8000.0,
        )
        flow = memory.traffic(saxpy, CHIP)
        assert (flow.dram_bytes, flow.held_bytes) == (12000.0, 8000.0)

    def test_stores_are_gathered_in_l2(self):
        again = Counters(global_store_bytes=64e3, global_sectors=2000.0, footprint_bytes=320.0)
        assert memory.traffic(again, CHIP).dram_bytes == 320.0

    def test_uncounted_wavefronts_are_free_of_conflicts(self):
        assert memory.traffic(Counters(shared_requests=7.0), CHIP).shared_wavefront_count == 7.0


class TestRates:
    @pytest.mark.parametrize(
        ("store_fraction", "rate"), [(0.0, 1890), (0.5, 1732), (1.0, 1890), (0.25, 1811)]
    )
    def test_dram_mixes(self, store_fraction, rate):
        assert memory.dram_bytes_per_s(store_fraction, CHIP.measured) == pytest.approx(rate * GB)

    @given(st.floats(0, 1e9), st.floats(0, 1e9))
    def test_l2_curve_only_falls(self, one, other):
        small, large = sorted((one, other))
        assert memory.l2_bytes_per_s(small, CHIP.measured) >= memory.l2_bytes_per_s(
            large, CHIP.measured
        )

    def test_l2_curve_ends_at_dram(self):
        assert memory.l2_bytes_per_s(1e9, CHIP.measured) == CHIP.measured.dram_read_bytes_per_s
        assert memory.l2_bytes_per_s(MB, CHIP.measured) == CHIP.measured.l2_bytes_per_s

    def test_few_sms_cannot_draw_l2_dry(self):
        flow = memory.traffic(Counters(global_load_bytes=1e9, global_sectors=1e9 / 32), CHIP)
        one = memory.l2_s(flow, 1, CHIP, 1e9, Residency.DRAM)
        assert one == pytest.approx(1e9 / 64e9)
        assert memory.l2_s(flow, 108, CHIP, 1.41e9, Residency.DRAM) == pytest.approx(1e9 / 5.4e12)

    def test_stores_cost_l2_more_than_loads(self):
        loads = memory.traffic(Counters(global_load_bytes=1e9), CHIP)
        stores = memory.traffic(Counters(global_store_bytes=1e9), CHIP)
        ratio = memory.l2_s(stores, 108, CHIP, 1.41e9, Residency.DRAM) / memory.l2_s(
            loads, 108, CHIP, 1.41e9, Residency.DRAM
        )
        assert ratio == pytest.approx(memory.L2_STORE_WEIGHT)

    def test_data_in_l2_leaves_dram_alone(self):
        flow = memory.traffic(Counters(global_load_bytes=1e6, footprint_bytes=1e6), CHIP)
        assert memory.dram_s(flow, CHIP, Residency.L2) == 0.0
        assert memory.dram_s(flow, CHIP, Residency.DRAM) > 0.0
