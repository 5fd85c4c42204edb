"""The tuner's choice, and costs that keep apart from it."""

from __future__ import annotations

import pytest

from va100.perf.fabric import ring_of
from va100.perf.transport import Algorithm, Pattern, Shape, choose, true_s
from va100.spec.nccl import Protocol
from va100.spec.nodes import find_node
from va100.units import KIB, MIB

BOARD = find_node("hgx-a100-8x80gb")
ALL_REDUCE, GATHER = Pattern.REDUCE_AND_GATHER, Pattern.GATHER


def ring(ranks):
    return ring_of(BOARD, range(ranks))


def shape(pattern, size, ranks):
    return Shape(pattern=pattern, size_bytes=size, ranks=ranks, nodes=1)


class TestChoose:
    @pytest.mark.parametrize(
        ("pattern", "ranks", "size", "protocol"),
        [
            (ALL_REDUCE, 2, 512 * KIB, Protocol.LL),
            (ALL_REDUCE, 2, 2 * MIB, Protocol.SIMPLE),
            (ALL_REDUCE, 8, 2 * MIB, Protocol.LL),
            (ALL_REDUCE, 8, 8 * MIB, Protocol.LL128),
            (ALL_REDUCE, 8, 64 * MIB, Protocol.SIMPLE),
            (GATHER, 2, 2 * MIB, Protocol.SIMPLE),
            (GATHER, 8, 4 * MIB, Protocol.LL128),
        ],
    )
    def test_jumps_lie_where_measured_times_jump(self, pattern, ranks, size, protocol):
        choice = choose(shape(pattern, size, ranks), ring(ranks))
        assert choice.algorithm is Algorithm.RING
        assert choice.protocol is protocol

    def test_pcie_knows_no_ll128(self):
        cards = ring_of(find_node("pcie-a100-80gb-x4"), range(4))
        chosen = {
            choose(shape(ALL_REDUCE, 1 << power, 4), cards).protocol for power in range(3, 34)
        }
        assert chosen == {Protocol.LL, Protocol.SIMPLE}


class TestTrue:
    def test_parts_add_up(self):
        wanted = shape(ALL_REDUCE, 64 * MIB, 8)
        cost = true_s(wanted, ring(8), choose(wanted, ring(8)))
        assert cost.total_s == cost.latency_s + cost.transfer_s
        assert cost.bound == "NVLink bandwidth"

    def test_steps_follow_the_ring(self):
        assert [shape(ALL_REDUCE, 8, ranks).steps for ranks in (1, 2, 8)] == [0, 2, 14]
        assert shape(ALL_REDUCE, 800, 8).sent_bytes == 1400
        two = Shape(pattern=ALL_REDUCE, size_bytes=8, ranks=16, nodes=2)
        assert (two.steps, two.node_steps, two.per_node) == (30, 2, 8)
