"""What the compiler finds out about a function before it emits anything.

Blocks split where a warp may have to wait, liveness, the shape of every register while the warp
is converged, and which registers hold the same thing in every dynamic instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from va100.jit.groups import CheckGroup, check_groups
from va100.jit.lattice import Shape
from va100.jit.shapes import converged_shapes, guarded_instructions, register_parameters
from va100.jit.twins import twin_groups
from va100.ptx import effects
from va100.ptx.cfg import EXIT, FlowGraph
from va100.ptx.isa.form import Family, Operation
from va100.ptx.program import (
    Address,
    Immediate,
    Instruction,
    Register,
    Symbol,
)
from va100.ptx.types import PtxType, Space
from va100.work import Dim3


@dataclass(frozen=True, slots=True)
class Block:
    """A run of instructions that a group of lanes executes together."""

    index: int
    start: int
    end: int
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Everything the emission needs to know about one function."""

    flow: FlowGraph
    block: Dim3
    blocks: tuple[Block, ...]
    live_in: tuple[frozenset[str], ...]
    shapes: Mapping[str, Shape]
    """Shape of each register of data while converged."""
    uniform_predicates: frozenset[str]
    invariant: frozenset[str]
    """Registers whose every assignment, whenever made, gives the same value."""
    stored: frozenset[str]
    """Registers that need a place of their own: live across blocks or written under a guard."""
    lazy_nan: frozenset[str]
    """f32 registers only ever written by arithmetic: NaNs become canonical when observed."""
    guarded: frozenset[int]
    """Instructions whose affine result holds only if a sum does not wrap."""
    unread: frozenset[str]
    """Registers that nothing reads: an ``atom`` into one is a ``red``."""
    groups: Mapping[int, CheckGroup]
    """Accesses checked together, by the first instruction."""
    prechecked: frozenset[int]
    """Instructions that belong to a group."""
    spin_edges: frozenset[tuple[int, int]]
    """Back edges of loops that may wait for another thread."""
    first_piece: tuple[int, ...]
    """Basic block to the first block made of it."""
    reentry: frozenset[int]
    """Blocks at which a reconverged warp may leave the masked world."""
    twins: tuple[tuple[int, ...], ...] = ()
    """Instructions at which lanes may meet in different places; each is a block of its own."""


def analyse(flow: FlowGraph, block: Dim3, *, is_kernel: bool, longest: int = 0) -> Analysis:
    """Analyse one function for one block shape.

    No block gets more than ``longest`` instructions, unless that is 0.
    """
    shapes, predicates = converged_shapes(flow, block, is_kernel=is_kernel)
    guarded = frozenset(guarded_instructions(flow, shapes, block))
    groups = check_groups(flow, shapes)
    twins = twin_groups(flow)
    after_twins = frozenset(i + 1 for group in twins for i in group)
    breaks = frozenset(range(longest, len(flow.instructions), longest) if longest else ())
    breaks -= {i for group in groups.values() for i in group.members}
    blocks, first_piece = _split(flow, guarded | groups.keys() | after_twins | breaks)
    live_in = _liveness(flow, blocks)
    across = frozenset(n for names in live_in for n in names)
    conditional = frozenset(
        n
        for i, op in zip(flow.instructions, flow.operations, strict=True)
        if i.guard is not None
        for n in (*effects.writes(i, op), *((effects.CARRY,) if effects.sets_carry(op) else ()))
    )
    return Analysis(
        flow=flow,
        block=block,
        blocks=blocks,
        live_in=live_in,
        shapes=shapes,
        uniform_predicates=predicates,
        invariant=_invariant(flow, shapes, predicates, guarded),
        stored=across | conditional,
        lazy_nan=_lazy_nan(flow),
        guarded=guarded,
        unread=_unread(flow),
        groups=groups,
        prechecked=frozenset(i for g in groups.values() for i in g.members),
        spin_edges=_spin_edges(flow, blocks),
        first_piece=first_piece,
        reentry=_reentry(flow, blocks),
        twins=twins,
    )


# ------------------------------------------------------------------ blocks and liveness


