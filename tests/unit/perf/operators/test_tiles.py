"""Tiled products: who does which, the choice of tiles, splits and vectors, odd sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.operators.chips import find_chip
from va100.perf.operators.formats import FORMATS, find_format
from va100.perf.operators.tile_fits import (
    INT8,
    ORDINARY,
    ORDINARY_BATCHED,
    PACKED4,
    PACKED8,
    TENSOR,
)
from va100.perf.operators.tiles import (
    INNER_WORD_RATIO,
    ODD_RATIO,
    OUTER_WORD_RATIO,
    Product,
    aligned_ratio,
    fit_of,
    quickest,
)

CHIP = find_chip("a100-sxm4-80gb")
FITS = (TENSOR, INT8, PACKED8, PACKED4, ORDINARY, ORDINARY_BATCHED)


def product(m, n, k, dtype="fp16", batch=1):
    return Product(m=m, n=n, k=k, batch=batch, number=find_format(dtype))


@pytest.mark.parametrize(
    ("dtype", "batch", "fit"),
    [
        ("fp16", 1, TENSOR),
        ("tf32", 8, TENSOR),
        ("int8", 1, INT8),
        ("int4", 1, INT8),
        ("w8a16", 1, PACKED8),
        ("w4a16", 1, PACKED4),
        ("fp32", 1, ORDINARY),
        ("fp32", 2, ORDINARY_BATCHED),
    ],
)
def test_kinds_of_kernel(dtype, batch, fit):
    assert fit_of(product(64, 64, 64, dtype, batch)) is fit


@pytest.mark.parametrize("fit", FITS)
def test_constants_are_physical(fit):
    assert 0 < fit.peak_ratio <= 1
    assert 0 < fit.shallow_ratio <= 1
    assert 0 <= fit.hidden_ratio <= 1
    assert fit.dram_bytes_per_s < CHIP.dram_bytes_per_s
    assert fit.vector_bytes_per_s < CHIP.dram_bytes_per_s
    assert fit.exponent >= 1
    assert 1 in fit.splits


class TestChoice:
    @given(
        st.integers(1, 1 << 14),
        st.integers(1, 1 << 14),
        st.integers(1, 1 << 14),
        st.sampled_from(sorted(set(FORMATS) - {"fp8"})),
    )
    def test_covers_the_result(self, m, n, k, dtype):
        found = quickest(product(m, n, k, dtype), CHIP)
        tiles = -(-m // found.rows) * -(-n // found.columns)
        assert found.cta_count == tiles * found.split
        assert found.total_s > 0

    def test_large_products_take_large_tiles(self):
        found = quickest(product(8192, 8192, 8192), CHIP)
        assert found.rows * found.columns == 256 * 128
        assert found.split == 1

    def test_a_deep_narrow_product_is_split(self):
        assert quickest(product(64, 64, 65536), CHIP).split > 8

    def test_few_rows_of_packed_weights_take_their_kernel(self):
        assert quickest(product(4, 4096, 4096, "w4a16"), CHIP).columns == 1
        assert quickest(product(5, 4096, 4096, "w4a16"), CHIP).columns > 1


class TestAlignment:
    @pytest.mark.parametrize(
        ("n", "k", "dtype", "ratio"),
        [
            (4096, 4096, "fp16", 1.0),
            (4096, 4090, "fp16", INNER_WORD_RATIO),
            (4090, 4096, "fp16", OUTER_WORD_RATIO),
            (4096, 4095, "fp16", ODD_RATIO),
            (4095, 4096, "fp16", ODD_RATIO),
            (4096, 4095, "tf32", INNER_WORD_RATIO),
            (4095, 4095, "fp32", 1.0),
            (4095, 4095, "fp64", 1.0),
            (4096, 4095, "int4", ODD_RATIO),
        ],
    )
    def test_rows_that_are_no_multiple_of_sixteen_bytes(self, n, k, dtype, ratio):
        assert aligned_ratio(product(4096, n, k, dtype)) == ratio
