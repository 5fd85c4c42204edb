"""Attention: limits, phases, what grouping and splitting do, the backward pass, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.operators import attention
from va100.perf.operators.chips import DEFAULT, find_chip
from va100.perf.operators.formats import find_format

A100 = find_chip(DEFAULT)


class TestLimits:
    @given(
        st.integers(1, 64), st.integers(1, 8192), st.integers(0, 8192), st.sampled_from([1, 4, 8])
    )
    def test_never_faster_than_the_chip(self, batch, q_len, past, groups):
        found = attention.estimate(batch, q_len, q_len + past, 8, 8 // groups)
        assert found.time_s > found.flop_count / A100.flop_per_s(find_format("bf16"))
        if found.kv_bytes > 2 * A100.l2_bytes:
            assert found.time_s > found.kv_bytes / A100.dram_bytes_per_s

    @given(st.integers(1, 256), st.integers(2, 32768))
    def test_more_keys_never_take_less(self, batch, kv_len):
        shorter = attention.estimate(batch, 1, kv_len, 32, 8)
        longer = attention.estimate(batch, 1, 4 * kv_len, 32, 8)
        assert longer.time_s >= shorter.time_s


class TestPhases:
    def test_one_new_token_is_decode(self):
        found = attention.estimate(32, 1, 4096, 32, 8)
        assert (found.phase, found.bound) == ("decode", "DRAM bandwidth")

    def test_many_are_prefill(self):
        found = attention.estimate(1, 4096, 4096, 32, 8)
        assert (found.phase, found.bound) == ("prefill", "tensor pipe")

    def test_few_rows_of_a_long_cache_are_split(self):
        assert attention.estimate(1, 1, 65536, 32, 8).split_kv > 1
        assert attention.estimate(256, 1, 4096, 32, 8).split_kv == 1

    def test_causal_is_half_the_work(self):
        causal = attention.estimate(1, 8192, 8192, 16)
        full = attention.estimate(1, 8192, 8192, 16, causal=False)
        assert full.flop_count == pytest.approx(2 * causal.flop_count, rel=0.01)
        assert 1.7 < full.time_s / causal.time_s < 2.1

    def test_past_keys_are_seen_by_all_new_tokens(self):
        fresh = attention.estimate(1, 1024, 1024, 16)
        later = attention.estimate(1, 1024, 8192, 16)
        assert later.flop_count == pytest.approx(fresh.flop_count + 4 * 16 * 1024 * 7168 * 128)


class TestKeys:
    def test_shared_keys_are_read_once(self):
        plain = attention.estimate(64, 1, 8192, 32, 32)
        grouped = attention.estimate(64, 1, 8192, 32, 8)
        single = attention.estimate(64, 1, 8192, 32, 1)
        assert plain.kv_bytes == 4 * grouped.kv_bytes == 32 * single.kv_bytes
        assert plain.time_s > grouped.time_s > single.time_s

    def test_latent_keys_hold_their_values(self):
        latent = attention.estimate(64, 1, 8192, 128, 1, 576, value_dim=512)
        assert latent.kv_bytes == 64 * 8192 * 576 * 2

    def test_latent_decode_keeps_to_the_peak(self):
        """128 heads on one latent key: 240 operations a byte, more than the chip balances."""
        latent = attention.estimate(64, 1, 8192, 128, 1, 576, value_dim=512)
        assert latent.flop_per_s < 0.8 * A100.flop_per_s(find_format("bf16"))
        assert latent.bound != "DRAM bandwidth"

    def test_an_eight_bit_cache_is_half(self):
        full = attention.estimate(64, 1, 8192, 32, 8)
        half = attention.estimate(64, 1, 8192, 32, 8, kv_dtype="int8")
        assert half.kv_bytes == full.kv_bytes / 2
        assert half.time_s < full.time_s


class TestBackward:
    def test_takes_two_to_three_times_the_forward(self):
        forward = attention.estimate(1, 8192, 8192, 16, head_dim=128)
        backward = attention.estimate(1, 8192, 8192, 16, head_dim=128, backward=True)
        assert 2.0 < backward.time_s / forward.time_s < 2.6


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "options", "named"),
        [
            ((1, 1, 16, 32, 5), {}, "multiple of kv_heads"),
            ((1, 32, 16, 32, 8), {}, "more than kv_len"),
            ((0, 1, 16, 32, 8), {}, "batch must be"),
            ((1, 1, 16, 32, 8), {"library": "cudnn"}, "library 'cudnn'"),
            ((1, 1, 16, 32, 8), {"kv_dtype": "fp7"}, "fp7"),
            ((1, 1, 16, 32, 8), {"chip": "t4"}, "T4 does not multiply bf16"),
        ],
    )
    def test_by_name(self, arguments, options, named):
        with pytest.raises(ValueError, match=named):
            attention.estimate(*arguments, **options)
