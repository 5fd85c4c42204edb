"""``setp``, ``set``, ``selp`` and ``slct``, on integers and on floating point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from va100.jit.context import Context
from va100.jit.emit import Poly, Predicate, Value
from va100.jit.flush import flushed
from va100.jit.lattice import Shape, signed_limits, uniform
from va100.jit.pure import select
from va100.ptx.isa.form import Operation
from va100.ptx.program import Pair
from va100.ptx.types import PtxType

_COMPARE: Final[Mapping[str, tuple[str, str]]] = {
    "eq": ("eq", "eq"),
    "ne": ("ne", "ne"),
    "lt": ("slt", "ult"),
    "le": ("sle", "ule"),
    "gt": ("sgt", "ugt"),
    "ge": ("sge", "uge"),
    "lo": ("ult", "ult"),
    "ls": ("ule", "ule"),
    "hi": ("ugt", "ugt"),
    "hs": ("uge", "uge"),
}
"""Comparison to LLVM's condition for signed and for unsigned types."""


def compare_integers(c: Context, op: Operation, kind: PtxType, a: Value, b: Value) -> Predicate:
    """``setp`` of integers or bits."""
    if a.shape.affine and b.shape.uniform:
        folded = _fold_range(op.compare, kind, a, b)
        if folded is not None:
            return Predicate(scalar=folded)
    if a.shape.affine and b.shape.uniform and c.mask is None:
        return _compare_ends(c, op, kind, a, b)
    p = c.poly(a, b)
    condition = _COMPARE[op.compare][0 if kind.is_signed else 1]
    return p.predicate(p.op(f"icmp {condition} {p.integer(kind.bits)} {p.get(a)}, {p.get(b)}"))


def _compare_ends(c: Context, op: Operation, kind: PtxType, a: Value, b: Value) -> Predicate:
    """Decide by the smallest and the largest lane where that is enough.

    A sum that wraps at the register's width must not be decided this way: where the shape does
    not say that none does, the code asks.
    """
    condition = _COMPARE[op.compare][0 if kind.is_signed else 1]

    def every_lane() -> str:
        # Of copies: this may be asked for where a branch has been taken, and again after it.
        left, right = c.vector(replace(a)), c.vector(replace(b))
        return c.op(f"icmp {condition} <32 x i{kind.bits}> {left}, {right}")

    how = _ENDS.get(condition[-2:])
    offsets = a.shape.offsets or ()
    known = _stays_inside(a.shape, kind)
    if how is None or (not known and min(offsets) < 0):
        return Predicate(make=every_lane)
    base, limit, word = c.base(a), c.base(b), f"i{kind.bits}"
    regular = "true" if known else _no_wrap(c, base, max(offsets), kind)
    low = c.op(f"add {word} {base}, {min(offsets)}")
    high = c.op(f"add {word} {base}, {max(offsets)}")
    hard, easy = (low, high) if how == "up" else (high, low)
    if how == "equal":
        sign = "s" if kind.is_signed else "u"
        outside = c.op(
            f"or i1 {c.op(f'icmp {sign}lt {word} {limit}, {low}')}, "
            f"{c.op(f'icmp {sign}gt {word} {limit}, {high}')}"
        )
        outside = c.op(f"and i1 {outside}, {regular}")
        if condition == "eq":
            return Predicate(all_true="false", all_false=outside, make=every_lane)
        return Predicate(all_true=outside, all_false="false", make=every_lane)
    all_true = c.op(f"icmp {condition} {word} {hard}, {limit}")
    all_false = c.op(f"icmp {_OPPOSITE[condition]} {word} {easy}, {limit}")
    return Predicate(
        all_true=c.op(f"and i1 {all_true}, {regular}"),
        all_false=c.op(f"and i1 {all_false}, {regular}"),
        make=every_lane,
    )


def _stays_inside(shape: Shape, kind: PtxType) -> bool:
    """Whether no lane's sum of base and offset can wrap, by what is known of the shape."""
    least, most = signed_limits(kind.bits)
    least = least if kind.is_signed else 0
    return shape.value_low >= least and shape.value_high <= most


