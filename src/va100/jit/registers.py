"""How many registers a thread would need on the chip: an estimate from live ranges.

``ptxas`` decides on real hardware; without it, the largest number of values alive at one point,
in 32-bit registers, plus what addressing and the calling convention take.
"""

from __future__ import annotations

from typing import Final

from va100.jit import effects
from va100.jit.compile import Layout
from va100.ptx.cfg import FlowGraph
from va100.ptx.types import PtxType

_BASE: Final = 8
_GRANULE: Final = 8
_LIMIT: Final = 255


def estimate_registers(layout: Layout, kernel: str) -> int:
    """Registers per thread, rounded up to the allocation granule, at most 255."""
    peak = max(_peak(layout.flows[name]) for name in layout.functions)
    limit = layout.flows[kernel].function.directive("maxnreg")
    rounded = min(-(-(peak + _BASE) // _GRANULE) * _GRANULE, _LIMIT)
    return min(rounded, limit[0]) if limit else rounded


def _peak(flow: FlowGraph) -> int:
    """Largest sum of widths of registers alive at any instruction."""
    live_in = _block_liveness(flow)
    peak = 0
    for block in flow.blocks:
        alive: set[str] = set()
        for successor in block.successors:
            alive |= live_in[successor]
        for i in range(block.end - 1, block.start - 1, -1):
            instruction, operation = flow.instructions[i], flow.operations[i]
            if instruction.guard is None:
                alive -= set(effects.writes(instruction, operation))
            alive |= {n for n in effects.reads(instruction, operation) if n in flow.registers}
            peak = max(peak, sum(_width(flow.registers[n]) for n in alive))
    return peak


def _width(kind: PtxType) -> int:
    return 0 if kind is PtxType.PRED else max(kind.bits // 32, 1)


def _block_liveness(flow: FlowGraph) -> list[set[str]]:
    live: list[set[str]] = [set() for _ in flow.blocks]
    changed = True
    while changed:
        changed = False
        for block in reversed(flow.blocks):
            alive: set[str] = set()
            for successor in block.successors:
                alive |= live[successor]
            for i in range(block.end - 1, block.start - 1, -1):
                instruction, operation = flow.instructions[i], flow.operations[i]
                if instruction.guard is None:
                    alive -= set(effects.writes(instruction, operation))
                alive |= {n for n in effects.reads(instruction, operation) if n in flow.registers}
            if alive != live[block.index]:
                live[block.index] = alive
                changed = True
    return live
