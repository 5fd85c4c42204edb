"""Kinds of node: rows that are whole, and that agree with the boards and clouds."""

from __future__ import annotations

import pytest

from va100.spec.clouds import INSTANCES
from va100.spec.nodes import NODES, LinkKind, board_of, find_node


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
class TestEveryNode:
    def test_one_place_a_gpu(self, node):
        count = node.gpu_count
        assert len(node.gpu_numa_ids) == len(node.gpu_switch_ids) == count
        assert len(set(node.bus_ids)) == count
        assert all(len(bus) == 12 and bus.endswith(".0") for bus in node.bus_ids)

    def test_numa_nodes_exist(self, node):
        assert set(node.gpu_numa_ids) <= set(range(node.numa_count))
        assert all(nic.numa_id < node.numa_count for nic in node.nics)
        assert node.numa_count % node.socket_count == 0
        assert node.core_count % node.numa_count == 0

    def test_links_have_a_board_or_bridges(self, node):
        assert (board_of(node) is not None) == (node.links in (LinkKind.MESH, LinkKind.SWITCHED))
        assert bool(node.bridged_ids) == (node.links is LinkKind.BRIDGE)

    def test_switches_hold_two(self, node):
        for switch in set(node.gpu_switch_ids) - {-1}:
            assert node.gpu_switch_ids.count(switch) == 2


def test_unknown_names_are_told_what_there_is():
    with pytest.raises(ValueError, match=r"no kind of node is called 'dgx'; there are: .*hgx-a100"):
        find_node("dgx")


@pytest.mark.parametrize(
    ("kind", "instance"),
    [
        ("aws-p4d.24xlarge", "p4d.24xlarge"),
        ("aws-p4de.24xlarge", "p4de.24xlarge"),
        ("azure-nd96asr-v4", "ND96asr_v4"),
        ("azure-nd96amsr-a100-v4", "ND96amsr_A100_v4"),
        ("azure-nc96ads-a100-v4", "NC96ads_A100_v4"),
        ("gcp-a2-highgpu-8g", "a2-highgpu-8g"),
    ],
)
def test_clouds_agree(kind, instance):
    node = find_node(kind)
    cloud = next(row for row in INSTANCES if row.name == instance)
    assert node.gpu_count == cloud.gpu_count
    assert node.chip.name == cloud.gpu_model
    assert cloud.pcie_generation in (None, node.pcie_generation)
    ports = node.network.nic_count * node.network.nic_bytes_per_s
    assert ports == pytest.approx(cloud.network_bytes_per_s)
