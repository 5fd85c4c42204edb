"""What is left of a fabric when links and switches fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.node.fabric import NVLINK_XID, Damage, Policy, link_target, surviving, troubles
from va100.perf.collectives import estimate
from va100.perf.fabric import whole_fabric
from va100.spec.nodes import NODES, find_node
from va100.units import GIB

BOARD = find_node("hgx-a100-8x80gb")
MESH = find_node("hgx-a100-4x80gb")


class TestTargets:
    def test_links_go_switch_by_switch(self):
        assert [link_target(BOARD, 3, link) for link in (0, 1, 2, 11)] == [
            "NVSwitch0",
            "NVSwitch0",
            "NVSwitch1",
            "NVSwitch5",
        ]

    def test_links_go_peer_by_peer(self):
        assert [link_target(MESH, 1, link) for link in (0, 4, 11)] == ["GPU0", "GPU2", "GPU3"]

    def test_two_baseboards(self):
        assert link_target(find_node("gcp-a2-megagpu-16g"), 8, 0) == "NVSwitch6"


class TestSurviving:
    @pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
    def test_no_damage_is_the_whole(self, node):
        assert surviving(node, Damage()) == whole_fabric(node)

    def test_a_switch_takes_a_sixth(self):
        left = surviving(BOARD, Damage(switches=frozenset({2})))
        assert set(left.gpu_links) == {10}
        whole = estimate("all_reduce", 8 * GIB, 8)
        hurt = estimate("all_reduce", 8 * GIB, 8, fabric=left)
        assert hurt.busbw == pytest.approx(whole.busbw * 10 / 12, rel=0.01)

    def test_a_link_drops_its_gpu(self):
        left = surviving(BOARD, Damage(frozenset({(5, 0)})))
        assert left.gpu_links[5] == 0
        assert left.pair_links[0][1] == 12
        assert estimate("all_reduce", GIB, 8, fabric=left).hop == "PCIe"
        assert estimate("all_reduce", GIB, 5, fabric=left).hop == "NVLink"

    def test_a_link_disables_its_switch_when_so_set(self):
        damage = Damage(frozenset({(5, 0)}), policy=Policy.DISABLE_SWITCH)
        assert set(surviving(BOARD, damage).gpu_links) == {10}

    def test_both_ends_are_one_link(self):
        one = surviving(MESH, Damage(frozenset({(0, 0)})))
        assert (one.pair_links[0][1], one.pair_links[1][0], one.gpu_links[0]) == (3, 3, 11)
        assert surviving(MESH, Damage(frozenset({(0, 0), (1, 0)}))) == one

    @pytest.mark.parametrize(
        ("damage", "said"),
        [
            (Damage(frozenset({(8, 0)})), "GPUs 0 to 7"),
            (Damage(frozenset({(0, 12)})), "links 0 to 11"),
            (Damage(switches=frozenset({6})), "NVSwitches 0 to 5"),
        ],
    )
    def test_refusals(self, damage, said):
        with pytest.raises(ValueError, match=said):
            surviving(BOARD, damage)

    def test_cards_have_no_switch(self):
        with pytest.raises(ValueError, match="has no NVSwitch"):
            surviving(find_node("pcie-a100-80gb-x2"), Damage(switches=frozenset({0})))

    @given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 11))))
    def test_more_damage_never_helps(self, links):
        left = surviving(MESH, Damage(frozenset(links)))
        whole = whole_fabric(MESH)
        for a in range(4):
            assert 0 <= left.gpu_links[a] <= whole.gpu_links[a]
            assert left.pair_links[a] == tuple(left.pair_links[b][a] for b in range(4))


class TestTroubles:
    def test_gpus_report_xid_74(self):
        found = troubles(BOARD, Damage(frozenset({(5, 3)}), frozenset({0})))
        assert len(found) == 9
        assert {trouble.xid for trouble in found} == {NVLINK_XID}
        assert "NVLink 3 to NVSwitch1" in next(t.text for t in found if "NVLink 3" in t.text)
