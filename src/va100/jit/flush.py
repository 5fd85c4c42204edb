"""Flushing subnormal f32 and f16 values to zero of the same sign, as ``.ftz`` asks."""

from __future__ import annotations

from va100.jit.context import Context
from va100.jit.emit import Poly, Value
from va100.jit.lattice import uniform
from va100.ptx.isa.form import Operation

_SMALLEST_NORMAL = {16: 0x0400, 32: 0x00800000}


def flushed(c: Context, operation: Operation, value: Value) -> Value:
    """An operand or result, flushed when the instruction says ``.ftz``."""
    bits = value.shape.bits
    if not operation.ftz or bits not in _SMALLEST_NORMAL:
        return value
    p = Poly(c, not value.shape.uniform)
    name = _flush_text(p, p.get(value), bits)
    result = p.result(name, uniform(bits))
    result.dirty = value.dirty
    return result


def _flush_text(p: Poly, value: str, bits: int) -> str:
    """Flush by bit pattern."""
    kind, sign_bit = p.integer(bits), 1 << (bits - 1)
    magnitude = p.op(f"and {kind} {value}, {p.const(bits, sign_bit - 1)}")
    small = p.op(f"icmp ult {kind} {magnitude}, {p.const(bits, _SMALLEST_NORMAL[bits])}")
    sign = p.op(f"and {kind} {value}, {p.const(bits, sign_bit)}")
    return p.op(f"select {p.boolean} {small}, {kind} {sign}, {kind} {value}")
