"""Relations and paths between devices of a node, as tools print them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.node.fabric import Damage, surviving
from va100.node.topology import cpu_affinity, matrix, parse_bus_id, path, places, relation
from va100.spec.nodes import NODES, find_node
from va100.units import GB

DGX = find_node("dgx-a100-640gb")


def between(node, one, other):
    by_name = {place.name: place for place in places(node)}
    return relation(node, by_name[one], by_name[other])


class TestRelation:
    @pytest.mark.parametrize(
        ("kind", "one", "other", "spelled"),
        [
            ("dgx-a100-640gb", "GPU0", "GPU7", "NV12"),
            ("dgx-a100-640gb", "GPU0", "NIC0", "PXB"),
            ("dgx-a100-640gb", "GPU0", "NIC2", "SYS"),
            ("hgx-a100-4x80gb", "GPU1", "GPU2", "NV4"),
            ("pcie-a100-80gb-x8", "GPU2", "GPU3", "NV12"),
            ("pcie-a100-80gb-x8", "GPU1", "GPU2", "NODE"),
            ("pcie-a100-80gb-x8", "GPU3", "GPU4", "SYS"),
            ("aws-p4d.24xlarge", "GPU2", "NIC1", "PIX"),
            ("azure-nd96asr-v4", "GPU0", "NIC1", "NODE"),
            ("azure-nc96ads-a100-v4", "GPU1", "GPU2", "SYS"),
        ],
    )
    def test_as_tools_spell_it(self, kind, one, other, spelled):
        assert between(find_node(kind), one, other) == spelled

    def test_a_cut_bridge_leaves_pcie(self):
        node = find_node("pcie-a100-80gb-x2")
        hurt = surviving(node, Damage(frozenset((0, link) for link in range(12))))
        assert matrix(node, hurt)[0][1] == "SYS"  # one on each socket

    @pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
    def test_matrices_are_symmetric(self, node):
        rows = matrix(node)
        for a in range(len(rows)):
            assert rows[a][a] == "X"
            assert all(rows[a][b] == rows[b][a] for b in range(len(rows)))


class TestPath:
    def test_over_switches(self):
        way = path(DGX, "GPU0", "GPU5")
        assert way.hops == ("GPU0", "12 links through 6 switches", "GPU5")
        assert way.raw_bytes_per_s == 300 * GB
        assert way.copy_bytes_per_s == pytest.approx(279 * GB)

    def test_between_sockets(self):
        way = path(find_node("pcie-a100-80gb-x8"), "GPU0", "GPU7")
        assert way.hops == ("GPU0", "NUMA 0", "the link between sockets", "NUMA 1", "GPU7")
        assert way.raw_bytes_per_s == pytest.approx(31.5 * GB, rel=0.01)

    def test_through_pcie_switches(self):
        way = path(DGX, "GPU0", "NIC1")
        assert (way.relation, way.hops) == ("PXB", ("GPU0", "PCIe switch 0", "NIC1"))

    def test_older_pcie_is_half_as_fast(self):
        old, new = (
            path(find_node(kind), "GPU0", "NIC0").raw_bytes_per_s
            for kind in ("aws-p4d.24xlarge", "dgx-a100-320gb")
        )
        assert old == new / 2

    @pytest.mark.parametrize(
        ("one", "other", "said"),
        [("GPU0", "GPU8", "has no GPU8; it has GPU0, "), ("GPU0", "GPU0", "both GPU0")],
    )
    def test_refusals(self, one, other, said):
        with pytest.raises(ValueError, match=said):
            path(DGX, one, other)


class TestPlaces:
    def test_affinity_of_a_dgx(self):
        assert cpu_affinity(DGX, 0) == "48-63,176-191"
        assert cpu_affinity(find_node("aws-p4d.24xlarge"), 7) == "24-47,72-95"

    @given(st.integers(0, 0xFFFF), st.integers(0, 255), st.integers(0, 31))
    def test_addresses_round_trip(self, domain, bus, slot):
        assert parse_bus_id(f"{domain:08X}:{bus:02X}:{slot:02X}.0") == (domain, bus, slot)

    def test_addresses_that_are_none(self):
        with pytest.raises(ValueError, match="no PCI address"):
            parse_bus_id("07:00.0")
