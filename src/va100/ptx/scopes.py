"""Scopes of a function body resolved: every name made unique, statements laid in one row.

PTX scopes nest (``{ .reg .b32 %r1; … }``) and inner declarations hide outer ones.  Here each
register, variable, label and prototype gets a name that is unique in its function, and vector
registers fall apart into their components, and a vector of one is its element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from va100.errors import PtxVerifyError
from va100.ptx.isa.special import LATER_REGISTERS, PARSED_REGISTERS, SPECIAL_REGISTERS
from va100.ptx.program import (
    Address,
    Alias,
    CallArguments,
    CallPrototype,
    Function,
    Guard,
    Instruction,
    Label,
    Location,
    Negative,
    Not,
    Operand,
    Pair,
    PtxModule,
    Register,
    RegisterDecl,
    Scope,
    Span,
    Statement,
    Symbol,
    TargetList,
    TextureAddress,
    Variable,
    Vector,
)
from va100.ptx.text import error_at
from va100.ptx.types import PtxType, Space

_AXES: Final = "xyzw"
_COLOURS: Final = str.maketrans("rgba", "xyzw")
_SELECTORS: Final = frozenset("bh")
_SCALARS: Final = frozenset({"ld", "ldu", "st", "atom", "red", "mov"})
"""Opcodes whose ``{%r1}`` means ``%r1``, as Triton writes it."""

Report = Callable[[PtxVerifyError], None]


@dataclass(slots=True)
class _Names:
    """What one scope declares, by the name written."""

    registers: dict[str, tuple[PtxType, int]] = field(default_factory=dict)
    ranges: dict[str, tuple[PtxType, int, int]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    unique: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Resolved:
    """A function's statements in one row, names unique.

    ``labels`` maps a label to the index of the instruction it stands before; ``origins`` gives
    each instruction as written.
    """

    instructions: list[Instruction] = field(default_factory=list)
    origins: list[Instruction] = field(default_factory=list)
    locations: list[Location | None] = field(default_factory=list)
    registers: dict[str, PtxType] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    prototypes: dict[str, CallPrototype] = field(default_factory=dict)
    target_lists: dict[str, TargetList] = field(default_factory=dict)


class Resolver:
    """Walks one function; problems go to ``report``, which may raise or collect."""

    def __init__(self, module: PtxModule, function: Function, report: Report) -> None:
        self.module = module
        self.function = function
        self.result = Resolved()
        self._report = report
        self._scopes: list[_Names] = []
        self._taken: dict[str, int] = {}
        self._memos: list[dict[Operand, Operand | None]] = []
        self._location: Location | None = None
        self._span = function.span
        self._global = frozenset(
            [v.name for v in module.variables]
            + [f.name for f in module.functions]
            + [a.name for a in _aliases(module)]
        )

    def resolve(self) -> Resolved:
        """Resolve the whole body; a declaration gives an empty result."""
        names = _Names()
        self._scopes.append(names)
        self._memos.append({})
        for variable in (*self.function.returns, *self.function.params):
            if variable.space is Space.REG:
                self._declare_register(names, variable.name, None, variable.type, 1, variable.span)
            else:
                self._declare_variable(names, variable)
        body = self.function.body or ()
        self._declare_ahead(names, body)
        self._walk(names, body)
        self._resolve_targets()
        return self.result

    # -- declarations

    def problem(self, span: Span, problem: str, hint: str = "") -> None:
        """Report a problem at a place."""
        source, name = self.module.source, self.module.name
        self._report(error_at(PtxVerifyError, source, name, span.start, problem, hint))

    def _declare_ahead(self, names: _Names, body: Sequence[Statement]) -> None:
        """Declare what may be used before it stands in the text: labels and tables."""
        for statement in body:
            if isinstance(statement, Label):
                if statement.name in names.labels:
                    self.problem(statement.span, f"label {statement.name!r} is defined twice")
                names.labels[statement.name] = self._unique(names, statement.name)
            elif isinstance(statement, CallPrototype | TargetList):
                if statement.name in names.tables:
                    self.problem(statement.span, f"{statement.name!r} is defined twice")
                names.tables[statement.name] = self._unique(names, statement.name)

    def _unique(self, names: _Names, name: str) -> str:
        known = names.unique.get(name)
        if known is None:
            count = self._taken.get(name, 0) + 1
            self._taken[name] = count
            known = name if count == 1 else f"{name}@{count}"
            names.unique[name] = known
        return known

    def _declare_register(
        self, names: _Names, name: str, count: int | None, kind: PtxType, vector: int, span: Span
    ) -> None:
        if name in names.registers or name in names.ranges or name in names.variables:
            self.problem(span, f"{name!r} is declared twice in one scope")
        if name in SPECIAL_REGISTERS or f"{name}.x" in SPECIAL_REGISTERS:
            self.problem(span, f"{name!r} is a special register")
        if count is None:
            names.registers[name] = (kind, vector)
        else:
            names.ranges[name] = (kind, count, vector)

    def _declare_variable(self, names: _Names, variable: Variable) -> None:
        name = variable.name
        if name in names.variables or name in names.registers:
            self.problem(variable.span, f"{name!r} is declared twice in one scope")
        unique = self._unique(names, name)
        names.variables[name] = unique
        self.result.variables[unique] = variable

    # -- statements

    def _walk(self, names: _Names, body: Sequence[Statement]) -> None:
        self._memos[-1].clear()
        for statement in body:
            if isinstance(statement, Instruction):
                self._instruction(statement)
            elif isinstance(statement, Scope):
                self._scope(statement)
            elif isinstance(statement, Location):
                if not statement.intermediate:
                    self._location = statement
            else:
                self._declaration(names, statement)

    def _declaration(self, names: _Names, statement: Statement) -> None:
        match statement:
            case Label():
                unique = names.labels[statement.name]
                self.result.labels[unique] = len(self.result.instructions)
            case RegisterDecl():
                for name, count in statement.names:
                    self._declare_register(
                        names, name, count, statement.type, statement.vector, statement.span
                    )
                self._memos[-1].clear()
            case Variable():
                self._declare_variable(names, statement)
                self._memos[-1].clear()
            case CallPrototype():
                self.result.prototypes[names.tables[statement.name]] = statement
            case TargetList():
                self._target_list(names, statement)
            case _:
                pass

    def _scope(self, scope: Scope) -> None:
        names = _Names()
        self._scopes.append(names)
        self._memos.append({})
        self._declare_ahead(names, scope.body)
        self._walk(names, scope.body)
        self._memos.pop()
        self._scopes.pop()

    def _target_list(self, names: _Names, table: TargetList) -> None:
        targets = table.targets
        if table.kind == "branchtargets":
            targets = tuple(self._label(target, table.span) for target in targets)
        renamed = TargetList(table.name, table.kind, targets, table.span)
        self.result.target_lists[names.tables[table.name]] = renamed

    def _label(self, name: str, span: Span) -> str:
        for names in reversed(self._scopes):
            if name in names.labels:
                return names.labels[name]
        self.problem(span, f"label {name!r} is not defined here")
        return name

    def _instruction(self, instruction: Instruction) -> None:
        self._span = instruction.span
        memo = self._memos[-1]
        changed = False
        operands: list[Operand | None] = []
        for operand in instruction.operands:
            resolved = None
            if operand is not None:
                resolved = memo.get(operand)
                if resolved is None:
                    resolved = memo[operand] = self._operand(operand)
                changed |= resolved is not operand
            operands.append(resolved)
        if instruction.opcode in _SCALARS and any(_is_single(o) for o in operands):
            operands = [_unwrapped(operand) for operand in operands]
            changed = True
        guard = instruction.guard
        if guard is not None:
            guard = self._guard(guard, memo)
            changed |= guard is not instruction.guard
        self.result.origins.append(instruction)
        if changed:
            instruction = Instruction(instruction.op, tuple(operands), guard, instruction.span)
        self.result.instructions.append(instruction)
        self.result.locations.append(self._location)

    def _guard(self, guard: Guard, memo: dict[Operand, Operand | None]) -> Guard:
        key = Register(guard.register)
        resolved = memo.get(key)
        if resolved is None:
            resolved = memo[key] = self._operand(key)
        if not isinstance(resolved, Register):
            self.problem(self._span, f"{guard.register!r} cannot guard an instruction")
            return guard
        return guard if resolved == key else Guard(resolved.name, guard.negated)

    # -- operands

    def _operand(self, operand: Operand) -> Operand | None:
        match operand:
            case Register():
                return self._register(operand)
            case Symbol():
                return self._symbol(operand)
            case Address(base, offset):
                resolved = self._operand(base) if base is not None else None
                if resolved is base:
                    return operand
                return Address(cast("Register | Symbol | None", resolved), offset)
            case Not(inner) | Negative(inner):
                return _rewrap(operand, inner, self._operand(inner))
            case _:
                return self._compound(operand)

    def _compound(self, operand: Operand) -> Operand:
        match operand:
            case Vector(elements):
                return _same(operand, Vector(self._all(elements)))
            case CallArguments(elements):
                return _same(operand, CallArguments(self._all(elements)))
            case TextureAddress(parts):
                resolved = cast("tuple[Operand, ...]", self._all(parts))
                return _same(operand, TextureAddress(resolved))
            case Pair(first, second):
                return _same(operand, Pair(*self._all((first, second))))
            case _:
                return operand

    def _all(self, operands: tuple[Operand | None, ...]) -> tuple[Operand | None, ...]:
        return tuple(None if o is None else self._operand(o) for o in operands)

    def _register(self, register: Register) -> Operand:
        name = register.name
        base, dot, component = name.partition(".")
        for names in reversed(self._scopes):
            found = names.registers.get(base) or _in_range(names.ranges, base)
            if found is not None:
                return self._declared(names, register, base, dot + component, found)
            if base in names.variables:
                return Symbol(names.variables[base])
        if name in SPECIAL_REGISTERS or name in PARSED_REGISTERS:
            return register
        if base in self._global:
            return Symbol(base)
        if name in LATER_REGISTERS:
            needed = LATER_REGISTERS[name]
            problem = f"special register {name!r} needs sm_{needed}; the A100 is sm_80"
            self.problem(self._span, problem)
        else:
            self.problem(self._span, f"register {name!r} is not declared")
        return register

    def _declared(
        self, names: _Names, register: Register, base: str, suffix: str,
        found: tuple[PtxType, int],
    ) -> Operand:  # fmt: skip
        kind, vector = found
        unique = self._unique(names, base)
        registers = self.result.registers
        if vector == 1:
            registers[unique] = kind
            if suffix and suffix[1] not in _SELECTORS:
                self.problem(self._span, f"{base!r} is no vector: it has no component {suffix!r}")
            return register if unique == base else Register(unique + suffix)
        components = [f"{unique}.{axis}" for axis in _AXES[:vector]]
        registers.update(dict.fromkeys(components, kind))
        if not suffix:
            return Vector(tuple(Register(name) for name in components))
        renamed = unique + suffix.translate(_COLOURS)
        if renamed not in components:
            self.problem(self._span, f"{base!r} has no component {suffix!r}")
        return Register(renamed)

    def _symbol(self, symbol: Symbol) -> Operand:
        name = symbol.name
        for names in reversed(self._scopes):
            for table in (names.variables, names.labels, names.tables):
                if name in table:
                    unique = table[name]
                    return symbol if unique == name else Symbol(unique, symbol.offset)
            found = names.registers.get(name) or _in_range(names.ranges, name)
            if found is not None:
                return self._declared(names, Register(name), name, "", found)
        if name not in self._global:
            self.problem(self._span, f"{name!r} is not declared")
        return symbol

    def _resolve_targets(self) -> None:
        for table in self.result.target_lists.values():
            if table.kind == "calltargets":
                for name in table.targets:
                    if name not in self._global:
                        self.problem(table.span, f"function {name!r} is not declared")


def _aliases(module: PtxModule) -> Iterator[Alias]:
    return (item for item in module.items if isinstance(item, Alias))


def _in_range(ranges: dict[str, tuple[PtxType, int, int]], name: str) -> tuple[PtxType, int] | None:
    """Find ``%r7`` among ranges such as ``%r<10>``."""
    end = len(name.rstrip("0123456789"))
    for split in range(end, len(name)):
        found = ranges.get(name[:split])
        digits = name[split:]
        if found and (digits[0] != "0" or digits == "0") and int(digits) < found[1]:
            return found[0], found[2]
    return None


def _is_single(operand: Operand | None) -> bool:
    return isinstance(operand, Vector) and len(operand.elements) == 1


def _unwrapped(operand: Operand | None) -> Operand | None:
    if isinstance(operand, Vector) and len(operand.elements) == 1:
        return operand.elements[0]
    return operand


def _rewrap(operand: Not | Negative, inner: Register, resolved: Operand | None) -> Not | Negative:
    if resolved is inner or not isinstance(resolved, Register):
        return operand
    return type(operand)(resolved)


def _same(old: Operand, new: Operand) -> Operand:
    return old if old == new else new
