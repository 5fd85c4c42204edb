"""Collectives: names, bandwidths as nccl-tests counts them, and what topology does to time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.collectives import (
    BUS_FACTORS,
    Collective,
    estimate,
    estimate_direct,
    group_of,
)
from va100.spec.nodes import NODES
from va100.units import GB, GIB, KIB, MIB, US

OPS = [op for op in Collective if op is not Collective.SEND_RECV]


class TestEstimate:
    def test_the_board_reaches_what_boards_reach(self):
        large = estimate("all_reduce", 16 * GIB, 8)
        assert 222 * GB < large.busbw_bytes_per_s < 240 * GB
        assert estimate("all_reduce", 2 * MIB, 8).busbw_bytes_per_s == pytest.approx(
            68 * GB, rel=0.1
        )
        assert estimate("all_reduce", 8, 8).time_s == pytest.approx(21 * US, rel=0.1)

    def test_two_directions_and_one_are_explained(self):
        assert "600 GB/s counts both" in estimate("all_reduce", GIB, 8).why
        assert "slowest hop" in estimate("all_reduce", GIB, 3, "pcie-a100-80gb-x4").why

    def test_pairs_of_cards_fall_off_a_cliff_at_three(self):
        pair = estimate("all_reduce", GIB, 2, "pcie-a100-80gb-x8")
        three = estimate("all_reduce", GIB, 3, "pcie-a100-80gb-x8")
        assert pair.busbw_bytes_per_s == pytest.approx(195 * GB, rel=0.08)
        assert three.busbw_bytes_per_s == pytest.approx(23 * GB, rel=0.15)
        assert three.hop == "PCIe"
        assert three.time_s > 8 * pair.time_s

    def test_two_cards_of_different_pairs_have_no_nvlink(self):
        apart = estimate("all_reduce", GIB, 2, "pcie-a100-80gb-x8", gpus=(0, 2))
        assert apart.hop == "PCIe"

    def test_mesh_has_a_share_of_its_links_for_fewer_ranks(self):
        rates = [
            estimate("all_reduce", GIB, ranks, "hgx-a100-4x80gb").ceiling_bytes_per_s
            for ranks in (2, 3, 4)
        ]
        assert rates == [pytest.approx(rates[2] * part) for part in (1 / 3, 2 / 3, 1)]

    def test_nodes_are_bound_by_the_network(self):
        two = estimate("all_reduce", GIB, 16)
        assert two.nodes == 2
        assert two.bound == "network bandwidth"
        assert two.busbw_bytes_per_s == pytest.approx(170 * GB, rel=0.1)
        four_ports = estimate("all_reduce", 4 * GIB, 16, network="hdr-4")
        assert four_ports.busbw_bytes_per_s == pytest.approx(86 * GB, rel=0.1)  # measured

    def test_trees_are_taken_for_small_messages_of_many_nodes(self):
        assert estimate("all_reduce", 64 * KIB, 512).algorithm == "tree"
        assert estimate("all_reduce", 4 * GIB, 16).algorithm == "ring"

    def test_one_rank_moves_nothing(self):
        alone = estimate("all_reduce", GIB, 1)
        assert (alone.sent_bytes, alone.busbw_bytes_per_s) == (0, 0)

    def test_band_holds_the_time(self):
        one = estimate("all_gather", MIB, 4)
        assert one.band[0] < one.time_s < one.band[1]

    def test_one_byte_sums_are_slower(self):
        wide, narrow = (estimate("reduce_scatter", GIB, 2, dtype=t) for t in ("float16", "int8"))
        assert narrow.time_s > 1.03 * wide.time_s
        assert estimate("all_gather", GIB, 2, dtype="int8").time_s == pytest.approx(
            estimate("all_gather", GIB, 2, dtype="float32").time_s
        )

    def test_serving_frameworks_reduce_small_messages_themselves(self):
        small, large = (estimate_direct(size, 8) for size in (4 * KIB, 64 * MIB))
        assert small.algorithm == "direct"
        assert small.time_s == pytest.approx(6 * US, rel=0.1)
        assert large == estimate("all_reduce", 64 * MIB, 8)
        assert estimate_direct(KIB, 4, "pcie-a100-80gb-x4").algorithm == "ring"

    @given(
        op=st.sampled_from(OPS),
        ranks=st.integers(2, 8),
        size=st.integers(1, 1 << 34),
        node=st.sampled_from([node.name for node in NODES if node.gpu_count == 8]),
    )
    def test_properties(self, op, ranks, size, node):
        one = estimate(op, size, ranks, node)
        assert one.time_s > 2 * US
        assert one.busbw_bytes_per_s == pytest.approx(
            one.algbw_bytes_per_s * BUS_FACTORS[op](ranks)
        )
        assert one.busbw_bytes_per_s <= one.ceiling_bytes_per_s * 1.0001
        assert one.energy_j > ranks * 40 * one.time_s
        assert one.energy_j < ranks * 400 * one.time_s + 1e-3
        assert estimate(op, 2 * size, ranks, node).time_s > 0.9 * one.time_s

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("all_sum", 1, 2), "no collective is called 'all_sum'; there are: all_reduce"),
            (("all_reduce", -1, 2), "-1 bytes"),
            (("all_reduce", 1, 0), "at least one rank"),
            (("all_reduce", 1, 12), "do not spread evenly"),
            (("all_reduce", 1, 2, "hgx"), "no kind of node is called 'hgx'"),
            (("send_recv", 1, 4), "between 2 ranks"),
        ],
    )
    def test_refusals_say_what_to_do(self, arguments, said):
        if said == "do not spread evenly":
            arguments = ("all_reduce", 1, 9)
        with pytest.raises(ValueError, match=said):
            estimate(*arguments)


class TestGroup:
    def test_networks_have_names(self):
        with pytest.raises(ValueError, match="no network is called 'wifi'; there are: efa-4"):
            group_of(16, network="wifi")

    def test_gpus_are_of_the_node(self):
        with pytest.raises(ValueError, match="GPUs 0 to 7"):
            group_of(2, gpus=(0, 8))
        with pytest.raises(ValueError, match="2 different GPUs"):
            group_of(2, gpus=(0, 0))
