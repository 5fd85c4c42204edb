"""What a text was understood to hold: kernels, what they need, what they are made of.

Counts are static (instructions in the text), not what would execute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from va100.ptx.cfg import FlowGraph, build_flow
from va100.ptx.isa import Form, Operation
from va100.ptx.program import (
    Address,
    Function,
    Instruction,
    Operand,
    PtxModule,
    Symbol,
    TextureAddress,
    Variable,
    Vector,
)
from va100.ptx.types import Space
from va100.ptx.verify import reachable, unsupported


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSummary:
    """One function or kernel that has a body.

    ``registers`` counts virtual registers used, by type.  Bytes and unsupported instructions are
    those of everything a kernel reaches through calls; instructions are its own.
    """

    name: str
    is_kernel: bool
    line: int
    params: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    directives: tuple[tuple[str, tuple[int, ...]], ...]
    registers: Mapping[str, int]
    static_shared_bytes: int
    uses_dynamic_shared: bool
    local_bytes: int
    instruction_count: int
    block_count: int
    families: Mapping[str, int]
    opcodes: Mapping[str, int]
    calls: tuple[str, ...]
    unsupported: Mapping[str, tuple[int, ...]]
    """Operation to the lines it stands in."""


def summarise(module: PtxModule, function: Function) -> FunctionSummary:
    """Summarise one function of a module that keeps the rules.

    Raises
    ------
    PtxVerifyError
        When its names or instructions cannot be resolved.
    """
    flow = build_flow(module, function)
    flows = [build_flow(module, f) for f in reachable(module, function) if f.body is not None]
    shared = _shared(module, flows)
    operations = flow.operations
    return FunctionSummary(
        name=function.name,
        is_kernel=function.is_kernel,
        line=module.line_of(function.span.start),
        params=function.params,
        returns=function.returns,
        directives=function.directives,
        registers=dict(Counter(kind.value for kind in flow.registers.values())),
        static_shared_bytes=sum(v.size_bytes for v in shared),
        uses_dynamic_shared=any(v.size_bytes == 0 for v in shared),
        local_bytes=sum(
            v.size_bytes for f in flows for v in f.variables.values() if v.space is Space.LOCAL
        ),
        instruction_count=len(operations),
        block_count=len(flow.blocks),
        families=_counted(op.form.family.value for op in operations),
        opcodes=_counted(op.text for op in operations),
        calls=tuple(f.name for f in reachable(module, function)[1:]),
        unsupported=_unsupported_lines(module, function),
    )


def form_counts(module: PtxModule) -> dict[Form, tuple[int, Operation]]:
    """Count how often each form of the table is used, with one operation that uses it."""
    counts: dict[Form, tuple[int, Operation]] = {}
    for function in module.functions:
        if function.body is None:
            continue
        for operation in build_flow(module, function).operations:
            count, example = counts.get(operation.form, (0, operation))
            counts[operation.form] = (count + 1, example)
    return counts


def _counted(names: Iterator[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())


def _unsupported_lines(module: PtxModule, function: Function) -> dict[str, tuple[int, ...]]:
    lines: dict[str, tuple[int, ...]] = {}
    for error in unsupported(module, function):
        operation = error.problem.split("'")[1]
        lines[operation] = (*lines.get(operation, ()), error.line)
    return lines


def _shared(module: PtxModule, flows: list[FlowGraph]) -> list[Variable]:
    """Shared variables that these functions declare or name."""
    named = {name for flow in flows for i in flow.instructions for name in _symbols(i)}
    found = [v for v in module.variables if v.space is Space.SHARED and v.name in named]
    for flow in flows:
        found += [v for v in flow.variables.values() if v.space is Space.SHARED]
    return found


def _symbols(instruction: Instruction) -> Iterator[str]:
    for operand in instruction.operands:
        yield from _symbols_in(operand)


def _symbols_in(operand: Operand | None) -> Iterator[str]:
    match operand:
        case Symbol(name, _):
            yield name
        case Address(Symbol(name, _), _):
            yield name
        case Vector(elements) | TextureAddress(elements):
            for element in elements:
                yield from _symbols_in(element)
        case _:
            return