def _no_wrap(c: Context, base: str, reach: int, kind: PtxType) -> str:
    """Whether ``base + reach`` does not wrap."""
    most = signed_limits(kind.bits)[1]
    if kind.is_signed:
        return c.op(f"icmp sle i{kind.bits} {base}, {most - reach}")
    return c.op(f"icmp ule i{kind.bits} {base}, {-1 - reach}")


_ENDS: Final[Mapping[str, str]] = {
    "lt": "down",
    "le": "down",
    "gt": "up",
    "ge": "up",
    "eq": "equal",
    "ne": "equal",
}
"""Which end decides for all: ``down``, the largest lane must be small enough."""

_OPPOSITE: Final[Mapping[str, str]] = {
    "slt": "sge",
    "sle": "sgt",
    "sgt": "sle",
    "sge": "slt",
    "ult": "uge",
    "ule": "ugt",
    "ugt": "ule",
    "uge": "ult",
}


def _fold_range(how: str, kind: PtxType, a: Value, b: Value) -> str | None:
    """Decide a comparison by intervals alone."""
    least = a.shape.value_low
    if not kind.is_signed and (least < 0 or b.shape.low < 0):
        return None
    most, low, high = a.shape.value_high, b.shape.low, b.shape.high
    below, above = most < low, least > high
    if how in ("lt", "lo", "le", "ls") and (below or above):
        return "true" if below else "false"
    if how in ("gt", "hi", "ge", "hs") and (below or above):
        return "true" if above else "false"
    if how in ("eq", "ne") and (below or above):
        return "true" if how == "ne" else "false"
    return None


_FLOAT: Final[Mapping[str, str]] = {
    "eq": "oeq",
    "ne": "one",
    "lt": "olt",
    "le": "ole",
    "gt": "ogt",
    "ge": "oge",
    "equ": "ueq",
    "neu": "une",
    "ltu": "ult",
    "leu": "ule",
    "gtu": "ugt",
    "geu": "uge",
    "num": "ord",
    "nan": "uno",
}
"""Comparison to LLVM's condition; the ``u`` forms hold when an operand is NaN."""


def _compare(c: Context, op: Operation, kind: PtxType) -> Predicate:
    a, b = (c.read_sized(s, kind) for s in c.instruction.operands[1:3])
    if not kind.is_float:
        return compare_integers(c, op, kind, c.clean(a), c.clean(b))
    if kind in (PtxType.BF16, PtxType.F16X2, PtxType.BF16X2):
        raise c.refuse("comparison of this type is not executed")
    a, b = flushed(c, op, a), flushed(c, op, b)
    p = c.poly(a, b)
    return p.predicate(
        p.op(
            f"fcmp {_FLOAT[op.compare]} {p.floating(kind.bits)} {p.get_float(a)}, {p.get_float(b)}"
        )
    )


def _combined(c: Context, op: Operation, found: Predicate) -> Predicate:
    """With the boolean operator and the third operand, where given."""
    if len(c.instruction.operands) < 4:
        return found
    return c.combined(op.combine, found, c.predicate(c.instruction.operands[3]))


def _lower_setp(c: Context, op: Operation) -> None:
    if op.types[-1] is PtxType.F16X2:
        _setp_halves(c, op)
        return
    found = _compare(c, op, op.types[-1])
    destination = c.instruction.operands[0]
    if isinstance(destination, Pair):
        both = _combined(c, op, found), _combined(c, op, c.negated(found))
        c.write_predicate(destination.first, both[0])
        c.write_predicate(destination.second, both[1])
    else:
        c.write_predicate(destination, _combined(c, op, found))


def _setp_halves(c: Context, op: Operation) -> None:
    """Two f16x2 give two predicates, the lower halves' first."""
    low, high = (_combined(c, op, found) for found in _halves(c, op))
    destination = c.instruction.operands[0]
    if not isinstance(destination, Pair):
        c.write_predicate(destination, low)
        return
    c.write_predicate(destination.first, low)
    c.write_predicate(destination.second, high)


_TRUE: Final[Mapping[PtxType, int]] = {
    PtxType.U32: -1,
    PtxType.S32: -1,
    PtxType.U16: -1,
    PtxType.S16: -1,
    PtxType.F32: 0x3F800000,
    PtxType.F16: 0x3C00,
}
"""What ``set`` gives where the comparison holds: all ones, or 1.0."""


