"""Integer arithmetic, logic, shifts, comparison and selection."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

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


def _intrinsic(name: str, p: Poly, bits: int, arguments: Sequence[str], *extra: str) -> str:
    kind = p.integer(bits)
    listed = [(kind, a) for a in arguments]
    listed += [("i1", e) for e in extra]
    return p.call(f"llvm.{name}.{p.suffix(bits)}", kind, listed)


def _add(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``add``; ``.sat`` clamps to the signed 32-bit range."""
    if op.saturate:
        return _intrinsic("sadd.sat", p, 32, a)
    return p.op(f"add {p.integer(op.type.bits)} {a[0]}, {a[1]}")


def _sub(p: Poly, op: Operation, a: Sequence[str]) -> str:
    if op.saturate:
        return _intrinsic("ssub.sat", p, 32, a)
    return p.op(f"sub {p.integer(op.type.bits)} {a[0]}, {a[1]}")


def _extend(p: Poly, value: str, bits: int, to: int, *, signed: bool) -> str:
    how = "sext" if signed else "zext"
    return p.op(f"{how} {p.integer(bits)} {value} to {p.integer(to)}")


def _wide_product(p: Poly, op: Operation, a: str, b: str) -> str:
    """Full product, twice as wide as the operands."""
    bits, signed = op.type.bits, op.type.is_signed
    x = _extend(p, a, bits, 2 * bits, signed=signed)
    y = _extend(p, b, bits, 2 * bits, signed=signed)
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
        return _intrinsic("sadd.sat", p, bits, (product, a[2]))
    return p.op(f"add {p.integer(bits)} {product}, {a[2]}")


