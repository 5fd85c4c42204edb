"""Shifts, bit fields and counts of bits, as LLVM text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from va100.jit.emit import Poly
from va100.ptx.isa.form import Operation


def intrinsic(name: str, p: Poly, bits: int, arguments: Sequence[str], *extra: str) -> str:
    """A call of an intrinsic on integers; ``extra`` are its flags."""
    kind = p.integer(bits)
    listed = [(kind, a) for a in arguments]
    listed += [("i1", e) for e in extra]
    return p.call(f"llvm.{name}.{p.suffix(bits)}", kind, listed)


def extend(p: Poly, value: str, bits: int, to: int, *, signed: bool) -> str:
    """Sign- or zero-extension."""
    how = "sext" if signed else "zext"
    return p.op(f"{how} {p.integer(bits)} {value} to {p.integer(to)}")


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
        return extend(p, low, 32, 64, signed=False)
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


def shl(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``shl``."""
    return _shift(p, op, a, "shl")


def shr(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``shr``, by the type's sign."""
    return _shift(p, op, a, "ashr" if op.type.is_signed else "lshr")


def complement(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``not``."""
    return p.op(f"xor {p.integer(op.type.bits)} {a[0]}, {p.const(op.type.bits, -1)}")


def cnot(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``cnot``: whether nothing is set."""
    kind = p.integer(op.type.bits)
    zero = p.op(f"icmp eq {kind} {a[0]}, {p.const(op.type.bits, 0)}")
    return p.op(f"zext {p.boolean} {zero} to {kind}")


def _to_32(p: Poly, value: str, bits: int) -> str:
    return value if bits == 32 else p.op(f"trunc {p.integer(bits)} {value} to {p.integer(32)}")


def popc(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``popc``."""
    return _to_32(p, intrinsic("ctpop", p, op.type.bits, a[:1]), op.type.bits)


def clz(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``clz``."""
    return _to_32(p, intrinsic("ctlz", p, op.type.bits, a[:1], "false"), op.type.bits)


def brev(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """``brev``."""
    return intrinsic("bitreverse", p, op.type.bits, a[:1])


def bfind(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Highest significant bit; all ones when there is none."""
    bits = op.type.bits
    kind = p.integer(bits)
    value = a[0]
    if op.type.is_signed:
        sign = p.op(f"ashr {kind} {value}, {p.const(bits, bits - 1)}")
        value = p.op(f"xor {kind} {value}, {sign}")
    zeros = _to_32(p, intrinsic("ctlz", p, bits, (value,), "false"), bits)
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


def bfe(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Bit field extract; a signed field beyond the register's end repeats its sign bit."""
    bits, signed = op.type.bits, op.type.is_signed
    kind = p.integer(64)
    position, length = _low_byte(p, a[1]), _low_byte(p, a[2])
    wide = a[0] if bits == 64 else extend(p, a[0], bits, 64, signed=signed)
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


def bfi(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Bit field insert of ``a`` into ``b``."""
    bits = op.type.bits
    kind = p.integer(64)
    position, length = _low_byte(p, a[2]), _low_byte(p, a[3])
    x = a[0] if bits == 64 else extend(p, a[0], bits, 64, signed=False)
    y = a[1] if bits == 64 else extend(p, a[1], bits, 64, signed=False)
    outside = _shift_clamped(p, "shl", p.const(64, -1), length)
    field = p.op(f"xor {kind} {outside}, {p.const(64, -1)}")
    mask = _shift_clamped(p, "shl", field, position)
    moved = p.op(f"and {kind} {_shift_clamped(p, 'shl', x, position)}, {mask}")
    kept = p.op(f"and {kind} {y}, {p.op(f'xor {kind} {mask}, {p.const(64, -1)}')}")
    result = p.op(f"or {kind} {kept}, {moved}")
    return result if bits == 64 else p.op(f"trunc {kind} {result} to {p.integer(bits)}")


def bmsk(p: Poly, op: Operation, a: Sequence[str]) -> str:
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


def szext(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Sign- or zero-extend from bit ``b - 1``."""
    kind = p.integer(64)
    width = a[1]
    if "wrap" in op.modifiers:
        width = p.op(f"and {p.integer(32)} {width}, {p.const(32, 31)}")
    wide = extend(p, a[0], 32, 64, signed=op.type.is_signed)
    ones = _shift_clamped(p, "shl", p.const(64, -1), width)
    keep = p.op(f"xor {kind} {ones}, {p.const(64, -1)}")
    field = p.op(f"and {kind} {wide}, {keep}")
    if op.type.is_signed:
        field = _sign_fill(p, field, wide, (p.const(32, 0), width), 32)
    return p.op(f"trunc {kind} {field} to {p.integer(32)}")


def prmt(p: Poly, op: Operation, a: Sequence[str]) -> str:
    """Byte permute, generic mode: selector nibble picks a byte of ``{b, a}``, bit 3 its sign."""
    kind = p.integer(64)
    low = extend(p, a[0], 32, 64, signed=False)
    high = p.op(f"shl {kind} {extend(p, a[1], 32, 64, signed=False)}, {p.const(64, 32)}")
    both = p.op(f"or {kind} {high}, {low}")
    selector = extend(p, _prmt_selector(p, op, a[2]), 32, 64, signed=False)
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


def shf(p: Poly, op: Operation, a: Sequence[str]) -> str:
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
    high = p.op(f"shl {wide} {extend(p, a[1], 32, 64, signed=False)}, {p.const(64, 32)}")
    both = p.op(f"or {wide} {high}, {extend(p, a[0], 32, 64, signed=False)}")
    by = extend(p, amount, 32, 64, signed=False)
    if "l" in op.modifiers:
        moved = p.op(f"shl {wide} {both}, {by}")
        moved = p.op(f"lshr {wide} {moved}, {p.const(64, 32)}")
    else:
        moved = p.op(f"lshr {wide} {both}, {by}")
    return p.op(f"trunc {wide} {moved} to {kind}")
