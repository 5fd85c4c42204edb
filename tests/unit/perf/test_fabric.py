"""Links between GPUs, and rings through them."""

from __future__ import annotations

import pytest

from va100.perf.fabric import Fabric, network_bytes_per_s, ring_of, whole_fabric
from va100.spec.nccl import Hop
from va100.spec.nodes import HDR_8, find_node
from va100.units import GB


class TestWholeFabric:
    @pytest.mark.parametrize(
        ("name", "pair", "own"),
        [
            ("hgx-a100-8x80gb", 12, 12),
            ("hgx-a100-4x80gb", 4, 12),
            ("pcie-a100-80gb-x2", 12, 12),
            ("pcie-a100-80gb-x8-unbridged", 0, 0),
            ("gcp-a2-megagpu-16g", 12, 12),
        ],
    )
    def test_links_of_the_first_pair(self, name, pair, own):
        fabric = whole_fabric(find_node(name))
        assert fabric.pair_links[0][1] == fabric.pair_links[1][0] == pair
        assert fabric.gpu_links[0] == own
        assert fabric.pair_links[0][0] == 0

    def test_only_neighbours_are_bridged(self):
        links = whole_fabric(find_node("pcie-a100-80gb-x4")).pair_links
        assert [[bool(count) for count in row] for row in links] == [
            [False, True, False, False],
            [True, False, False, False],
            [False, False, False, True],
            [False, False, True, False],
        ]


class TestRing:
    def test_a_gpu_with_fewer_links_slows_all(self):
        board = find_node("hgx-a100-8x80gb")
        whole = whole_fabric(board)
        hurt = Fabric(whole.pair_links, (10, *whole.gpu_links[1:]))
        assert ring_of(board, range(8), fabric=hurt).links_count == 10
        assert ring_of(board, range(1, 8), fabric=hurt).links_count == 12

    def test_a_mesh_with_a_pair_cut_still_closes(self):
        board = find_node("hgx-a100-4x80gb")
        links = [list(row) for row in whole_fabric(board).pair_links]
        links[0][1] = links[1][0] = 0
        hurt = Fabric(tuple(map(tuple, links)), (8, 8, 12, 12))
        assert ring_of(board, range(4), fabric=hurt).links_count == 8
        assert ring_of(board, range(2), fabric=hurt).hop is Hop.PCI

    def test_pcie_doubles_with_its_generation(self):
        slow, fast = (
            ring_of(find_node(name), (0, 2)).tuner_bytes_per_s
            for name in ("pcie-a100-80gb-x4", "azure-nc96ads-a100-v4")
        )
        assert slow == fast == 24 * GB

    def test_a_rank_drives_one_port(self):
        assert network_bytes_per_s(HDR_8, 2) == pytest.approx(2 * 22.5 * GB)
        assert network_bytes_per_s(HDR_8, 16) == pytest.approx(8 * 22.5 * GB)
