"""``atom`` and ``red``: read-modify-write, lane after lane, through native functions."""

from __future__ import annotations

from typing import Final

from va100.jit.access import (
    Access,
    access_info,
    address_value,
    effective_space,
    indexed_call,
    spill_addresses,
)
from va100.jit.context import Context
from va100.jit.emit import Value
from va100.ptx.isa.form import Operation
from va100.ptx.program import Register
from va100.ptx.types import Space

_BITWISE: Final = frozenset({"exch", "cas", "and", "or", "xor"})
"""Operations that look at bits only, whatever the type."""
_ORDER_MATTERS: Final = frozenset({"exch", "cas", "inc", "dec"})


def lower_atomic(c: Context, op: Operation) -> None:
    """Update memory; ``atom`` also gives the old value."""
    returns = op.opcode == "atom"
    operands = c.instruction.operands[1:] if returns else c.instruction.operands
    space = effective_space(op)
    access = Access(
        address=address_value(c, operands[0], space),
        space=space,
        bits=op.type.bits,
        count=1,
        write=True,
        volatile=True,
    )
    kind = f"b{op.type.bits}" if op.combine in _BITWISE else op.type.value
    name = f"va_h_atom_{space.value}_{op.combine}_{kind}"
    if name not in c.helpers:
        raise c.refuse("this atomic operation is not executed")
    values = [c.clean(c.read_sized(s, op.type)) for s in operands[1:]]
    destination = c.instruction.operands[0] if returns else None
    if isinstance(destination, Register) and destination.name in c.analysis.unread:
        destination = None
    if destination is None and _reduce(c, access, f"{op.combine}_{kind}", values):
        return
    result = _call(c, access, name, values)
    if destination is not None:
        c.write(destination, result)
    if op.type.is_float or destination is not None or op.combine in _ORDER_MATTERS:
        c.ordered = c.ordered or space.value != "shared"


def _reduce(c: Context, access: Access, kind: str, values: list[Value]) -> bool:
    """Shared memory, by indices, when nobody looks at the old values."""
    if access.space is not Space.SHARED or access.address.indexed is None or len(values) != 1:
        return False
    element = f"i{access.bits}"
    if values[0].shape.uniform:
        return indexed_call(c, access, "xreds", f"{element} {c.base(values[0])}", kind=kind)
    where = c.array(element)
    c.line(f"store <32 x {element}> {c.vector(values[0])}, ptr {where}, align 64")
    return indexed_call(c, access, "xred", f"ptr {where}", kind=kind)


def _call(c: Context, access: Access, name: str, values: list[Value]) -> Value:
    bits = access.bits
    kind = f"<32 x i{bits}>"
    arrays = []
    for value in values:
        where = c.array(f"i{bits}")
        c.line(f"store {kind} {c.vector(value)}, ptr {where}, align 64")
        arrays.append(where)
    out = c.array(f"i{bits}")
    arrays += [arrays[-1]] * (2 - len(arrays)) + [out]
    c.declare(name, "declare void {}(ptr, i64, i32, ptr, ptr, ptr, ptr)")
    listed = ", ".join(f"ptr {a}" for a in [spill_addresses(c, access), *arrays])
    c.line(f"call void @{name}(ptr %w, i64 {access_info(c, access)}, i32 {c.lanes}, {listed})")
    return c.from_vector(c.op(f"load {kind}, ptr {out}, align 64"), bits)
