"""Streams: bandwidth, caches, launches, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.operators import elementwise
from va100.perf.operators.chips import DEFAULT, find_chip
from va100.perf.operators.elementwise import KINDS

A100 = find_chip(DEFAULT)


@pytest.mark.parametrize("op", KINDS)
def test_every_kind_keeps_to_the_bandwidth(op):
    found = elementwise.estimate(op, 8192, 8192, dtype="fp32")
    assert 0.3 * A100.dram_bytes_per_s < found.bytes_per_s < A100.dram_bytes_per_s


@given(st.integers(1, 1 << 20), st.integers(1, 1 << 12))
def test_more_rows_never_take_less(rows, cols):
    less = elementwise.estimate("add", rows, cols)
    assert elementwise.estimate("add", 2 * rows, cols).time_s > less.time_s


def test_a_small_array_is_bound_by_its_launch():
    assert elementwise.estimate("relu", 64).bound == "launch"


def test_warm_data_come_from_l2():
    cold = elementwise.estimate("add", 1024, 1024)
    warm = elementwise.estimate("add", 1024, 1024, warm=True)
    assert warm.time_s < cold.time_s
    assert warm.dram_bytes < 0.1 * cold.dram_bytes


def test_long_rows_are_gone_over_again():
    short = elementwise.estimate("softmax", 65536, 1024)
    long = elementwise.estimate("softmax", 16384, 4096)
    assert long.time_s > 1.2 * short.time_s


def test_heavy_arithmetic_is_bound_by_it():
    assert elementwise.estimate("gelu", 8192, 8192, dtype="fp16").bound != "DRAM bandwidth"


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        (("cube", 8), {}, "op 'cube'"),
        (("add", 0), {}, "rows must be"),
        (("add", 8), {"dtype": "fp7"}, "fp7"),
        (("add", 8), {"launch": "soon"}, "launch 'soon'"),
    ],
)
def test_refusals(arguments, options, named):
    with pytest.raises(ValueError, match=named):
        elementwise.estimate(*arguments, **options)
