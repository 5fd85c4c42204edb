"""The rows of the table: complete, sourced, printed in the usual unit."""

import pytest

from va100.spec import a100, others
from va100.spec.figures import (
    BY_KEY,
    FIGURES,
    dense_twin,
    figure_sources,
    figures,
    sparse_twin,
    value_text,
)
from va100.spec.names import MODELS

SXM = a100.A100_SXM4_80GB


class TestFigures:
    @pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
    def test_every_row_is_answered(self, model):
        assert list(figures(model)) == [row.key for row in FIGURES]

    @pytest.mark.parametrize("chip", a100.MODELS, ids=lambda chip: chip.name)
    def test_of_an_a100_nothing_is_unknown(self, chip):
        assert [key for key, value in figures(chip).items() if value is None] == []

    @pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
    def test_whatever_is_shown_has_a_source(self, model):
        table = figures(model)
        for row in FIGURES:
            assert (table[row.key] is None) or list(figure_sources(model, row)), row.key

    def test_sparse_rates_of_gpus_without_sparsity(self):
        assert figures(others.V100_SXM2_32GB)["fp16_tensor_sparse_flop_per_s"] == 0
        assert figures(others.H100_SXM_80GB)["fp16_tensor_sparse_flop_per_s"] == 1978e12

    def test_boards_take_sxm_only(self):
        assert figures(SXM)["board_memory_bytes"] == 640 << 30
        assert figures(a100.A100_PCIE_80GB)["board_memory_bytes"] == 0


class TestTwins:
    def test_pairs(self):
        assert sparse_twin("tf32_tensor_flop_per_s") == "tf32_tensor_sparse_flop_per_s"
        assert dense_twin("tf32_tensor_sparse_flop_per_s") == "tf32_tensor_flop_per_s"
        assert sparse_twin("fp64_tensor_flop_per_s") is None
        assert dense_twin("fp32_flop_per_s") is None


class TestValueText:
    @pytest.mark.parametrize(
        ("key", "value", "text"),
        [
            ("fp64_flop_per_s", 9.746e12, "9.75 TFLOPS"),
            ("int8_tensor_flop_per_s", 623.7e12, "624 TOPS"),
            ("memory_bytes_per_s", 2039.04e9, "2,039 GB/s"),
            ("l2_bytes", 40 << 20, "40 MiB"),
            ("shared_bytes", 164 << 10, "164 KiB"),
            ("memory_bytes", 80 << 30, "80 GiB"),
            ("boost_clock_hz", 1410e6, "1,410 MHz"),
            ("sm_count", 108, "108"),
            ("fp8_tensor_flop_per_s", 0.0, "-"),
            ("sm_count", None, "?"),
            ("memory_kind", "HBM2e", "HBM2e"),
        ],
    )
    def test_usual_units(self, key, value, text):
        assert value_text(BY_KEY[key], value) == text
