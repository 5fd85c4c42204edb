"""Products: physical limits, growth with size, formats, alignment, sparsity, power, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.operators import gemm
from va100.perf.operators.chips import DEFAULT, Basis, find_chip
from va100.perf.operators.formats import FORMATS, find_format
from va100.spec.names import MODELS

SIZE = st.integers(1, 1 << 16)
ON_A100 = sorted(set(FORMATS) - {"fp8"})


def least_s(m, n, k, dtype, chip=DEFAULT, sparse=False):
    """What peak and datasheet bandwidth alone would take, with weights that L2 cannot hold."""
    target, number = find_chip(chip), find_format(dtype)
    math_s = 2.0 * m * n * k / target.flop_per_s(number, sparse=sparse)
    weights = n * k * number.weight_bytes * (0.5 if sparse else 1.0)
    return max(math_s, weights / target.dram_bytes_per_s if weights > target.l2_bytes else 0.0)


class TestLimits:
    @given(SIZE, SIZE, SIZE, st.sampled_from(ON_A100))
    def test_never_faster_than_the_chip(self, m, n, k, dtype):
        found = gemm.estimate(m, n, k, dtype=dtype)
        assert found.time_s > least_s(m, n, k, dtype)
        assert found.time_s >= find_chip(DEFAULT).launch_s

    @given(SIZE, SIZE, SIZE, st.sampled_from(["fp16", "bf16", "int8", "tf32"]))
    def test_sparse_is_never_faster_than_sparse_peak(self, m, n, k, dtype):
        found = gemm.estimate(m, n, k, dtype=dtype, sparse=True)
        assert found.time_s > least_s(m, n, k, dtype, sparse=True)

    @given(SIZE, SIZE, SIZE)
    def test_power_stays_within_the_limit(self, m, n, k):
        for chip in ("a100-pcie-40gb", DEFAULT):
            found = gemm.estimate(m, n, k, chip=chip)
            limit = find_chip(chip).power_limit_w
            assert find_chip(chip).idle_w < found.power_w <= limit * 1.001
            assert found.energy_j == pytest.approx(found.power_w * found.time_s)

    @given(SIZE, SIZE, SIZE)
    def test_the_band_holds_the_time(self, m, n, k):
        found = gemm.estimate(m, n, k)
        low, high = found.band
        assert 0 < low < found.time_s < high


class TestGrowth:
    @pytest.mark.parametrize("dtype", ON_A100)
    def test_eight_times_the_work_takes_longer(self, dtype):
        for m, n, k in ((64, 4096, 4096), (1024, 1024, 1024), (4096, 8192, 2048), (1, 8192, 8192)):
            once = gemm.estimate(m, n, k, dtype=dtype)
            assert gemm.estimate(m, 2 * n, 4 * k, dtype=dtype).time_s > once.time_s

    @given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 4096))
    def test_four_of_a_batch_take_at_least_as_long_as_one(self, m, n, k):
        """But for choices of tiles that are not the best, as a library's."""
        one = gemm.estimate(m, n, k, batch=2)
        assert gemm.estimate(m, n, k, batch=8).time_s >= 0.9 * one.time_s

    def test_one_row_more_than_a_wave_shows(self):
        full = gemm.estimate(256 * 9, 128 * 12, 4096)
        over = gemm.estimate(256 * 9 + 1, 128 * 12, 4096)
        assert over.cta_count > full.cta_count
        assert over.time_s > full.time_s


class TestFormats:
    @pytest.mark.parametrize("chip", [model.name for model in MODELS])
    def test_every_chip_multiplies_half_precision(self, chip):
        found = gemm.estimate(4096, 4096, 4096, dtype="fp16", chip=chip)
        assert found.chip == chip
        assert found.time_s > least_s(4096, 4096, 4096, "fp16", chip)
        expected = Basis.CALIBRATED if chip.startswith("A100") else Basis.VENDOR_PEAK
        assert found.basis is expected

    def test_narrower_formats_are_faster(self):
        times = [
            gemm.estimate(8192, 8192, 8192, dtype=d).time_s
            for d in ("int8", "fp16", "tf32", "fp32")
        ]
        assert times == sorted(times)

    def test_packed_weights_help_few_rows_and_not_many(self):
        few = [gemm.estimate(1, 16384, 16384, dtype=d).time_s for d in ("w4a16", "w8a16", "fp16")]
        assert few == sorted(few)
        many = [gemm.estimate(8192, 8192, 8192, dtype=d).time_s for d in ("fp16", "w4a16")]
        assert many == sorted(many)

    def test_other_spellings(self):
        assert gemm.estimate(64, 64, 64, dtype="bfloat16") == gemm.estimate(64, 64, 64)

    def test_a_slice_takes_longer_than_its_chip(self):
        whole = gemm.estimate(4096, 4096, 4096)
        part = gemm.estimate(4096, 4096, 4096, chip=f"{DEFAULT}:1g.10gb")
        assert 6.5 < part.time_s / whole.time_s < 9.0