def _split(
    flow: FlowGraph, starts_anew: frozenset[int]
) -> tuple[tuple[Block, ...], tuple[int, ...]]:
    """Split basic blocks before barriers, warp-synchronous and guarded ones, and after calls."""
    starts: dict[int, int] = {}
    pieces: list[tuple[int, int, int]] = []
    for basic in flow.blocks:
        starts[basic.index] = len(pieces)
        begin = basic.start
        for i in range(basic.start + 1, basic.end):
            operation = flow.operations[i]
            if (
                i in starts_anew
                or effects.is_barrier(operation)
                or _must_wait(flow, begin, operation)
                or flow.operations[i - 1].opcode == "call"
            ):
                pieces.append((begin, i, -1))
                begin = i
        pieces.append((begin, basic.end, basic.index))
    blocks = []
    for index, (start, end, basic_index) in enumerate(pieces):
        successors = (
            (index + 1,)
            if basic_index < 0
            else tuple(starts[s] for s in flow.blocks[basic_index].successors)
        )
        blocks.append(Block(index, start, end, successors))
    return tuple(blocks), tuple(starts[b.index] for b in flow.blocks)


def _must_wait(flow: FlowGraph, begin: int, operation: Operation) -> bool:
    """Whether lanes have to wait for others before an instruction of a piece begun earlier.

    After one instruction of the whole warp, those that follow find it whole.
    """
    if not effects.is_warp_sync(operation):
        return False
    whole = effects.needs_whole_warp(flow.operations[begin])
    together = whole and flow.instructions[begin].guard is None
    return not (effects.needs_whole_warp(operation) and together)


def _liveness(flow: FlowGraph, blocks: tuple[Block, ...]) -> tuple[frozenset[str], ...]:
    uses: list[set[str]] = []
    kills: list[set[str]] = []
    for block in blocks:
        used: set[str] = set()
        killed: set[str] = set()
        for i in range(block.start, block.end):
            instruction, operation = flow.instructions[i], flow.operations[i]
            used.update(n for n in effects.reads(instruction, operation) if n not in killed)
            if operation.opcode == "ret":
                results = register_parameters(flow.function.returns)
                used.update(v.name for v in results if v.name not in killed)
            targets = effects.writes(instruction, operation)
            if effects.sets_carry(operation):
                targets = (*targets, effects.CARRY)
            if instruction.guard is None:
                killed.update(targets)
            else:
                used.update(n for n in targets if n not in killed)
        uses.append(used)
        kills.append(killed)
    live: list[set[str]] = [set(u) for u in uses]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            after: set[str] = set().union(*(live[s] for s in block.successors))
            new = uses[block.index] | (after - kills[block.index])
            if new != live[block.index]:
                live[block.index] = new
                changed = True
    known = flow.registers.keys() | {effects.CARRY}
    return tuple(frozenset(names & known) for names in live)


def _invariant(
    flow: FlowGraph,
    shapes: Mapping[str, Shape],
    predicates: frozenset[str],
    guarded: frozenset[int],
) -> frozenset[str]:
    definitions: dict[str, list[int]] = {}
    for i, (instruction, operation) in enumerate(
        zip(flow.instructions, flow.operations, strict=True)
    ):
        for name in effects.writes(instruction, operation):
            definitions.setdefault(name, []).append(i)
    found: set[str] = set()
    changed = True
    while changed:
        changed = False
        for name, where in definitions.items():
            if name in found or len(where) != 1 or name not in flow.registers:
                continue
            varies = shapes[name].varying if name in shapes else name not in predicates
            if not varies and where[0] not in guarded and _is_invariant(flow, where[0], found):
                found.add(name)
                changed = True
    return frozenset(found)


def _unread(flow: FlowGraph) -> frozenset[str]:
    read: set[str] = set()
    for instruction, operation in zip(flow.instructions, flow.operations, strict=True):
        read.update(effects.reads(instruction, operation))
    return frozenset(flow.registers.keys() - read)


_PURE = frozenset(
    {Family.INTEGER, Family.FLOATING, Family.HALF, Family.COMPARE, Family.LOGIC, Family.MOVE,
     Family.CONVERT}
)  # fmt: skip


def _is_invariant(flow: FlowGraph, index: int, found: set[str]) -> bool:
    instruction, operation = flow.instructions[index], flow.operations[index]
    if instruction.guard is not None or effects.sets_carry(operation):
        return False
    if operation.form.family is Family.MEMORY:
        if operation.opcode != "ld" or operation.space is not Space.PARAM:
            return False
        address = instruction.operands[1]
        return (
            isinstance(address, Address)
            and isinstance(address.base, Symbol)
            and flow.function.is_kernel
            and any(p.name == address.base.name for p in flow.function.params)
        )
    if operation.form.family not in _PURE:
        return False
    for name in effects.reads(instruction, operation):
        if name in flow.registers:
            if name not in found:
                return False
        elif name == effects.CARRY or name.startswith(("%clock", "%globaltimer")):
            return False
    return True


