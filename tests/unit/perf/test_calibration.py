"""Factors that fit the model to one machine."""

from __future__ import annotations

import math

import pytest

from va100.perf.calibration import Calibration, calibrated, left_out_errors
from va100.spec.a100 import A100_SXM4_80GB


def memory(amount):
    return lambda at: amount / at.dram


def lanes(amount):
    return lambda at: amount / at.sm


class TestCalibrated:
    def test_a_machine_that_is_as_the_model_has_it_needs_none(self):
        assert calibrated([(memory(2.0), 2.0), (lanes(3.0), 3.0)]) == Calibration()

    def test_each_factor_is_found_by_what_it_bounds(self):
        launches = [(memory(n), n / 0.8) for n in (1.0, 2.0, 5.0)]
        launches += [(lanes(n), n / 1.1) for n in (1.0, 3.0)]
        found = calibrated(launches)
        assert found.dram == pytest.approx(0.8, rel=0.01)
        assert found.sm == pytest.approx(1.1, rel=0.01)
        assert (found.l2, found.launch) == (1.0, 1.0)

    def test_one_bad_measurement_does_not_pull_the_others(self):
        launches = [(memory(n), n) for n in (1.0, 2.0, 3.0, 4.0)] + [(memory(1.0), 3.0)]
        assert calibrated(launches).dram == pytest.approx(1.0, rel=0.02)

    def test_left_out_launches_are_predicted_from_the_others(self):
        errors = left_out_errors([(memory(n), n / 0.9) for n in (1.0, 2.0, 3.0)])
        assert all(abs(error) < 0.01 for error in errors)

    def test_applied_rates(self):
        chip = Calibration(dram=0.5, sm=0.9).applied(A100_SXM4_80GB)
        measured = A100_SXM4_80GB.measured
        assert chip.measured.dram_read_bytes_per_s == measured.dram_read_bytes_per_s / 2
        assert math.isclose(chip.boost_clock_hz, 0.9 * A100_SXM4_80GB.boost_clock_hz)
        assert Calibration().applied(A100_SXM4_80GB) == A100_SXM4_80GB
