"""How many registers a thread would need on the chip: an estimate from live ranges.

``ptxas`` decides on real hardware; without it, the largest number of values alive at one point,
in 32-bit registers, plus what addressing and the calling convention take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from va100.jit.compile import Layout
from va100.ptx import effects
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
    width = {name: _width(kind) for name, kind in flow.registers.items()}
    effect = [
        (i.guard is None, effects.writes(i, op), effects.reads(i, op))
        for i, op in zip(flow.instructions, flow.operations, strict=True)
    ]
    live_in = _block_liveness(flow, effect)
    peak = 0
    for block in flow.blocks:
        alive: set[str] = set()
        for successor in block.successors:
            alive |= live_in[successor]
        total = sum(width[n] for n in alive)
        for surely, written, read in reversed(effect[block.start : block.end]):
            dead = alive.intersection(written) if surely else ()
            alive.difference_update(dead)
            fresh = {n for n in read if n in width and n not in alive}
            alive |= fresh
            total += sum(width[n] for n in fresh) - sum(width[n] for n in dead)
            peak = max(peak, total)
    return peak


def _width(kind: PtxType) -> int:
    return 0 if kind is PtxType.PRED else max(kind.bits // 32, 1)


_Effect = tuple[bool, tuple[str, ...], tuple[str, ...]]
"""Whether an instruction surely writes what it writes, and what it writes and reads."""


def _block_liveness(flow: FlowGraph, effect: Sequence[_Effect]) -> list[set[str]]:
    live: list[set[str]] = [set() for _ in flow.blocks]
    changed = True
    while changed:
        changed = False
        for block in reversed(flow.blocks):
            alive: set[str] = set()
            for successor in block.successors:
                alive |= live[successor]
            for surely, written, read in reversed(effect[block.start : block.end]):
                if surely:
                    alive.difference_update(written)
                alive.update(n for n in read if n in flow.registers)
            if alive != live[block.index]:
                live[block.index] = alive
                changed = True
    return live