_ARITHMETIC = frozenset("add sub mul fma mad div rcp sqrt rsqrt ex2 lg2 sin cos tanh".split())


def _lazy_nan(flow: FlowGraph) -> frozenset[str]:
    """f32 registers whose NaNs nobody can tell apart until the value is observed as bits."""
    lazy = {n for n, kind in flow.registers.items() if kind.bits == 32}
    changed = True
    while changed:
        changed = False
        for instruction, operation in zip(flow.instructions, flow.operations, strict=True):
            for name in effects.writes(instruction, operation):
                if name in lazy and not _writes_arithmetic(instruction, operation, lazy):
                    lazy.discard(name)
                    changed = True
    return frozenset(lazy)


def _writes_arithmetic(instruction: Instruction, operation: Operation, lazy: set[str]) -> bool:
    if operation.form.family is Family.FLOATING and operation.opcode in _ARITHMETIC:
        return operation.type is PtxType.F32
    if operation.opcode == "mov" and len(instruction.operands) == 2:
        source = instruction.operands[1]
        if isinstance(source, Register):
            return source.name in lazy
        return isinstance(source, Immediate) and not _is_nan_pattern(source.value)
    return False


def _is_nan_pattern(bits: int) -> bool:
    return bits & 0x7FFFFFFF > 0x7F800000


# ------------------------------------------------------------------ loops


def _spin_edges(flow: FlowGraph, blocks: tuple[Block, ...]) -> frozenset[tuple[int, int]]:
    """Back edges of loops that another thread may have to end.

    Such a loop leaves by a condition that depends on what it read of memory others write.
    """
    awaited = _awaited(flow)
    found = set()
    for block in blocks:
        for target in block.successors:
            if target <= block.index and _may_wait(flow, blocks, (target, block.index), awaited):
                found.add((block.index, target))
    return frozenset(found)


def _awaited(flow: FlowGraph) -> frozenset[str]:
    """Registers that depend on an atomic's result, an ordered load, or what a call gave back."""
    fenced = any(op.opcode in ("membar", "fence") for op in flow.operations)
    found: set[str] = set()
    changed = True
    while changed:
        changed = False
        for instruction, operation in zip(flow.instructions, flow.operations, strict=True):
            new = set(effects.writes(instruction, operation)) - found
            if not new:
                continue
            source = _reads_shared_state(flow, instruction, operation, fenced=fenced)
            if source or not found.isdisjoint(effects.reads(instruction, operation)):
                found |= new
                changed = True
    return frozenset(found)


def _reads_shared_state(
    flow: FlowGraph, instruction: Instruction, operation: Operation, *, fenced: bool
) -> bool:
    if effects.may_spin_on(operation) or operation.opcode == "call":
        return True
    if operation.opcode != "ld":
        return False
    if operation.space is Space.PARAM:
        address = instruction.operands[1]
        base = address.base if isinstance(address, Address) else None
        given = {p.name for p in flow.function.params}
        return isinstance(base, Symbol) and base.name not in given
    return fenced and operation.space in (Space.GLOBAL, Space.GENERIC, Space.SHARED)


def _may_wait(
    flow: FlowGraph, blocks: tuple[Block, ...], loop: tuple[int, int], awaited: frozenset[str]
) -> bool:
    """Whether a branch in the layout range of a loop is decided by an awaited register."""
    for block in blocks[loop[0] : loop[1] + 1]:
        for i in range(block.start, block.end):
            operation, instruction = flow.operations[i], flow.instructions[i]
            if operation.opcode == "nanosleep":
                return True
            if operation.opcode in effects.TERMINATORS and not awaited.isdisjoint(
                effects.reads(instruction, operation)
            ):
                return True
    return False


def _reentry(flow: FlowGraph, blocks: tuple[Block, ...]) -> frozenset[int]:
    """Where lanes that parted may be together again: post-dominators of conditional branches."""
    first: dict[int, int] = {block.start: block.index for block in blocks}
    found = set()
    for basic in flow.blocks:
        if len(basic.successors) > 1 and basic.immediate_postdominator != EXIT:
            found.add(first[flow.blocks[basic.immediate_postdominator].start])
    for block in blocks:
        if block.start < block.end and effects.is_barrier(flow.operations[block.start]):
            found.add(block.index)
    return frozenset(found)
