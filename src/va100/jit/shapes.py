"""What is known of every register while a warp is converged: the fixpoint over a function's text.

The rules of single instructions are in :mod:`va100.jit.transfer`; what is made of the shapes is in
:mod:`va100.jit.analysis`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from va100.jit.lattice import Shape, affine, constant, join, uniform, varying, widen
from va100.jit.transfer import needs_guard, result_shape, special_shape
from va100.ptx import effects
from va100.ptx.cfg import FlowGraph
from va100.ptx.isa.form import Family, Operation
from va100.ptx.program import (
    Address,
    Immediate,
    Instruction,
    Not,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)
from va100.ptx.types import PtxType, Space
from va100.work import Dim3

_WIDEN_AFTER = 4


def register_parameters(variables: Sequence[Variable]) -> list[Variable]:
    """Parameters of the ``.reg`` kind, which a function's text uses as registers."""
    return [v for v in variables if v.space is Space.REG]


class _Shapes:
    """The fixpoint's state: register to shape or to predicate uniformity."""

    def __init__(self, flow: FlowGraph, block: Dim3) -> None:
        self.flow = flow
        self.block = block
        self.data: dict[str, Shape] = {}
        self.varying_predicates: set[str] = set()
        self.visits: dict[str, int] = {}
        self.changed: list[str] = []
        """Registers that the instruction at hand has changed."""

    def bits(self, name: str) -> int:
        return self.flow.registers[name].bits

    def of(self, operand: Operand | None, bits: int) -> Shape:
        if isinstance(operand, Immediate):
            return constant(bits, operand.value)
        if isinstance(operand, Symbol):
            return uniform(bits)
        if isinstance(operand, Register):
            return self.register(operand.name, bits)
        return varying(bits)

    def register(self, name: str, bits: int) -> Shape:
        if name in self.flow.registers:
            known = self.data.get(name)
            return known if known is not None else uniform(self.bits(name))
        return special_shape(name, self.block) or varying(bits)

    def assign(self, name: str, shape: Shape) -> None:
        bits = self.bits(name)
        if shape.bits != bits:
            shape = uniform(bits) if shape.uniform else varying(bits)
        old = self.data.get(name)
        new = join(old, shape)
        if new is None or new == old:
            return
        self.visits[name] = self.visits.get(name, 0) + 1
        if self.visits[name] > _WIDEN_AFTER:
            new = widen(new)
            if new == old:
                return
        self.data[name] = new
        self.changed.append(name)

    def assign_predicate(self, name: str, *, is_uniform: bool) -> None:
        if not is_uniform and name not in self.varying_predicates:
            self.varying_predicates.add(name)
            self.changed.append(name)

    def is_uniform(self, operand: Operand | None) -> bool:
        if isinstance(operand, Not):
            operand = operand.operand
        if isinstance(operand, Register):
            if operand.name in self.varying_predicates:
                return False
            kind = self.flow.registers.get(operand.name)
            if kind is PtxType.PRED:
                return True
            return self.register(operand.name, 32).uniform
        return True


def converged_shapes(
    flow: FlowGraph, block: Dim3, *, is_kernel: bool
) -> tuple[dict[str, Shape], frozenset[str]]:
    """Shape of each register of data, and the predicates that all lanes agree on."""
    state = _Shapes(flow, block)
    for variable in register_parameters(flow.function.params):
        state.data[variable.name] = varying(variable.type.bits)
    steps = list(zip(flow.instructions, flow.operations, strict=True))
    inputs = [effects.reads(*step) for step in steps]
    users: dict[str, list[int]] = {}
    for index, names in enumerate(inputs):
        for name in names:
            users.setdefault(name, []).append(index)
    due = bytearray(b"\1" * len(steps))
    while any(due):
        for index, step in enumerate(steps):
            if not due[index]:
                continue
            due[index] = 0
            state.changed.clear()
            _transfer(state, *step, inputs[index], is_kernel=is_kernel)
            for name in state.changed:
                for user in users.get(name, ()):
                    due[user] = 1
    data = {
        name: state.data.get(name, uniform(kind.bits))
        for name, kind in flow.registers.items()
        if kind is not PtxType.PRED
    }
    predicates = frozenset(
        name
        for name, kind in flow.registers.items()
        if kind is PtxType.PRED and name not in state.varying_predicates
    )
    if effects.CARRY not in state.varying_predicates:
        predicates |= {effects.CARRY}
    return data, predicates


def _transfer(
    state: _Shapes,
    instruction: Instruction,
    operation: Operation,
    inputs: Sequence[str],
    *,
    is_kernel: bool,
) -> None:
    guard_uniform = instruction.guard is None or (
        instruction.guard.register not in state.varying_predicates
    )
    sources_uniform = all(state.is_uniform(Register(n)) for n in inputs)
    if effects.sets_carry(operation):
        state.assign_predicate(effects.CARRY, is_uniform=sources_uniform and guard_uniform)
    for name in effects.writes(instruction, operation):
        if name not in state.flow.registers:
            continue
        if state.flow.registers[name] is PtxType.PRED:
            state.assign_predicate(
                name,
                is_uniform=guard_uniform
                and _gives_uniform(state, instruction, operation, sources_uniform=sources_uniform),
            )
            continue
        shape = _destination_shape(state, instruction, operation, name, is_kernel=is_kernel)
        state.assign(name, shape if guard_uniform else varying(shape.bits))


