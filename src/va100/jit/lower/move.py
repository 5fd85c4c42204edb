"""Moves, packing, and conversion between address spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit import abi
from va100.jit.access import LANES
from va100.jit.context import Context
from va100.jit.emit import Poly, Value
from va100.jit.lattice import affine, uniform
from va100.ptx.isa.form import Operation
from va100.ptx.program import Operand, Symbol, Vector
from va100.ptx.types import PtxType, Space


def _lower_cvta(c: Context, op: Operation) -> None:
    value = c.resized(c.read(c.instruction.operands[1], 64), 64)
    space = op.space or Space.GENERIC
    if space is Space.SHARED:
        value = _shift_window(c, value, abi.SHARED, 0, back=op.to_space)
    elif space is Space.LOCAL:
        value = _shift_window(c, value, abi.LOCAL, c.local_stride, back=op.to_space)
    c.write(c.instruction.operands[0], value)


def _shift_window(c: Context, value: Value, field: int, stride: int, *, back: bool) -> Value:
    """Between a window's offsets and generic addresses; lane windows lie ``stride`` apart."""
    origin = c.op(f"ptrtoint ptr {c.field(field, 'ptr')} to i64")
    sign = -1 if back else 1
    verb = "sub" if back else "add"
    if value.shape.varying:
        moved = c.op(f"{verb} <32 x i64> {c.vector(value)}, {c.splat(origin, 'i64')}")
        if stride:
            steps = ", ".join(f"i64 {sign * stride * lane}" for lane in range(LANES))
            moved = c.op(f"add <32 x i64> {moved}, <{steps}>")
        return c.from_vector(moved, 64)
    base = c.op(f"{verb} i64 {c.base(value)}, {origin}")
    old = value.shape.offsets or (0,) * LANES
    shape = affine(64, tuple(v + sign * stride * lane for lane, v in enumerate(old)))
    return Value(shape, base=base)


def _lower_mov(c: Context, op: Operation) -> None:
    destination, source = c.instruction.operands[0], c.instruction.operands[1]
    if op.type is PtxType.PRED:
        c.write_predicate(destination, c.predicate(source))
    elif isinstance(destination, Vector):
        _unpack(c, op, destination, source)
    elif isinstance(source, Vector):
        _pack(c, op, destination, source)
    else:
        value = c.read(source, op.type.bits, floating=op.type.is_float)
        c.write(destination, c.resized(value, op.type.bits))


def _pack(c: Context, op: Operation, destination: Operand | None, source: Vector) -> None:
    """Several registers side by side, the first lowest."""
    total = op.type.bits
    part = total // len(source.elements)
    values = [c.clean(c.resized(c.read(e, part), part)) for e in source.elements]
    p = c.poly(*values)
    result = ""
    for k, value in enumerate(values):
        wide = p.op(f"zext {p.integer(part)} {p.get(value)} to {p.integer(total)}")
        if k:
            wide = p.op(f"shl {p.integer(total)} {wide}, {p.const(total, part * k)}")
            wide = p.op(f"or {p.integer(total)} {result}, {wide}")
        result = wide
    c.write(destination, p.result(result, uniform(total)))


def _unpack(c: Context, op: Operation, destination: Vector, source: Operand | None) -> None:
    if isinstance(source, Vector):
        bits, floating = op.type.bits, op.type.is_float
        values = [c.read(element, bits, floating=floating) for element in source.elements]
        for target, value in zip(destination.elements, values, strict=True):
            c.write(target, c.resized(value, bits))
        return
    total = op.type.bits
    part = total // len(destination.elements)
    value = c.clean(c.resized(c.read(source, total), total))
    p = Poly(c, not value.shape.uniform)
    for k, target in enumerate(destination.elements):
        if target is None:
            continue
        moved = p.get(value)
        if k:
            moved = p.op(f"lshr {p.integer(total)} {moved}, {p.const(total, part * k)}")
        low = p.op(f"trunc {p.integer(total)} {moved} to {p.integer(part)}")
        c.write(target, p.result(low, uniform(part)))


def _lower_isspacep(c: Context, op: Operation) -> None:
    """Whether a generic address lies in a window."""
    value = c.resized(c.read(c.instruction.operands[1], 64), 64)
    p = Poly(c, not value.shape.uniform)
    address = p.get(value)
    shared = _inside(c, p, address, abi.SHARED, c.field(abi.SHARED_BYTES, "i32"))
    lanes_bytes = max(c.local_stride, 1) * LANES
    local = _inside(c, p, address, abi.LOCAL, str(lanes_bytes))
    if op.space is Space.SHARED:
        found = shared
    elif op.space is Space.LOCAL:
        found = local
    elif op.space is Space.PARAM:
        found = _inside(c, p, address, abi.PARAMS, str(max(c.param_bytes, 1)))
    elif op.space is Space.CONST:
        found = _in_constants(c, p, address)
    elif op.space is Space.GLOBAL:
        either = p.op(f"or {p.boolean} {shared}, {local}")
        found = p.op(f"xor {p.boolean} {either}, {'splat (i1 true)' if p.wide else 'true'}")
    else:
        raise c.refuse("isspacep of this space is not executed")
    c.write_predicate(c.instruction.operands[0], p.predicate(found))


def _in_constants(c: Context, p: Poly, address: str) -> str:
    """Whether an address lies in one of the module's ``.const`` variables."""
    found = "splat (i1 false)" if p.wide else "false"
    for name, size in c.symbols.constants.items():
        start = c.base(c.address_of(Symbol(name)))
        if p.wide:
            start = c.splat(start, "i64")
        relative = p.op(f"sub {p.integer(64)} {address}, {start}")
        here = p.op(f"icmp ult {p.integer(64)} {relative}, {p.const(64, size)}")
        found = p.op(f"or {p.boolean} {found}, {here}")
    return found


def _inside(c: Context, p: Poly, address: str, field: int, size: str) -> str:
    origin = c.op(f"ptrtoint ptr {c.field(field, 'ptr')} to i64")
    wide = c.op(f"zext i32 {size} to i64")
    if p.wide:
        origin, wide = c.splat(origin, "i64"), c.splat(wide, "i64")
    relative = p.op(f"sub {p.integer(64)} {address}, {origin}")
    return p.op(f"icmp ult {p.integer(64)} {relative}, {wide}")


_LOWERINGS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "cvta": _lower_cvta,
    "mov": _lower_mov,
    "isspacep": _lower_isspacep,
}


def lower_move(c: Context, op: Operation) -> None:
    """Move instructions."""
    if op.opcode not in _LOWERINGS:
        raise c.refuse("this move is not executed")
    _LOWERINGS[op.opcode](c, op)
