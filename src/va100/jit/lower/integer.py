"""Integer arithmetic and logic; what works on single bits is in :mod:`va100.jit.bits`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from va100.jit.bits import (
    bfe,
    bfi,
    bfind,
    bmsk,
    brev,
    clz,
    cnot,
    complement,
    extend,
    intrinsic,
    popc,
    prmt,
    shf,
    shl,
    shr,
    szext,
)
from va100.jit.context import Context
from va100.jit.emit import Poly, Predicate
from va100.jit.lattice import uniform
from va100.jit.pure import Text, lower_pure, pure_value
from va100.ptx import effects
from va100.ptx.isa.form import Operation
from va100.ptx.program import Pair
from va100.ptx.types import PtxType

Lower = Callable[[Context, Operation], None]

# ------------------------------------------------------------------ texts


def _binary(llvm: str) -> Text:
    """Text of a two-operand LLVM instruction."""

    def text(p: Poly, op: Operation, a: Sequence[str]) -> str:
        return p.op(f"{llvm} {p.integer(op.type.bits)} {a[0]}, {a[1]}")

    return text


def _add(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``add``; ``.sat`` clamps to the signed 32-bit range."""
    if op.saturate:
        return intrinsic("sadd.sat", p, 32, a)
    return p.op(f"add {p.integer(op.type.bits)} {a[0]}, {a[1]}")


def _sub(p: Poly, op: Operation, a: Sequence[str]) -> str:
    if op.saturate:
        return intrinsic("ssub.sat", p, 32, a)
    return p.op(f"sub {p.integer(op.type.bits)} {a[0]}, {a[1]}")


def _wide_product(p: Poly, op: Operation, a: str, b: str) -> str:
    """Full product, twice as wide as the operands."""
    bits, signed = op.type.bits, op.type.is_signed
    x = extend(p, a, bits, 2 * bits, signed=signed)
    y = extend(p, b, bits, 2 * bits, signed=signed)
    return p.op(f"mul {p.integer(2 * bits)} {x}, {y}")


def _product(p: Poly, op: Operation, a: str, b: str) -> str:
    bits = op.type.bits
    if "wide" in op.modifiers:
        return _wide_product(p, op, a, b)
    if "hi" in op.modifiers:
        full = _wide_product(p, op, a, b)
        high = p.op(f"lshr {p.integer(2 * bits)} {full}, {p.const(2 * bits, bits)}")
        return p.op(f"trunc {p.integer(2 * bits)} {high} to {p.integer(bits)}")
    return p.op(f"mul {p.integer(bits)} {a}, {b}")


