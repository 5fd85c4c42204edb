"""How often a warp waits for what it loads, as far as the text alone tells.

Machine code puts loads that do not need each other next to each other and waits for them together,
as far as registers reach, but not across loops, barriers and calls.  Short arms of a branch are
predicated, so they part nothing.  How long a wait takes is not known here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from va100.ptx.cfg import BasicBlock, FlowGraph
from va100.ptx.effects import reads, writes
from va100.ptx.isa.form import Family, Operation
from va100.ptx.program import Address, Immediate, PtxModule, Register, Symbol
from va100.ptx.types import Space

REQUESTS_IN_FLIGHT: Final = 8
"""Loads that a warp waits for together, at most.  Assumed."""
_PREDICATED: Final = 8
"""Instructions of an arm that is predicated instead of jumped over, at most.  Assumed."""
_LOADED: Final = frozenset({Space.GLOBAL, Space.GENERIC, Space.LOCAL})


def load_waits(flow: FlowGraph) -> tuple[float, ...]:
    """Waits that each instruction causes when its block runs; 0 for all but loads.

    What a stretch of code waits is divided equally among its loads, so that the sum over a run is
    right whichever of them ran.
    """
    return _waits(flow, lambda index: _is_load(flow.operations[index]))


def constant_waits(flow: FlowGraph) -> tuple[float, ...]:
    """As :func:`load_waits`, of constant memory at addresses that are reckoned.

    What lies at a known place is an operand of machine code, which waits for nothing.
    """
    if not any(op.opcode == "ld" and op.space is Space.CONST for op in flow.operations):
        return (0.0,) * len(flow.instructions)  # as in most kernels
    known = _known_addresses(flow)
    return _waits(flow, lambda index: _is_indexed_constant(flow, index, known))


def constant_bytes(module: PtxModule) -> int:
    """Size of a module's constant variables: at most what a kernel of it reads."""
    return sum(v.size_bytes for v in module.variables if v.space is Space.CONST)


def _waits(flow: FlowGraph, is_load: Callable[[int], bool]) -> tuple[float, ...]:
    waits = [0.0] * len(flow.instructions)
    for region in _regions(flow):
        for stretch in _stretches(flow, region):
            loads, depth = _loads(flow, stretch, is_load)
            for index in loads:
                waits[index] = max(depth, len(loads) / REQUESTS_IN_FLIGHT) / len(loads)
    return tuple(waits)


def _known_addresses(flow: FlowGraph) -> frozenset[str]:
    """Registers that only ever hold a variable's address, or one at a fixed distance."""
    sources: dict[str, list[int]] = defaultdict(list)
    for index, (instruction, operation) in enumerate(
        zip(flow.instructions, flow.operations, strict=True)
    ):
        for name in writes(instruction, operation):
            sources[name].append(index)
    known: set[str] = set()
    pending = True
    while pending:
        found = {
            name
            for name, indices in sources.items()
            if name not in known and all(_keeps_address(flow, k, known) for k in indices)
        }
        known |= found
        pending = bool(found)
    return frozenset(known)


_ADDRESS_STEPS: Final = frozenset({"mov", "add", "sub", "cvta"})


def _keeps_address(flow: FlowGraph, index: int, known: set[str]) -> bool:
    instruction = flow.instructions[index]
    if instruction.opcode not in _ADDRESS_STEPS:
        return False
    return all(
        isinstance(operand, (Immediate, Symbol))
        or (isinstance(operand, Register) and operand.name in known)
        for operand in instruction.operands[1:]
    )


def _is_indexed_constant(flow: FlowGraph, index: int, known: frozenset[str]) -> bool:
    operation = flow.operations[index]
    if operation.opcode != "ld" or operation.space is not Space.CONST:
        return False
    address = flow.instructions[index].operands[1]
    base = address.base if isinstance(address, Address) else None
    return isinstance(base, Register) and base.name not in known


def looped_instructions(flow: FlowGraph) -> frozenset[int]:
    """Instructions that may run more than once: those between a jump back and its target."""
    found: set[int] = set()
    for block in flow.blocks:
        for successor in block.successors:
            if successor <= block.index:
                found.update(range(flow.blocks[successor].start, block.end))
    return frozenset(found)


def _regions(flow: FlowGraph) -> list[list[BasicBlock]]:
    """Blocks in layout order, those together that nothing parts."""
    root = list(range(len(flow.blocks)))

    def find(block: int) -> int:
        while root[block] != block:
            block = root[block]
        return block

    for block in flow.blocks:
        for successor in block.successors:
            if successor > block.index and _goes_on(flow, block, flow.blocks[successor]):
                root[find(successor)] = find(block.index)
    gathered: dict[int, list[BasicBlock]] = defaultdict(list)
    for block in flow.blocks:
        gathered[find(block.index)].append(block)
    return list(gathered.values())


def _goes_on(flow: FlowGraph, block: BasicBlock, after: BasicBlock) -> bool:
    """Whether a block runs into another as if no branch were there."""
    if len(after.predecessors) == 1:
        return len(block.successors) == 1 or _is_arm(after)
    return all(_skips(flow.blocks[p], after) for p in after.predecessors)


def _skips(block: BasicBlock, after: BasicBlock) -> bool:
    """Whether a block that leads to another is a short arm, or jumps over short arms."""
    if block.index >= after.index:
        return False
    return _is_arm(block) or len(block.successors) > 1 or len(after.predecessors) == 1


def _is_arm(block: BasicBlock) -> bool:
    return (
        block.end - block.start <= _PREDICATED
        and len(block.predecessors) == 1
        and len(block.successors) == 1
        and block.successors[0] > block.index
    )


def _stretches(flow: FlowGraph, region: Sequence[BasicBlock]) -> Iterator[list[int]]:
    """A region's instructions between barriers and calls."""
    stretch: list[int] = []
    for block in region:
        for index in range(block.start, block.end):
            if _parts(flow.operations[index]):
                yield stretch
                stretch = []
            stretch.append(index)
    yield stretch


def _parts(operation: Operation) -> bool:
    return operation.form.family is Family.BARRIER or operation.opcode == "call"


def _loads(
    flow: FlowGraph, stretch: Sequence[int], is_load: Callable[[int], bool]
) -> tuple[list[int], int]:
    """The loads of a stretch, and how many of them need each other at most."""
    loads: list[int] = []
    depths: dict[str, int] = defaultdict(int)
    deepest = 0
    for index in stretch:
        instruction, operation = flow.instructions[index], flow.operations[index]
        depth = max((depths[name] for name in reads(instruction, operation)), default=0)
        if is_load(index):
            loads.append(index)
            depth += 1
            deepest = max(deepest, depth)
        for name in writes(instruction, operation):
            depths[name] = depth
    return loads, deepest


def _is_load(operation: Operation) -> bool:
    if operation.opcode in ("ld", "ldu"):
        return operation.space in _LOADED
    if operation.opcode == "wmma":
        return operation.space in _LOADED and "load" in operation.modifiers
    if operation.form.family is Family.ATOMIC:
        return operation.opcode == "atom" and operation.space in _LOADED
    return operation.form.family is Family.TEXTURE
