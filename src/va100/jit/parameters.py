"""Device functions that take the address of their own parameters, rewritten before analysis.

A call's parameters are kept as words of 32 lanes, which have no address.  PTX says that a parameter
whose address is moved lies on the stack, in the local space: here it becomes a local variable,
filled where the function begins; a result is copied back wherever the function returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from va100.errors import PtxVerifyError
from va100.ptx.cfg import FlowGraph, flow_of
from va100.ptx.program import (
    Address,
    Function,
    Instruction,
    Location,
    Operand,
    PtxModule,
    Register,
    Span,
    Symbol,
    Variable,
)
from va100.ptx.scopes import Resolved, Resolver
from va100.ptx.types import PtxType, Space

_WORD: Final = "parameter@word"
_PARAM: Final = (".param::func", ".param")


def flow_with_stack(module: PtxModule, function: Function) -> FlowGraph:
    """A function's flow graph, addressed parameters on the stack.

    Raises
    ------
    PtxVerifyError
    """
    resolved = Resolver(module, function, _refuse).resolve()
    if taken := _taken(function, resolved):
        resolved = _Rewriter(function, taken).run(resolved)
    return flow_of(module, function, resolved)


def _refuse(error: PtxVerifyError) -> None:
    raise error


def _taken(function: Function, resolved: Resolved) -> dict[str, Variable]:
    """Parameters and results whose address an instruction takes."""
    if function.is_kernel:
        return {}
    own = {v.name: v for v in (*function.returns, *function.params) if v.space is Space.PARAM}
    named = {
        operand.name
        for instruction in resolved.instructions
        if instruction.opcode == "mov"
        for operand in instruction.operands[1:]
        if isinstance(operand, Symbol)
    }
    return {name: variable for name, variable in own.items() if name in named}


@dataclass(slots=True)
class _Rewriter:
    """Gives the parameters of ``taken`` places on the stack."""

    function: Function
    taken: dict[str, Variable]

    def run(self, resolved: Resolved) -> Resolved:
        """The function with its stack."""
        results = [v for v in self.function.returns if v.name in self.taken]
        begin = [i for v in self.function.params if v.name in self.taken for i in _filled(v)]
        finish = [i for variable in results for i in _given(variable)]
        made = replace(
            resolved,
            instructions=[],
            origins=[],
            locations=[],
            registers={**resolved.registers, _WORD: PtxType.B32},
            variables=dict(resolved.variables),
        )
        for variable in self.taken.values():
            made.variables[_stack_name(variable.name)] = _on_stack(variable)
        first = resolved.locations[0] if resolved.locations else None
        _append(made, begin, self.function.span, first)
        places: dict[int, int] = {}
        for index, instruction in enumerate(resolved.instructions):
            places[index] = len(made.instructions)
            where = resolved.locations[index]
            if instruction.opcode == "ret":
                _append(made, finish, instruction.span, where)
            made.instructions.append(self._rewritten(instruction))
            made.origins.append(resolved.origins[index])
            made.locations.append(where)
        places[len(resolved.instructions)] = len(made.instructions)
        if finish:  # where control runs off the end
            end = Instruction("ret", (), None, Span(*self.function.span))
            _append(made, [*finish, end], self.function.span, first)
        made.labels = {name: places[at] for name, at in resolved.labels.items()}
        return made

    def _rewritten(self, instruction: Instruction) -> Instruction:
        operands = tuple(self._operand(operand) for operand in instruction.operands)
        space = next((s for s in _PARAM if s in instruction.op), "")
        entry = ".param::entry" in instruction.op
        address = next((o for o in instruction.operands if isinstance(o, Address)), None)
        by_register = address is not None and isinstance(address.base, Register)
        op = instruction.op
        if space and not entry and (by_register or operands != instruction.operands):
            op = op.replace(space, ".local")
        return replace(instruction, op=op, operands=operands)

    def _operand(self, operand: Operand | None) -> Operand | None:
        if isinstance(operand, Symbol) and operand.name in self.taken:
            return Symbol(_stack_name(operand.name), operand.offset)
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            base = self._operand(operand.base)
            return Address(base, operand.offset) if isinstance(base, Symbol) else operand
        return operand


def _append(
    made: Resolved, added: Iterable[Instruction], span: Span, location: Location | None
) -> None:
    for instruction in added:
        placed = replace(instruction, span=span)
        made.instructions.append(placed)
        made.origins.append(placed)
        made.locations.append(location)


def _stack_name(name: str) -> str:
    return f"{name}@stack"


def _on_stack(variable: Variable) -> Variable:
    """A local variable of whole words, aligned like the parameter."""
    return replace(
        variable,
        name=_stack_name(variable.name),
        space=Space.LOCAL,
        type=PtxType.B8,
        vector=1,
        shape=(4 * _words(variable),),
        align=max(variable.alignment_bytes, 4),
    )


def _words(variable: Variable) -> int:
    return max(-(-variable.size_bytes // 4), 1)


def _filled(variable: Variable) -> Iterator[Instruction]:
    """Copy a parameter to the stack."""
    return _copied(
        variable, "ld.param.b32", variable.name, "st.local.b32", _stack_name(variable.name)
    )


def _given(variable: Variable) -> Iterator[Instruction]:
    """Copy a result from the stack."""
    return _copied(
        variable, "ld.local.b32", _stack_name(variable.name), "st.param.b32", variable.name
    )


def _copied(
    variable: Variable, load: str, source: str, store: str, target: str
) -> Iterator[Instruction]:
    word, nowhere = Register(_WORD), Span(0, 0)
    for at in range(0, 4 * _words(variable), 4):
        yield Instruction(load, (word, Address(Symbol(source), at)), None, nowhere)
        yield Instruction(store, (Address(Symbol(target), at), word), None, nowhere)
