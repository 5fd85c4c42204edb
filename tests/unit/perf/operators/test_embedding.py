"""Lookups: whole sectors, tables that fit L2, updates, refusals."""

from __future__ import annotations

import pytest

from va100.perf.operators import embedding
from va100.perf.operators.chips import DEFAULT, Basis, find_chip

A100 = find_chip(DEFAULT)


def test_rows_keep_to_the_bandwidth():
    found = embedding.estimate(1 << 20, 128, pooling=8)
    assert 0.2 * A100.dram_bytes_per_s < found.bytes_per_s < A100.dram_bytes_per_s
    assert found.basis is Basis.MODEL


def test_short_rows_waste_sectors():
    narrow = embedding.estimate(1 << 20, 4, dtype="fp16")
    wide = embedding.estimate(1 << 20, 64, dtype="fp16")
    assert narrow.bytes_per_s < 0.5 * wide.bytes_per_s


def test_a_small_table_stays_in_l2():
    large = embedding.estimate(1 << 20, 64)
    small = embedding.estimate(1 << 20, 64, table_rows=10_000)
    assert small.time_s < large.time_s


def test_an_update_reads_and_writes():
    read = embedding.estimate(1 << 20, 128)
    assert embedding.estimate(1 << 20, 128, update=True).time_s > 1.2 * read.time_s


def test_refuses_sizes_below_one():
    with pytest.raises(ValueError, match="pooling must be"):
        embedding.estimate(8, 8, pooling=0)
