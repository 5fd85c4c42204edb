"""Control flow of one function: scopes resolved, basic blocks, dominators, post-dominators.

Both engines and the verifier read this form.  It holds no semantics beyond where control goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from va100.ptx.isa.form import Operation
from va100.ptx.program import CallPrototype, Function, Instruction, Location, TargetList, Variable
from va100.ptx.types import PtxType

EXIT = -1
"""The virtual block every path ends in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicBlock:
    """Instructions ``start`` to ``end`` (exclusive), entered at the top and left at the bottom.

    ``successors`` are block indices, the branch target first, then the fall-through; empty when
    the block leaves the function.  A guarded ``ret``/``exit`` ends a block whose only successor
    is the fall-through.  ``call`` and barriers do not end a block.
    """

    index: int
    start: int
    end: int
    successors: tuple[int, ...]
    predecessors: tuple[int, ...]
    immediate_dominator: int
    """``EXIT`` for the entry block."""
    immediate_postdominator: int
    """``EXIT`` when control need not pass any one block before leaving."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """One function ready for an engine.

    Names of registers, labels and function-scope variables are unique here (an inner scope's
    ``%r1`` that shadows an outer one is renamed ``%r1@2``).  Parallel tuples give each
    instruction's decoded operation, PTX line and source location.
    """

    function: Function
    instructions: tuple[Instruction, ...]
    operations: tuple[Operation, ...]
    lines: tuple[int, ...]
    locations: tuple[Location | None, ...]
    registers: Mapping[str, PtxType]
    variables: Mapping[str, Variable]
    labels: Mapping[str, int]
    """Label to block index."""
    blocks: tuple[BasicBlock, ...]
    """In layout order; block 0 is the entry; unreachable blocks are left out."""
    prototypes: Mapping[str, CallPrototype]
    target_lists: Mapping[str, TargetList]
