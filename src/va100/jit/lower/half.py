"""f16 and bf16 arithmetic, one or two to a register, through native functions."""

from __future__ import annotations

from va100.jit.context import Context
from va100.ptx.isa.form import Operation


def lower_half(c: Context, op: Operation) -> None:
    """Apply the native function of the operation."""
    name = helper_name(op)
    if name not in c.helpers:
        raise c.refuse("this half-precision operation is not executed")
    values = [c.clean(c.read_sized(s, op.type)) for s in c.instruction.operands[1:]]
    c.write(c.instruction.operands[0], c.elementwise(name, values, op.type.bits))


def helper_name(op: Operation) -> str:
    """The native function is named after the operation, the type and the modifiers."""
    parts = ["va_m", op.opcode, op.type.value]
    parts += [m for m, on in (("ftz", op.ftz), ("sat", op.saturate)) if on]
    parts += [m for m in ("relu", "NaN") if m in op.modifiers]
    return "_".join(parts)
