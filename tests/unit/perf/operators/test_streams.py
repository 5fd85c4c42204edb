"""Streams: mixed loads and stores, what L2 holds, sectors at random, arithmetic on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.kernel import Bound
from va100.perf.operators.chips import find_chip
from va100.perf.operators.streams import MIXED_RATIO, Stream, missed_ratio, stream_demand

CHIP = find_chip("a100-sxm4-80gb")
LARGE = 8e9


def test_reading_alone_goes_at_the_measured_rate():
    demand = stream_demand(Stream(read_bytes=LARGE, written_bytes=0.0), CHIP)
    assert demand.memory_s == pytest.approx(LARGE / CHIP.dram_reached_bytes_per_s)
    assert demand.memory_bound is Bound.DRAM


def test_half_stores_cost_the_turning_around():
    mixed = stream_demand(Stream(read_bytes=LARGE / 2, written_bytes=LARGE / 2), CHIP)
    alone = stream_demand(Stream(read_bytes=LARGE, written_bytes=0.0), CHIP)
    assert mixed.memory_s == pytest.approx(alone.memory_s / MIXED_RATIO)


def test_sectors_at_random_are_slower():
    even = stream_demand(Stream(read_bytes=LARGE, written_bytes=0.0), CHIP)
    random = stream_demand(Stream(read_bytes=0.0, written_bytes=0.0, random_bytes=LARGE), CHIP)
    assert random.memory_s > 1.5 * even.memory_s


def test_much_arithmetic_takes_over():
    demand = stream_demand(
        Stream(read_bytes=LARGE, written_bytes=0.0, operation_count=LARGE * 10), CHIP
    )
    assert demand.sm_s > demand.memory_s
    assert demand.sm_bound is Bound.FMA


@given(st.floats(0, 1e12), st.floats(1, 1e3))
def test_more_misses_of_a_larger_footprint(footprint, factor):
    missed = missed_ratio(footprint, CHIP)
    assert 0.0 <= missed <= missed_ratio(footprint * factor, CHIP) <= 1.0


def test_what_fits_in_half_of_l2_is_held():
    assert missed_ratio(0.4 * CHIP.l2_bytes, CHIP) < 0.05
    assert missed_ratio(4 * CHIP.l2_bytes, CHIP) > 0.95
