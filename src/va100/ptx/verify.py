"""The rules of PTX, checked: what breaks one is named with its place.

``verify`` raises the first problem, ``problems`` collects all, ``unsupported`` lists what a
kernel reaches that is legal but not executed.  The rules themselves are in the
``rules_…`` modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from va100.errors import PtxError, PtxVerifyError, UnsupportedInstruction
from va100.ptx import texture
from va100.ptx.isa import Operation, Support, look_up
from va100.ptx.isa.decode import spelling
from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.special import PARSED_REGISTERS
from va100.ptx.program import (
    Alias,
    Function,
    Instruction,
    PtxModule,
    Register,
    Scope,
    Span,
    Statement,
    Symbol,
)
from va100.ptx.rules_calls import CallRules
from va100.ptx.rules_module import (
    architecture_of,
    check_directives,
    check_header,
    check_names,
    check_shared_size,
    check_variable,
    check_variables,
)
from va100.ptx.rules_operands import OperandRules
from va100.ptx.scopes import Resolved, Resolver
from va100.ptx.text import error_at
from va100.ptx.types import Space

_A100: Final = 80


def verify(module: PtxModule) -> None:
    """Check a module.

    Raises
    ------
    PtxError
        The first problem, with its place; ``problems`` gives all of them.
    """
    found = problems(module)
    if found:
        raise found[0]


def problems(module: PtxModule) -> list[PtxError]:
    """Collect everything in a module that breaks a rule, in order of place."""
    return _Verifier(module).run()


class _Verifier:
    def __init__(self, module: PtxModule) -> None:
        self.module = module
        self.found: list[PtxError] = []
        self.functions = _definitions(module)
        self.aliases = {i.name: i.aliasee for i in module.items if isinstance(i, Alias)}
        self.variables = {v.name: v for v in module.variables}
        self.architecture = architecture_of(module)

    def run(self) -> list[PtxError]:
        """Check everything."""
        check_header(self.module, self.report)
        check_names(self.module, self.report)
        check_variables(self.module, self.report)
        check_shared_size(self.module, self.report)
        for function in self.module.functions:
            check_directives(self.module, function, self.report)
            if function.body is not None:
                self._body(function)
        unique = {(e.line, e.column, e.problem): e for e in self.found}
        return sorted(unique.values(), key=lambda error: (error.line, error.column))

    def report(self, span: Span, problem: str, hint: str = "") -> None:
        """Note a problem."""
        module = self.module
        self.found.append(
            error_at(PtxVerifyError, module.source, module.name, span.start, problem, hint)
        )

    def _body(self, function: Function) -> None:
        resolved = Resolver(self.module, function, self.found.append).resolve()
        names = frozenset(self.functions) | frozenset(self.aliases)
        operands = OperandRules(resolved.registers, resolved.variables, self.variables, names)
        calls = CallRules(
            functions=self.functions,
            aliases=self.aliases,
            registers=resolved.registers,
            variables=resolved.variables,
            module_variables=self.variables,
            prototypes=resolved.prototypes,
            target_lists=resolved.target_lists,
        )
        for variable in resolved.variables.values():
            check_variable(variable, None, self.report)
        for instruction in resolved.instructions:
            operation = self._operation(instruction)
            if operation is None:
                continue
            report = self._reporter(instruction.span)
            operands.check(instruction, operation, report)
            if operation.opcode == "call":
                calls.check(instruction, report)
            elif operation.opcode in ("bra", "brx"):
                self._branch(instruction, resolved)
            elif operation.opcode == "st" and operation.space is Space.PARAM:
                self._parameter_store(function, instruction)

    def _reporter(self, span: Span) -> _Reporter:
        return _Reporter(self, span)

    def _operation(self, instruction: Instruction) -> Operation | None:
        try:
            operation = look_up(instruction.op)
        except PtxVerifyError as error:
            self.report(instruction.span, error.problem, error.hint)
            return None
        form, version = operation.form, self.module.version
        if form.min_sm > _A100:
            self.report(
                instruction.span,
                f"{instruction.op!r} needs sm_{form.min_sm}; the A100 is sm_{_A100}",
            )
            return None
        if form.min_sm > self.architecture:
            self.report(
                instruction.span,
                f"{instruction.op!r} needs sm_{form.min_sm}; the text's target is "
                f"sm_{self.architecture}",
            )
        if gone := _taken_away(form, version, self.architecture):
            self.report(instruction.span, f"{instruction.op!r} {gone}")
        if form.since > version:
            self.report(
                instruction.span,
                f"{instruction.op!r} needs PTX ISA {form.since[0]}.{form.since[1]}; the text is "
                f"{version[0]}.{version[1]}",
            )
        return operation

    def _branch(self, instruction: Instruction, resolved: Resolved) -> None:
        target = instruction.operands[-1] if instruction.operands else None
        if not isinstance(target, Symbol):
            return
        if instruction.opcode == "bra":
            if target.name not in resolved.labels:
                self.report(instruction.span, f"label {target.name!r} is not defined here")
            return
        table = resolved.target_lists.get(target.name)
        if table is None or table.kind != "branchtargets":
            self.report(instruction.span, f"{target.name!r} is no .branchtargets list")

    def _parameter_store(self, function: Function, instruction: Instruction) -> None:
        address = instruction.operands[0] if instruction.operands else None
        base = getattr(address, "base", None)
        if not isinstance(base, Symbol):
            return
        if any(parameter.name == base.name for parameter in function.params):
            self.report(instruction.span, f"parameter {base.name!r} can only be read")


class _Reporter:
    """Reports at one instruction."""

    __slots__ = ("_span", "_verifier")

    def __init__(self, verifier: _Verifier, span: Span) -> None:
        self._verifier = verifier
        self._span = span

    def __call__(self, problem: str) -> None:
        self._verifier.report(self._span, problem)


def _taken_away(form: Form, version: tuple[int, int], architecture: int) -> str:
    """Why a text may use a form no more; empty when it may."""
    if form.until is None or version < form.until or architecture < form.until_sm:
        return ""
    since = f"PTX ISA {form.until[0]}.{form.until[1]}"
    target = f" for sm_{form.until_sm} and later" if form.until_sm else ""
    return f"is not in {since}{target}; the text is {version[0]}.{version[1]}"


def _definitions(module: PtxModule) -> dict[str, Function]:
    """Functions by name, a definition before a declaration."""
    found: dict[str, Function] = {}
    for function in module.functions:
        if function.name not in found or function.body is not None:
            found[function.name] = function
    return found


# ---------------------------------------------------------------- what is not executed


def unsupported(module: PtxModule, kernel: Function) -> list[UnsupportedInstruction]:
    """List the instructions a kernel reaches, through calls too, that are not executed yet."""
    found = []
    for function in reachable(module, kernel):
        for instruction in instructions_of(function.body or ()):
            reason = _unsupported_reason(instruction)
            if not reason:
                continue
            found.append(
                error_at(
                    UnsupportedInstruction,
                    module.source,
                    module.name,
                    instruction.span.start,
                    f"{instruction.op!r} is not executed by this version",
                    f"{reason}, reached from kernel {kernel.name!r}",
                )
            )
    return found


def _unsupported_reason(instruction: Instruction) -> str:
    operation = look_up(instruction.op)
    if operation.form.support is not Support.EXECUTED:
        return f"form {spelling(operation.form)}"
    if operation.form.family is Family.TEXTURE and (
        refusal := texture.problem(operation, instruction.operands, {})
    ):
        return refusal
    for operand in instruction.operands:
        if isinstance(operand, Register) and operand.name in PARSED_REGISTERS:
            return f"it reads {operand.name}"
    return ""


def reachable(module: PtxModule, function: Function) -> list[Function]:
    """List a function and all it may call, each once.

    An indirect call may reach every function whose address is taken anywhere in the module.
    """
    functions = _definitions(module)
    aliases = {i.name: i.aliasee for i in module.items if isinstance(i, Alias)}
    pending, seen = [function], {function.name: function}
    while pending:
        for name in _called(module, pending.pop(), functions):
            called = functions.get(aliases.get(name, name))
            if called is not None and called.name not in seen:
                seen[called.name] = called
                pending.append(called)
    return list(seen.values())


def _called(module: PtxModule, function: Function, functions: dict[str, Function]) -> list[str]:
    names: list[str] = []
    for instruction in instructions_of(function.body or ()):
        if instruction.opcode == "call":
            target = instruction.operands[1]
            if isinstance(target, Symbol):
                names.append(target.name)
            elif isinstance(target, Register):
                names += _address_taken(module, functions)
    return names


def _address_taken(module: PtxModule, functions: dict[str, Function]) -> list[str]:
    names = []
    for variable in module.variables:
        for element in variable.initializer.elements if variable.initializer else ():
            symbol = element if isinstance(element, Symbol) else element[1]
            if isinstance(symbol, Symbol):
                names.append(symbol.name.removeprefix("generic(").removesuffix(")"))
    for function in functions.values():
        for instruction in instructions_of(function.body or ()):
            if instruction.opcode != "call":
                names += [o.name for o in instruction.operands if isinstance(o, Symbol)]
    return [name for name in names if name in functions]


def instructions_of(body: Sequence[Statement]) -> Iterator[Instruction]:
    """Walk a body's instructions, those of inner scopes too."""
    for statement in body:
        if isinstance(statement, Instruction):
            yield statement
        elif isinstance(statement, Scope):
            yield from instructions_of(statement.body)


__all__ = ["instructions_of", "problems", "reachable", "unsupported", "verify"]
