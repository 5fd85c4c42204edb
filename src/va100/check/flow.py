"""Whether a thread that is missing at a barrier went past it or left before.

A place lies behind a barrier when the barrier reaches it and it does not reach the barrier.  A
thread last seen there has gone round the barrier; one that returned early was never there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from va100.ptx.cfg import FlowGraph
from va100.ptx.program import (
    Address,
    Location,
    Operand,
    Register,
    Scope,
    Statement,
    Symbol,
)

_LOAD_OPERANDS: Final = 2
_SWAP_OPERANDS: Final = 4
_LONGEST_CHAIN: Final = 16


@dataclass(frozen=True)
class VariantFlow:
    """Flow graphs of a kernel and the functions compiled with it, their instructions in a row."""

    functions: Sequence[str]
    flows: Mapping[str, FlowGraph]
    files: Mapping[int, str] = field(default_factory=dict)
    """Names of source files by their number in the PTX."""

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
        place, names = _origin(flow, address), _copies(flow, target)
        return any(
            operation.combine == "cas"
            and len(swap.operands) == _SWAP_OPERANDS
            and _origin(flow, swap.operands[1]) == place
            and swap.operands[2] in names
            for swap, operation in zip(flow.instructions, flow.operations, strict=True)
        )

    def source_of(self, site: int) -> tuple[str, int] | None:
        """File and line of a site in the program's own text, not in a toolkit's header.

        Code of a header stands where it was inlined.
        """
        where = self._locate(site)
        location = self.flows[where[0]].locations[where[1]] if where is not None else None
        if where is None or location is None:
            return None
        known = {
            (other.file, other.line, other.column): other.inlined_at
            for other in _locations(self.flows[where[0]].function.body or ())
        }
        frame, outer = (location.file, location.line), location.inlined_at
        first, seen = frame, set[tuple[int, int, int]]()
        while outer is not None and _of_toolkit(self.files.get(frame[0], "")):
            if outer in seen:
                break
            seen.add(outer)
            frame, outer = (outer[0], outer[1]), known.get(outer)
        if _of_toolkit(self.files.get(frame[0], "")):
            frame = first
        return self.files.get(frame[0], ""), frame[1]

    def _locate(self, site: int) -> tuple[str, int] | None:
        for name, start in self._starts.items():
            if start <= site < start + len(self.flows[name].instructions):
                return name, site - start
        return None


def _locations(body: Sequence[Statement]) -> Iterator[Location]:
    """Every ``.loc`` of a function, also those no instruction follows."""
    for statement in body:
        if isinstance(statement, Location):
            yield statement
        elif isinstance(statement, Scope):
            yield from _locations(statement.body)


def _of_toolkit(path: str) -> bool:
    folder = path.replace("\\", "/").rpartition("/")[0]
    return "cuda" in folder and "/include" in folder


def _origin(flow: FlowGraph, operand: Operand | None) -> Operand | None:
    """An address by the symbol or register that it was first made from."""
    if not isinstance(operand, Address):
        return operand
    base, offset = operand.base, operand.offset
    for _ in range(_LONGEST_CHAIN):
        if isinstance(base, Symbol):
            base, offset = Symbol(base.name), offset + base.offset
            break
        sources = [
            i.operands[1]
            for i, o in zip(flow.instructions, flow.operations, strict=True)
            if o.opcode in ("mov", "cvta") and i.operands[0] == base
        ]
        if len(sources) != 1 or not isinstance(sources[0], (Register, Symbol)):
            break
        base = sources[0]
    return Address(base, offset)


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