class TestAlignment:
    @pytest.mark.parametrize(("n", "ratio"), [(14280, 1.0), (14282, 1.25), (14281, 2.8)])
    def test_odd_columns_cost(self, n, ratio):
        even = gemm.estimate(8192, 14272, 51200, dtype="fp16", chip="a100-sxm4-40gb")
        odd = gemm.estimate(8192, n, 51200, dtype="fp16", chip="a100-sxm4-40gb")
        assert odd.time_s / even.time_s >= 0.99 * ratio

    def test_an_odd_inner_size_costs_more_than_an_even_one(self):
        times = [gemm.estimate(8192, 14336, k, dtype="fp16").time_s for k in (51200, 51202, 51201)]
        assert times == sorted(times)

    def test_ordinary_pipes_do_not_care(self):
        even = gemm.estimate(2048, 2048, 2048, dtype="fp32")
        odd = gemm.estimate(2048, 2047, 2047, dtype="fp32")
        assert odd.time_s == pytest.approx(even.time_s, rel=0.05)


class TestSparsity:
    def test_a_large_product_gains_a_little(self):
        """cuSPARSELt 2022 and CUTLASS on one A100: 1.11 times, not twice."""
        dense = gemm.estimate(4096, 4096, 4096, dtype="fp16")
        sparse = gemm.estimate(4096, 4096, 4096, dtype="fp16", sparse=True)
        assert 1.0 < dense.time_s / sparse.time_s < 1.3

    @pytest.mark.parametrize("launch", ["graph", "eager"])
    def test_one_row_loses_and_says_why(self, launch):
        dense = gemm.estimate(1, 4096, 4096, dtype="fp16", launch=launch)
        sparse = gemm.estimate(1, 4096, 4096, dtype="fp16", sparse=True, launch=launch)
        assert sparse.time_s > dense.time_s
        assert any("padded from 1 to 32" in note for note in sparse.notes)

    def test_a_dense_vector_product_is_as_measured(self):
        found = gemm.estimate(1, 4096, 4096, dtype="fp16")
        assert found.time_s == pytest.approx(0.024e-3, rel=0.2)
        assert found.bound == "DRAM bandwidth"


class TestLaunch:
    def test_graphs_spare_time(self):
        times = [
            gemm.estimate(8, 64, 64, launch=how).time_s for how in ("graph", "stream", "eager")
        ]
        assert times == sorted(times)
        assert times[0] < times[1] < times[2]

    def test_a_tiny_product_is_bound_by_its_launch(self):
        assert gemm.estimate(8, 64, 64).bound in ("launch", "latency")


class TestPowerLimit:
    def test_a_card_of_less_power_is_slower_and_says_so(self):
        full = gemm.estimate(8192, 8192, 8192, chip="a100-sxm4-40gb")
        less = gemm.estimate(8192, 8192, 8192, chip="a100-pcie-40gb")
        assert less.clock_hz < full.clock_hz
        assert less.time_s > full.time_s
        assert any("power limit" in note for note in less.notes)

    def test_memory_bound_work_does_not_care(self):
        assert gemm.estimate(1, 16384, 16384, chip="a100-pcie-40gb").clock_hz == 1410e6


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "named"),
        [
            ({"dtype": "fp8"}, "fp8"),
            ({"dtype": "int3"}, "int3"),
            ({"chip": "t4", "dtype": "bf16"}, "T4 does not multiply bf16"),
            ({"chip": "v100-sxm2-32gb", "dtype": "tf32"}, "V100-SXM2-32GB does not multiply tf32"),
            ({"chip": "a100-80g"}, "say which"),
            ({"chip": "a101"}, "not known"),
            ({"chip": f"{DEFAULT}:9g.90gb"}, "no MIG profile"),
            ({"chip": "t4:1g.5gb"}, "MIG slices of T4"),
            ({"dtype": "fp64", "sparse": True}, "no 2:4 sparse product of fp64"),
            ({"launch": "later"}, "launch 'later'"),
        ],
    )
    def test_by_name(self, options, named):
        with pytest.raises(ValueError, match=named):
            gemm.estimate(64, 64, 64, **options)

    @pytest.mark.parametrize("sizes", [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
    def test_sizes_below_one(self, sizes):
        with pytest.raises(ValueError, match="must be 1 or more"):
            gemm.estimate(*sizes)


def test_the_same_twice():
    first = repr(gemm.estimate.__wrapped__(777, 1234, 4321))
    assert first == repr(gemm.estimate.__wrapped__(777, 1234, 4321))
