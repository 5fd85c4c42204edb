"""Rules of calls: who is called, with what, against a declaration or a prototype."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from va100.ptx.program import (
    CallArguments,
    CallPrototype,
    Function,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    TargetList,
    Variable,
)
from va100.ptx.rules_operands import agrees
from va100.ptx.types import PtxType, Space

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """Checks the calls of one function.

    ``functions`` holds the module's functions by name, ``aliases`` what an alias stands for; the
    rest is the resolved calling function's.
    """

    functions: Mapping[str, Function]
    aliases: Mapping[str, str]
    registers: Mapping[str, PtxType]
    variables: Mapping[str, Variable]
    module_variables: Mapping[str, Variable]
    prototypes: Mapping[str, CallPrototype]
    target_lists: Mapping[str, TargetList]

    def check(self, instruction: Instruction, report: Report) -> None:
        """Check one ``call``."""
        returns, target, arguments, table = instruction.operands
        signature = self._signature(target, table, report)
        if signature is None:
            return
        name = target.name if isinstance(target, Register | Symbol) else ""
        given = arguments.elements if isinstance(arguments, CallArguments) else ()
        taken = returns.elements if isinstance(returns, CallArguments) else ()
        self._list("argument", name, given, signature[1], report)
        self._list("return value", name, taken, signature[0], report)

    def _signature(
        self, target: Operand | None, table: Operand | None, report: Report
    ) -> tuple[tuple[Variable, ...], tuple[Variable, ...]] | None:
        if isinstance(target, Symbol):
            return self._direct(target.name, report)
        if not isinstance(target, Register):
            report("call takes a function or a register")
            return None
        kind = self.registers.get(target.name)
        if kind is not None and (kind.is_float or kind.bits not in (32, 64)):
            report(f"{target.name!r} (.{kind.value}) cannot hold a function's address")
        if not isinstance(table, Symbol):
            report("an indirect call names a .callprototype or .calltargets list")
            return None
        if prototype := self.prototypes.get(table.name):
            return prototype.returns, prototype.params
        listed = self.target_lists.get(table.name)
        if listed is None or listed.kind != "calltargets":
            report(f"{table.name!r} is no .callprototype and no .calltargets list")
            return None
        first = self.functions.get(listed.targets[0])
        return (first.returns, first.params) if first else None

    def _direct(
        self, name: str, report: Report
    ) -> tuple[tuple[Variable, ...], tuple[Variable, ...]] | None:
        function = self.functions.get(self.aliases.get(name, name))
        if function is None:
            report(f"{name!r} is no function")
            return None
        if function.is_kernel:
            report(f"{name!r} is a kernel; only functions can be called")
            return None
        return function.returns, function.params

    def _list(
        self, what: str, name: str, given: Sequence[Operand | None],
        wanted: tuple[Variable, ...], report: Report,
    ) -> None:  # fmt: skip
        if wanted and _is_open(wanted[-1]) and len(given) == len(wanted) - 1:
            wanted = wanted[:-1]  # nothing passed through the unsized array
        if len(given) != len(wanted):
            plural = "" if len(wanted) == 1 else "s"
            report(f"{name!r} has {len(wanted)} {what}{plural}, {len(given)} given")
            return
        for index, (operand, formal) in enumerate(zip(given, wanted, strict=True), 1):
            problem = self._mismatch(operand, formal)
            if problem:
                report(f"{what} {index} of {name!r}: {problem}")

    def _mismatch(self, operand: Operand | None, formal: Variable) -> str:
        scalar = not formal.shape and formal.vector == 1
        match operand:
            case Symbol(name, _):
                variable = self.variables.get(name)
                if variable is not None and variable.space is Space.PARAM:
                    return _parameter_mismatch(variable, formal)
                known = variable is not None or name in self.module_variables
                if known or name in self.functions:
                    return "" if scalar and formal.type.bits in (32, 64) else "an address is passed"
                return f"{name!r} is no parameter variable"
            case Register(name):
                kind = self.registers.get(name)
                if not scalar:
                    return f"{name!r} is a register, {_spelled(formal)} is wanted"
                if kind is not None and not agrees(formal.type, kind):
                    return f"{name!r} is .{kind.value}, {_spelled(formal)} is wanted"
                return ""
            case Immediate():
                return "" if scalar else f"a constant is given, {_spelled(formal)} is wanted"
            case None:
                return ""
            case _:
                return "a parameter variable, a register or a constant is wanted"


def _parameter_mismatch(actual: Variable, formal: Variable) -> str:
    if _is_open(formal):
        return ""
    if actual.size_bytes != formal.size_bytes:
        return f"{_spelled(actual)} is given, {_spelled(formal)} is wanted"
    return ""


def _is_open(formal: Variable) -> bool:
    """Tell whether a parameter is an array without a size: it takes what is passed."""
    return formal.shape[-1:] == (0,)


def _spelled(variable: Variable) -> str:
    shape = "".join(f"[{extent}]" for extent in variable.shape)
    return f".{variable.type.value}{shape} ({variable.size_bytes} bytes)"
