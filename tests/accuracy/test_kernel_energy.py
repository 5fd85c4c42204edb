"""Power of a launch beside a burn of multiply-adds, measured at locked clocks."""

from __future__ import annotations

import csv
import gzip

import pytest

from va100.perf.kernel import estimate
from va100.spec.a100 import A100_PCIE_40GB
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, Pipe

RESOURCES = KernelResources(registers_per_thread=32)
CONFIG = LaunchConfig(grid=Dim3(108 * 8), block=Dim3(256))


def test_a_burn_over_clocks_is_within_eight_percent(shared):
    """Multiply-adds of registers at locked clocks (power_vs_clock_fp32)."""
    path = shared("data/measured/power_vs_clock_fp32_a100.csv.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 5
    for row in rows:
        instructions = float(row["fma_total"]) / 32
        counters = Counters(
            cta_count=108 * 8,
            warp_count=108 * 64,
            warp_instructions={Pipe.FMA: instructions},
        )
        clock_hz = float(row["sm_clock_mhz"]) * 1e6
        found = estimate(counters, CONFIG, RESOURCES, A100_PCIE_40GB, clock_hz=clock_hz)
        assert found.duration_s == pytest.approx(float(row["measured_us"]) * 1e-6, rel=0.08)
        assert found.energy.power_w == pytest.approx(float(row["power_w"]), rel=0.08)
