"""Experts: who is loaded how, what is read, limits, refusals."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.operators import moe
from va100.perf.operators.chips import DEFAULT, find_chip
from va100.perf.operators.formats import find_format

A100 = find_chip(DEFAULT)


class TestRouting:
    @given(
        st.integers(1, 4096),
        st.integers(1, 8),
        st.sampled_from([8, 64, 256]),
        st.sampled_from([0.0, 1.01, 1.2]),
    )
    def test_one_gpu_gets_every_row(self, tokens, topk, experts, skew):
        loads = moe.busiest(tokens, topk, experts, 1, skew)
        assert sum(loads) == pytest.approx(tokens * topk, rel=0.1)
        assert len(loads) <= experts

    @given(st.integers(16, 4096), st.sampled_from([2, 8, 32]))
    def test_the_busiest_has_at_least_its_share(self, tokens, ep):
        even = sum(moe.busiest(tokens, 8, 256, ep, 0.0))
        skewed = sum(moe.busiest(tokens, 8, 256, ep, 1.2))
        assert even == pytest.approx(tokens * 8 / ep)
        assert skewed >= 0.95 * even

    def test_few_tokens_reach_few_experts(self):
        assert len(moe.busiest(1, 2, 8, 1, 0.0)) == 2

    def test_the_order_has_no_pattern_and_no_repeats(self):
        order = sorted(range(512), key=moe._mixed)
        assert sorted(order) == list(range(512))
        assert len({b - a for a, b in pairwise(order)}) > 300


class TestEstimate:
    @given(st.integers(1, 8192), st.sampled_from(["vllm", "sglang", "trtllm"]))
    def test_never_faster_than_the_chip(self, tokens, library):
        found = moe.estimate(tokens, 2048, 768, 8, 128, library=library)
        assert found.time_s > found.flop_count / A100.flop_per_s(find_format("bf16"))
        assert found.time_s > found.weight_bytes / A100.dram_bytes_per_s
        assert found.padding_ratio >= 0.99

    def test_one_token_reads_only_its_experts(self):
        found = moe.estimate(1, 4096, 14336, 2, 8)
        assert found.active_experts == 2
        assert found.weight_bytes == 2 * 3 * 4096 * 14336 * 2
        assert found.bound == "DRAM bandwidth"

    def test_packed_weights_have_their_kernels(self):
        packed = moe.estimate(64, 4096, 14336, 2, 8, dtype="w4a16")
        assert packed.weight_bytes == moe.estimate(64, 4096, 14336, 2, 8).weight_bytes / 4
        assert packed == moe.estimate(64, 4096, 14336, 2, 8, dtype="w4a16", library="marlin")

    def test_splitting_experts_spares_time(self):
        times = [moe.estimate(512, 4096, 2688, 22, 512, ep=ep).time_s for ep in (1, 4, 16)]
        assert times == sorted(times, reverse=True)

    @pytest.mark.parametrize(
        ("arguments", "options", "named"),
        [
            ((8, 64, 64, 9, 8), {}, "topk 9"),
            ((8, 64, 64, 2, 8), {"ep": 3}, "not whole"),
            ((8, 64, 64, 2, 8), {"tp": 3}, "not whole"),
            ((8, 64, 64, 2, 8), {"library": "none"}, "library 'none'"),
            ((0, 64, 64, 2, 8), {}, "tokens must be"),
        ],
    )
    def test_refusals(self, arguments, options, named):
        with pytest.raises(ValueError, match=named):
            moe.estimate(*arguments, **options)
