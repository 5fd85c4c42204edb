"""Numbers with units as people write them."""

import pytest

from va100.spec.claims.quantity import quantities, unit_in
from va100.spec.figures import Dimension


def read(text):
    return [(q.value, q.dimension) for q in quantities(text)]


class TestQuantities:
    @pytest.mark.parametrize(
        ("text", "value", "dimension"),
        [
            ("9.7 TFLOPS", 9.7e12, Dimension.RATE),
            ("156TF", 156e12, Dimension.RATE),
            ("1,248 TOPS", 1248e12, Dimension.RATE),
            ("5 petaFLOPS", 5e15, Dimension.RATE),
            ("2,039 GB/s", 2039e9, Dimension.BANDWIDTH),
            ("2TB/s", 2e12, Dimension.BANDWIDTH),
            ("600 GBps", 600e9, Dimension.BANDWIDTH),
            ("200 Gb/s", 25e9, Dimension.BANDWIDTH),
            ("200 Gbit/s", 25e9, Dimension.BANDWIDTH),
            ("80GB", 80 * 2**30, Dimension.SIZE),
            ("40 MiB", 40 * 2**20, Dimension.SIZE),
            ("400 W", 400, Dimension.POWER),
            ("6.5 kW", 6500, Dimension.POWER),
            ("1410 MHz", 1410e6, Dimension.CLOCK),
            ("5120-bit", 5120, Dimension.WIDTH),
            ("108 SMs", 108, Dimension.COUNT),
            ("7", 7, None),
        ],
    )
    def test_units(self, text, value, dimension):
        assert read(text) == [(pytest.approx(value), dimension)]

    @pytest.mark.parametrize("text", ["A100", "FP64", "HBM2e", "SXM4", "v1.2.x1", "none"])
    def test_digits_in_names_are_no_numbers(self, text):
        assert [q for q in quantities(text) if q.dimension] == []

    @pytest.mark.parametrize("text", ["156 / 312 TF", "156 or 312 TFLOPS", "156 (312 TFLOPS)"])
    def test_a_pair_shares_its_unit(self, text):
        assert read(text) == [(156e12, Dimension.RATE), (312e12, Dimension.RATE)]

    @pytest.mark.parametrize("text", ["624*", "624 TFLOPS*", "624 TFLOPS (with sparsity)", "624†"])
    def test_marks_of_sparsity(self, text):
        assert quantities(text)[0].marked

    def test_rounding_of_the_last_digit(self):
        assert quantities("1.6 TB/s")[0].half_step == pytest.approx(0.05e12)

    def test_numbers_beyond_floats(self):
        assert quantities("9" * 400 + " GB")[0].value == float("inf")


class TestUnitIn:
    def test_headings(self):
        assert unit_in("FP64 (TFLOPS)") == "TFLOPS"
        assert unit_in("Peak rates") == ""

    def test_a_models_size_is_no_unit_of_its_column(self):
        assert unit_in("A100-SXM4-80GB") == unit_in("A100 80 GB") == ""