def _gives_uniform(
    state: _Shapes, instruction: Instruction, operation: Operation, *, sources_uniform: bool
) -> bool:
    members_uniform = state.is_uniform(instruction.operands[-1])
    family = operation.form.family
    if family is Family.BARRIER:
        return True
    if family is Family.WARP:
        if "sync" not in operation.modifiers:
            return operation.opcode == "vote"
        return members_uniform and (
            operation.opcode == "vote"
            or (operation.opcode == "match" and operation.combine == "all")
        )
    return sources_uniform and family not in (Family.ATOMIC, Family.TEXTURE, Family.MATRIX)


def _destination_shape(
    state: _Shapes, instruction: Instruction, operation: Operation, name: str, *, is_kernel: bool
) -> Shape:
    bits = state.bits(name)
    family = operation.form.family
    if operation.opcode == "call" or family is Family.STACK:
        return varying(bits)
    if operation.opcode == "createpolicy" or family is Family.VIDEO:
        names = effects.reads(instruction, operation)
        same = all(state.is_uniform(Register(n)) for n in names)
        return uniform(bits) if same else varying(bits)
    if family is Family.MEMORY:
        return _load_shape(state, instruction, operation, bits, is_kernel=is_kernel)
    if family is Family.BARRIER or operation.opcode == "activemask":
        return uniform(bits)
    if operation.opcode in ("vote", "redux"):
        named = "sync" in operation.modifiers
        members_uniform = not named or state.is_uniform(instruction.operands[-1])
        return uniform(bits) if members_uniform else varying(bits)
    if family in (Family.WARP, Family.ATOMIC, Family.TEXTURE, Family.MATRIX, Family.ASYNC):
        return varying(bits)
    sources = instruction.operands[1:]
    if operation.opcode == "mov":
        return _move_shape(state, instruction, bits)
    if operation.opcode == "cvta" and operation.space in (Space.LOCAL, Space.SHARED):
        return _window_shape(state, operation, sources[0], bits)
    shapes = [state.of(s, bits) for s in sources]
    predicates_uniform = all(
        state.is_uniform(Register(n))
        for n in effects.reads(instruction, operation)
        if n == effects.CARRY or state.flow.registers.get(n) is PtxType.PRED
    )
    if not predicates_uniform:
        return varying(bits)
    data = [
        shape
        for shape, source in zip(shapes, sources, strict=True)
        if not _is_predicate(state, source)
    ]
    return result_shape(operation, data, bits)


def _is_predicate(state: _Shapes, operand: Operand | None) -> bool:
    return any(state.flow.registers.get(n) is PtxType.PRED for n in effects.registers_in(operand))


def _window_shape(state: _Shapes, operation: Operation, source: Operand | None, bits: int) -> Shape:
    """``cvta`` of a local address differs by lane; of a shared one only by CTA."""
    shape = state.of(source, bits)
    if shape.varying:
        return shape
    if operation.space is Space.LOCAL:
        # The stride between lanes is not known yet; offsets are made at emission.
        return varying(bits)
    return uniform(bits) if shape.uniform else affine(bits, shape.offsets or (), None, None, 0)


def _move_shape(state: _Shapes, instruction: Instruction, bits: int) -> Shape:
    destination, source = instruction.operands[0], instruction.operands[1]
    if isinstance(destination, Vector) or isinstance(source, Vector):
        names = effects.registers_in(source)
        uniforms = all(state.is_uniform(Register(n)) for n in names)
        return uniform(bits) if uniforms else varying(bits)
    if isinstance(source, Immediate):
        return constant(bits, source.value)
    return state.of(source, bits)


def _load_shape(
    state: _Shapes, instruction: Instruction, operation: Operation, bits: int, *, is_kernel: bool
) -> Shape:
    address = instruction.operands[1]
    if operation.space is Space.PARAM and not is_kernel:
        return varying(bits)
    if operation.space is Space.PARAM and not _names_kernel_param(state, address):
        return varying(bits)
    if operation.space is Space.LOCAL:
        return varying(bits)
    if isinstance(address, Address) and isinstance(address.base, Register):
        return uniform(bits) if state.register(address.base.name, 64).uniform else varying(bits)
    return uniform(bits)


def _names_kernel_param(state: _Shapes, address: Operand | None) -> bool:
    return (
        isinstance(address, Address)
        and isinstance(address.base, Symbol)
        and any(p.name == address.base.name for p in state.flow.function.params)
    )


def guarded_instructions(flow: FlowGraph, shapes: Mapping[str, Shape], block: Dim3) -> list[int]:
    """Instructions whose affine result holds only if a sum does not wrap."""
    state = _Shapes(flow, block)
    state.data = dict(shapes)
    found = []
    for index, (instruction, operation) in enumerate(
        zip(flow.instructions, flow.operations, strict=True)
    ):
        if operation.opcode not in ("mul", "mad", "cvt") or not effects.writes(
            instruction, operation
        ):
            continue
        target = effects.writes(instruction, operation)[0]
        if target not in shapes or not shapes[target].affine:
            continue
        operands = [state.of(s, operation.types[-1].bits) for s in instruction.operands[1:]]
        if needs_guard(operation, operands):
            found.append(index)
    return found
