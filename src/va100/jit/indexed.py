"""Addresses as compilers make them: one base and 32-bit indices times a power of two.

A 64-bit value made from a 32-bit one remembers it (:class:`va100.jit.emit.Indexed`), so that an
access may hand its 32 lanes on in half the room, and have all checked at once.  What an access
does with it is in :mod:`va100.jit.access`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from va100.jit.emit import Emitter, Indexed, Value
from va100.ptx.isa.form import Operation

MOST_SHIFT: Final = 7

Rule = Callable[[Emitter, Operation, Sequence[Value]], Indexed | None]


def indexed_result(c: Emitter, operation: Operation, values: Sequence[Value]) -> Indexed | None:
    """How a varying 64-bit result follows from 32-bit indices, if it does."""
    rule = _RULES.get(operation.opcode)
    return rule(c, operation, values) if rule is not None else None


def extended(c: Emitter, value: Value, *, signed: bool) -> Indexed:
    """A varying 32-bit value, extended."""
    return Indexed(base="0", index=c.vector(value), shift=0, signed=signed)


def moved(c: Emitter, indexed: Indexed, distance: str) -> Indexed:
    """The same lanes a uniform distance further on."""
    if indexed.base == "0":
        return replace(indexed, base=distance)
    return replace(indexed, base=c.op(f"add i64 {indexed.base}, {distance}"))


def _product(c: Emitter, operation: Operation, values: Sequence[Value]) -> Indexed | None:
    """``mul.wide`` and ``mad.wide`` by a power of two."""
    if "wide" not in operation.modifiers or operation.type.bits != 32:
        return None
    for lanes, factor in ((values[0], values[1]), (values[1], values[0])):
        scale = factor.shape.constant
        if scale is None or scale <= 0 or scale & (scale - 1) or lanes.shape.uniform:
            continue
        if scale.bit_length() - 1 > MOST_SHIFT:
            continue
        return replace(
            extended(c, lanes, signed=operation.type.is_signed), shift=scale.bit_length() - 1
        )
    return None


def _product_sum(c: Emitter, operation: Operation, values: Sequence[Value]) -> Indexed | None:
    product = _product(c, operation, values)
    if product is None or not values[2].shape.uniform:
        return None
    return moved(c, product, c.base(values[2]))


def _sum(c: Emitter, operation: Operation, values: Sequence[Value]) -> Indexed | None:
    del operation
    for lanes, other in ((values[0], values[1]), (values[1], values[0])):
        if lanes.indexed is not None and other.shape.uniform:
            return moved(c, lanes.indexed, c.base(other))
    return None


def _shifted(c: Emitter, operation: Operation, values: Sequence[Value]) -> Indexed | None:
    del operation
    indexed, shift = values[0].indexed, values[1].shape.constant
    if indexed is None or shift is None or not 0 <= indexed.shift + shift <= MOST_SHIFT:
        return None
    base = indexed.base if indexed.base == "0" else c.op(f"shl i64 {indexed.base}, {shift}")
    return replace(indexed, base=base, shift=indexed.shift + shift)


_RULES: Final[Mapping[str, Rule]] = {
    "add": _sum,
    "mad": _product_sum,
    "mul": _product,
    "shl": _shifted,
}
