"""Dominators against hand-drawn graphs and against their definition on random ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from va100.ptx.dominators import (
    NONE,
    immediate_dominators,
    immediate_postdominators,
    predecessors_of,
    reverse_postorder,
)


def reached(graph, root, without=None):
    """Nodes reachable from ``root`` when ``without`` is taken out."""
    if root == without:
        return set()
    seen, pending = {root}, [root]
    while pending:
        for node in graph[pending.pop()]:
            if node != without and node not in seen:
                seen.add(node)
                pending.append(node)
    return seen


def dominators_by_definition(graph, root):
    """A node's dominators are those whose removal cuts it off; the immediate one is the last."""
    alive = reached(graph, root)
    dominating = {
        node: {d for d in alive if d != node and node not in reached(graph, root, without=d)}
        for node in alive
    }
    found = [NONE] * len(graph)
    for node, strict in dominating.items():
        if strict:
            (found[node],) = (d for d in strict if len(dominating[d]) == len(strict) - 1)
    return found


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 9))
    node = st.integers(0, count - 1)
    return [tuple(draw(st.lists(node, max_size=3))) for _ in range(count)]


class TestImmediateDominators:
    @pytest.mark.parametrize(
        ("graph", "expected"),
        [
            ([()], [NONE]),
            ([(1,), (2,), ()], [NONE, 0, 1]),
            ([(1, 2), (3,), (3,), ()], [NONE, 0, 0, 0]),
            ([(1,), (2, 3), (1,), ()], [NONE, 0, 1, 1]),
            ([(1, 2), (2,), (1,)], [NONE, 0, 0]),
            ([(1,), (1,), (0,)], [NONE, 0, NONE]),
        ],
        ids=["one", "chain", "diamond", "loop", "irreducible", "unreachable"],
    )
    def test_hand_drawn(self, graph, expected):
        assert immediate_dominators(graph, 0) == expected

    @given(graphs())
    @settings(max_examples=300, deadline=None)
    def test_agrees_with_the_definition(self, graph):
        assert immediate_dominators(graph, 0) == dominators_by_definition(graph, 0)

    def test_deep_graph_needs_no_recursion(self):
        count = 20_000
        graph = [(i + 1,) for i in range(count - 1)] + [()]
        assert immediate_dominators(graph, 0) == [NONE, *range(count - 1)]


class TestImmediatePostdominators:
    @pytest.mark.parametrize(
        ("graph", "leaving", "expected"),
        [
            ([(1, 2), (3,), (3,), ()], [3], [3, 3, 3, NONE]),
            ([(1, 2), (3,), (3,), ()], [1, 3], [NONE, NONE, 3, NONE]),
            ([(1,), (2, 3), (1,), ()], [3], [1, 3, 1, NONE]),
            ([(1, 2), (1,), ()], [2], [2, NONE, NONE]),
            ([(0,)], [], [NONE]),
            ([(1, 2), (), ()], [1, 2], [NONE, NONE, NONE]),
        ],
        ids=["diamond", "early exit", "loop", "endless arm", "endless", "two exits"],
    )
    def test_hand_drawn(self, graph, leaving, expected):
        assert immediate_postdominators(graph, leaving) == expected

    @given(graphs(), st.data())
    @settings(max_examples=300, deadline=None)
    def test_agrees_with_the_definition(self, graph, data):
        leaving = data.draw(st.lists(st.integers(0, len(graph) - 1), unique=True))
        exit_node = len(graph)
        forward = [
            (*targets, exit_node) if node in leaving else targets
            for node, targets in enumerate(graph)
        ] + [()]
        expected = []
        for node in range(len(graph)):
            if exit_node not in reached(forward, node):
                expected.append(NONE)
                continue
            passed = [
                other
                for other in range(len(graph))
                if other != node and exit_node not in reached(forward, node, without=other)
            ]
            nearest = [
                p
                for p in passed
                if all(q == p or exit_node not in reached(forward, p, without=q) for q in passed)
            ]
            expected.append(nearest[0] if nearest else NONE)
        assert immediate_postdominators(graph, leaving) == expected


@given(graphs())
def test_reverse_postorder_lists_what_is_reachable_once(graph):
    order = reverse_postorder(graph, 0)
    assert order[0] == 0
    assert sorted(order) == sorted(reached(graph, 0))


@given(graphs())
def test_predecessors_turn_edges_round(graph):
    forward = {(node, target) for node, targets in enumerate(graph) for target in targets}
    backward = {(p, node) for node, found in enumerate(predecessors_of(graph)) for p in found}
    assert forward == backward
