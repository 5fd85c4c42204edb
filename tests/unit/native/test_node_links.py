"""The native core's rules of links and switches against the pure ones of ``va100.node.fabric``."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.nvml_calls import LIBRARY
from va100.node.fabric import Damage, surviving
from va100.node.kinds import Board
from va100.perf.fabric import whole_fabric
from va100.spec.nodes import LinkKind, find_node

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the native core is not built")

NODES = [find_node(n) for n in ("hgx-a100-8x80gb", "hgx-a100-4x80gb", "pcie-a100-80gb-x8")]
BOARDS = {
    LinkKind.SWITCHED: Board.SWITCHED,
    LinkKind.MESH: Board.MESHED,
    LinkKind.BRIDGE: Board.BRIDGED,
}


def links(node, damage, gpu, peer):
    """How many links the native core finds between two GPUs, or with -1 that are up at one."""
    down = (ctypes.c_uint32 * 16)()
    for one, link in damage.links:
        down[one] |= 1 << link
    switches = sum(1 << switch for switch in damage.switches)
    ask = ctypes.CDLL(str(LIBRARY)).va100_node_trial_links
    ask.restype = ctypes.c_uint32
    board = int(BOARDS[node.links])
    return ask(board, node.gpu_count, down, ctypes.c_uint32(switches), gpu, peer).bit_count()


@st.composite
def damages(draw):
    node = draw(st.sampled_from(NODES))
    ends = st.tuples(st.integers(0, node.gpu_count - 1), st.integers(0, 11))
    switched = node.links is LinkKind.SWITCHED
    switches = draw(st.frozensets(st.integers(0, 5), max_size=3)) if switched else frozenset()
    return node, Damage(draw(st.frozensets(ends, max_size=6)), switches)


@given(damages())
def test_both_find_the_same_links_between_every_two_gpus(case):
    node, damage = case
    fabric = surviving(node, damage)
    count = range(node.gpu_count)
    found = tuple(tuple(links(node, damage, a, b) for b in count) for a in count)
    assert found == fabric.pair_links


@given(damages())
def test_links_that_are_up_are_those_that_did_not_fail(case):
    node, damage = case
    for gpu, whole in enumerate(whole_fabric(node).gpu_links):
        failed = {link for one, link in damage.links if one == gpu}
        failed |= {2 * s + i for s in damage.switches for i in (0, 1)}
        up = links(node, damage, gpu, -1)
        if node.links is LinkKind.SWITCHED:
            assert up == whole - len(failed)
        else:
            assert up == surviving(node, damage).gpu_links[gpu]
