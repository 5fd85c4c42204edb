"""The frame every pure integer lowering shares: operands in, shape decided, result out.

A lowering proper only writes the text of its operation (see :class:`va100.jit.emit.Poly`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from va100.jit.context import Context
from va100.jit.emit import Poly, Predicate, Value
from va100.jit.indexed import indexed_result
from va100.jit.lattice import uniform, varying
from va100.jit.transfer import needs_guard, result_shape
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType

Text = Callable[[Poly, Operation, Sequence[str]], str]


def lower_pure(
    c: Context, operation: Operation, kinds: Sequence[PtxType], result: PtxType, text: Text
) -> None:
    """Lower ``d = f(a, b, …)`` for operands of the given types."""
    sources = c.instruction.operands[1:]
    values = [c.read_sized(s, k) for s, k in zip(sources, kinds, strict=True)]
    c.write(c.instruction.operands[0], pure_value(c, operation, values, result, text))


def pure_value(
    c: Context, operation: Operation, values: Sequence[Value], result: PtxType, text: Text
) -> Value:
    """The value of a pure integer operation, kept scalar where its shape allows."""
    values = [c.clean(v) for v in values]
    shapes = [v.shape for v in values]
    shape = result_shape(operation, shapes, result.bits)
    if needs_guard(operation, shapes) and (c.masked or c.index not in c.analysis.guarded):
        shape = varying(result.bits)
    if shape.constant is not None:
        return c.constant(shape)
    p = Poly(c, shape.varying)
    arguments = _bases(c, operation, values) if shape.affine else [p.get(v) for v in values]
    name = text(p, operation, arguments)
    if shape.varying:
        indexed = indexed_result(c, operation, values) if shape.bits == 64 else None
        return Value(shape, vector=name, indexed=indexed)
    return Value(shape, base=name)


def _bases(c: Context, operation: Operation, values: Sequence[Value]) -> list[str]:
    """Scalars to compute an affine result's base from.

    ``or`` and ``xor`` with a constant act on the base through the bits above its alignment only;
    the lower ones act on the offsets.
    """
    if operation.opcode not in ("or", "xor"):
        return [c.base(v) for v in values]
    align = max(v.shape.align for v in values if v.shape.affine)
    bases = []
    for value in values:
        known = value.shape.constant
        if known is None:
            bases.append(c.base(value))
        else:
            bases.append(str(known & ~((1 << align) - 1)))
    return bases


def select(c: Context, chosen: Predicate, a: Value, b: Value, bits: int) -> Value:
    """Pick lane by lane."""
    p = c.poly(chosen, a, b)
    if not chosen.uniform:
        p = Poly(c, wide=True)
    bit = c.bools_of(chosen) if p.wide else chosen.scalar
    kind = p.integer(bits)
    name = p.op(f"select {p.boolean} {bit}, {kind} {p.get(a)}, {kind} {p.get(b)}")
    result = p.result(name, uniform(bits))
    result.dirty = a.dirty or b.dirty
    return result
