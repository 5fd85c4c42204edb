"""Occupancy against values worked out by hand from the chip's allocation rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.occupancy import Limiter, occupancy
from va100.spec.a100 import GA100_SM
from va100.units import KIB
from va100.work import Dim3, KernelResources, LaunchConfig


def fit(block, registers, static_bytes=0, dynamic_bytes=0, **kwargs):
    config = LaunchConfig(grid=Dim3(1000), block=Dim3(block), dynamic_shared_bytes=dynamic_bytes)
    resources = KernelResources(
        registers_per_thread=registers, static_shared_bytes=static_bytes, **kwargs
    )
    return occupancy(config, resources, GA100_SM)


class TestOccupancy:
    @pytest.mark.parametrize(
        ("block", "registers", "static_bytes", "ctas", "limiter"),
        [
            (256, 32, 0, 8, Limiter.WARPS),
            (1024, 32, 0, 2, Limiter.WARPS),
            (32, 32, 0, 32, Limiter.CTAS),
            (64, 16, 0, 32, Limiter.WARPS),
            # 40 registers: 1280 a warp, 12 warps a sub-partition, 48 on the SM
            (256, 40, 0, 6, Limiter.REGISTERS),
            # 33 registers round up to 40 for allocation: 1056 becomes 1280 a warp
            (256, 33, 0, 6, Limiter.REGISTERS),
            # 255 registers: 8192 a warp, 2 warps a sub-partition, 8 on the SM
            (256, 255, 0, 1, Limiter.REGISTERS),
            (128, 255, 0, 2, Limiter.REGISTERS),
            # 64 registers: 2048 a warp, 32 warps
            (1024, 64, 0, 1, Limiter.REGISTERS),
            # 48 KiB and the reserve: three CTAs in 164 KiB
            (128, 32, 48 * KIB, 3, Limiter.SHARED),
            # 8 KiB + 1 KiB: 18 in 164 KiB
            (64, 32, 8 * KIB, 18, Limiter.SHARED),
        ],
    )
    def test_closed_form(self, block, registers, static_bytes, ctas, limiter):
        found = fit(block, registers, static_bytes)
        assert (found.ctas_per_sm, found.limiter) == (ctas, limiter)
        assert found.warps_per_sm == ctas * -(-block // 32)
        assert found.fraction == found.warps_per_sm / 64

    def test_an_estimate_of_registers_refuses_nothing(self):
        assert fit(1024, 255).ctas_per_sm == 0
        assert fit(1024, 255, registers_estimated=True).ctas_per_sm == 1
        assert fit(256, 40, registers_estimated=True).ctas_per_sm == 6

    def test_partial_warps_take_whole_ones(self):
        assert fit(33, 32).ctas_per_sm == 32
        assert fit(65, 32).ctas_per_sm == 64 // 3

    def test_largest_shared_block_fits_once(self):
        assert fit(128, 32, dynamic_bytes=163 * KIB).ctas_per_sm == 1
        assert fit(128, 32, dynamic_bytes=163 * KIB + 1).ctas_per_sm == 0

    def test_carveout_is_the_smallest_that_costs_nothing(self):
        assert fit(256, 32).carveout_bytes == 8 * KIB  # eight times the reserve
        assert fit(256, 32, static_bytes=3 * KIB).carveout_bytes == 32 * KIB
        assert fit(1024, 32, static_bytes=40 * KIB).carveout_bytes == 100 * KIB

    def test_given_carveout_is_obeyed(self):
        config = LaunchConfig(grid=Dim3(1), block=Dim3(128))
        resources = KernelResources(registers_per_thread=32, static_shared_bytes=15 * KIB)
        found = occupancy(config, resources, GA100_SM, carveout_bytes=32 * KIB)
        assert (found.ctas_per_sm, found.limiter) == (2, Limiter.SHARED)

    @pytest.mark.parametrize(
        ("config", "limiter"),
        [
            ({"block": 1024, "registers": 65}, Limiter.REGISTERS),
            ({"block": 512, "registers": 32, "max_threads_per_block": 256}, Limiter.BLOCK),
            ({"block": 32, "registers": 256}, Limiter.REGISTERS),
            ({"block": 32, "registers": 32, "barrier_count": 17}, Limiter.BARRIERS),
        ],
    )
    def test_what_does_not_fit(self, config, limiter):
        found = fit(**config)
        assert (found.ctas_per_sm, found.limiter) == (0, limiter)

    @given(
        block=st.integers(1, 1024),
        registers=st.integers(1, 255),
        shared=st.integers(0, 163 * KIB),
    )
    def test_resident_ctas_never_overdraw_the_sm(self, block, registers, shared):
        found = fit(block, registers, dynamic_bytes=shared)
        per_warp = -(-registers * 32 // 256) * 256
        assert found.warps_per_sm <= 64
        assert found.ctas_per_sm <= 32
        assert found.warps_per_sm * per_warp <= 65536
        assert found.ctas_per_sm * (shared + KIB) <= found.carveout_bytes or not found.ctas_per_sm
        assert found.ctas_per_sm == min(found.limits.values())

    @given(
        block=st.integers(1, 1024),
        registers=st.integers(1, 254),
        shared=st.integers(0, 162 * KIB),
    )
    def test_needing_more_never_raises_occupancy(self, block, registers, shared):
        here = fit(block, registers, dynamic_bytes=shared).ctas_per_sm
        assert fit(block, registers + 1, dynamic_bytes=shared).ctas_per_sm <= here
        assert fit(block, registers, dynamic_bytes=shared + KIB).ctas_per_sm <= here
