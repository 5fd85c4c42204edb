"""Whether a thread that is missing at a barrier went past it or left before.

A place lies behind a barrier when the barrier reaches it and it does not reach the barrier.  A
thread last seen there has gone round the barrier; one that returned early was never there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from va100.ptx.cfg import FlowGraph


@dataclass(frozen=True)
class VariantFlow:
    """Flow graphs of a kernel and the functions compiled with it, their instructions in a row."""

    functions: Sequence[str]
    flows: Mapping[str, FlowGraph]

    @cached_property
    def _starts(self) -> dict[str, int]:
        starts, total = {}, 0
        for name in self.functions:
            starts[name] = total
            total += len(self.flows[name].instructions)
        return starts

    def behind(self, barrier: int, place: int) -> bool:
        """Whether a site lies behind another of the same function."""
        where, seen = self._locate(barrier), self._locate(place)
        if where is None or seen is None or where[0] != seen[0]:
            return False
        flow = self.flows[where[0]]
        first, second = _block(flow, where[1]), _block(flow, seen[1])
        if first == second and first not in _reached(flow, first):
            return seen[1] > where[1]
        return second in _reached(flow, first) and first not in _reached(flow, second)

    def _locate(self, site: int) -> tuple[str, int] | None:
        for name, start in self._starts.items():
            if start <= site < start + len(self.flows[name].instructions):
                return name, site - start
        return None


def _block(flow: FlowGraph, index: int) -> int:
    return next(b.index for b in flow.blocks if b.start <= index < b.end)


def _reached(flow: FlowGraph, start: int) -> set[int]:
    """Blocks some path of at least one edge leads to."""
    found: set[int] = set()
    pending = list(flow.blocks[start].successors)
    while pending:
        block = pending.pop()
        if block < 0 or block in found:
            continue
        found.add(block)
        pending += flow.blocks[block].successors
    return found
