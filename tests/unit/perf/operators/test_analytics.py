"""Data-base operators: bandwidth, growth, what tables larger than L2 cost, refusals."""

from __future__ import annotations

import pytest

from va100.perf.operators import analytics
from va100.perf.operators.chips import DEFAULT, find_chip

A100 = find_chip(DEFAULT)


@pytest.mark.parametrize("op", analytics.OPERATORS)
def test_keeps_to_the_bandwidth(op):
    found = analytics.estimate(op, 1 << 28, other_rows=1 << 20)
    assert found.time_s > found.dram_bytes / A100.dram_bytes_per_s
    assert found.rows_per_s == pytest.approx((1 << 28) / found.time_s)


@pytest.mark.parametrize("op", analytics.OPERATORS)
def test_twice_the_rows_take_longer(op):
    once = analytics.estimate(op, 1 << 24, other_rows=1 << 20)
    assert analytics.estimate(op, 1 << 25, other_rows=1 << 20).time_s > once.time_s


def test_longer_keys_sort_slower():
    short = analytics.estimate("sort", 1 << 26, key_bytes=4)
    assert analytics.estimate("sort", 1 << 26, key_bytes=8).time_s > 1.8 * short.time_s


@pytest.mark.parametrize("op", ["join", "group_by"])
def test_a_table_beyond_l2_costs(op):
    small = analytics.estimate(op, 1 << 27, other_rows=1 << 16)
    large = analytics.estimate(op, 1 << 27, other_rows=1 << 25)
    assert large.time_s > 2 * small.time_s


@pytest.mark.parametrize(
    ("op", "options", "named"),
    [
        ("merge", {}, "op 'merge'"),
        ("sort", {"key_bytes": 0}, "key_bytes must be"),
        ("filter", {"kept_ratio": 1.5}, "kept_ratio"),
    ],
)
def test_refusals(op, options, named):
    with pytest.raises(ValueError, match=named):
        analytics.estimate(op, 8, **options)
