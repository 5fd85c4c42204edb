"""Flushing subnormal f32 values to zero of the same sign, as ``.ftz`` asks."""

from __future__ import annotations

from va100.jit.context import Context
from va100.jit.emit import Poly, Value
from va100.jit.lattice import uniform
from va100.ptx.isa.form import Operation

_SMALLEST_NORMAL = 0x00800000


def flushed(c: Context, operation: Operation, value: Value) -> Value:
    """An operand or result, flushed when the instruction says ``.ftz``."""
    if not operation.ftz or value.shape.bits != 32:
        return value
    p = Poly(c, not value.shape.uniform)
    name = flush_text(p, p.get(value))
    result = p.result(name, uniform(32))
    result.dirty = value.dirty
    return result


def flush_text(p: Poly, bits: str) -> str:
    """Flush by bit pattern."""
    kind = p.integer(32)
    magnitude = p.op(f"and {kind} {bits}, {p.const(32, 0x7FFFFFFF)}")
    small = p.op(f"icmp ult {kind} {magnitude}, {p.const(32, _SMALLEST_NORMAL)}")
    sign = p.op(f"and {kind} {bits}, {p.const(32, 0x80000000)}")
    return p.op(f"select {p.boolean} {small}, {kind} {sign}, {kind} {bits}")