def _mul24(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Product of the low 24 bits: bits 0-31 (``.lo``) or 16-47 (``.hi``) of it."""
    shift = "ashr" if op.type.is_signed else "lshr"
    parts = []
    for value in a[:2]:
        up = p.op(f"shl {p.integer(32)} {value}, {p.const(32, 8)}")
        down = p.op(f"{shift} {p.integer(32)} {up}, {p.const(32, 8)}")
        parts.append(_extend(p, down, 32, 64, signed=op.type.is_signed))
    full = p.op(f"mul {p.integer(64)} {parts[0]}, {parts[1]}")
    if "hi" in op.modifiers:
        full = p.op(f"lshr {p.integer(64)} {full}, {p.const(64, 16)}")
    return p.op(f"trunc {p.integer(64)} {full} to {p.integer(32)}")


def _mad24(p: Poly, op: Operation, a: Sequence[str]) -> str:
    product = _mul24(p, op, a[:2])
    if op.saturate:
        return _intrinsic("sadd.sat", p, 32, (product, a[2]))
    return p.op(f"add {p.integer(32)} {product}, {a[2]}")


def _minimum(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return _intrinsic("smin" if op.type.is_signed else "umin", p, op.type.bits, a)


def _maximum(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return _intrinsic("smax" if op.type.is_signed else "umax", p, op.type.bits, a)


def _sad(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``c + |a - b|``."""
    kind = p.integer(op.type.bits)
    difference = p.op(f"sub {kind} {_maximum(p, op, a[:2])}, {_minimum(p, op, a[:2])}")
    return p.op(f"add {kind} {difference}, {a[2]}")


def _absolute(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return _intrinsic("abs", p, op.type.bits, a[:1], "false")


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


_NUMBER: Final = re.compile(r"(?:splat \(i32 )?(-?\d+)\)?$")


def _known_amount(amount: str) -> int | None:
    """A 32-bit amount that is a literal."""
    found = _NUMBER.match(amount)
    return int(found[1]) & 0xFFFFFFFF if found else None


def _shift_amount(p: Poly, bits: int, amount: str) -> str:
    """The 32-bit amount in the width of the value, clamped below LLVM's limit."""
    known = _known_amount(amount)
    if known is not None:
        return p.const(bits, min(known, bits - 1))
    limit = p.const(32, bits - 1)
    low = p.call(
        f"llvm.umin.{p.suffix(32)}",
        p.integer(32),
        [(p.integer(32), amount), (p.integer(32), limit)],
    )
    if bits == 64:
        return _extend(p, low, 32, 64, signed=False)
    if bits == 16:
        return p.op(f"trunc {p.integer(32)} {low} to {p.integer(16)}")
    return low


def _shift(p: Poly, op: Operation, a: Sequence[str], llvm: str) -> str:
    """Amounts above the width clamp to it: the result is zero, or all sign."""
    bits = op.type.bits
    kind = p.integer(bits)
    shifted = p.op(f"{llvm} {kind} {a[0]}, {_shift_amount(p, bits, a[1])}")
    known = _known_amount(a[1])
    if llvm == "ashr" or (known is not None and known < bits):
        return shifted
    over = p.op(f"icmp ugt {p.integer(32)} {a[1]}, {p.const(32, bits - 1)}")
    return p.op(f"select {p.boolean} {over}, {kind} {p.const(bits, 0)}, {kind} {shifted}")


def _shl(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return _shift(p, op, a, "shl")


def _shr(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return _shift(p, op, a, "ashr" if op.type.is_signed else "lshr")


def _not(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return p.op(f"xor {p.integer(op.type.bits)} {a[0]}, {p.const(op.type.bits, -1)}")


def _cnot(p: Poly, op: Operation, a: Sequence[str]) -> str:
    kind = p.integer(op.type.bits)
    zero = p.op(f"icmp eq {kind} {a[0]}, {p.const(op.type.bits, 0)}")
    return p.op(f"zext {p.boolean} {zero} to {kind}")


def _to_32(p: Poly, value: str, bits: int) -> str:
    return value if bits == 32 else p.op(f"trunc {p.integer(bits)} {value} to {p.integer(32)}")


def _popc(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return _to_32(p, _intrinsic("ctpop", p, op.type.bits, a[:1]), op.type.bits)


def _clz(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return _to_32(p, _intrinsic("ctlz", p, op.type.bits, a[:1], "false"), op.type.bits)


def _brev(p: Poly, op: Operation, a: Sequence[str]) -> str:
    return _intrinsic("bitreverse", p, op.type.bits, a[:1])


def _bfind(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Highest significant bit; all ones when there is none."""
    bits = op.type.bits
    kind = p.integer(bits)
    value = a[0]
    if op.type.is_signed:
        sign = p.op(f"ashr {kind} {value}, {p.const(bits, bits - 1)}")
        value = p.op(f"xor {kind} {value}, {sign}")
    zeros = _to_32(p, _intrinsic("ctlz", p, bits, (value,), "false"), bits)
    place = (
        zeros
        if "shiftamt" in op.modifiers
        else p.op(f"sub {p.integer(32)} {p.const(32, bits - 1)}, {zeros}")
    )
    none = p.op(f"icmp eq {kind} {value}, {p.const(bits, 0)}")
    return p.op(
        f"select {p.boolean} {none}, {p.integer(32)} {p.const(32, -1)}, {p.integer(32)} {place}"
    )


def _low_byte(p: Poly, value: str) -> str:
    return p.op(f"and {p.integer(32)} {value}, {p.const(32, 255)}")


def _shift_clamped(p: Poly, llvm: str, value: str, amount: str) -> str:
    """A 64-bit shift by a 32-bit amount, zero (or all sign) from 64 on."""
    kind = p.integer(64)
    shifted = p.op(f"{llvm} {kind} {value}, {_shift_amount(p, 64, amount)}")
    known = _known_amount(amount)
    if llvm == "ashr" or (known is not None and known < 64):
        return shifted
    over = p.op(f"icmp ugt {p.integer(32)} {amount}, {p.const(32, 63)}")
    return p.op(f"select {p.boolean} {over}, {kind} {p.const(64, 0)}, {kind} {shifted}")


def _bfe(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Bit field extract; a signed field beyond the register's end repeats its sign bit."""
    bits, signed = op.type.bits, op.type.is_signed
    kind = p.integer(64)
    position, length = _low_byte(p, a[1]), _low_byte(p, a[2])
    wide = a[0] if bits == 64 else _extend(p, a[0], bits, 64, signed=signed)
    moved = _shift_clamped(p, "ashr" if signed else "lshr", wide, position)
    ones = _shift_clamped(p, "shl", p.const(64, -1), length)
    keep = p.op(f"xor {kind} {ones}, {p.const(64, -1)}")
    field = p.op(f"and {kind} {moved}, {keep}")
    if signed:
        field = _sign_fill(p, field, wide, (position, length), bits)
    return field if bits == 64 else p.op(f"trunc {kind} {field} to {p.integer(bits)}")


def _sign_fill(p: Poly, field: str, wide: str, place: tuple[str, str], bits: int) -> str:
    """Fill above a field with its sign: bit ``min(pos + len - 1, msb)`` of the source."""
    kind = p.integer(64)
    position, length = place
    end = p.op(f"add {p.integer(32)} {position}, {length}")
    last = p.op(f"sub {p.integer(32)} {end}, {p.const(32, 1)}")
    msb = p.const(32, bits - 1)
    bit = p.call(
        f"llvm.umin.{p.suffix(32)}", p.integer(32), [(p.integer(32), last), (p.integer(32), msb)]
    )
    sign = p.op(f"and {kind} {_shift_clamped(p, 'lshr', wide, bit)}, {p.const(64, 1)}")
    fill = p.op(f"sub {kind} {p.const(64, 0)}, {sign}")
    above = p.op(f"and {kind} {fill}, {_shift_clamped(p, 'shl', p.const(64, -1), length)}")
    filled = p.op(f"or {kind} {field}, {above}")
    empty = p.op(f"icmp eq {p.integer(32)} {length}, {p.const(32, 0)}")
    return p.op(f"select {p.boolean} {empty}, {kind} {p.const(64, 0)}, {kind} {filled}")


def _bfi(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Bit field insert of ``a`` into ``b``."""
    bits = op.type.bits
    kind = p.integer(64)
    position, length = _low_byte(p, a[2]), _low_byte(p, a[3])
    x = a[0] if bits == 64 else _extend(p, a[0], bits, 64, signed=False)
    y = a[1] if bits == 64 else _extend(p, a[1], bits, 64, signed=False)
    outside = _shift_clamped(p, "shl", p.const(64, -1), length)
    field = p.op(f"xor {kind} {outside}, {p.const(64, -1)}")
    mask = _shift_clamped(p, "shl", field, position)
    moved = p.op(f"and {kind} {_shift_clamped(p, 'shl', x, position)}, {mask}")
    kept = p.op(f"and {kind} {y}, {p.op(f'xor {kind} {mask}, {p.const(64, -1)}')}")
    result = p.op(f"or {kind} {kept}, {moved}")
    return result if bits == 64 else p.op(f"trunc {kind} {result} to {p.integer(bits)}")


def _bmsk(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``b`` ones starting at bit ``a``; ``.wrap`` takes both modulo 32, ``.clamp`` clamps."""
    kind = p.integer(64)
    start, width = a[0], a[1]
    if "wrap" in op.modifiers:
        start = p.op(f"and {p.integer(32)} {start}, {p.const(32, 31)}")
        width = p.op(f"and {p.integer(32)} {width}, {p.const(32, 31)}")
    outside = _shift_clamped(p, "shl", p.const(64, -1), width)
    ones = p.op(f"xor {kind} {outside}, {p.const(64, -1)}")
    placed = _shift_clamped(p, "shl", ones, start)
    return p.op(f"trunc {kind} {placed} to {p.integer(32)}")


def _szext(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Sign- or zero-extend from bit ``b - 1``."""
    kind = p.integer(64)
    width = a[1]
    if "wrap" in op.modifiers:
        width = p.op(f"and {p.integer(32)} {width}, {p.const(32, 31)}")
    wide = _extend(p, a[0], 32, 64, signed=op.type.is_signed)
    ones = _shift_clamped(p, "shl", p.const(64, -1), width)
    keep = p.op(f"xor {kind} {ones}, {p.const(64, -1)}")
    field = p.op(f"and {kind} {wide}, {keep}")
    if op.type.is_signed:
        field = _sign_fill(p, field, wide, (p.const(32, 0), width), 32)
    return p.op(f"trunc {kind} {field} to {p.integer(32)}")


def _prmt(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Byte permute, generic mode: selector nibble picks a byte of ``{b, a}``, bit 3 its sign."""
    kind = p.integer(64)
    low = _extend(p, a[0], 32, 64, signed=False)
    high = p.op(f"shl {kind} {_extend(p, a[1], 32, 64, signed=False)}, {p.const(64, 32)}")
    both = p.op(f"or {kind} {high}, {low}")
    selector = _extend(p, _prmt_selector(p, op, a[2]), 32, 64, signed=False)
    result = p.const(64, 0)
    for i in range(4):
        nibble = p.op(f"lshr {kind} {selector}, {p.const(64, 4 * i)}")
        index = p.op(f"and {kind} {nibble}, {p.const(64, 7)}")
        shift = p.op(f"shl {kind} {index}, {p.const(64, 3)}")
        byte = p.op(f"and {kind} {p.op(f'lshr {kind} {both}, {shift}')}, {p.const(64, 255)}")
        sign = p.op(f"and {kind} {p.op(f'lshr {kind} {byte}, {p.const(64, 7)}')}, {p.const(64, 1)}")
        spread = p.op(f"mul {kind} {sign}, {p.const(64, 255)}")
        bit = p.op(f"and {kind} {nibble}, {p.const(64, 8)}")
        copy = p.op(f"icmp ne {kind} {bit}, {p.const(64, 0)}")
        chosen = p.op(f"select {p.boolean} {copy}, {kind} {spread}, {kind} {byte}")
        placed = p.op(f"shl {kind} {chosen}, {p.const(64, 8 * i)}")
        result = p.op(f"or {kind} {result}, {placed}")
    return p.op(f"trunc {kind} {result} to {p.integer(32)}")


_PRMT_SELECTORS: Final[Mapping[str, tuple[int, int, int, int]]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""Selector by the two low bits of ``c``, for each named mode."""


def _prmt_selector(p: Poly, op: Operation, c: str) -> str:
    mode = next((m for m in _PRMT_SELECTORS if m in op.modifiers or op.combine == m), None)
    if mode is None:
        return c
    kind = p.integer(32)
    low = p.op(f"and {kind} {c}, {p.const(32, 3)}")
    result = p.const(32, _PRMT_SELECTORS[mode][0])
    for number in (1, 2, 3):
        same = p.op(f"icmp eq {kind} {low}, {p.const(32, number)}")
        value = p.const(32, _PRMT_SELECTORS[mode][number])
        result = p.op(f"select {p.boolean} {same}, {kind} {value}, {kind} {result}")
    return result


def _shf(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Funnel shift of ``{b, a}``: ``.l`` gives the high word, ``.r`` the low one."""
    kind = p.integer(32)
    known = _known_amount(a[2])
    if known is not None and (known < 32 or "wrap" in op.modifiers):
        # What moves in from the other word, without going through 64 bits.
        name, by = ("fshl" if "l" in op.modifiers else "fshr"), p.const(32, known % 32)
        return p.call(f"llvm.{name}.{p.suffix(32)}", kind, [(kind, x) for x in (a[1], a[0], by)])
    if "wrap" in op.modifiers:
        amount = p.op(f"and {kind} {a[2]}, {p.const(32, 31)}")
    else:
        amount = p.call(f"llvm.umin.{p.suffix(32)}", kind, [(kind, a[2]), (kind, p.const(32, 32))])
    wide = p.integer(64)
    high = p.op(f"shl {wide} {_extend(p, a[1], 32, 64, signed=False)}, {p.const(64, 32)}")
    both = p.op(f"or {wide} {high}, {_extend(p, a[0], 32, 64, signed=False)}")
    by = _extend(p, amount, 32, 64, signed=False)
    if "l" in op.modifiers:
        moved = p.op(f"shl {wide} {both}, {by}")
        moved = p.op(f"lshr {wide} {moved}, {p.const(64, 32)}")
    else:
        moved = p.op(f"lshr {wide} {both}, {by}")
    return p.op(f"trunc {wide} {moved} to {kind}")


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
        text = _not if op.opcode == "not" else _binary(op.opcode)
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
    "popc": _simple(_popc, 1, result="u32"),
    "clz": _simple(_clz, 1, result="u32"),
    "bfind": _simple(_bfind, 1, result="u32"),
    "brev": _simple(_brev, 1),
    "bfe": _simple(_bfe, 3, tail="uu"),
    "bfi": _simple(_bfi, 4, tail="uu"),
    "bmsk": _simple(_bmsk, 2),
    "szext": _simple(_szext, 2, tail="u"),
    "dp4a": _simple(_dot, 3, result="u32"),
    "dp2a": _simple(_dot, 3, result="u32"),
    "clmad": _simple(_clmad, 3),
    "fns": _lower_fns,
    "and": _lower_logic,
    "or": _lower_logic,
    "xor": _lower_logic,
    "not": _lower_logic,
    "cnot": _simple(_cnot, 1),
    "lop3": _lower_lop3,
    "shf": _simple(_shf, 3),
    "shl": _simple(_shl, 2, tail="u"),
    "shr": _simple(_shr, 2, tail="u"),
    "prmt": _simple(_prmt, 3),
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
