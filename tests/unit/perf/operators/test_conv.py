"""Convolutions: sizes of the result, algorithms, limits, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.operators import conv, gemm
from va100.perf.operators.chips import DEFAULT, find_chip
from va100.perf.operators.formats import find_format
from va100.spec.model import Operation

A100 = find_chip(DEFAULT)
WINOGRAD_GAIN = 4.0
"""Multiplications that four by four outputs of a filter of three spare."""


class TestSizes:
    @pytest.mark.parametrize(
        ("side", "options", "out"),
        [
            (224, {"ksize": 7, "stride": 2}, 112),
            (56, {"ksize": 3}, 56),
            (56, {"ksize": 1, "stride": 2}, 28),
            (5, {"ksize": 3, "pad": 0}, 3),
        ],
    )
    def test_output(self, side, options, out):
        assert conv.estimate(2, 64, 32, side, **options).output == (2, 32, out, out)

    def test_a_resnet_layer_counts_its_operations(self):
        found = conv.estimate(32, 64, 128, 28)
        assert found.flop_count == 2 * 32 * 28 * 28 * 64 * 128 * 9

    def test_images_may_be_oblong(self):
        assert conv.estimate(1, 8, 8, 32, 48).output == (1, 8, 32, 48)


class TestLimits:
    @given(st.integers(1, 64), st.integers(1, 512), st.integers(1, 512), st.integers(3, 64))
    def test_half_precision_keeps_to_the_peak(self, batch, cin, cout, side):
        found = conv.estimate(batch, cin, cout, side)
        assert found.algorithm == "implicit product"
        assert found.time_s > found.flop_count / A100.flop_per_s(find_format("fp16"))

    @given(st.integers(1, 64), st.integers(2, 512), st.integers(2, 512), st.integers(4, 64))
    def test_single_precision_keeps_to_what_winograd_leaves(self, batch, cin, cout, side):
        found = conv.estimate(batch, cin, cout, side, dtype="fp32")
        peak = A100.peak_flop_per_s[Operation.FP32_FMA]
        assert found.time_s > found.flop_count / peak / WINOGRAD_GAIN


class TestAlgorithms:
    def test_winograd_wins_on_many_channels(self):
        assert "Winograd" in conv.estimate(32, 512, 512, 28, dtype="fp32").algorithm

    def test_strides_need_the_product(self):
        found = conv.estimate(32, 512, 512, 28, stride=2, dtype="fp32")
        assert found.algorithm == "implicit product"

    def test_depthwise_is_a_stream(self):
        found = conv.estimate(64, 512, 512, 28, groups=512)
        assert (found.algorithm, found.bound) == ("by channel", "DRAM bandwidth")

    def test_one_by_one_is_near_a_product(self):
        found = conv.estimate(32, 1024, 1024, 28, ksize=1)
        product = gemm.estimate(32 * 28 * 28, 1024, 1024, dtype="fp16")
        assert 0.9 < found.time_s / product.time_s < 2.5

    def test_groups_spare_operations(self):
        whole = conv.estimate(32, 256, 256, 28)
        parts = conv.estimate(32, 256, 256, 28, groups=8)
        assert parts.flop_count == whole.flop_count / 8


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        ((1, 6, 8, 8), {"groups": 4}, "groups must divide"),
        ((1, 8, 8, 2), {"ksize": 5, "pad": 0}, "does not fit"),
        ((1, 0, 8, 8), {}, "cin must be"),
        ((1, 8, 8, 8), {"launch": "now"}, "launch 'now'"),
    ],
)
def test_refusals(arguments, options, named):
    with pytest.raises(ValueError, match=named):
        conv.estimate(*arguments, **options)


def resnet50_convolutions():
    """Filters of ResNet-50: channels in and out, side, size, stride."""
    yield 3, 64, 224, 7, 2
    side, before = 56, 64
    for count, inner, outer in ((3, 64, 256), (4, 128, 512), (6, 256, 1024), (3, 512, 2048)):
        for block in range(count):
            stride = 2 if block == 0 and inner > 64 else 1
            yield before, inner, side, 1, 1
            yield inner, inner, side, 3, stride
            yield inner, outer, side // stride, 1, 1
            if block == 0:
                yield before, outer, side, 1, stride
            side, before = side // stride, outer


@pytest.mark.parametrize(("batch", "images_per_s"), [(32, 13_333), (64, 14_141), (256, 15_440)])
def test_resnet50_is_as_a_fused_runtime_runs_it(batch, images_per_s):
    """AITemplate on an A100-SXM4-40GB; pooling and the classifier are the few percent left."""
    total_s = sum(
        conv.estimate(
            batch, cin, cout, side, ksize=ksize, stride=stride, chip="a100-sxm4-40gb"
        ).time_s
        for cin, cout, side, ksize, stride in resnet50_convolutions()
    )
    assert 0.85 < total_s * images_per_s / batch < 1.05
