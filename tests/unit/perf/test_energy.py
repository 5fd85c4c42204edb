"""Joules of counted work: their parts, the voltage curve, and the two burns they were fitted to."""

from __future__ import annotations

import csv
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.energy import (
    BYTE_J,
    CONSTANT_RATIO,
    FLOP_J,
    OTHER_OPERATION_J,
    Level,
    card_of,
    estimate_energy,
    operation_energy_j,
    power_w,
    voltage_squared,
)
from va100.spec.a100 import A100_PCIE_40GB, A100_SXM4_40GB, A100_SXM4_80GB
from va100.spec.model import MmaKind, Operation

CARD = card_of(A100_SXM4_80GB)


class TestEstimateEnergy:
    def test_no_work_is_idle_power(self):
        found = estimate_energy({}, {}, 2.0, CARD)
        assert found.energy_j == pytest.approx(2.0 * CARD.idle_w)
        assert found.power_w == pytest.approx(CARD.idle_w)

    def test_parts_add_up(self):
        found = estimate_energy({MmaKind.BF16: 1e12}, {Level.DRAM: 1e9, Level.L2: 4e9}, 0.01, CARD)
        assert found.energy_j == pytest.approx(found.static_j + found.operation_j + found.memory_j)
        assert found.operation_j == pytest.approx(1e12 * FLOP_J[MmaKind.BF16])
        assert found.memory_j == pytest.approx(1e9 * BYTE_J[Level.DRAM] + 4e9 * BYTE_J[Level.L2])

    def test_no_time_has_no_average(self):
        assert estimate_energy({}, {}, 0.0, CARD).power_w == CARD.idle_w

    def test_a_lower_clock_spares_operations_but_not_memory(self):
        work = ({MmaKind.BF16: 1e12}, {Level.DRAM: 1e9}, 0.01, CARD)
        fast, slow = estimate_energy(*work), estimate_energy(*work, clock_hz=1.2e9)
        assert slow.operation_j < fast.operation_j
        assert slow.memory_j == fast.memory_j

    def test_an_unlisted_class_costs_as_an_ordinary_operation(self):
        assert operation_energy_j({Operation.VOTE: 3.0}) == pytest.approx(3 * OTHER_OPERATION_J)

    @given(st.floats(1, 1e15), st.floats(1e-6, 1e3))
    def test_more_work_takes_more(self, count, duration_s):
        less = estimate_energy({MmaKind.FP16: count}, {}, duration_s, CARD)
        more = estimate_energy({MmaKind.FP16: 2 * count}, {}, duration_s, CARD)
        assert more.energy_j >= less.energy_j
        assert more.operation_j == pytest.approx(2 * less.operation_j)


class TestVoltage:
    def test_boost_is_one(self):
        assert voltage_squared(1.0) == pytest.approx(1.0)

    def test_flat_below_the_knee(self):
        assert voltage_squared(0.2) == voltage_squared(0.7)

    @given(st.floats(0.1, 1.0), st.floats(0.0, 0.1))
    def test_never_falls_with_the_clock(self, ratio, step):
        assert voltage_squared(min(ratio + step, 1.0)) >= voltage_squared(ratio)


def burn_rows(path, op):
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["op"] == op]


class TestBurns:
    def test_multiply_adds_at_ten_clocks(self, shared):
        rows = burn_rows(
            shared("data/measured/power_vs_clock_fp32_a100.csv.gz"), "synthetic_fp32_fma"
        )
        card = card_of(A100_PCIE_40GB)
        full = max(float(row["tflops"]) for row in rows) * 1e12
        dynamic_w = full * FLOP_J[Operation.FP32_FMA] * CONSTANT_RATIO
        assert len(rows) == 10
        for row in rows:
            found = power_w(dynamic_w, float(row["sm_clock_mhz"]) / 1410, card)
            assert found == pytest.approx(float(row["power_w"]), abs=0.1 * card.limit_w)

    def test_intensity_sweep(self, shared):
        rows = burn_rows(shared("data/measured/gpu_benches_micro.csv.gz"), "roofline_fp32")
        card = card_of(A100_SXM4_40GB)
        errors = []
        for row in rows:
            flop, moved = float(row["value"]) * 1e9, float(row["gbps"]) * 1e9
            found = estimate_energy(
                {Operation.FP32_FMA: flop * CONSTANT_RATIO},
                {Level.DRAM: moved, Level.L2: moved},
                1.0,
                card,
            )
            errors.append(abs(found.power_w - float(row["power_w"])))
        assert len(errors) > 300
        assert max(errors) < 0.1 * card.limit_w
