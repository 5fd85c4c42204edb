"""Demands to seconds: overlap, the clock under a power limit, what bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.kernel import Bound
from va100.perf.operators.chips import find_chip
from va100.perf.operators.estimates import Demand, settle, together_s
from va100.spec.model import MmaKind

CHIP = find_chip("a100-pcie-40gb")
SECONDS = st.floats(1e-7, 1.0)


def demand(flop=0.0, sm_s=0.0, memory_s=0.0, fixed_s=0.0, dram_bytes=0.0):
    return Demand(
        operations={MmaKind.BF16: flop},
        sm_s=sm_s,
        sm_bound=Bound.TENSOR,
        memory_s=memory_s,
        fixed_s=fixed_s,
        dram_bytes=dram_bytes,
        l2_bytes=dram_bytes,
    )


@given(SECONDS, SECONDS, st.floats(1.0, 8.0))
def test_parts_overlap_but_not_beyond_the_longer(first, second, exponent):
    both = together_s(first, second, exponent)
    assert max(first, second) <= both <= (first + second) * (1 + 1e-12)


def test_one_after_the_other_adds():
    assert together_s(2.0, 3.0, 1.0) == pytest.approx(5.0)


class TestSettle:
    def test_within_the_limit_nothing_slows(self):
        found = settle(demand(flop=1e9, sm_s=1e-3), CHIP)
        assert (found.clock_hz, found.time_s) == (1410e6, pytest.approx(1e-3))

    def test_over_the_limit_the_clock_falls_just_enough(self):
        found = settle(demand(flop=0.29e12, sm_s=1e-3), CHIP)
        assert found.clock_hz < 1410e6
        assert found.power_w <= CHIP.power_limit_w
        assert found.power_w > 0.95 * CHIP.power_limit_w
        assert found.time_s == pytest.approx(1e-3 * 1410e6 / found.clock_hz)

    def test_memory_time_does_not_follow_the_clock(self):
        heavy = demand(flop=0.29e12, sm_s=0.9e-3, memory_s=5e-3)
        assert settle(heavy, CHIP).time_s == pytest.approx(5e-3, rel=0.01)

    @pytest.mark.parametrize(
        ("asked", "bound"),
        [
            (demand(sm_s=2e-6, memory_s=1e-6), Bound.TENSOR),
            (demand(sm_s=1e-6, memory_s=2e-6), Bound.DRAM),
            (demand(sm_s=1e-6, memory_s=1e-6, fixed_s=3e-6), Bound.LAUNCH),
        ],
    )
    def test_what_is_waited_for(self, asked, bound):
        assert settle(asked, CHIP).bound is bound
