"""Instructions of one kind at which lanes of a warp may wait for each other in different places.

``*.sync`` and barriers name lanes, not places: those in one arm of a branch meet those in the
other.  Only places of which neither comes before the other on every path can be waited at at
once; the others need no more than one place.
"""

from __future__ import annotations

from va100.ptx import effects
from va100.ptx.cfg import EXIT, FlowGraph
from va100.ptx.isa.form import Operation


def twin_groups(flow: FlowGraph) -> tuple[tuple[int, ...], ...]:
    """Instruction indices that may meet, group by group."""
    kinds: dict[str, list[int]] = {}
    for index, operation in enumerate(flow.operations):
        if _meets(operation):
            kinds.setdefault(operation.text, []).append(index)
    groups = []
    for indices in kinds.values():
        if len(indices) < 2:
            continue
        home = _blocks_of(flow, indices)
        apart = tuple(
            i for i in indices if any(_apart(flow, home[i], home[j]) for j in indices if i != j)
        )
        if apart:
            groups.append(apart)
    return tuple(groups)


def _meets(operation: Operation) -> bool:
    if effects.is_warp_sync(operation):
        return not effects.needs_whole_warp(operation)
    return effects.is_barrier(operation) and "arrive" not in operation.modifiers


def _blocks_of(flow: FlowGraph, indices: list[int]) -> dict[int, int]:
    return {
        i: block.index for block in flow.blocks for i in indices if block.start <= i < block.end
    }


def _apart(flow: FlowGraph, a: int, b: int) -> bool:
    return a != b and not _dominates(flow, a, b) and not _dominates(flow, b, a)


def _dominates(flow: FlowGraph, above: int, block: int) -> bool:
    while block not in (above, EXIT):
        block = flow.blocks[block].immediate_dominator
    return block == above
