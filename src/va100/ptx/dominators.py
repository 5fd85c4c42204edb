"""Dominators of a graph given as successor lists, after Cooper, Harvey and Kennedy.

Knows nothing of PTX: nodes are numbers, ``successors[n]`` the nodes that ``n`` leads to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NONE: Final = -1
"""The immediate dominator of the root and of nodes the root does not reach."""

Graph = Sequence[Sequence[int]]


def reverse_postorder(successors: Graph, root: int) -> list[int]:
    """List the nodes reachable from ``root``, each before what it leads to, but for back edges."""
    seen = {root}
    order: list[int] = []
    stack = [(root, iter(successors[root]))]
    while stack:
        node, pending = stack[-1]
        for successor in pending:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(successors[successor])))
                break
        else:
            stack.pop()
            order.append(node)
    order.reverse()
    return order


def predecessors_of(successors: Graph) -> list[list[int]]:
    """Turn every edge round; repeated edges count once."""
    found: list[list[int]] = [[] for _ in successors]
    for node, targets in enumerate(successors):
        for target in dict.fromkeys(targets):
            found[target].append(node)
    return found


def immediate_dominators(successors: Graph, root: int) -> list[int]:
    """Find each node's immediate dominator.

    Returns
    -------
    list of int
        ``NONE`` for the root and for nodes that the root does not reach.
    """
    order = reverse_postorder(successors, root)
    number = {node: index for index, node in enumerate(order)}
    predecessors = predecessors_of(successors)
    dominator: list[int] = [NONE] * len(successors)
    dominator[root] = root
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            best = NONE
            for other in predecessors[node]:
                if other not in number or dominator[other] == NONE:
                    continue
                best = other if best == NONE else _meet(other, best, dominator, number)
            if dominator[node] != best:
                dominator[node] = best
                changed = True
    dominator[root] = NONE
    return dominator


def _meet(a: int, b: int, dominator: list[int], number: dict[int, int]) -> int:
    while a != b:
        while number[a] > number[b]:
            a = dominator[a]
        while number[b] > number[a]:
            b = dominator[b]
    return a


def immediate_postdominators(successors: Graph, leaving: Sequence[int]) -> list[int]:
    """Find the nearest node that every way out of each node passes.

    Parameters
    ----------
    successors : sequence of sequences of int
    leaving : sequence of int
        Nodes from which control may leave the graph, whether or not they lead elsewhere too.

    Returns
    -------
    list of int
        ``NONE`` where no one node need be passed, or no way leads out.
    """
    count = len(successors)
    reverse = [*predecessors_of(successors), list(leaving)]
    found = immediate_dominators(reverse, count)
    return [NONE if node in (count, NONE) else node for node in found[:count]]
