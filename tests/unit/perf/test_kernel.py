"""The estimate of one launch: bounds, monotony, and never below any roofline."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.errors import OutOfResources
from va100.perf.kernel import Bound, estimate, launch_floor_s
from va100.perf.memory import Residency
from va100.spec.a100 import A100_SXM4_40GB, A100_SXM4_80GB, MODELS
from va100.spec.model import Operation
from va100.spec.rates import memory_bytes_per_s, peak_flop_per_s
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, Pipe

CHIP = A100_SXM4_80GB
RESOURCES = KernelResources(registers_per_thread=32)

PIPES = st.dictionaries(st.sampled_from(list(Pipe)), st.floats(0, 1e9), max_size=9)
COUNTERS = st.builds(
    Counters,
    warp_count=st.integers(1, 10**6),
    warp_instructions=PIPES,
    global_load_bytes=st.floats(1, 1e12),
    global_store_bytes=st.floats(0, 1e12),
    global_requests=st.floats(0, 1e9),
    global_sectors=st.floats(1, 1e10),
    footprint_bytes=st.floats(1, 8e10),
    shared_requests=st.floats(0, 1e9),
    shared_wavefronts=st.floats(0, 1e9),
    atomic_requests=st.floats(0, 1e9),
    barrier_instructions=st.floats(0, 1e8),
    branches=st.floats(0, 1e8),
)
CONFIGS = st.builds(
    LaunchConfig,
    grid=st.integers(1, 10**6).map(Dim3),
    block=st.integers(1, 1024).map(Dim3),
)


def saxpy(count: int) -> Counters:
    """``y = a x + y`` over floats, as nvcc compiles it."""
    warps = count // 32
    return Counters(
        cta_count=count // 256,
        warp_count=warps,
        warp_instructions={
            Pipe.ALU: 6 * warps,
            Pipe.FMA: 2 * warps,
            Pipe.LSU: 3 * warps,
            Pipe.CONTROL: 2 * warps,
        },
        global_load_bytes=8 * count,
        global_store_bytes=4 * count,
        global_requests=3 * warps,
        global_sectors=12 * warps,
        footprint_bytes=8 * count,
        branches=warps,
        sampled_fraction=1.0,
    )


def line(count: int, block: int = 256) -> LaunchConfig:
    return LaunchConfig(grid=Dim3(-(-count // block)), block=Dim3(block))


def time_s(counters, config=None, chip=CHIP, **kwargs):
    config = config or line(1 << 20)
    return estimate(counters, config, RESOURCES, chip, **kwargs).duration_s


class TestEstimate:
    def test_large_saxpy_waits_for_dram(self):
        count = 1 << 26
        found = estimate(saxpy(count), line(count), RESOURCES, CHIP)
        assert found.bound_by is Bound.DRAM
        assert found.occupancy.fraction == 1.0
        assert found.fraction(Bound.DRAM) > 0.9
        assert found.duration_s > 8 * count / memory_bytes_per_s(CHIP)

    def test_tiny_one_waits_for_the_launch(self):
        found = estimate(saxpy(256), line(256), RESOURCES, CHIP)
        assert found.bound_by is Bound.LAUNCH
        assert found.duration_s == pytest.approx(CHIP.measured.graph_node_s, rel=0.35)

    def test_tiny_kernel_out_of_l2_takes_what_one_was_measured_to(self):
        found = estimate(saxpy(256), line(256), RESOURCES, CHIP, residency=Residency.L2)
        assert found.duration_s == pytest.approx(CHIP.measured.graph_node_s, rel=0.02)

    def test_equal_parts_overlap_as_measured(self):
        count = 1 << 26
        counters = saxpy(count)
        dram = estimate(counters, line(count), RESOURCES, CHIP).parts[0].duration_s
        rate = CHIP.measured.fp32_flop_per_s
        mix = {Pipe.FMA: dram * rate / 64}
        found = estimate(
            dataclasses.replace(counters, warp_instructions=mix), line(count), RESOURCES, CHIP
        )
        # 84 % where nothing but these two is busy; here L1's accesses come on top.
        assert found.fraction(Bound.DRAM) == pytest.approx(0.8, abs=0.03)
        assert found.fraction(Bound.FMA) == pytest.approx(0.8, abs=0.03)

    def test_data_in_l2_is_faster(self):
        count = 1 << 20
        assert time_s(saxpy(count), line(count), residency=Residency.L2) < time_s(
            saxpy(count), line(count)
        )

    @pytest.mark.parametrize(
        ("pipe", "bound"),
        [
            (Pipe.FMA, Bound.FMA),
            (Pipe.FP64, Bound.FP64),
            (Pipe.XU, Bound.XU),
            (Pipe.TENSOR, Bound.TENSOR),
            (Pipe.LSU, Bound.LSU),
        ],
    )
    def test_busy_pipe_is_named(self, pipe, bound):
        warps = 108 * 64 * 20
        counters = Counters(warp_count=warps, warp_instructions={pipe: 10_000.0 * warps})
        config = LaunchConfig(grid=Dim3(108 * 8 * 20), block=Dim3(256))
        assert estimate(counters, config, RESOURCES, CHIP).bound_by is bound

    def test_full_chip_of_multiply_adds_reaches_the_measured_peak(self):
        warps = 108 * 64 * 20
        each = 100_000
        counters = Counters(warp_count=warps, warp_instructions={Pipe.FMA: float(each * warps)})
        config = LaunchConfig(grid=Dim3(108 * 8 * 20), block=Dim3(256))
        rate = 2.0 * 32 * each * warps / estimate(counters, config, RESOURCES, CHIP).duration_s
        assert rate == pytest.approx(CHIP.measured.fp32_flop_per_s, rel=0.01)
        assert rate < peak_flop_per_s(CHIP, Operation.FP32_FMA)

    def test_single_warp_waits_for_latency(self):
        counters = Counters(
            warp_count=1,
            warp_instructions={Pipe.LSU: 1000.0},
            global_load_bytes=128_000.0,
            global_requests=1000.0,
            global_sectors=4000.0,
            footprint_bytes=128_000.0,
            branches=1000.0,
        )
        config = LaunchConfig(grid=Dim3(1), block=Dim3(32))
        found = estimate(counters, config, RESOURCES, CHIP)
        assert found.bound_by is Bound.LATENCY
        chase_s = 1000 * CHIP.measured.dram_latency_cycles / CHIP.boost_clock_hz
        assert found.duration_s == pytest.approx(chase_s, rel=0.02)

    def test_bank_conflicts_cost(self):
        warps = 108 * 64 * 20
        free = Counters(
            warp_count=warps, shared_requests=1e3 * warps, shared_wavefronts=1e3 * warps
        )
        worst = dataclasses.replace(free, shared_wavefronts=32e3 * warps)
        config = LaunchConfig(grid=Dim3(108 * 8 * 20), block=Dim3(256))
        ratio = time_s(worst, config) / time_s(free, config)
        assert 20 < ratio < 32  # a request has a price of its own besides its turns
        assert estimate(worst, config, RESOURCES, CHIP).bound_by is Bound.SHARED

    def test_faster_memory_is_faster(self):
        count = 1 << 26
        assert time_s(saxpy(count), line(count)) < time_s(
            saxpy(count), line(count), chip=A100_SXM4_40GB
        )

    def test_what_was_not_counted_is_said(self):
        bare = Counters(warp_count=10, global_load_bytes=1280.0, shared_requests=5.0)
        assert [
            note.partition(" were not counted")[0]
            for note in estimate(bare, line(320), RESOURCES, CHIP).assumed
        ] == ["sectors", "bank conflicts", "footprints"]
        assert estimate(saxpy(256), line(256), RESOURCES, CHIP).assumed == ()
        reused = dataclasses.replace(saxpy(256), footprint_bytes=4.0)
        (note,) = estimate(reused, line(256), RESOURCES, CHIP).assumed
        assert note.startswith("reuse taken as perfect")

    @pytest.mark.parametrize(("registers", "told"), [(32, False), (80, True)])
    def test_an_estimate_of_registers_is_said_where_it_limits(self, registers, told):
        needs = KernelResources(registers_per_thread=registers, registers_estimated=True)
        assumed = estimate(saxpy(256), line(256), needs, CHIP).assumed
        assert any("registers" in note for note in assumed) is told

    def test_no_fit_is_refused_by_name(self):
        greedy = KernelResources(registers_per_thread=65)
        config = LaunchConfig(grid=Dim3(1), block=Dim3(1024))
        with pytest.raises(OutOfResources) as caught:
            estimate(Counters(), config, greedy, CHIP, kernel="greedy")
        assert caught.value.resource == "registers a CTA"
        assert caught.value.required > caught.value.limit == 65536

    @pytest.mark.parametrize("chip", MODELS, ids=lambda chip: chip.name)
    def test_nothing_counted_takes_the_floor(self, chip):
        found = estimate(Counters(), LaunchConfig(grid=Dim3(), block=Dim3()), RESOURCES, chip)
        assert found.duration_s == launch_floor_s(chip)
        assert 0 < found.duration_s < chip.measured.graph_node_s
        assert found.bound_by is Bound.LAUNCH


class TestProperties:
    @given(COUNTERS, CONFIGS)
    def test_never_below_a_roofline(self, counters, config):
        found = estimate(counters, config, RESOURCES, CHIP)
        fma = counters.warp_instructions.get(Pipe.FMA, 0.0)
        assert found.duration_s >= 64.0 * fma / peak_flop_per_s(CHIP, Operation.FP32_FMA)
        dram_bytes = min(counters.footprint_bytes, 32 * counters.global_sectors)
        assert found.duration_s >= dram_bytes / memory_bytes_per_s(CHIP)
        assert all(found.duration_s >= part.duration_s for part in found.parts)
        assert all(0 <= found.fraction(bound) <= 1 for bound in Bound)

    @given(
        COUNTERS,
        CONFIGS,
        st.sampled_from(
            [
                "global_requests",
                "global_sectors",
                "footprint_bytes",
                "shared_requests",
                "shared_wavefronts",
                "atomic_requests",
                "barrier_instructions",
                "branches",
            ]
        ),
        st.floats(1, 100),
    )
    def test_more_work_is_never_faster(self, counters, config, name, factor):
        more = dataclasses.replace(counters, **{name: getattr(counters, name) * factor})
        assert time_s(more, config) >= time_s(counters, config) * (1 - 1e-12)

    @given(COUNTERS, CONFIGS, st.sampled_from(list(Pipe)), st.floats(1, 1e9))
    def test_more_instructions_are_never_faster(self, counters, config, pipe, extra):
        mix = dict(counters.warp_instructions)
        mix[pipe] = mix.get(pipe, 0.0) + extra
        more = dataclasses.replace(counters, warp_instructions=mix)
        assert time_s(more, config) >= time_s(counters, config)

    @given(COUNTERS, CONFIGS, st.integers(1, 256))
    def test_more_sms_are_never_slower(self, counters, config, sm_count):
        here = dataclasses.replace(CHIP, sm_count=sm_count)
        there = dataclasses.replace(CHIP, sm_count=sm_count + 1)
        # peak and measured multiply-add rates move together, so hold their ratio
        there_measured = dataclasses.replace(
            CHIP.measured,
            fp32_flop_per_s=CHIP.measured.fp32_flop_per_s * (sm_count + 1) / sm_count,
        )
        there = dataclasses.replace(there, measured=there_measured)
        assert time_s(counters, config, there) <= time_s(counters, config, here) * (1 + 1e-12)

    @given(COUNTERS, CONFIGS)
    def test_same_counts_same_answer(self, counters, config):
        assert estimate(counters, config, RESOURCES, CHIP) == estimate(
            counters, config, RESOURCES, CHIP
        )