def _mul(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return _product(p, op, a[0], a[1])


def _mad(p: Poly, op: Operation, a: Sequence[str]) -> str:
    bits = op.type.bits * 2 if "wide" in op.modifiers else op.type.bits
    product = _product(p, op, a[0], a[1])
    if op.saturate:
        return intrinsic("sadd.sat", p, bits, (product, a[2]))
    return p.op(f"add {p.integer(bits)} {product}, {a[2]}")


def _mul24(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Product of the low 24 bits: bits 0-31 (``.lo``) or 16-47 (``.hi``) of it."""
    shift = "ashr" if op.type.is_signed else "lshr"
    parts = []
    for value in a[:2]:
        up = p.op(f"shl {p.integer(32)} {value}, {p.const(32, 8)}")
        down = p.op(f"{shift} {p.integer(32)} {up}, {p.const(32, 8)}")
        parts.append(extend(p, down, 32, 64, signed=op.type.is_signed))
    full = p.op(f"mul {p.integer(64)} {parts[0]}, {parts[1]}")
    if "hi" in op.modifiers:
        full = p.op(f"lshr {p.integer(64)} {full}, {p.const(64, 16)}")
    return p.op(f"trunc {p.integer(64)} {full} to {p.integer(32)}")


def _mad24(p: Poly, op: Operation, a: Sequence[str]) -> str:
    product = _mul24(p, op, a[:2])
    if op.saturate:
        return intrinsic("sadd.sat", p, 32, (product, a[2]))
    return p.op(f"add {p.integer(32)} {product}, {a[2]}")


def _minimum(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return intrinsic("smin" if op.type.is_signed else "umin", p, op.type.bits, a)


def _maximum(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return intrinsic("smax" if op.type.is_signed else "umax", p, op.type.bits, a)


def _sad(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``c + |a - b|``."""
    kind = p.integer(op.type.bits)
    difference = p.op(f"sub {kind} {_maximum(p, op, a[:2])}, {_minimum(p, op, a[:2])}")
    return p.op(f"add {kind} {difference}, {a[2]}")


def _absolute(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return intrinsic("abs", p, op.type.bits, a[:1], "false")


def _negate(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return p.op(f"sub {p.integer(op.type.bits)} {p.const(op.type.bits, 0)}, {a[0]}")


def _quotient(p: Poly, op: Operation, a: str, b: str) -> tuple[str, str]:
    """Quotient and divisor, where a zero divisor gives all ones, as the hardware does.

    Up to 32 bits the quotient is exact in f64; wider ones divide lane by lane.
    """
    bits, signed = op.type.bits, op.type.is_signed
    kind = p.integer(bits)
    zero = p.op(f"icmp eq {kind} {b}, {p.const(bits, 0)}")
    safe = p.op(f"select {p.boolean} {zero}, {kind} {p.const(bits, 1)}, {kind} {b}")
    if bits == 64 or not p.wide:
        quotient = _divide_integer(p, op, a, safe)
    else:
        quotient = _divide_exactly(p, a, safe, bits, signed=signed)
    ones = p.const(bits, -1)
    return p.op(f"select {p.boolean} {zero}, {kind} {ones}, {kind} {quotient}"), safe


def _divide_integer(p: Poly, op: Operation, a: str, safe: str) -> str:
    kind, bits = p.integer(op.type.bits), op.type.bits
    if not op.type.is_signed:
        return p.op(f"udiv {kind} {a}, {safe}")
    # The one signed quotient that overflows traps on the host: -a wraps to itself instead.
    minus = p.op(f"icmp eq {kind} {safe}, {p.const(bits, -1)}")
    divisor = p.op(f"select {p.boolean} {minus}, {kind} {p.const(bits, 1)}, {kind} {safe}")
    quotient = p.op(f"sdiv {kind} {a}, {divisor}")
    negated = p.op(f"sub {kind} {p.const(bits, 0)}, {a}")
    return p.op(f"select {p.boolean} {minus}, {kind} {negated}, {kind} {quotient}")


def _divide_exactly(p: Poly, a: str, safe: str, bits: int, *, signed: bool) -> str:
    to_float, to_int = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
    x = p.op(f"{to_float} {p.integer(bits)} {a} to {p.floating(64)}")
    y = p.op(f"{to_float} {p.integer(bits)} {safe} to {p.floating(64)}")
    ratio = p.op(f"fdiv {p.floating(64)} {x}, {y}")
    whole = p.op(f"{to_int} {p.floating(64)} {ratio} to {p.integer(64)}")
    return p.op(f"trunc {p.integer(64)} {whole} to {p.integer(bits)}")


def _divide(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return _quotient(p, op, a[0], a[1])[0]


def _remainder(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``a - (a / b) * b``; with a zero divisor the dividend itself, as the hardware gives."""
    kind = p.integer(op.type.bits)
    quotient = _quotient(p, op, a[0], a[1])[0]
    product = p.op(f"mul {kind} {quotient}, {a[1]}")
    return p.op(f"sub {kind} {a[0]}, {product}")


def _dot(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``dp4a``/``dp2a``: sum of byte products and ``c``, modulo 2**32."""
    left, right = op.types[0], op.types[1]
    count, step = (4, 8) if op.opcode == "dp4a" else (2, 16)
    offset = 16 if op.opcode == "dp2a" and "hi" in op.modifiers else 0
    kind = p.integer(32)
    total = a[2]
    for i in range(count):
        x = _field(p, a[0], step * i, step, signed=left.is_signed)
        y = _field(p, a[1], offset + 8 * i, 8, signed=right.is_signed)
        total = p.op(f"add {kind} {total}, {p.op(f'mul {kind} {x}, {y}')}")
    return total


def _clmad(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``clmad``: the low or high half of a carry-less product, exclusive or ``c``."""
    kind, total = p.integer(64), a[2]
    high = "hi" in op.modifiers
    for bit in range(1 if high else 0, 64):
        verb, amount = ("lshr", 64 - bit) if high else ("shl", bit)
        moved = p.op(f"{verb} {kind} {a[0]}, {p.const(64, amount)}")
        top = p.op(f"shl {kind} {a[1]}, {p.const(64, 63 - bit)}")
        chosen = p.op(f"ashr {kind} {top}, {p.const(64, 63)}")
        total = p.op(f"xor {kind} {total}, {p.op(f'and {kind} {moved}, {chosen}')}")
    return total


def _field(p: Poly, value: str, position: int, width: int, *, signed: bool) -> str:
    kind = p.integer(32)
    up = p.op(f"shl {kind} {value}, {p.const(32, 32 - position - width)}")
    how = "ashr" if signed else "lshr"
    return p.op(f"{how} {kind} {up}, {p.const(32, 32 - width)}")


# ------------------------------------------------------------------ lowerings


def _simple(text: Text, count: int, *, result: str = "same", tail: str = "") -> Lower:
    """A pure lowering of ``count`` operands of the instruction's type.

    ``result`` is ``same``, ``wide`` or ``u32``; the last ``len(tail)`` operands are u32.
    """

    def lower(c: Context, op: Operation) -> None:
        kind = op.type
        kinds = [kind] * (count - len(tail)) + [PtxType.U32] * len(tail)
        target = PtxType.U32 if result == "u32" else kind
        if "wide" in op.modifiers:
            target = _WIDER[kind]
            kinds = [kind, kind, target][:count]
        lower_pure(c, op, kinds, target, text)

    return lower


_WIDER: Final = {
    PtxType.U16: PtxType.U32,
    PtxType.S16: PtxType.S32,
    PtxType.U32: PtxType.U64,
    PtxType.S32: PtxType.S64,
}


def _lower_logic(c: Context, op: Operation) -> None:
    """``and or xor not`` on data or on predicates."""
    if op.type is not PtxType.PRED:
        text = complement if op.opcode == "not" else _binary(op.opcode)
        lower_pure(c, op, [op.type] * (len(c.instruction.operands) - 1), op.type, text)
        return
    sources = [c.predicate(s) for s in c.instruction.operands[1:]]
    if op.opcode == "not":
        c.write_predicate(c.instruction.operands[0], c.negated(sources[0]))
        return
    c.write_predicate(c.instruction.operands[0], c.combined(op.opcode, sources[0], sources[1]))


def _lower_lop3(c: Context, op: Operation) -> None:
    """Any boolean function of three words, from its truth table.

    With a boolean operator it also gives ``(d != 0) op q``.
    """
    operands = c.instruction.operands
    destination = operands[0]
    table = c.read(operands[4], 32).shape.constant
    if table is None:
        raise c.refuse("the truth table of lop3 must be a constant")
    values = [c.read_sized(s, op.type) for s in operands[1:4]]

    def text(p: Poly, _: Operation, a: Sequence[str]) -> str:
        return _truth_table(p, a, table)

    result = pure_value(c, op, values, op.type, text)
    if not isinstance(destination, Pair):
        c.write(destination, result)
        return
    p = Poly(c, not result.shape.uniform)
    some = p.op(f"icmp ne {p.integer(32)} {p.get(result)}, {p.const(32, 0)}")
    found = c.combined(op.combine, p.predicate(some), c.predicate(operands[5]))
    c.write(destination.first, result)
    c.write_predicate(destination.second, found)


def _truth_table(p: Poly, a: Sequence[str], table: int) -> str:
    kind = p.integer(32)
    inverse = [p.op(f"xor {kind} {x}, {p.const(32, -1)}") for x in a]
    result = p.const(32, 0)
    for row in range(8):
        if not table >> row & 1:
            continue
        bits = ((row >> 2) & 1, (row >> 1) & 1, row & 1)
        picked = [a[i] if bits[i] else inverse[i] for i in range(3)]
        term = p.op(f"and {kind} {p.op(f'and {kind} {picked[0]}, {picked[1]}')}, {picked[2]}")
        result = p.op(f"or {kind} {result}, {term}")
    return result


def _lower_carry(c: Context, op: Operation) -> None:
    """``add.cc addc sub.cc subc mad.cc madc`` through the carry flag."""
    bits = op.type.bits
    values = [c.clean(c.read_sized(s, op.type)) for s in c.instruction.operands[1:]]
    takes = op.opcode in ("addc", "subc", "madc")
    carry = c.predicate_register(effects.CARRY) if takes else None
    p = c.poly(*values, *([carry] if carry else []))
    names = [p.get(v) for v in values]
    if op.opcode in ("mad", "madc"):
        names = [_product(p, op, names[0], names[1]), names[2]]
    result, out = _add_with_carry(c, p, op, names, carry, bits)
    c.write(c.instruction.operands[0], p.result(result, uniform(bits)))
    if "cc" in op.modifiers:
        c.write_carry(p.predicate(out))


def _add_with_carry(
    c: Context, p: Poly, op: Operation, names: Sequence[str], carry: Predicate | None, bits: int
) -> tuple[str, str]:
    """Sum and carry out; a difference borrows, and CC holds the borrow."""
    kind = p.integer(bits)
    subtract = op.opcode in ("sub", "subc")
    llvm, test = ("sub", "ult") if subtract else ("add", "ult")
    result = p.op(f"{llvm} {kind} {names[0]}, {names[1]}")
    out = (
        p.op(f"icmp {test} {kind} {names[0]}, {names[1]}")
        if subtract
        else p.op(f"icmp {test} {kind} {result}, {names[0]}")
    )
    if carry is None:
        return result, out
    bit = c.bools_of(carry) if p.wide else carry.scalar
    extra = p.op(f"zext {p.boolean} {bit} to {kind}")
    final = p.op(f"{llvm} {kind} {result}, {extra}")
    again = (
        p.op(f"icmp ult {kind} {result}, {extra}")
        if subtract
        else p.op(f"icmp ult {kind} {final}, {result}")
    )
    return final, p.op(f"or {p.boolean} {out}, {again}")


def _lower_fns(c: Context, op: Operation) -> None:
    """Find the n-th set bit; a helper walks the bits."""
    values = [c.read_sized(s, PtxType.U32) for s in c.instruction.operands[1:]]
    c.write(c.instruction.operands[0], c.elementwise("va_m_fns", values, 32))


LOWERINGS: Final[Mapping[str, Lower]] = {
    "add": _simple(_add, 2),
    "sub": _simple(_sub, 2),
    "mul": _simple(_mul, 2),
    "mad": _simple(_mad, 3),
    "mul24": _simple(_mul24, 2),
    "mad24": _simple(_mad24, 3),
    "sad": _simple(_sad, 3),
    "div": _simple(_divide, 2),
    "rem": _simple(_remainder, 2),
    "abs": _simple(_absolute, 1),
    "neg": _simple(_negate, 1),
    "min": _simple(_minimum, 2),
    "max": _simple(_maximum, 2),
    "popc": _simple(popc, 1, result="u32"),
    "clz": _simple(clz, 1, result="u32"),
    "bfind": _simple(bfind, 1, result="u32"),
    "brev": _simple(brev, 1),
    "bfe": _simple(bfe, 3, tail="uu"),
    "bfi": _simple(bfi, 4, tail="uu"),
    "bmsk": _simple(bmsk, 2),
    "szext": _simple(szext, 2, tail="u"),
    "dp4a": _simple(_dot, 3, result="u32"),
    "dp2a": _simple(_dot, 3, result="u32"),
    "clmad": _simple(_clmad, 3),
    "fns": _lower_fns,
    "and": _lower_logic,
    "or": _lower_logic,
    "xor": _lower_logic,
    "not": _lower_logic,
    "cnot": _simple(cnot, 1),
    "lop3": _lower_lop3,
    "shf": _simple(shf, 3),
    "shl": _simple(shl, 2, tail="u"),
    "shr": _simple(shr, 2, tail="u"),
    "prmt": _simple(prmt, 3),
    "addc": _lower_carry,
    "subc": _lower_carry,
    "madc": _lower_carry,
}


def lower_integer(c: Context, op: Operation) -> None:
    """Integer, logic and shift instructions."""
    if effects.sets_carry(op):
        _lower_carry(c, op)
        return
    LOWERINGS[op.opcode](c, op)
