"""Joules of launches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from va100.perf.energy import CONSTANT_RATIO
from va100.perf.kernel import estimate
from va100.perf.kernel_energy import kernel_energy
from va100.perf.memory import traffic
from va100.spec.a100 import A100_PCIE_40GB, A100_SXM4_80GB
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, Pipe

RESOURCES = KernelResources(registers_per_thread=32)
CONFIG = LaunchConfig(grid=Dim3(108 * 8), block=Dim3(256))
BURN = Counters(
    cta_count=108 * 8, warp_count=108 * 64, warp_instructions={Pipe.FMA: 1e9}
)  # fmt: skip


def energy(counters, chip=A100_SXM4_80GB, duration_s=1.0, clock_hz=1410e6):
    return kernel_energy(counters, traffic(counters, chip), duration_s, chip, clock_hz)


class TestKernelEnergy:
    def test_nothing_takes_what_an_idle_card_takes(self):
        found = energy(Counters())
        assert found.energy_j == found.static_j == A100_SXM4_80GB.measured.idle_w

    def test_operands_that_come_from_memory_cost_more(self):
        fed = replace(BURN, global_load_bytes=1e12, footprint_bytes=1.0)
        assert energy(BURN).operation_j == pytest.approx(CONSTANT_RATIO * energy(fed).operation_j)

    def test_tensor_cores_count_by_shape_kind_and_sparsity(self):
        def of(opcode):
            loaded = {"global_load_bytes": 1e15, "footprint_bytes": 1.0}
            return energy(Counters(opcode_instructions={opcode: 1e9}, **loaded)).operation_j

        dense = of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
        assert of("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32") == pytest.approx(dense / 2)
        sparse = of("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
        assert 0.5 * dense < sparse < dense
        assert of("add.f32") == 0.0


class TestLimit:
    LONG = replace(
        BURN,
        warp_instructions={Pipe.TENSOR: 1e9},
        opcode_instructions={"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 1e9},
    )

    def test_the_clock_falls_until_the_card_keeps_its_limit(self):
        found = estimate(self.LONG, CONFIG, RESOURCES, A100_PCIE_40GB)
        boost = A100_PCIE_40GB.boost_clock_hz
        assert found.energy.clock_hz < boost
        assert 0.95 * 250 < found.energy.power_w <= 250
        step = A100_PCIE_40GB.clock_step_hz
        assert (found.energy.clock_hz - A100_PCIE_40GB.idle_clock_hz) % step == 0

    def test_it_never_rises_above_what_was_asked_for(self):
        found = estimate(self.LONG, CONFIG, RESOURCES, A100_PCIE_40GB, clock_hz=600e6)
        assert found.energy.clock_hz == 600e6

    def test_a_light_launch_runs_at_boost(self):
        found = estimate(Counters(), CONFIG, RESOURCES, A100_PCIE_40GB)
        assert found.energy.clock_hz == A100_PCIE_40GB.boost_clock_hz
