"""Integer arithmetic, extended precision, bit fields and counts.

Every function takes the operation and its operands, typed as its type says, and returns raw or
typed bits; carries are :func:`evaluate_carry`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType
from va100.reference.issue import CARRY, Issue
from va100.reference.lanes import PRED, U32, Lanes, signed, typed, unsigned, words

_I32: Final = np.iinfo(np.int32)
_U64: Final = 0xFFFFFFFFFFFFFFFF


def evaluate_integer(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    operation = issue.step.operation
    operands = issue.step.operands
    if operation.opcode in CARRYING or "cc" in operation.modifiers:
        evaluate_carry(issue)
        return
    kinds = OPERAND_TYPES.get(operation.opcode, _same_types)(operation, len(operands) - 1)
    sources = [
        typed(issue.read(operand, kind), kind)
        for operand, kind in zip(operands[1:], kinds, strict=True)
    ]
    result = INTEGER[operation.opcode](operation, *sources)
    issue.write(operands[0], unsigned(result), extend_sign=operation.type.is_signed)


# ---------------------------------------------------------------- operand types


def _same_types(operation: Operation, count: int) -> list[PtxType]:
    return [operation.type] * count


def _mad_types(operation: Operation, count: int) -> list[PtxType]:
    kind = operation.type
    if "wide" not in operation.modifiers:
        return [kind] * count
    wide = {"u16": PtxType.U32, "s16": PtxType.S32, "u32": PtxType.U64, "s32": PtxType.S64}
    return [kind, kind, wide[kind.value]][:count]


def _field_types(operation: Operation, count: int) -> list[PtxType]:
    return [operation.type] * (count - 2) + [PtxType.U32] * 2


def _dot_types(operation: Operation, count: int) -> list[PtxType]:
    del count
    a, b = operation.types
    both = a.is_signed or b.is_signed
    return [PtxType.U32, PtxType.U32, PtxType.S32 if both else PtxType.U32]


def _fns_types(operation: Operation, count: int) -> list[PtxType]:
    del operation, count
    return [PtxType.B32, PtxType.B32, PtxType.S32]


def _szext_types(operation: Operation, count: int) -> list[PtxType]:
    del operation, count
    return [PtxType.U32, PtxType.U32]


OPERAND_TYPES: Final[Mapping[str, Callable[[Operation, int], list[PtxType]]]] = {
    "mad": _mad_types,
    "bfe": _field_types,
    "bfi": _field_types,
    "dp4a": _dot_types,
    "dp2a": _dot_types,
    "fns": _fns_types,
    "szext": _szext_types,
}
"""Opcode to the types of its sources, where they are not all the instruction's."""


# ---------------------------------------------------------------- arithmetic


