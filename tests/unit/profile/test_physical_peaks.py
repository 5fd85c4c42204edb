"""No figure of a profile is above what the chip can do, whatever was counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.launches import CHIP
from va100.driver.detail import counters_entry
from va100.perf.band import band_s
from va100.perf.kernel import estimate
from va100.profile.html.roofline import point_of
from va100.profile.launch import Launch
from va100.profile.metrics import METRICS
from va100.profile.quantities import quantities
from va100.spec.rates import memory_bytes_per_s
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, Pipe

OPCODES = {
    "fma.rn.f32": Pipe.FMA,
    "add.f32": Pipe.FMA,
    "fma.rn.f64": Pipe.FP64,
    "fma.rn.f16x2": Pipe.FP16,
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": Pipe.TENSOR,
    "add.s32": Pipe.ALU,
    "ex2.approx.f32": Pipe.XU,
}
COUNT = st.integers(0, 200)
ROUNDING = 1e-9


@st.composite
def launches(draw):
    """Launches with a random mix of instructions and accesses, each warp alike."""
    config = LaunchConfig(
        grid=Dim3(draw(st.integers(1, 5000))), block=Dim3(32 * draw(st.integers(1, 32)))
    )
    warps = config.grid.size * config.warps_per_cta
    mix = {opcode: draw(COUNT) * warps for opcode in OPCODES}
    pipes: dict[Pipe, float] = {Pipe.LSU: 0.0}
    for opcode, count in mix.items():
        pipes[OPCODES[opcode]] = pipes.get(OPCODES[opcode], 0.0) + count
    loads, stores, shared = (draw(COUNT) * warps for _ in range(3))
    pipes[Pipe.LSU] += loads + stores + shared
    load_sectors, store_sectors = (
        loads * draw(st.integers(1, 32)),
        stores * draw(st.integers(1, 32)),
    )
    counters = Counters(
        cta_count=config.grid.size,
        warp_count=warps,
        warp_instructions=pipes,
        opcode_instructions=mix | {"ld.global.f32": loads, "st.global.f32": stores},
        opcode_threads={opcode: 32.0 * count for opcode, count in mix.items()},
        thread_instructions=32.0 * sum(pipes.values()),
        global_load_bytes=128.0 * loads,
        global_store_bytes=128.0 * stores,
        global_requests=loads + stores,
        global_sectors=load_sectors + store_sectors,
        global_store_requests=stores,
        global_store_sectors=store_sectors,
        footprint_bytes=draw(st.sampled_from([0.0, 4096.0, 1e6, 1e9])),
        shared_requests=shared,
        shared_wavefronts=shared * draw(st.integers(1, 32)),
        sampled_fraction=1.0,
    )
    priced = estimate(counters, config, KernelResources(registers_per_thread=32), CHIP)
    return Launch(
        kernel="k",
        grid=config.grid,
        block=config.block,
        time_s=priced.duration_s,
        time_s_band=band_s(priced.duration_s, priced.bound_by),
        energy_j=None,
        bound=priced.bound_by.value,
        occupancy=priced.occupancy.fraction,
        registers=32,
        shared_bytes=0,
        counters=counters_entry(counters),
        parts={part.bound.value: part.duration_s for part in priced.parts},
    )


@given(launches())
def test_shares_of_a_peak_are_at_most_all_of_it(launch):
    known = quantities(launch, CHIP)
    for name, metric in METRICS.items():
        value = metric.value(known)
        if "pct_of_peak" in name and value is not None:
            assert 0 <= value <= 100 * (1 + ROUNDING), name


@given(launches())
def test_points_are_under_their_roofs(launch):
    point = point_of(1, "k", quantities(launch, CHIP), CHIP)
    if point is None:
        return
    assert point.flop_per_s <= point.intensity * memory_bytes_per_s(CHIP) * (1 + ROUNDING)


@given(launches())
def test_dram_moves_no_more_than_its_pins_let_through(launch):
    rate = METRICS["dram__bytes.sum.per_second"].value(quantities(launch, CHIP))
    assert rate <= memory_bytes_per_s(CHIP) * (1 + ROUNDING)


@pytest.mark.parametrize(
    ("kind", "most"),
    [("flop.f", 19.5e12), ("flop.d", 9.7e12), ("flop.h", 78e12), ("flop.tensor", 312e12)],
)
@given(launch=launches())
def test_no_pipe_gives_more_than_the_datasheet_says(kind, most, launch):
    known = quantities(launch, CHIP)
    assert known[kind] / launch.time_s <= most * 1.01
