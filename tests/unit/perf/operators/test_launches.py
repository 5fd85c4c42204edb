"""What starting a kernel adds."""

from __future__ import annotations

import pytest

from va100.perf.kernel import Bound
from va100.perf.operators.chips import find_chip
from va100.perf.operators.estimates import Demand
from va100.perf.operators.launches import LAUNCHES, launched

CHIP = find_chip("a100-sxm4-80gb")
DEMAND = Demand(
    operations={}, sm_s=0.0, sm_bound=Bound.FMA, memory_s=0.0, dram_bytes=0.0, l2_bytes=0.0
)


def test_a_graph_adds_nothing():
    assert launched(DEMAND, "graph", CHIP) is DEMAND


def test_a_stream_adds_its_gap_for_every_kernel():
    gap_s = CHIP.stream_launch_s - CHIP.launch_s
    assert launched(DEMAND, "stream", CHIP).fixed_s == pytest.approx(gap_s)
    assert launched(DEMAND, "stream", CHIP, 3).fixed_s == pytest.approx(3 * gap_s)


def test_an_eager_call_adds_the_host():
    stream_s = launched(DEMAND, "stream", CHIP).fixed_s
    assert launched(DEMAND, "eager", CHIP).fixed_s == pytest.approx(stream_s + LAUNCHES["eager"])


def test_another_way_is_refused_by_name():
    with pytest.raises(ValueError, match="launch 'lazily' is not one of graph, stream, eager"):
        launched(DEMAND, "lazily", CHIP)