def add(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Add; ``.sat`` clamps s32."""
    if operation.saturate:
        return _clamp(a.astype(np.int64) + b)
    return a + b


def sub(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Subtract; ``.sat`` clamps s32."""
    if operation.saturate:
        return _clamp(a.astype(np.int64) - b)
    return a - b


def mul(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Multiply: the low half, the high half, or all of the product."""
    if "wide" in operation.modifiers:
        product: Lanes = a.astype(_doubled(a)) * b.astype(_doubled(b))
        return product
    return _high(a, b) if "hi" in operation.modifiers else a * b


def mad(operation: Operation, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Multiply and add; ``.hi.sat`` clamps s32."""
    product = mul(operation, a, b)
    if operation.saturate:
        return _clamp(product.astype(np.int64) + c)
    total: Lanes = product + c
    return total


def mul24(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Multiply the low 24 bits: bits 31..0 or 47..16 of the product."""
    x, y = (_low24(v).astype(np.int64) for v in (a, b))
    product = x * y
    return (product >> 16 if "hi" in operation.modifiers else product).astype(a.dtype)


def mad24(operation: Operation, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Multiply the low 24 bits and add; ``.hi.sat`` clamps s32."""
    product = mul24(operation, a, b)
    if operation.saturate:
        return _clamp(product.astype(np.int64) + c)
    return product + c


def sad(operation: Operation, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Absolute difference plus c."""
    del operation
    return c + np.where(a < b, b - a, a - b)


def div(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Quotient toward zero.

    Division by zero is unspecified in PTX; all ones here.  The most negative number over -1
    wraps to itself.
    """
    del operation
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    return np.where(zero, ~b.dtype.type(0), _truncated(a, safe))


def rem(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Remainder with the sign of a; by zero, unspecified in PTX, a here."""
    del operation
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    return np.where(zero, a, a - _truncated(a, safe) * safe)


def absolute(operation: Operation, a: Lanes) -> Lanes:
    """Absolute value; the most negative number stays."""
    del operation
    return np.where(a < 0, -a, a)


def neg(operation: Operation, a: Lanes) -> Lanes:
    """Negative."""
    del operation
    return -a


def minimum(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Smaller."""
    del operation
    return np.minimum(a, b)


def maximum(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Larger."""
    del operation
    return np.maximum(a, b)


# ---------------------------------------------------------------- bits


def popc(operation: Operation, a: Lanes) -> Lanes:
    """Count ones."""
    del operation
    return np.bitwise_count(a).astype(U32)


def clz(operation: Operation, a: Lanes) -> Lanes:
    """Count leading zeros; all of them for zero."""
    width = operation.type.bits
    count = np.full(a.shape, width, np.uint32)
    for bit in range(width):
        count = np.where(a >> a.dtype.type(bit) != 0, np.uint32(width - 1 - bit), count)
    return count


def bfind(operation: Operation, a: Lanes) -> Lanes:
    """Position of the most significant bit that is not a sign bit; all ones if none.

    ``.shiftamt`` gives the left shift that would bring it to the top.
    """
    bits = unsigned(np.where(a < 0, ~a, a)) if operation.type.is_signed else a
    zeros = clz(operation, bits)
    width = np.uint32(operation.type.bits)
    found = zeros if "shiftamt" in operation.modifiers else width - np.uint32(1) - zeros
    return np.where(zeros == width, np.uint32(0xFFFFFFFF), found)


def brev(operation: Operation, a: Lanes) -> Lanes:
    """Reverse the bits."""
    result = np.zeros_like(a)
    for bit in range(operation.type.bits):
        one = (a >> a.dtype.type(bit)) & a.dtype.type(1)
        result |= one << a.dtype.type(operation.type.bits - 1 - bit)
    return result


def fns(operation: Operation, mask: Lanes, base: Lanes, offset: Lanes) -> Lanes:
    """Position of the n-th set bit from a base, up or down; all ones if there is none."""
    del operation
    found = [
        _nth_set(*lane) for lane in zip(*map(np.ndarray.tolist, (mask, base, offset)), strict=True)
    ]
    return np.array(found, np.uint32)


def _nth_set(mask: int, base: int, offset: int) -> int:
    if base > 31:
        return 0xFFFFFFFF
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    positions = range(base, 32) if offset > 0 else range(base, -1, -1)
    ones = [position for position in positions if mask >> position & 1]
    return ones[abs(offset) - 1] if abs(offset) <= len(ones) else 0xFFFFFFFF


def bfe(operation: Operation, a: Lanes, position: Lanes, length: Lanes) -> Lanes:
    """Extract a bit field, extended with its sign for signed types."""
    width = operation.type.bits
    start = (position & np.uint32(0xFF)).astype(np.int64)
    count = (length & np.uint32(0xFF)).astype(np.int64)
    bits = unsigned(a).astype(np.uint64) if not operation.type.is_signed else _sign_to_64(a)
    # Past the top bit the field repeats the sign, or zero.
    field = _shifted_right(bits, start, arithmetic=operation.type.is_signed, width=width)
    keep = _ones(np.minimum(count, 64))
    result = field & keep
    if operation.type.is_signed:
        top = np.minimum(start + count - 1, width - 1)
        negative = (_shifted_right(bits, np.maximum(top, 0), arithmetic=True, width=64) & 1) != 0
        result = np.where(negative & (count > 0), result | ~keep, result)
    return result.astype(unsigned(a).dtype)


def bfi(operation: Operation, a: Lanes, b: Lanes, position: Lanes, length: Lanes) -> Lanes:
    """Insert the low bits of a into b."""
    width = operation.type.bits
    start = (position & np.uint32(0xFF)).astype(np.int64)
    count = (length & np.uint32(0xFF)).astype(np.int64)
    inside = start < width
    shift = np.where(inside, start, 0).astype(np.uint64)
    keep = np.where(inside, _ones(np.minimum(count, 64)) << shift, np.uint64(0))
    moved = a.astype(np.uint64) << shift
    return ((b.astype(np.uint64) & ~keep) | (moved & keep)).astype(a.dtype)


def szext(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Extend the low N bits by sign or zero."""
    count = b & np.uint32(31)
    whole = (b >= 32) & ("clamp" in operation.modifiers)
    mask = np.where(whole, np.uint32(0), np.uint32(0xFFFFFFFF) << count)
    low = a & ~mask
    if not operation.type.is_signed:
        return low
    sign = (a >> ((count - np.uint32(1)) & np.uint32(31))) & np.uint32(1)
    negative = (sign != 0) & (count != 0) & ~whole
    return np.where(negative, low | mask, low)


def bmsk(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Mask of b ones from bit a on."""
    clamp = "clamp" in operation.modifiers
    start, count = a & np.uint32(31), b & np.uint32(31)
    total = start + count
    low = np.uint32(0xFFFFFFFF) << start
    high = np.where(total >= 32, np.uint32(0), np.uint32(0xFFFFFFFF) << (total & np.uint32(31)))
    if clamp:
        low = np.where(a >= 32, np.uint32(0), low)
        high = np.where((a >= 32) | (b >= 32), np.uint32(0), high)
        untouched = (count == 0) & (b < 32) & (a < 32)
    else:
        untouched = count == 0
    high = np.where(untouched & (total < 32), np.uint32(0xFFFFFFFF), high)
    return low & ~high


def dp4a(operation: Operation, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Four-way byte dot product plus c."""
    x, y = (
        _parts(v, kind, np.dtype(np.uint8)) for v, kind in zip((a, b), operation.types, strict=True)
    )
    return _accumulated((x * y).sum(axis=1), c)


def dp2a(operation: Operation, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Dot product of two 16-bit parts of a with the low or high two bytes of b, plus c."""
    x = _parts(a, operation.types[0], np.dtype(np.uint16))
    y = _parts(b, operation.types[1], np.dtype(np.uint8))
    y = y[:, 2:] if "hi" in operation.modifiers else y[:, :2]
    return _accumulated((x * y).sum(axis=1), c)


def clmad(operation: Operation, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Half of the product of two polynomials over GF(2), plus c, which is exclusive or."""
    products = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        product = 0
        for bit in range(64):
            product ^= (x << bit) * (y >> bit & 1)
        products.append(product >> 64 if "hi" in operation.modifiers else product & _U64)
    return np.array(products, np.uint64) ^ c


INTEGER: Final[Mapping[str, Callable[..., Lanes]]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "mad": mad,
    "mul24": mul24,
    "mad24": mad24,
    "sad": sad,
    "div": div,
    "rem": rem,
    "abs": absolute,
    "neg": neg,
    "min": minimum,
    "max": maximum,
    "popc": popc,
    "clz": clz,
    "bfind": bfind,
    "brev": brev,
    "fns": fns,
    "bfe": bfe,
    "bfi": bfi,
    "szext": szext,
    "bmsk": bmsk,
    "dp4a": dp4a,
    "dp2a": dp2a,
    "clmad": clmad,
}
"""Opcode to its function, without carries."""


# ---------------------------------------------------------------- carries

CARRYING: Final = frozenset({"addc", "subc", "madc"})
"""Opcodes that read the carry flag."""


def evaluate_carry(issue: Issue) -> None:
    """Evaluate ``add.cc``, ``addc``, ``sub.cc``, ``subc``, ``mad.cc``, ``madc``."""
    operation = issue.step.operation
    kind = operation.type
    destination, *sources = issue.step.operands
    values = [typed(issue.read(operand, kind), kind) for operand in sources]
    carry = issue.carry() if operation.opcode in CARRYING else np.zeros(32, PRED)
    if operation.opcode in ("sub", "subc"):
        total, out = _subtract(values[0], values[1], carry)
    else:
        if operation.opcode in ("mad", "madc"):
            values = [mul(operation, values[0], values[1]), values[2]]
        total, out = _add(values[0], values[1], carry)
    if "cc" in operation.modifiers:
        issue.put(CARRY, out)
    issue.write(destination, total)


def _add(a: Lanes, b: Lanes, carry: Lanes) -> tuple[Lanes, Lanes]:
    x, y = unsigned(a), unsigned(b)
    partial = x + y
    total = partial + carry.astype(partial.dtype)
    return total, (partial < x) | (total < partial)


def _subtract(a: Lanes, b: Lanes, borrow: Lanes) -> tuple[Lanes, Lanes]:
    """Difference, and the borrow that the flag holds."""
    x, y = unsigned(a), unsigned(b)
    total = x - y - borrow.astype(x.dtype)
    return total, (x < y) | ((x == y) & borrow)


# ---------------------------------------------------------------- parts


def _clamp(value: Lanes) -> Lanes:
    clamped: Lanes = np.clip(value, _I32.min, _I32.max).astype(np.int32)
    return clamped


def _doubled(value: Lanes) -> np.dtype[Any]:
    return np.dtype(f"{value.dtype.kind}{value.dtype.itemsize * 2}")


def _high(a: Lanes, b: Lanes) -> Lanes:
    width = a.dtype.itemsize * 8
    if width < 64:
        product = a.astype(_doubled(a)) * b.astype(_doubled(b))
        high: Lanes = (product >> product.dtype.type(width)).astype(a.dtype)
        return high
    products = [x * y >> 64 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    return np.array(products, a.dtype)


def _low24(value: Lanes) -> Lanes:
    if value.dtype.kind == "i":
        return (value << np.int32(8)) >> np.int32(8)
    return value & np.uint32(0xFFFFFF)


def _truncated(a: Lanes, b: Lanes) -> Lanes:
    """Quotient toward zero, where NumPy's is toward minus infinity."""
    if a.dtype.kind == "u":
        return a // b
    size = unsigned(absolute_bits(a)) // unsigned(absolute_bits(b))
    return np.where((a < 0) != (b < 0), -signed(size), signed(size))


def absolute_bits(value: Lanes) -> Lanes:
    """Magnitude as an unsigned number held in the signed type."""
    return np.where(value < 0, -value, value)


def _sign_to_64(value: Lanes) -> Lanes:
    return value.astype(np.int64).view(np.uint64)


def _shifted_right(bits: Lanes, amount: Lanes, *, arithmetic: bool, width: int) -> Lanes:
    """Shift 64-bit lanes right; past the width nothing but sign copies is left."""
    far = amount >= width
    by = np.where(far, 63, amount)
    if arithmetic:
        return (bits.view(np.int64) >> by).view(np.uint64)
    return np.where(far, np.uint64(0), bits >> by.astype(np.uint64))


def _ones(count: Lanes) -> Lanes:
    """Masks of 0 to 64 low ones."""
    some = np.uint64(0xFFFFFFFFFFFFFFFF) >> (np.uint64(64) - np.maximum(count, 1).astype(np.uint64))
    return np.where(count == 0, np.uint64(0), some)


def _parts(value: Lanes, kind: PtxType, part: np.dtype[Any]) -> Lanes:
    split = words(value, part)
    return (signed(split) if kind.is_signed else split).astype(np.int64)


def _accumulated(total: Lanes, c: Lanes) -> Lanes:
    return ((total + c.astype(np.int64)) & 0xFFFFFFFF).astype(np.uint32)
