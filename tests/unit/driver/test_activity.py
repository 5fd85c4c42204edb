"""What launches do to a card, as the driver is told: shares of units, power, bytes."""

from __future__ import annotations

import pytest

from va100.driver.activity import UNITS, activity_of, unlimited
from va100.perf.kernel import Bound, estimate
from va100.perf.memory import traffic
from va100.spec.a100 import A100_SXM4_40GB, A100_SXM4_80GB
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, Pipe

CHIP = A100_SXM4_80GB
CONFIG = LaunchConfig(grid=Dim3(108 * 64), block=Dim3(256))
RESOURCES = KernelResources(registers_per_thread=32)
WARPS = CONFIG.grid.size * 8


def told(counters, chip=CHIP):
    found = estimate(counters, CONFIG, RESOURCES, chip)
    activity = activity_of(found, traffic(counters, chip), chip)
    return activity, dict(zip(UNITS, (one / 1000 for one in activity.permille), strict=True))


def multiply_adds(each):
    count = WARPS * each
    return Counters(
        cta_count=CONFIG.grid.size, warp_count=WARPS, warp_instructions={Pipe.FMA: count}
    )


def copies(lines):
    """A kernel that loads and stores whole lines."""
    requests = WARPS * lines
    return Counters(
        cta_count=CONFIG.grid.size,
        warp_count=WARPS,
        warp_instructions={Pipe.LSU: 2 * requests},
        global_load_bytes=128 * requests,
        global_store_bytes=128 * requests,
        global_requests=2 * requests,
        global_sectors=8 * requests,
        global_store_requests=requests,
        global_store_sectors=4 * requests,
        footprint_bytes=256 * requests,
    )


def test_arithmetic_is_its_pipe_s_and_no_other_s():
    _, shares = told(multiply_adds(4000))
    assert shares[Bound.FMA] > 0.9
    assert sum(shares.values()) == pytest.approx(shares[Bound.FMA], abs=0.01)


def test_copies_are_the_memory_s_below_its_peak():
    activity, shares = told(copies(400))
    reached = CHIP.measured.dram_read_bytes_per_s / 2039e9
    assert 0.6 < shares[Bound.DRAM] <= reached + 0.01
    assert activity.load_bytes == pytest.approx(128 * WARPS * 400, rel=0.01)
    assert activity.store_bytes == pytest.approx(activity.load_bytes, rel=0.01)


def test_more_work_draws_more_power_and_none_is_that_of_an_idle_card():
    few, many = told(multiply_adds(1))[0], told(multiply_adds(4000))[0]
    assert 0 <= few.power_mw < many.power_mw < 400_000


def test_the_card_s_limit_is_the_node_s_to_heed():
    held = estimate(copies(400), CONFIG, RESOURCES, A100_SXM4_40GB)
    free = estimate(copies(400), CONFIG, RESOURCES, unlimited(A100_SXM4_40GB))
    assert free.energy.clock_hz == A100_SXM4_40GB.boost_clock_hz
    assert free.energy.power_w >= held.energy.power_w
