"""Control flow of one function: scopes resolved, basic blocks, dominators, post-dominators.

Both engines and the verifier read this form.  It holds no semantics beyond where control goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from va100.errors import PtxVerifyError
from va100.ptx.dominators import (
    immediate_dominators,
    immediate_postdominators,
    predecessors_of,
    reverse_postorder,
)
from va100.ptx.isa import decode
from va100.ptx.isa.form import Operation
from va100.ptx.program import (
    CallPrototype,
    Function,
    Instruction,
    Location,
    PtxModule,
    Span,
    Symbol,
    TargetList,
    Variable,
)
from va100.ptx.scopes import Resolved, Resolver
from va100.ptx.text import error_at
from va100.ptx.types import PtxType

EXIT = -1
"""The virtual block every path ends in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicBlock:
    """Instructions ``start`` to ``end`` (exclusive), entered at the top and left at the bottom.

    ``successors`` are block indices, the branch target first, then the fall-through; empty when
    the block leaves the function.  A guarded ``ret``/``exit`` ends a block whose only successor
    is the fall-through.  ``brx.idx`` has its distinct targets in the list's order, then the
    fall-through if it is guarded.  ``call``, ``trap`` and barriers do not end a block.
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
    instruction's decoded operation, PTX line and source location.  A vector register is its
    components (``%v`` becomes ``{%v.x, %v.y}``); ``registers`` holds those that are used.  Where
    control could run off the end of the body a ``ret`` is appended, so that the last block ends
    in one.
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


_LEAVING: Final = frozenset({"ret", "exit"})
_ENDING: Final = frozenset({"bra", "brx", "ret", "exit"})


def build_flow(module: PtxModule, function: Function) -> FlowGraph:
    """Resolve a function's scopes, decode its instructions, find its blocks.

    Raises
    ------
    PtxVerifyError
        At the first name that is not declared or instruction that the A100 does not have.
    """
    if function.body is None:
        raise ValueError(f"{function.name} is a declaration: it has no body")
    return flow_of(module, function, Resolver(module, function, _refuse).resolve())


def flow_of(module: PtxModule, function: Function, resolved: Resolved) -> FlowGraph:
    """Find the blocks of a function whose scopes are resolved."""
    operations = [_decoded(module, i) for i in resolved.instructions]
    _close_end(function, resolved, operations)
    instructions = resolved.instructions
    blocks, labels = _Blocks(module, resolved).build()
    return FlowGraph(
        function=function,
        instructions=tuple(instructions),
        operations=tuple(operations),
        lines=_lines(module, instructions),
        locations=tuple(resolved.locations),
        registers=resolved.registers,
        variables=resolved.variables,
        labels=labels,
        blocks=blocks,
        prototypes=resolved.prototypes,
        target_lists=resolved.target_lists,
    )


def _refuse(error: PtxVerifyError) -> None:
    raise error


def _decoded(module: PtxModule, instruction: Instruction) -> Operation:
    try:
        return decode(instruction.op)
    except PtxVerifyError as error:
        raise located(module, instruction.span, error) from None


def located(module: PtxModule, span: Span, error: PtxVerifyError) -> PtxVerifyError:
    """Give an error without a place the place of a span."""
    source, name = module.source, module.name
    return error_at(PtxVerifyError, source, name, span.start, error.problem, error.hint)


def _close_end(function: Function, resolved: Resolved, operations: list[Operation]) -> None:
    """Append the ``ret`` that running off the end of a body means."""
    instructions = resolved.instructions
    at_end = len(instructions)
    if instructions:
        last = instructions[-1]
        closed = last.opcode in _ENDING and last.guard is None
        if closed and at_end not in resolved.labels.values():
            return
    end = function.span.end
    instructions.append(Instruction("ret", (), None, Span(max(end - 1, 0), end)))
    resolved.origins.append(instructions[-1])
    resolved.locations.append(resolved.locations[-1] if resolved.locations else None)
    operations.append(decode("ret"))


def _lines(module: PtxModule, instructions: list[Instruction]) -> tuple[int, ...]:
    lines = []
    offset, line = 0, 1
    for instruction in instructions:
        start = instruction.span.start
        line += module.source.count("\n", offset, start)
        offset = start
        lines.append(line)
    return tuple(lines)


class _Blocks:
    """Finds the basic blocks of a row of instructions."""

    def __init__(self, module: PtxModule, resolved: Resolved) -> None:
        self.module = module
        self.instructions = resolved.instructions
        self.labels = resolved.labels
        self.lists = resolved.target_lists
        self.targets = [self._branch_targets(i) for i in self.instructions]

    def build(self) -> tuple[tuple[BasicBlock, ...], dict[str, int]]:
        starts = self._starts()
        ends = [*starts[1:], len(self.instructions)]
        index_of = {start: index for index, start in enumerate(starts)}
        successors = [self._successors(end, index_of) for end in ends]
        kept = sorted(reverse_postorder(successors, 0))
        renumbered = {old: new for new, old in enumerate(kept)}
        graph = [tuple(renumbered[s] for s in successors[old]) for old in kept]
        spans = [(starts[old], ends[old]) for old in kept]
        labels = {
            name: renumbered[index_of[at]]
            for name, at in self.labels.items()
            if at in index_of and index_of[at] in renumbered
        }
        return self._finish(graph, spans), labels

    def _finish(
        self, graph: list[tuple[int, ...]], spans: list[tuple[int, int]]
    ) -> tuple[BasicBlock, ...]:
        leaving = [
            index
            for index, (_, end) in enumerate(spans)
            if self.instructions[end - 1].opcode in _LEAVING
        ]
        dominators = immediate_dominators(graph, 0)
        postdominators = immediate_postdominators(graph, leaving)
        predecessors = predecessors_of(graph)
        return tuple(
            BasicBlock(
                index=index,
                start=start,
                end=end,
                successors=graph[index],
                predecessors=tuple(predecessors[index]),
                immediate_dominator=dominators[index],
                immediate_postdominator=postdominators[index],
            )
            for index, (start, end) in enumerate(spans)
        )

    def _starts(self) -> list[int]:
        starts = {0}
        for index, targets in enumerate(self.targets):
            starts.update(self.labels[name] for name in targets)
            if self.instructions[index].opcode in _ENDING and index + 1 < len(self.targets):
                starts.add(index + 1)
        return sorted(starts)

    def _branch_targets(self, instruction: Instruction) -> tuple[str, ...]:
        if instruction.opcode not in ("bra", "brx"):
            return ()
        target = instruction.operands[-1] if instruction.operands else None
        if isinstance(target, Symbol):
            if instruction.opcode == "bra" and target.name in self.labels:
                return (target.name,)
            table = self.lists.get(target.name)
            if instruction.opcode == "brx" and table and table.kind == "branchtargets":
                return table.targets
        wanted = "a label" if instruction.opcode == "bra" else "an index and a .branchtargets list"
        raise error_at(
            PtxVerifyError,
            self.module.source,
            self.module.name,
            instruction.span.start,
            f"{instruction.op} needs {wanted}",
        )

    def _successors(self, end: int, index_of: dict[int, int]) -> tuple[int, ...]:
        last = self.instructions[end - 1]
        opcode = last.opcode
        found = [index_of[self.labels[name]] for name in self.targets[end - 1]]
        if opcode == "brx":
            found = list(dict.fromkeys(found))
        if opcode not in _ENDING or last.guard is not None:
            found.append(index_of[end])
        return tuple(found)
