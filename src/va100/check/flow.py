"""Whether a thread that is missing at a barrier went past it or left before.

A place lies behind a barrier when the barrier reaches it and it does not reach the barrier.  A
thread last seen there has gone round the barrier; one that returned early was never there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from va100.ptx.cfg import FlowGraph
from va100.ptx.program import Operand

_LOAD_OPERANDS: Final = 2
_SWAP_OPERANDS: Final = 4


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

    def feeds_swap(self, site: int) -> bool:
        """Whether a load's result is what an ``atom.cas`` of the same place expects."""
        where = self._locate(site)
        if where is None:
            return False
        flow, index = self.flows[where[0]], where[1]
        load = flow.instructions[index]
        if len(load.operands) != _LOAD_OPERANDS:
            return False
        target, address = load.operands
        names = _copies(flow, target)
        return any(
            operation.combine == "cas"
            and len(swap.operands) == _SWAP_OPERANDS
            and swap.operands[1] == address
            and swap.operands[2] in names
            for swap, operation in zip(flow.instructions, flow.operations, strict=True)
        )

    def _locate(self, site: int) -> tuple[str, int] | None:
        for name, start in self._starts.items():
            if start <= site < start + len(self.flows[name].instructions):
                return name, site - start
        return None


def _copies(flow: FlowGraph, start: Operand | None) -> list[Operand]:
    """Registers that may hold a register's value unchanged."""
    names = [start] if start is not None else []
    grown = True
    while grown:
        grown = False
        for instruction, operation in zip(flow.instructions, flow.operations, strict=True):
            if operation.opcode != "mov" or instruction.operands[1] not in names:
                continue
            target = instruction.operands[0]
            if target is not None and target not in names:
                names.append(target)
                grown = True
    return names


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