def _lower_set(c: Context, op: Operation) -> None:
    """``set``: all ones (or 1.0) where the comparison holds; packed types half by half."""
    if op.types[-1] is PtxType.F16X2:
        _set_halves(c, op)
        return
    if op.type not in _TRUE:
        raise c.refuse("set into this type is not executed")
    found = _combined(c, op, _compare(c, op, op.types[-1]))
    c.write(c.instruction.operands[0], _chosen(c, found, op.type.bits, _TRUE[op.type]))


def _chosen(c: Context, found: Predicate, bits: int, pattern: int) -> Value:
    p = Poly(c, not found.uniform)
    bit = found.scalar if found.uniform else c.bools_of(found)
    kind = p.integer(bits)
    name = p.op(
        f"select {p.boolean} {bit}, {kind} {p.const(bits, pattern)}, {kind} {p.const(bits, 0)}"
    )
    return p.result(name, uniform(bits))


def _halves(c: Context, op: Operation) -> tuple[Predicate, Predicate]:
    """The comparison of the lower and of the upper halves of two f16x2."""
    values = [c.clean(c.read_sized(s, PtxType.B32)) for s in c.instruction.operands[1:3]]
    found = []
    for shift in (0, 16):
        parts = []
        for value in values:
            p = Poly(c, not value.shape.uniform)
            moved = p.op(f"lshr {p.integer(32)} {p.get(value)}, {p.const(32, shift)}")
            low = p.op(f"trunc {p.integer(32)} {moved} to {p.integer(16)}")
            parts.append(flushed(c, op, p.result(low, uniform(16))))
        p = c.poly(*parts)
        x, y = (p.get_float(part) for part in parts)
        found.append(p.predicate(p.op(f"fcmp {_FLOAT[op.compare]} {p.floating(16)} {x}, {y}")))
    return found[0], found[1]


def _set_halves(c: Context, op: Operation) -> None:
    pattern = 0x3C00 if op.type is PtxType.F16X2 else 0xFFFF
    if op.type not in (PtxType.F16X2, PtxType.U32, PtxType.S32):
        raise c.refuse("set into this type is not executed")
    low, high = (_combined(c, op, found) for found in _halves(c, op))
    a, b = _chosen(c, low, 32, pattern), _chosen(c, high, 32, pattern << 16)
    p = c.poly(a, b)
    name = p.op(f"or {p.integer(32)} {p.get(a)}, {p.get(b)}")
    c.write(c.instruction.operands[0], p.result(name, uniform(32)))


def _lower_slct(c: Context, op: Operation) -> None:
    """``slct``: ``c >= 0 ? a : b``; with a NaN or f32 ``c``, b."""
    a, b = (c.read_sized(s, op.type) for s in c.instruction.operands[1:3])
    selector = c.read_sized(c.instruction.operands[3], op.types[-1])
    if op.types[-1] is PtxType.F32:
        selector = flushed(c, op, selector)
        p = c.poly(selector)
        zero = p.float_const(32, 0)
        found = p.op(f"fcmp oge {p.floating(32)} {p.get_float(selector)}, {zero}")
    else:
        p = c.poly(selector)
        found = p.op(f"icmp sge {p.integer(32)} {p.get(selector)}, {p.const(32, 0)}")
    c.write(c.instruction.operands[0], select(c, p.predicate(found), a, b, op.type.bits))


def _lower_selp(c: Context, op: Operation) -> None:
    """``d = p ? a : b``."""
    a, b = (c.read_sized(s, op.type) for s in c.instruction.operands[1:3])
    chosen = c.predicate(c.instruction.operands[3])
    c.write(c.instruction.operands[0], select(c, chosen, a, b, op.type.bits))


_LOWERINGS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "setp": _lower_setp,
    "set": _lower_set,
    "slct": _lower_slct,
    "selp": _lower_selp,
}


def lower_compare(c: Context, op: Operation) -> None:
    """Comparison and selection."""
    _LOWERINGS[op.opcode](c, op)
